"""Elementwise integer and boolean trees: the vocabulary, the numpy reference and the C generator.

Values are int64 between the steps, wrapped to the type `have` after each; division truncates (by 0 gives 0), `mod` has
the sign of the divisor, `fmod` of the dividend; a shift by the width or more, or a negative one, leaves copies of the
sign, to the left 0.
"""

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

Array = Any
C_TYPES = {
    "int8": "int8_t",
    "uint8": "uint8_t",
    "int16": "int16_t",
    "uint16": "uint16_t",
    "int32": "int32_t",
    "int64": "int64_t",
    "bool": "uint8_t",
}


@dataclass(frozen=True, slots=True)
class Function:
    """`c` is a C expression over int64_t `{0}, {1}, ...`; `arity` -1 folds any number of arguments in pairs."""

    arity: int
    numpy: Callable[..., Array]
    c: str


def _quotient(a: Array, b: Array) -> Array:
    """Towards zero; by 0 it is 0; the most negative number by -1 wraps."""
    divisor = np.where((b == 0) | (b == -1), 1, b)
    whole = np.where((a < 0) != (divisor < 0), -(-a // divisor), a // divisor)
    return np.where(b == 0, 0, np.where(b == -1, np.negative(a), whole))


def _fmod(a: Array, b: Array) -> Array:
    return a - b * _quotient(a, b)


def _mod(a: Array, b: Array) -> Array:
    rest = _fmod(a, b)
    return np.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)


_DIV = "({1} == 0 ? 0 : {1} == -1 ? (int64_t)(0 - (uint64_t){0}) : {0} / {1})"
_REST = "({1} == 0 ? {0} : {1} == -1 ? 0 : {0} % {1})"
_MOD = f"({_REST} != 0 && ({_REST} < 0) != ({{1}} < 0) ? {_REST} + {{1}} : {_REST})"

FUNCTIONS: Mapping[str, Function] = {
    "abs": Function(1, np.abs, "({0} < 0 ? (int64_t)(0 - (uint64_t){0}) : {0})"),
    "neg": Function(1, np.negative, "(int64_t)(0 - (uint64_t){0})"),
    "not": Function(1, lambda x: x == 0, "({0} == 0)"),
    "bitwisenot": Function(1, np.invert, "~{0}"),
    "sign": Function(1, np.sign, "(({0} > 0) - ({0} < 0))"),
    "relu": Function(1, lambda x: np.maximum(x, 0), "GF_MAX({0}, 0)"),
    "sub": Function(2, np.subtract, "(int64_t)((uint64_t){0} - (uint64_t){1})"),
    "div": Function(2, _quotient, _DIV),
    "mod": Function(2, _mod, _MOD),
    "fmod": Function(2, _fmod, _REST),
    "equal": Function(2, np.equal, "({0} == {1})"),
    "greater": Function(2, np.greater, "({0} > {1})"),
    "greaterorequal": Function(2, np.greater_equal, "({0} >= {1})"),
    "less": Function(2, np.less, "({0} < {1})"),
    "lessorequal": Function(2, np.less_equal, "({0} <= {1})"),
    "xor": Function(2, lambda a, b: (a != 0) != (b != 0), "(({0} != 0) != ({1} != 0))"),
    "shiftleft": Function(
        2,
        lambda a, b: np.where((b < 0) | (b > 63), 0, a << np.clip(b, 0, 63)),
        "({1} < 0 || {1} > 63 ? 0 : (int64_t)((uint64_t){0} << {1}))",
    ),
    "shiftright": Function(
        2,
        lambda a, b: a >> np.where((b < 0) | (b > 63), 63, b),
        "({0} >> ({1} < 0 || {1} > 63 ? 63 : {1}))",
    ),
    "clip": Function(3, lambda x, lo, hi: np.minimum(np.maximum(x, lo), hi), "GF_MIN(GF_MAX({0}, {1}), {2})"),
    "add": Function(-1, np.add, "(int64_t)((uint64_t){0} + (uint64_t){1})"),
    "mul": Function(-1, np.multiply, "(int64_t)((uint64_t){0} * (uint64_t){1})"),
    "max": Function(-1, np.maximum, "GF_MAX({0}, {1})"),
    "min": Function(-1, np.minimum, "GF_MIN({0}, {1})"),
    "and": Function(-1, lambda a, b: (a != 0) & (b != 0), "({0} != 0 && {1} != 0)"),
    "or": Function(-1, lambda a, b: (a != 0) | (b != 0), "({0} != 0 || {1} != 0)"),
    "bitwiseand": Function(-1, np.bitwise_and, "({0} & {1})"),
    "bitwiseor": Function(-1, np.bitwise_or, "({0} | {1})"),
    "bitwisexor": Function(-1, np.bitwise_xor, "({0} ^ {1})"),
}


class ExpressionError(ValueError):
    """The text is no elementwise tree; the message says where it leaves the vocabulary."""


@dataclass(frozen=True, slots=True)
class Operand:
    index: int


@dataclass(frozen=True, slots=True)
class Constant:
    value: int


@dataclass(frozen=True, slots=True)
class Apply:
    function: str
    args: tuple[Any, ...]  # of Tree


Tree = Operand | Constant | Apply


def parse(text: str) -> Tree:
    """Read an expression; nothing is executed. Raises ExpressionError."""
    try:
        return _read(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, RecursionError, MemoryError) as e:
        raise ExpressionError(f"`{text}` is not an expression") from e


def _read(node: ast.expr) -> Tree:
    match node:
        case ast.Constant(value=int() | float() as value) if value == int(value):
            return Constant(int(value))
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)) if value == int(value):
            return Constant(-int(value))
        case ast.Name(id=name) if name[:1] == "x" and name[1:].isdigit():
            return Operand(int(name[1:]))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            return _call(name.rstrip("_"), tuple(_read(a) for a in args))  # `not_`, `and_`, `or_`
    raise ExpressionError(f"`{ast.unparse(node)}` is neither an operand x0, x1, ..., nor a whole number, nor a call")


