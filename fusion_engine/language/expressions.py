"""Expression text (`let`, `where`, emit arguments) into Expression trees."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from fusion_engine.diagnostics import GapFuseError, counted, did_you_mean
from fusion_engine.language.text import RuleText, parse_one, scalar_text
from fusion_engine.language.types import EApply, EList, ELiteral, EName, Expression
from fusion_engine.language.unary import UNARY
from fusion_engine.language.vocabulary import FUNCTIONS
from fusion_engine.marked_yaml import Marked

_BINARY = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
}
_COMPARE = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.In: "in"}
CONSTANTS: dict[str, float | bool | None] = {
    "inf": float("inf"),
    "nan": float("nan"),
    "true": True,
    "false": False,
    "none": None,
}


def read_expression(mark: Marked, what: str) -> Expression:
    """One expression: a scalar's text, or a YAML list of them. Raises GapFuseError with the place."""
    if mark.kind == "list":
        return EList(tuple(read_expression(m, what) for m in mark.items), mark.span)
    text = scalar_text(mark, what)
    return convert_expression(text, parse_one(text, what))


def convert_expression(text: RuleText, node: ast.expr) -> Expression:
    """An expression out of Python syntax; `text` gives the places. Raises GapFuseError."""
    try:
        return _convert(text, node)
    except RecursionError as e:
        raise GapFuseError(text.mark.error("nested too deeply")) from e


def _convert(text: RuleText, node: ast.expr) -> Expression:
    span = text.span(node)
    match node:
        case ast.Constant(value=bool() | int() | float() | str() | None as value):
            return ELiteral(value, span)
        case ast.Name(id=name) if name in CONSTANTS:
            return ELiteral(CONSTANTS[name], span)
        case ast.Name(id=name):
            return EName(name, span)
        case ast.List(elts=elts) | ast.Tuple(elts=elts):
            return EList(tuple(_convert(text, e) for e in elts), span)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return EApply(_BINARY[type(op)], (_convert(text, left), _convert(text, right)), span)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _negative(_convert(text, operand), text, node)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return EApply("not", (_convert(text, operand),), span)
        case ast.BoolOp(op=op, values=values):
            return EApply("and" if isinstance(op, ast.And) else "or", tuple(_convert(text, v) for v in values), span)
        case ast.Compare(ops=ops) if all(type(o) in _COMPARE for o in ops):
            return _comparison(text, node)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return EApply("ifelse", tuple(_convert(text, n) for n in (test, body, orelse)), span)
        case ast.Subscript(value=value, slice=ast.Slice(lower=lower, upper=upper, step=None)):
            ends = tuple(ELiteral(None, span) if e is None else _convert(text, e) for e in (lower, upper))
            return EApply("[:]", (_convert(text, value), *ends), span)
        case ast.Subscript(value=value, slice=index) if not isinstance(index, (ast.Slice, ast.Tuple)):
            return EApply("[]", (_convert(text, value), _convert(text, index)), span)
        case ast.Call(func=ast.Name(id=fn)):
            return _call(text, node, fn)
    raise text.error(node, "not part of the expression language", "docs/rule-language.md lists what is")


def _negative(value: Expression, text: RuleText, node: ast.expr) -> Expression:
    if isinstance(value, ELiteral) and isinstance(value.value, (int, float)):
        return ELiteral(-value.value, text.span(node))
    return EApply("neg", (value,), text.span(node))


def _comparison(text: RuleText, node: ast.Compare) -> Expression:
    span = text.span(node)
    sides = [_convert(text, n) for n in (node.left, *node.comparators)]
    tests = [EApply(_COMPARE[type(op)], pair, span) for op, pair in zip(node.ops, pairwise(sides), strict=True)]
    return tests[0] if len(tests) == 1 else EApply("and", tuple(tests), span)


def _call(text: RuleText, node: ast.Call, fn: str) -> Expression:
    function = FUNCTIONS.get(fn)
    if function is None:
        raise text.error(
            node.func, f"unknown function `{fn}`", did_you_mean(fn, FUNCTIONS) or "see docs/rule-language.md"
        )
    count = len(node.args)
    if count < function.least or (function.most is not None and count > function.most):
        raise text.error(node, f"`{fn}` does not take {counted(count, 'argument')}", f"it is written {function.usage}")
    if node.keywords and not function.keywords:
        raise text.error(node.keywords[0], f"`{fn}` takes no named arguments", f"it is written {function.usage}")
    args = [_argument(text, fn, i, a) for i, a in enumerate(node.args)]
    words = [_keyword(text, k) for k in node.keywords]
    return EApply(fn, (*args, *words), text.span(node))


def _argument(text: RuleText, fn: str, position: int, node: ast.expr) -> Expression:
    """The operator of a table may be written bare: `table_i8(Sigmoid, x, y)`; lower-case names are captures."""
    if fn == "table_i8" and position == 0 and isinstance(node, ast.Name) and node.id[:1].isupper():
        if node.id not in UNARY:
            raise text.error(node, f"no table is known for the operator `{node.id}`", did_you_mean(node.id, UNARY))
        return ELiteral(node.id, text.span(node))
    return _convert(text, node)


def _keyword(text: RuleText, node: ast.keyword) -> Expression:
    if node.arg is None:
        raise text.error(node, "`**` is not part of the expression language")
    span = text.span(node)
    return EApply("=", (ELiteral(node.arg, span), _convert(text, node.value)), span)


def expression_names(expr: Expression) -> Iterator[EName]:
    """Every name the expression reads, in text order, with its place."""
    match expr:
        case EName():
            yield expr
        case EList(items=items):
            for item in items:
                yield from expression_names(item)
        case EApply(args=args):
            for arg in args:
                yield from expression_names(arg)
