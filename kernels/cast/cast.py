"""Element type conversion: the numpy reference and the C generator."""

from __future__ import annotations

import numpy as np

C_TYPES = {
    "float32": "float",
    "float16": "uint16_t",
    "int8": "int8_t",
    "uint8": "uint8_t",
    "int16": "int16_t",
    "uint16": "uint16_t",
    "int32": "int32_t",
    "int64": "int64_t",
    "bool": "uint8_t",
}


FLOATS = ("float32", "float16")


def cast(x: np.ndarray, *, have: str, to: str) -> np.ndarray:
    """Floats truncate and saturate (NaN gives 0), integers wrap, anything but zero is true."""
    assert x.dtype == have
    if to in ("bool", *FLOATS) or have not in FLOATS:
        with np.errstate(over="ignore"):
            return (x.astype(np.float32) if to == "float16" else x).astype(to)
    info = np.iinfo(to)
    wide = np.trunc(np.nan_to_num(x.astype(np.float64), nan=0.0))
    inside = np.where((wide > info.min) & (wide < info.max), wide, 0).astype(to)
    return np.where(wide <= info.min, info.min, np.where(wide >= info.max, info.max, inside)).astype(to)


def _expression(have: str, to: str) -> str:
    ctype = C_TYPES[to]
    if to == "bool":
        return "(uint8_t)(v != 0)"
    if to == "float16":
        return "gf_half_of_float((float)v)"
    if have not in FLOATS or to == "float32":
        return f"({ctype})v"
    info = np.iinfo(to)
    low = "INT64_MIN" if to == "int64" else str(info.min)
    high = "INT64_MAX" if to == "int64" else str(info.max)
    return f"v >= {float(info.max)!r} ? {high} : v <= {float(info.min)!r} ? {low} : v == v ? ({ctype})v : 0"


def generate(attrs: dict[str, str], symbol: str, variadic: int = 0) -> str:  # noqa: ARG001
    """C text of the conversion `have` -> `to`."""
    have, to = attrs["have"], attrs["to"]
    wide = "double" if have in FLOATS else C_TYPES[have]
    half = '#include "gf_half.h"\n' if "float16" in (have, to) else ""
    element = "gf_float_of_half(x[j * xs])" if have == "float16" else "x[j * xs]"
    return f"""\
/* Converts {have} to {to}. */
#include "{symbol}_args.h"
#include "gf_rows.h"
{half}
void {symbol}(const void *args) {{
  const {symbol}_args *a = args;
  const int32_t k = gf_row_axis(a->i, a->x_s);
  const gf_axes i = gf_axes_last(a->i, k), x_s = gf_axes_last(a->x_s, k), y_s = gf_axes_last(a->y_s, k);
  const int32_t xs = x_s.of[3], ys = y_s.of[3];
  gf_rows r = gf_rows_share(i.of);
  while (gf_rows_next(&r)) {{
    const {C_TYPES[have]} *x = (const {C_TYPES[have]} *)a->x + gf_row_offset(&r, x_s.of);
    {C_TYPES[to]} *y = ({C_TYPES[to]} *)a->y + gf_row_offset(&r, y_s.of);
    for (int32_t j = r.begin; j < r.end; j++) {{
      const {wide} v = {element};
      y[j * ys] = ({C_TYPES[to]})({_expression(have, to)});
    }}
  }}
}}
"""
