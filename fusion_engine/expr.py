"""The integer arithmetic of kernel descriptors: sizes, index maps, conditions and cycle formulas.

Text is read with Python's `ast` (a closed list of forms, never executed) into immutable trees, which are evaluated over
ints or numpy arrays alike, bounded over boxes, and printed as C.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from fusion_engine.expr_functions import FUNCTIONS, Number, fold

Environment = Mapping[str, Any]


class ExprError(ValueError):
    """Text outside the language; `col` and `end` are 0-based columns of the guilty part."""

    def __init__(self, message: str, col: int, end: int) -> None:
        super().__init__(message)
        self.message, self.col, self.end = message, col, end


@dataclass(frozen=True, slots=True)
class Num:
    value: int | float


@dataclass(frozen=True, slots=True)
class Name:
    name: str


@dataclass(frozen=True, slots=True)
class Item:
    """`pads[0]`: an element of an array attribute."""

    name: str
    index: int


@dataclass(frozen=True, slots=True)
class ListOf:
    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Apply:
    """An operator or function of `FUNCTIONS` on its operands."""

    fn: str
    args: tuple[Expr, ...]


Expr = Num | Name | Item | ListOf | Apply

_BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Div: "/", ast.Mod: "%"}
_COMPARE = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


@lru_cache(maxsize=4096)  # trees are immutable, and a rule's dims are read anew for every model
def parse_expr(text: str) -> Expr:
    """Read one expression. `ceil(a / b)` is the exact integer ceiling. Raises ExprError with the place."""
    return _convert(_tree(text, "an expression"))


def parse_access(text: str) -> tuple[str, tuple[Expr | None, ...]]:
    """Read one access line, `operand[index, ...]`; `0:6` (a whole constant range) reads as None. Raises ExprError."""
    tree = _tree(text, "an access `operand[index, ...]`")
    if not (isinstance(tree, ast.Subscript) and isinstance(tree.value, ast.Name)):
        raise ExprError("an access reads `operand[index, ...]`", 0, len(text))
    indices = tree.slice.elts if isinstance(tree.slice, ast.Tuple) else [tree.slice]
    return tree.value.id, tuple(None if isinstance(i, ast.Slice) else _convert(i) for i in indices)


_DEEPEST = 60  # operators inside operators; every walk over an expression is a recursion


def _tree(text: str, what: str) -> ast.expr:
    """Python's tree of the text, its depth bounded."""
    shown = text.strip() if len(text) <= 80 else f"{text.strip()[:80]}..."
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's own advice about odd literals would go to the user
            tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
        col = max(0, (getattr(e, "offset", 1) or 1) - 1)
        raise ExprError(f"not {what}: {shown!r}", col, col + 1) from e
    level: list[ast.AST] = [tree]
    for _ in range(_DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return tree
    raise ExprError(f"nested too deeply: {shown!r}", 0, 1)


def _convert(node: ast.expr) -> Expr:
    match node:
        case ast.Constant(value=bool() as v):
            return Num(int(v))
        case ast.Constant(value=int() | float() as v):
            return Num(v)
        case ast.Name(id=name):
            return Name(name)
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=int() as index)):
            return Item(name, index)
        case ast.List(elts=elts) | ast.Tuple(elts=elts):
            return ListOf(tuple(_convert(e) for e in elts))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return Apply(_BINARY[type(op)], (_convert(left), _convert(right)))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return Apply("-", (Num(0), _convert(operand)))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return Apply("not", (_convert(operand),))
        case ast.BoolOp(op=op, values=values):
            return Apply("and" if isinstance(op, ast.And) else "or", tuple(_convert(v) for v in values))
        case ast.Compare(left=left, ops=ops, comparators=rest) if all(type(o) in _COMPARE for o in ops):
            sides = [_convert(left), *(_convert(r) for r in rest)]
            tests = [Apply(_COMPARE[type(o)], (a, b)) for o, a, b in zip(ops, sides, sides[1:], strict=False)]
            return tests[0] if len(tests) == 1 else Apply("and", tuple(tests))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return Apply("ifelse", (_convert(test), _convert(body), _convert(orelse)))
        case ast.Call(func=ast.Name(id="ceil"), args=[ast.BinOp(left=left, op=ast.Div(), right=right)], keywords=[]):
            return Apply("ceildiv", (_convert(left), _convert(right)))
        case ast.Call(func=ast.Name(id=fn), args=args, keywords=[]) if fn in FUNCTIONS:
            return Apply(fn, tuple(_convert(a) for a in args))
        case ast.Call(func=ast.Name(id=fn)):
            raise ExprError(f"unknown function `{fn}`", node.col_offset, node.end_col_offset or 0)
    raise ExprError("not part of the expression language", node.col_offset, node.end_col_offset or node.col_offset + 1)


def names(expr: Expr) -> frozenset[str]:
    """Every name the expression reads."""
    match expr:
        case Name(name) | Item(name, _):
            return frozenset((name,))
        case ListOf(items):
            return frozenset().union(*(names(i) for i in items))
        case Apply(_, args):
            return frozenset().union(*(names(a) for a in args))
    return frozenset()


