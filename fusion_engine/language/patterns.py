"""Pattern text into Pattern trees: operators, captures, literals, alternatives, and fragments expanded in place."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from fusion_engine.diagnostics import GapFuseError, counted, did_you_mean
from fusion_engine.language.axes import parse_axes
from fusion_engine.language.expressions import CONSTANTS, convert_expression
from fusion_engine.language.fragments import FragmentLine
from fusion_engine.language.operators import COMMUTATIVE, most_inputs, operators, too_many_inputs
from fusion_engine.language.reader import Reader, check_name, keywords, number_or_list
from fusion_engine.language.trees import rename_expression
from fusion_engine.language.types import (
    ANY,
    Absent,
    Alternatives,
    Anything,
    Capture,
    Expression,
    Literal,
    Named,
    OpPattern,
    Pattern,
    Rearrange,
    With,
)

INFIX = {ast.Add: "Add", ast.Sub: "Sub", ast.Mult: "Mul", ast.Div: "Div"}


@dataclass(frozen=True, slots=True)
class Statement:
    """`names = pattern`: `patterns[i]` is what `names[i]` stands for (several for a node with several outputs)."""

    names: tuple[str, ...]
    patterns: tuple[Pattern, ...]
    node: ast.Assign


def read_statements(reader: Reader, body: list[ast.stmt]) -> tuple[list[Statement], Reader]:
    """The assignments of a pattern text in order, and a reader that knows their names. Raises GapFuseError."""
    statements: list[Statement] = []
    for node in body:
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            raise reader.text.error(node, "a line of a pattern reads `name = pattern`")
        statement = _statement(reader, node)
        known = {n: Named(n, p, p.span) for n, p in zip(statement.names, statement.patterns, strict=True) if n != ANY}
        statements.append(statement)
        reader = replace(reader, defined={**reader.defined, **known})
    return statements, reader


def _statement(reader: Reader, node: ast.Assign) -> Statement:
    # `y = act(n) -> lo, hi` parses as a tuple; `a, b = Split(x)` has a tuple of targets
    target = node.targets[0]
    targets = target.elts if isinstance(target, ast.Tuple) else [target]
    names = []
    for t in targets:
        if not isinstance(t, ast.Name):
            raise reader.text.error(t, "only a name can stand left of `=`")
        if t.id == ANY and len(targets) > 1:
            names.append(ANY)
            continue
        check_name(reader, t)
        if reader.name(t.id) in reader.defined:
            raise reader.text.error(t, f"`{t.id}` is defined twice")
        names.append(reader.name(t.id))
    pattern = read_pattern(reader, node.value)
    if len(names) == 1:
        return Statement(tuple(names), (pattern,), node)
    if not isinstance(pattern, OpPattern):
        raise reader.text.error(node.value, "only one operator's results can be given several names")
    return Statement(tuple(names), tuple(replace(pattern, output=i) for i in range(len(names))), node)


def read_pattern(reader: Reader, node: ast.expr) -> Pattern:
    """One pattern out of Python syntax. Raises GapFuseError at the place."""
    return reader.sizes.check(_read(reader, node), reader.text, node)


def _read(reader: Reader, node: ast.expr) -> Pattern:
    span = reader.text.span(node)
    match node:
        case ast.Tuple(elts=[ast.BinOp(op=ast.RShift()) as first, *rest]):
            return _fragment_call(reader, first, rest)
        case ast.BinOp(op=ast.RShift()):
            return _fragment_call(reader, node, [])
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            options = (*_options(read_pattern(reader, left), left), *_options(read_pattern(reader, right), right))
            return Alternatives(options, span)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in INFIX:
            name = INFIX[type(op)]
            inputs = (read_pattern(reader, left), read_pattern(reader, right))
            return OpPattern(name, None, None, None, inputs, (), None, (), name in COMMUTATIVE, span)
        case ast.Constant(value=None):
            return Absent(span)
        case ast.Name(id=name) if name == ANY:
            return Anything(span)
        case ast.Name(id=name) if name not in CONSTANTS:
            return _name(reader, node)
        case ast.Call(func=ast.Name(id="rearrange")):
            return _rearrange(reader, node)
        case ast.Call(func=ast.Name(id=name)) if name[0].islower() and name not in reader.classes:
            return _expand(reader, node, ())
        case ast.Call():
            return _operator(reader, node)
        case ast.NamedExpr(target=target, value=value):
            check_name(reader, target)
            return Named(reader.name(target.id), read_pattern(reader, value), span)
    return Literal(number_or_list(reader, node), span)


def _options(pattern: Pattern, node: ast.expr) -> tuple[Pattern, ...]:
    """`a | b | c` is one list of options."""
    chained = isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)
    return pattern.options if chained and isinstance(pattern, Alternatives) else (pattern,)


def _name(reader: Reader, node: ast.Name) -> Pattern:
    name = reader.name(node.id)
    if node.id in reader.defined:
        return reader.defined[node.id]
    if name in reader.defined:
        return reader.defined[name]
    check_name(reader, node)
    return Capture(name, reader.text.span(node))


def _rearrange(reader: Reader, node: ast.Call) -> Pattern:
    match node.args, node.keywords:
        case [operand, ast.Constant(value=str() as text)], []:
            if isinstance(why := parse_axes(text), str):
                raise reader.text.error(node.args[1], why)
            return Rearrange(read_pattern(reader, operand), text, reader.text.span(node))
    raise reader.text.error(node, 'it is written rearrange(p, "a b -> b a")')


# ---- operators ----


def _operator(reader: Reader, node: ast.Call) -> Pattern:
    match node.func:
        case ast.Name(id=op) if op in reader.classes:
            return _node(reader, node, op_class=op)
        case ast.Name(id=op):
            _check_operator(reader, node.func, op, node)
            return _node(reader, node, op=op)
        case ast.Constant(value=str() as callee):
            if "::" not in callee:
                raise reader.text.error(node.func, "a function is named `domain::name`")
            return _node(reader, node, callee=callee)
        case ast.Subscript(value=ast.Name(id=name) as place, slice=ast.Name(id=captured)):
            if name not in reader.classes:
                raise reader.text.error(place, f"unknown class `{name}`", did_you_mean(name, reader.classes))
            return _node(reader, node, op_class=name, op_capture=reader.captured(captured))
    raise reader.text.error(node.func, "what is called is an operator, a fragment, class[op], or a text `domain::name`")


def _check_operator(reader: Reader, place: ast.expr, op: str, node: ast.Call) -> None:
    schema = operators().get(op)
    if schema is None:
        raise reader.text.error(place, f"unknown operator `{op}`", did_you_mean(op, operators()))
    most = most_inputs(schema)
    if most is not None and len(node.args) > most:
        raise reader.text.error(node.args[most], too_many_inputs(op, most))


def _node(
    reader: Reader,
    node: ast.Call,
    op: str | None = None,
    callee: str | None = None,
    op_class: str | None = None,
    op_capture: str | None = None,
) -> OpPattern:
    inputs: list[Pattern] = []
    rest: str | None = None
    for arg in node.args:
        if rest is not None:
            raise reader.text.error(arg, "nothing can follow the variadic inputs")
        if isinstance(arg, ast.Starred):
            rest = _starred(reader, arg)
            continue
        inputs.append(read_pattern(reader, arg))
    attrs, defaults = keywords(reader, node, op, inputs)
    commutative = op in COMMUTATIVE and len(inputs) == 2
    return OpPattern(
        op, callee, op_class, op_capture, tuple(inputs), defaults, rest, attrs, commutative, reader.text.span(node)
    )


def _starred(reader: Reader, node: ast.Starred) -> str:
    if not isinstance(node.value, ast.Name):
        raise reader.text.error(node, "variadic inputs are written `*name`")
    check_name(reader, node.value)
    return reader.captured(node.value.id)


# ---- fragments ----


def _fragment_call(reader: Reader, node: ast.BinOp, rest: list[ast.expr]) -> Pattern:
    outputs = [node.right, *rest]
    call = node.left
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in reader.fragments):
        raise reader.text.error(call, "`->` follows a fragment's call", "write (a | act(v) -> lo, hi) with parentheses")
    names = []
    for out in outputs:
        if not isinstance(out, ast.Name):
            raise reader.text.error(out, "a fragment's results are names")
        names.append(reader.captured(out.id))
    return _expand(reader, call, tuple(names))


def _expand(reader: Reader, node: ast.Call, outputs: tuple[str, ...]) -> Pattern:
    assert isinstance(node.func, ast.Name)
    name = node.func.id
    fragment = reader.fragments.get(name)
    if fragment is None:
        known = {**reader.fragments, **reader.classes, **operators(), "rearrange": None}
        raise reader.text.error(node.func, f"unknown fragment `{name}`", did_you_mean(name, known))
    if name in reader.stack:
        raise reader.text.error(node.func, f"the fragment `{name}` uses itself")
    if node.keywords or len(node.args) != len(fragment.params):
        raise reader.text.error(
            node, f"`{name}` takes {counted(len(fragment.params), 'operand')}", f"it is {fragment.signature}"
        )
    if len(outputs) != len(fragment.outputs):
        raise reader.text.error(
            node, f"`{name}` gives {counted(len(fragment.outputs), 'result')}", f"it is {fragment.signature}"
        )
    prefix = f"{name}.{next(reader.serial)}."
    actual = {p: _operand(reader, a, prefix + p) for p, a in zip(fragment.params, node.args, strict=True)}
    renamed = dict(zip(fragment.outputs, outputs, strict=True))
    inside = replace(reader, defined=actual, renamed=renamed, prefix=prefix, stack=(*reader.stack, name))
    note = f"in the fragment `{name}` used at {reader.text.span(node)}"
    options = tuple(_option(inside, line, note) for line in fragment.lines)
    return options[0] if len(options) == 1 else Alternatives(options, reader.text.span(node))


def _operand(reader: Reader, node: ast.expr, name: str) -> Pattern:
    """A fragment's operand gets a name, so that `d * d` means one value twice."""
    pattern = read_pattern(reader, node)
    return (
        pattern
        if isinstance(pattern, (Capture, Named, Literal, Absent, Anything))
        else Named(name, pattern, pattern.span)
    )


