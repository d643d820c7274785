"""Elementwise integer and boolean trees: the vocabulary, the numpy reference and the C generator.

Values are int64 between the steps, wrapped to the type `have` after each; division truncates (by 0 gives 0), `mod` has
the sign of the divisor, `fmod` of the dividend; a shift by the width or more, or a negative one, leaves copies of the
sign, to the left 0.
"""

import ast
from collections.abc import Mapping
from typing import Any

import numpy as np

from fusion_engine.call_trees import Apply, Constant, Function, Operand, Spelling, Tree, Vocabulary, parse, statements

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


def _number(node: ast.expr) -> int | None:
    match node:
        case ast.Constant(value=int() | float() as value) if value == int(value):
            return int(value)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)) if value == int(value):
            return -int(value)
    return None


WORDS = Vocabulary(FUNCTIONS, "integer", "a whole number", _number)


def map_int(x: tuple[np.ndarray, ...], *, expr: str, have: str, to: str) -> np.ndarray:
    """Each function computed in int64 and wrapped to `have`."""
    assert all(v.dtype == have for v in x)
    with np.errstate(all="ignore"):
        value = _evaluate(parse(expr, WORDS), x, np.dtype(have))
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
    step = "0 != ({})" if attrs["have"] == "bool" else f"({have})({{}})"
    spelling = Spelling("int64_t", "x{0}[j * a->x{0}_s[3]]", "((int64_t){})".format, step)
    lines, result = statements(parse(str(attrs["expr"]), WORDS), FUNCTIONS, variadic, spelling)
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