def evaluate(expr: Expr, env: Environment) -> Number:
    """The value over ints, or elementwise over numpy arrays. Raises KeyError for an unbound name."""
    match expr:
        case Num(value):
            return value
        case Name(name):
            return env[name]
        case Item(name, index):
            return env[name][index]
        case ListOf(items):
            return tuple(evaluate(i, env) for i in items)
        case Apply(fn, args):
            return FUNCTIONS[fn](*(evaluate(a, env) for a in args))
    raise AssertionError(expr)


def substitute(expr: Expr, env: Environment) -> Expr:
    """Replace bound names by numbers and fold; names not in `env` stay."""
    match expr:
        case Name(name) if name in env:
            return _literal(env[name])
        case Item(name, index) if name in env:
            return _literal(env[name][index])
        case ListOf(items):
            return ListOf(tuple(substitute(i, env) for i in items))
        case Apply(fn, args):
            return _simplify(fn, tuple(substitute(a, env) for a in args))
    return expr


def _literal(value: Any) -> Expr:
    if isinstance(value, (tuple, list)):
        return ListOf(tuple(_literal(v) for v in value))
    return Num(int(value) if isinstance(value, (bool, np.integer, np.bool_)) else value)


def _simplify(fn: str, args: tuple[Expr, ...]) -> Expr:
    if all(isinstance(a, Num) for a in args):
        return _literal(FUNCTIONS[fn](*(a.value for a in args if isinstance(a, Num))))
    match fn, args:
        case (
            ("+", (Num(0), other))
            | ("+", (other, Num(0)))
            | ("-", (other, Num(0)))
            | ("*", (Num(1), other))
            | ("*", (other, Num(1)))
            | ("//", (other, Num(1)))
        ):
            return other
        case ("*", (Num(0), _)) | ("*", (_, Num(0))):
            return Num(0)
    return Apply(fn, args)


def bounds(expr: Expr, lo: Environment, hi: Environment) -> tuple[Number, Number]:
    """Least and greatest value for names between `lo[name]` and `hi[name]` inclusive, by interval arithmetic.

    Exact for maps that are monotone in each axis and use it once, which the kernel loader demands.
    """
    match expr:
        case Num(value):
            return value, value
        case Name(name):
            return lo[name], hi[name]
        case Item(name, index):
            return lo[name][index], hi[name][index]
        case Apply("+", (a, b)):
            (al, ah), (bl, bh) = bounds(a, lo, hi), bounds(b, lo, hi)
            return al + bl, ah + bh
        case Apply("-", (a, b)):
            (al, ah), (bl, bh) = bounds(a, lo, hi), bounds(b, lo, hi)
            return al - bh, ah - bl
        case Apply(fn, args):
            corners = _corners([bounds(a, lo, hi) for a in args])
            values = [FUNCTIONS[fn](*c) for c in corners]
            return fold(np.minimum, min, tuple(values)), fold(np.maximum, max, tuple(values))
    raise AssertionError(expr)


def _corners(pairs: list[tuple[Number, Number]]) -> list[tuple[Number, ...]]:
    corners: list[tuple[Number, ...]] = [()]
    for low, high in pairs:
        same = not isinstance(low, np.ndarray) and not isinstance(high, np.ndarray) and low == high
        corners = [(*c, v) for c in corners for v in ((low,) if same else (low, high))]
    return corners


_C_FUNCTIONS = {
    "min": "GF_MIN",
    "max": "GF_MAX",
    "clamp": "GF_CLAMP",
    "//": "gf_floordiv",
    "%": "gf_mod",
    "ceildiv": "gf_ceildiv",
    "align": "gf_align",
}


def to_c(expr: Expr, rename: Mapping[str, str] | None = None) -> str:
    """The expression as C over int32_t; floor division and modulo are gf_floordiv and gf_mod of the runtime header."""
    rename = rename or {}
    match expr:
        case Num(value):
            return str(value)
        case Name(name):
            return rename.get(name, name)
        case Item(name, index):
            return f"{rename.get(name, name)}[{index}]"
        case Apply(("+" | "-" | "*" | "==" | "!=" | "<" | "<=" | ">" | ">=") as op, (a, b)):
            return f"({to_c(a, rename)} {op} {to_c(b, rename)})"
        case Apply("ifelse", (cond, a, b)):
            return f"({to_c(cond, rename)} ? {to_c(a, rename)} : {to_c(b, rename)})"
        case Apply(("min" | "max") as fn, args) if len(args) > 2:
            return f"{_C_FUNCTIONS[fn]}({to_c(args[0], rename)}, {to_c(Apply(fn, args[1:]), rename)})"
        case Apply(fn, args) if fn in _C_FUNCTIONS:
            return f"{_C_FUNCTIONS[fn]}({', '.join(to_c(a, rename) for a in args)})"
    raise ValueError(f"no C form for {expr}")
