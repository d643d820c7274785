"""Elementwise float trees: the vocabulary, the numpy reference and the C generator.

An expression is a call tree over x0, x1, ..., numbers, inf and nan, e.g. "mul(sigmoid(x0), x0)". Every function takes
and gives float32;
conditions are 0.0 and 1.0. `round` takes halves to even; `mod` has the sign of the divisor, `fmod` of the dividend.
"""

import ast
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fusion_engine import call_trees
from fusion_engine.call_trees import Apply, Constant, Function, Operand, Spelling, Tree, Vocabulary, statements

Array = Any


def _erf(x: Array) -> Array:
    return np.vectorize(math.erf, otypes=[np.float64])(x) if np.size(x) else np.asarray(x)


def _sigmoid(x: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-x))


def _softplus(x: Array) -> Array:
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))


def _rescale(whole: Callable[[Array], Array]) -> Callable[..., Array]:
    """(x * mul + add) / div of the whole numbers in floats (fractions are cut off), exact below 2**53; x beyond int32
    saturates, NaN is 0, and so is a quotient by 0."""

    def rescale(x: Array, mul: Array, add: Array, div: Array) -> Array:
        bounded = np.trunc(np.clip(np.nan_to_num(x, nan=0.0), -(2.0**31), 2.0**31))
        divisor = np.trunc(div)
        return np.where(divisor == 0, 0.0, whole((bounded * np.trunc(mul) + np.trunc(add)) / divisor))

    return rescale


_SOFTPLUS = "GF_MAX({0}, 0.0f) + log1pf(expf(-fabsf({0})))"

