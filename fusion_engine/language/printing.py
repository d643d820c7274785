"""Patterns, expressions and types back into the text that a rule file holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fusion_engine.language.types import (
    ANY,
    Absent,
    Alternatives,
    Anything,
    AttrPattern,
    Capture,
    CaptureType,
    EApply,
    EList,
    ELiteral,
    EName,
    Expression,
    Literal,
    Named,
    NodeTemplate,
    OpPattern,
    Pattern,
    Rearrange,
    Rewrite,
    StoredType,
    With,
)

INFIX = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/"}
BINARY = frozenset(("+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "in", "and", "or"))


# ---- patterns ----


def pattern_text(pattern: Pattern) -> str:
    """A pattern in one line; names of fragments' own values keep their prefix (`square.0.d`)."""
    match pattern:
        case Capture(name=name):
            return shown_name(name)
        case Anything():
            return "_"
        case Absent():
            return "None"
        case Literal(value=value):
            return literal_text(value)
        case Named(name=name, pattern=inner):
            return f"({name} := {pattern_text(inner)})"
        case Alternatives(options=options):
            return "(" + " | ".join(pattern_text(o) for o in options) + ")"
        case With(pattern=inner, bindings=bindings):
            bound = ", ".join(f"{shown_name(n)} = {expression_text(e)}" for n, e in bindings)
            return f"{pattern_text(inner)} with {bound}"
        case Rearrange(operand=operand, text=text):
            return f'rearrange({pattern_text(operand)}, "{text}")'
        case OpPattern():
            return operator_text(pattern)


def shown_name(name: str) -> str:
    """`_` for what nothing else names."""
    return ANY if name.endswith(f".{ANY}") else name


def operator_text(p: OpPattern) -> str:
    """`Conv(x, w, group=1)`, `(a + b)`, `"domain::F"(x)`, `unary[op](x)`."""
    inputs = [pattern_text(i) for i in p.inputs]
    if p.op in INFIX and len(inputs) == 2 and not p.attrs:
        return f"({inputs[0]} {INFIX[p.op]} {inputs[1]})"
    for i, meaning in p.defaults:
        inputs[i] = f"{inputs[i]} = {literal_text(meaning)}"
    parts = [*inputs, *([f"*{shown_name(p.rest)}"] if p.rest else []), *(attribute_text(a) for a in p.attrs)]
    return f"{callee_text(p)}({', '.join(parts)})" + (f"[{p.output}]" if p.output else "")


def callee_text(p: OpPattern) -> str:
    """What stands before the parentheses."""
    if p.callee is not None:
        return f'"{p.callee}"'
    if p.op_class is not None:
        return f"{p.op_class}[{shown_name(p.op_capture)}]" if p.op_capture else p.op_class
    return p.op or "_"


def attribute_text(a: AttrPattern) -> str:
    return f"{a.name}={shown_name(a.capture) if a.capture else literal_text(a.literal)}"


def literal_text(value: object) -> str:
    """A number, a text or a list as pattern and expression text write it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(literal_text(v) for v in value) + "]"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if value is None:
        return "none"
    return f"{value!r}"


# ---- expressions ----


def expression_text(e: Expression) -> str:
    """An expression in one line, with parentheses around every operator inside another."""
    match e:
        case ELiteral(value=value):
            return literal_text(value)
        case EName(name=name):
            return name
        case EList(items=items):
            return "[" + ", ".join(expression_text(i) for i in items) + "]"
        case EApply(fn=fn, args=args):
            return _apply_text(fn, args)


def _apply_text(fn: str, args: tuple[Expression, ...]) -> str:
    if fn in BINARY:
        return f" {fn} ".join(_inside(a) for a in args)
    texts = [expression_text(a) for a in args]
    match fn:
        case "neg":
            return f"-{_inside(args[0])}"
        case "not":
            return f"not {_inside(args[0])}"
        case "ifelse":
            return f"{_inside(args[1])} if {_inside(args[0])} else {_inside(args[2])}"
        case "[]":
            return f"{_inside(args[0])}[{texts[1]}]"
        case "[:]":
            return f"{_inside(args[0])}[{':'.join('' if t == 'none' else t for t in texts[1:])}]"
        case "=":
            return f"{texts[0].strip(chr(34))}={texts[1]}"
    return f"{fn}({', '.join(texts)})"


def _inside(e: Expression) -> str:
    text = expression_text(e)
    return f"({text})" if isinstance(e, EApply) and e.fn in (BINARY | {"ifelse", "not"}) else text


# ---- types ----


def capture_type_text(t: CaptureType) -> str:
    """`const real[K] | none in 0.01..10`."""
    dims = "" if t.dims is None else f"[{', '.join(t.dims)}]"
    bounds = "" if t.low is None or t.high is None else f" in {t.low:g}..{t.high:g}"
    return f"{'const ' if t.const else ''}{t.dtype}{dims}{' | none' if t.optional else ''}{bounds}"


def stored_type_text(t: StoredType) -> str:
    """`int8 symmetric axis 0`."""
    axis = "" if t.axis is None else f" axis {t.axis}"
    return f"{t.dtype}{' symmetric' if t.symmetric else ''}{axis}"


# ---- rewrites ----


def rewrite_lines(rewrite: Rewrite) -> Iterator[str]:
    """`name = Operator(...)` for every line of a rewrite; nodes in place stay in place."""
    made: dict[str, str] = {}
    for node in rewrite.nodes:
        text = _template_text(node, made)
        names = [o.removesuffix("'") for o in node.outputs]
        if names[0].isdigit():
            made[node.outputs[0]] = text
        else:
            made.update(zip(node.outputs, names, strict=True))
            yield f"{', '.join(names)} = {text.removeprefix('(').removesuffix(')') if text[0] == '(' else text}"
    yield from (f"{n} = {_made_text(e, made)}" for n, e in rewrite.names if _made_text(e, made) != n)


def _template_text(node: NodeTemplate, made: Mapping[str, str]) -> str:
    inputs = [_made_text(i, made) for i in node.inputs]
    if node.op in INFIX and len(inputs) == 2 and not node.attrs:
        return f"({inputs[0]} {INFIX[node.op]} {inputs[1]})"
    attrs = [f"{name}={expression_text(e)}" for name, e in node.attrs]
    callee = f'"{node.op}"' if "::" in node.op else node.op
    return f"{callee}({', '.join([*inputs, *attrs])})"


def _made_text(expression: Expression | None, made: Mapping[str, str]) -> str:
    if expression is None:
        return "None"
    if isinstance(expression, EName) and expression.name in made:
        return made[expression.name]
    return expression_text(expression)
