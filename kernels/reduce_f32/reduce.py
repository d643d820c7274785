"""Reductions of the last axis: the numpy reference and the C generator."""

from __future__ import annotations

import numpy as np

# op: (start, step over v, result over s); logsumexp subtracts the greatest element m first.
STEPS = {
    "sum": ("0.0f", "s += v", "s"),
    "mean": ("0.0f", "s += v", "s / (float)count"),
    "max": ("x[0]", "s = v > s ? v : s", "s"),
    "min": ("x[0]", "s = v < s ? v : s", "s"),
    "prod": ("1.0f", "s *= v", "s"),
    "l1": ("0.0f", "s += fabsf(v)", "s"),
    "l2": ("0.0f", "s += v * v", "sqrtf(s)"),
    "sumsquare": ("0.0f", "s += v * v", "s"),
    "logsum": ("0.0f", "s += v", "logf(s)"),
    "logsumexp": ("0.0f", "s += gf_expf(v - m)", "m + logf(s)"),
}

MERGED = """\
    float m = a->first ? x[0] : GF_MAX(a->acc[i], x[0]);
    for (int32_t j = 1; j < a->r; j++) m = GF_MAX(m, x[j]);
    float s = a->first ? 0.0f : gf_expf(a->acc[i] - m);
"""


def reduce_f32(x: np.ndarray, *, op: str) -> np.ndarray:
    v = x.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.asarray(_reduce(v, op)).astype(np.float32)


def _reduce(v: np.ndarray, op: str) -> np.ndarray:
    match op:
        case "sum" | "mean" | "max" | "min" | "prod":
            return getattr(v, op)(-1)  # type: ignore[no-any-return]
        case "l1":
            return np.abs(v).sum(-1)
        case "l2":
            return np.sqrt((v * v).sum(-1))
        case "sumsquare":
            return (v * v).sum(-1)
        case "logsum":
            return np.log(v.sum(-1))
        case "logsumexp":
            m = v.max(-1)
            return m + np.log(np.exp(v - m[..., None]).sum(-1))
    raise ValueError(f"no reduction `{op}`: one of {', '.join(STEPS)}")


def generate(attrs: dict[str, str], symbol: str, variadic: int = 0) -> str:  # noqa: ARG001
    """C text of the reduction `op`. Raises ValueError for an unknown one."""
    op, (start, step, result) = _named(attrs)
    greatest = (
        "    float m = x[0];\n    for (int32_t j = 1; j < a->r; j++) m = GF_MAX(m, x[j]);\n"
        if op == "logsumexp"
        else ""
    )
    return f"""\
/* {op} over the last axis. */
#include "{symbol}_args.h"
#include "gf_math.h"
#include "gf_rows.h"

void {symbol}(const void *args) {{
  const {symbol}_args *a = args;
  const int32_t lines[4] = {{a->b[0], a->b[1], a->b[2], 1}};
  gf_rows r = gf_rows_share(lines);
  while (gf_rows_next(&r)) {{
    const float *x = a->x + gf_row_offset(&r, a->x_s);
{greatest}{_count(op, "a->r")}    float s = {start};
    for (int32_t j = 0; j < a->r; j++) {{
      const float v = x[j];
      {step};
    }}
    a->y[gf_row_offset(&r, a->y_s)] = {result};
  }}
}}
"""


def generate_acc(attrs: dict[str, str], symbol: str, variadic: int = 0) -> str:  # noqa: ARG001
    """C text of the reduction `op` with the line split over calls. Raises ValueError for an unknown one."""
    op, (start, step, result) = _named(attrs)
    begin = f"    float s = a->first ? {start} : a->acc[i];\n"
    keep = "s"
    if op == "logsumexp":  # what is kept is the result so far
        begin, keep, result = MERGED, "m + logf(s)", "a->acc[i]"
    return f"""\
/* {op} over the last axis, split over calls: partial results in L1. */
#include "{symbol}_args.h"
#include "gf_math.h"
#include "gf_batch.h"

void {symbol}(const void *args) {{
  const {symbol}_args *a = args;
  const gf_range mine = gf_share(a->b[0] * a->b[1] * a->b[2]);
  for (int32_t i = mine.begin; i < mine.end; i++) {{
    const gf_batch_row row = gf_batch_row_at(i, a->b[1], a->b[2]);
    const float *x = a->x + gf_batch_offset(row, a->x_s) + row.m * a->x_s[2];
{begin}    for (int32_t j = 0; j < a->r; j++) {{
      const float v = x[j];
      {step};
    }}
    a->acc[i] = {keep};
    if (!a->last) continue;
{_count(op, "a->r_at + a->r")}    a->y[gf_batch_offset(row, a->y_s) + row.m * a->y_s[2]] = {result};
  }}
}}
"""


def _named(attrs: dict[str, str]) -> tuple[str, tuple[str, str, str]]:
    op = attrs["op"]
    if op not in STEPS:
        raise ValueError(f"no reduction `{op}`: one of {', '.join(STEPS)}")
    return op, STEPS[op]


def _count(op: str, elements: str) -> str:
    return f"    const int32_t count = {elements};\n" if op == "mean" else ""