FUNCTIONS: Mapping[str, Function] = {
    # one argument
    "abs": Function(1, np.abs, "fabsf({0})"),
    "acos": Function(1, np.arccos, "acosf({0})"),
    "acosh": Function(1, np.arccosh, "acoshf({0})"),
    "asin": Function(1, np.arcsin, "asinf({0})"),
    "asinh": Function(1, np.arcsinh, "asinhf({0})"),
    "atan": Function(1, np.arctan, "atanf({0})"),
    "atanh": Function(1, np.arctanh, "atanhf({0})"),
    "ceil": Function(1, np.ceil, "ceilf({0})"),
    "cos": Function(1, np.cos, "cosf({0})"),
    "cosh": Function(1, np.cosh, "coshf({0})"),
    "erf": Function(1, _erf, "gf_erff({0})"),
    "exp": Function(1, np.exp, "gf_expf({0})"),
    "floor": Function(1, np.floor, "floorf({0})"),
    "gelu": Function(
        1, lambda x: 0.5 * x * (1.0 + _erf(x / math.sqrt(2.0))), "0.5f * {0} * (1.0f + gf_erff({0} * 0.70710678f))"
    ),
    "gelu_tanh": Function(
        1,
        lambda x: 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3))),
        "0.5f * {0} * (1.0f + gf_tanhf(0.79788456f * ({0} + 0.044715f * {0} * {0} * {0})))",
    ),
    "hardswish": Function(
        1, lambda x: x * np.clip(x / 6.0 + 0.5, 0.0, 1.0), "{0} * GF_CLAMP({0} * (1.0f / 6.0f) + 0.5f, 0.0f, 1.0f)"
    ),
    "isinf": Function(1, np.isinf, "(isinf({0}) ? 1.0f : 0.0f)"),
    "isnan": Function(1, np.isnan, "({0} != {0} ? 1.0f : 0.0f)"),
    "log": Function(1, np.log, "logf({0})"),
    "log1p": Function(1, np.log1p, "log1pf({0})"),
    "expm1": Function(1, np.expm1, "expm1f({0})"),
    "mish": Function(1, lambda x: x * np.tanh(_softplus(x)), "{0} * gf_tanhf(" + _SOFTPLUS + ")"),
    "neg": Function(1, np.negative, "-{0}"),
    "not": Function(1, lambda x: x == 0, "({0} == 0.0f ? 1.0f : 0.0f)"),
    "reciprocal": Function(1, lambda x: 1.0 / x, "1.0f / {0}"),
    "relu": Function(1, lambda x: np.where(x < 0, 0.0, x), "({0} < 0.0f ? 0.0f : {0})"),
    "round": Function(1, np.rint, "rintf({0})"),
    "rsqrt": Function(1, lambda x: 1.0 / np.sqrt(x), "1.0f / sqrtf({0})"),
    "sigmoid": Function(1, _sigmoid, "gf_sigmoidf({0})"),
    "sign": Function(1, np.sign, "({0} > 0.0f ? 1.0f : {0} < 0.0f ? -1.0f : 0.0f * {0})"),
    "silu": Function(1, lambda x: x * _sigmoid(x), "{0} * gf_sigmoidf({0})"),
    "sin": Function(1, np.sin, "sinf({0})"),
    "sinh": Function(1, np.sinh, "sinhf({0})"),
    "softplus": Function(1, _softplus, _SOFTPLUS),
    "softsign": Function(1, lambda x: x / (1.0 + np.abs(x)), "{0} / (1.0f + fabsf({0}))"),
    "sqrt": Function(1, np.sqrt, "sqrtf({0})"),
    "square": Function(1, np.square, "{0} * {0}"),
    "tan": Function(1, np.tan, "tanf({0})"),
    "tanh": Function(1, np.tanh, "gf_tanhf({0})"),
    "trunc": Function(1, np.trunc, "truncf({0})"),
    # two
    "celu": Function(
        2,
        lambda x, a: np.maximum(x, 0.0) + np.minimum(0.0, a * np.expm1(x / a)),
        "GF_MAX({0}, 0.0f) + GF_MIN(0.0f, {1} * expm1f({0} / {1}))",
    ),
    "div": Function(2, np.divide, "{0} / {1}"),
    "elu": Function(2, lambda x, a: np.where(x < 0, a * np.expm1(x), x), "({0} < 0.0f ? {1} * expm1f({0}) : {0})"),
    "equal": Function(2, np.equal, "({0} == {1} ? 1.0f : 0.0f)"),
    "fmod": Function(2, np.fmod, "fmodf({0}, {1})"),
    "greater": Function(2, np.greater, "({0} > {1} ? 1.0f : 0.0f)"),
    "greater_equal": Function(2, np.greater_equal, "({0} >= {1} ? 1.0f : 0.0f)"),
    "rescale_floor": Function(4, _rescale(np.floor), "gf_rescale_floor({0}, {1}, {2}, {3})"),
    "rescale_trunc": Function(4, _rescale(np.trunc), "gf_rescale_trunc({0}, {1}, {2}, {3})"),
    "leakyrelu": Function(2, lambda x, a: np.where(x < 0, a * x, x), "({0} < 0.0f ? {1} * {0} : {0})"),
    "less": Function(2, np.less, "({0} < {1} ? 1.0f : 0.0f)"),
    "less_equal": Function(2, np.less_equal, "({0} <= {1} ? 1.0f : 0.0f)"),
    "mod": Function(2, lambda a, b: a - b * np.floor(a / b), "{0} - {1} * floorf({0} / {1})"),
    "pow": Function(2, np.power, "powf({0}, {1})"),
    "shrink": Function(
        3,
        lambda x, a, b: np.where(x < -a, x + b, np.where(x > a, x - b, 0.0)),
        "({0} < -{1} ? {0} + {2} : {0} > {1} ? {0} - {2} : 0.0f)",
    ),
    "sub": Function(2, np.subtract, "{0} - {1}"),
    "swish": Function(2, lambda x, a: x * _sigmoid(a * x), "{0} * gf_sigmoidf({1} * {0})"),
    "thresholdedrelu": Function(2, lambda x, a: np.where(x > a, x, 0.0), "({0} > {1} ? {0} : 0.0f)"),
    "xor": Function(2, lambda a, b: (a != 0) != (b != 0), "(({0} != 0.0f) != ({1} != 0.0f) ? 1.0f : 0.0f)"),
    # three
    "clip": Function(3, lambda x, lo, hi: np.minimum(np.maximum(x, lo), hi), "gf_clampf({0}, {1}, {2})"),
    "hardsigmoid": Function(3, lambda x, a, b: np.clip(a * x + b, 0.0, 1.0), "gf_clampf({1} * {0} + {2}, 0.0f, 1.0f)"),
    "selu": Function(
        3, lambda x, a, g: g * np.where(x > 0, x, a * np.expm1(x)), "{2} * ({0} > 0.0f ? {0} : {1} * expm1f({0}))"
    ),
    "where": Function(3, lambda c, a, b: np.where(c != 0, a, b), "({0} != 0.0f ? {1} : {2})"),
    # any number
    "add": Function(-1, np.add, "{0} + {1}"),
    "and": Function(-1, lambda a, b: (a != 0) & (b != 0), "({0} != 0.0f && {1} != 0.0f ? 1.0f : 0.0f)"),
    "max": Function(-1, np.maximum, "({0} < {1} ? {1} : {0})"),
    "min": Function(-1, np.minimum, "({0} > {1} ? {1} : {0})"),
    "mul": Function(-1, np.multiply, "{0} * {1}"),
    "or": Function(-1, lambda a, b: (a != 0) | (b != 0), "({0} != 0.0f || {1} != 0.0f ? 1.0f : 0.0f)"),
}
FUNCTIONS = {**FUNCTIONS, "prelu": FUNCTIONS["leakyrelu"]}