def _call(name: str, args: tuple[Tree, ...]) -> Tree:
    if name not in FUNCTIONS:
        raise ExpressionError(f"no integer function `{name}`: one of {', '.join(sorted(FUNCTIONS))}")
    arity = FUNCTIONS[name].arity
    if (arity >= 0 and len(args) != arity) or not args:
        raise ExpressionError(f"`{name}` takes {arity if arity >= 0 else 'at least 1'} arguments, not {len(args)}")
    if arity < 0:
        return reduce(lambda a, b: Apply(name, (a, b)), args)
    return Apply(name, args)


def map_int(x: tuple[np.ndarray, ...], *, expr: str, have: str, to: str) -> np.ndarray:
    """Each function computed in int64 and wrapped to `have`."""
    assert all(v.dtype == have for v in x)
    with np.errstate(all="ignore"):
        value = _evaluate(parse(expr), x, np.dtype(have))
    shape = np.broadcast_shapes(*(v.shape for v in x))
    return np.ascontiguousarray(np.broadcast_to(value, shape)).astype(to).reshape(shape)


def _evaluate(tree: Tree, x: tuple[np.ndarray, ...], wrap: np.dtype) -> Array:  # type: ignore[type-arg]
    match tree:
        case Operand(index):
            return x[index].astype(np.int64)
        case Constant(value):
            return np.int64(value)
        case Apply(name, args):
            values = [np.asarray(_evaluate(a, x, wrap)) for a in args]
            return np.asarray(FUNCTIONS[name].numpy(*values)).astype(wrap).astype(np.int64)
    raise AssertionError(tree)


def generate(attrs: Mapping[str, Any], symbol: str, variadic: int) -> str:
    """C text of the loop over `attrs["expr"]` with `variadic` operands. Raises ExpressionError."""
    have, to = C_TYPES[str(attrs["have"])], C_TYPES[str(attrs["to"])]
    lines: list[str] = []
    result = _statements(parse(str(attrs["expr"])), lines, variadic, str(attrs["have"]))
    rows = "".join(
        f"    const {have} *x{i} = (const {have} *)a->x{i} + gf_row_offset(&r, a->x{i}_s);\n"
        for i in range(variadic)
        if any(f"x{i}[" in line for line in lines)
    )
    body = "\n".join(f"      {line}" for line in lines)
    return f"""\
/* {attrs["expr"]} over {attrs["have"]} */
#include "{symbol}_args.h"
#include "gf_rows.h"

void {symbol}(const void *args) {{
  const {symbol}_args *a = args;
  gf_rows r = gf_rows_share(a->i);
  while (gf_rows_next(&r)) {{
{rows}    {to} *y = ({to} *)a->y + gf_row_offset(&r, a->y_s);
    for (int32_t j = r.begin; j < r.end; j++) {{
{body}
      y[j * a->y_s[3]] = ({to}){result};
    }}
  }}
}}
"""


def _statements(tree: Tree, lines: list[str], variadic: int, have: str) -> str:
    """Append one assignment per node (equal subtrees share theirs); the name or literal of the result."""
    named: dict[Tree, str] = {}
    wrap = f"({C_TYPES[have]})" if have != "bool" else "0 != "

    def visit(node: Tree) -> str:
        if isinstance(node, Constant):
            return f"((int64_t){node.value})"
        if node not in named:
            text = _text(node)
            named[node] = f"v{len(named)}"
            lines.append(f"const int64_t {named[node]} = {text};")
        return named[node]

    def _text(node: Operand | Apply) -> str:
        if isinstance(node, Apply):
            return f"{wrap}({FUNCTIONS[node.function].c.format(*(visit(a) for a in node.args))})"
        if node.index >= variadic:
            raise ExpressionError(f"the expression reads x{node.index}, but the call has {variadic} operands")
        return f"x{node.index}[j * a->x{node.index}_s[3]]"

    return visit(tree)