def _option(inside: Reader, line: FragmentLine, note: str) -> Pattern:
    """One line of a fragment written out; `note` says of its mistakes where it is used."""
    try:
        inner, pattern = _line_value(replace(inside, text=line.text), line)
    except GapFuseError as e:
        raise GapFuseError(replace(d, notes=(*d.notes, note)) for d in e.diagnostics) from e
    if line.bindings is None:
        return pattern
    return With(pattern, tuple(_binding(inner, line, word) for word in line.bindings.keywords), pattern.span)


def _line_value(reader: Reader, line: FragmentLine) -> tuple[Reader, Pattern]:
    """The value of a fragment's line, behind the reader that knows what it defines."""
    _, inner = read_statements(reader, line.body[:-1])
    last = line.body[-1]
    if not isinstance(last, ast.Expr):
        raise line.text.error(last, "the last line of a fragment is the value itself")
    return inner, read_pattern(inner, last.value)


def _binding(inner: Reader, line: FragmentLine, word: ast.keyword) -> tuple[str, Expression]:
    """What `with name = expression` binds."""
    if word.arg is None:
        raise line.text.error(word, "`with` binds name = expression")
    value = rename_expression(convert_expression(line.with_text or line.text, word.value), inner.name)
    return inner.name(word.arg), value