def _number(node: ast.expr) -> float | None:
    match node:
        case ast.Constant(value=bool() | int() | float() as value):
            return float(np.float32(value))
        case ast.Name(id="inf" | "nan" as name):
            return float(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand) if (value := _number(operand)) is not None:
            return -value
    return None


WORDS = Vocabulary(FUNCTIONS, "elementwise", "a number", _number)


def parse(text: str) -> Tree:
    """Read an expression; nothing is executed. Raises ExpressionError."""
    return _squared(call_trees.parse(text, WORDS))


def _squared(tree: Tree) -> Tree:
    """pow(x, 2) is square(x)."""
    if not isinstance(tree, Apply):
        return tree
    args = tuple(map(_squared, tree.args))
    if tree.function == "pow" and args[1] == Constant(2.0):
        return Apply("square", args[:1])
    return Apply(tree.function, args)


def map_f32(x: tuple[np.ndarray, ...], *, expr: str) -> np.ndarray:
    """Each function computed in float64 and rounded to float32."""
    with np.errstate(all="ignore"):
        value = _evaluate(parse(expr), x)
    shape = np.broadcast_shapes(*(v.shape for v in x))
    return np.ascontiguousarray(np.broadcast_to(value, shape), np.float32).reshape(shape)


def _evaluate(tree: Tree, x: tuple[np.ndarray, ...]) -> Array:
    match tree:
        case Operand(index):
            return x[index]
        case Constant(value):
            return np.float32(value)
        case Apply(name, args):
            values = [np.asarray(_evaluate(a, x), np.float64) for a in args]
            return np.asarray(FUNCTIONS[name].numpy(*values)).astype(np.float32)
    raise AssertionError(tree)


def generate(attrs: Mapping[str, Any], symbol: str, variadic: int) -> str:
    """C text of the loop over `attrs["expr"]` with `variadic` operands. Raises ExpressionError."""
    lines, result = statements(parse(str(attrs["expr"])), FUNCTIONS, variadic, C)
    operands = range(variadic)
    body = "\n".join(f"    {line}" for line in lines)
    parameters = "".join(f"const float *x{i}, int32_t s{i}, " for i in operands)
    unused = "".join(f"  (void)x{i}, (void)s{i};\n" for i in operands if not any(f"x{i}[" in line for line in lines))
    dense = " && ".join(f"a->x{i}_s[3] == 1" for i in operands)
    rows = "".join(
        f"    const float *x{i} = a->x{i} + gf_row_offset(&r, a->x{i}_s) + r.begin * a->x{i}_s[3];\n" for i in operands
    )
    return f"""\
/* {attrs["expr"]} */
#include "{symbol}_args.h"
#include "gf_math.h"
#include "gf_rows.h"

static inline void row({parameters}float *y, int32_t ys, int32_t n) {{
{unused}  GF_INDEPENDENT
  for (int32_t j = 0; j < n; j++) {{
{body}
    y[j * ys] = {result};
  }}
}}

void {symbol}(const void *args) {{
  const {symbol}_args *a = args;
  const int is_dense = {dense} && a->y_s[3] == 1;
  gf_rows r = gf_rows_share(a->i);
  while (gf_rows_next(&r)) {{
{rows}    float *y = a->y + gf_row_offset(&r, a->y_s) + r.begin * a->y_s[3];
    if (is_dense)
      row({"".join(f"x{i}, 1, " for i in operands)}y, 1, r.end - r.begin);
    else
      row({"".join(f"x{i}, a->x{i}_s[3], " for i in operands)}y, a->y_s[3], r.end - r.begin);
  }}
}}
"""


def _literal(value: float) -> str:
    if math.isinf(value):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    if math.isnan(value):
        return "NAN"
    positional = value == 0 or 1e-4 <= abs(value) < 1e7
    text = np.format_float_positional(np.float32(value), unique=True, trim="0") if positional else f"{value:.9g}"
    text = text if any(c in text for c in ".en") else text + ".0"
    return f"({text}f)" if value < 0 else f"{text}f"


C = Spelling("float", "x{0}[j * s{0}]", _literal)
