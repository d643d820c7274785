"""The texts of a new rule and its kernel."""

from __future__ import annotations

from fusion_engine.view.types import ViewValue
from gap_fuse.authoring.extracting import Extract, Operand

ELEMENTWISE_RULE = """\
# yaml-language-server: $schema=rule.schema.json
rule: {name}
summary: TODO what it computes, in one sentence.
given: {{x: "float32[*S]"}}               # *S: any number of axes
draw: {{S: 1..3 dims of 1..9}}            # what the tests draw sizes from
match:
  - variant: plain
    pattern: |
      r = Relu(x)
      y = r * r
emit:
  - {{kernel: {name}, args: {{x: x}}}}
tests:
  - fires: plain                        # fails until the kernel's reference is written
    model: |
      <ir_version: 8, opset_import: ["" : 17]>
      t (float[2,3] x) => (float[2,3] y) {{
        r = Relu(x)
        y = Mul(r, r)
      }}
"""
ELEMENTWISE_KERNEL = """\
# yaml-language-server: $schema=../kernel.schema.json
kernel: {name}
summary: TODO what it computes, in one sentence.
signature:
  inputs: {{x: "float32[*S]"}}
  outputs: {{y: "float32[*S]"}}
semantics: reference.py:{name}
axes: {{i: "*S"}}                         # the iteration space
access: |                               # one line per operand: which element an iteration touches
  x[i]
  y[i]
implementations:
- name: portable
  source: {name}.c
  symbol: {name}
  rank: 1                               # any shape, seen as one axis
  orders: {{x: any, y: "same:x"}}         # any storage order: the call gets strides
  team: i                               # the axis that the cores share
  cycles: 20 + 4 * ceil(i / cores)      # TODO measure
"""
ELEMENTWISE_C = """\
#include "{name}_args.h"

#error "{name}: write the kernel, then remove this line"

void {name}(const void *args) {{
  const {name}_args *a = args;
  const gf_range r = gf_share(a->i[0]);
  for (int32_t j = r.begin; j < r.end; j++) {{
    a->y[j * a->y_s[0]] = a->x[j * a->x_s[0]];
  }}
}}
"""
REFERENCE = '''\
"""The meaning of {name}, in numpy. The C is tested against it."""

import numpy as np  # noqa: F401


def {name}({operands}):
    raise NotImplementedError("{name}: write what the kernel computes")
'''

EXTRACTED_RULE = """\
# yaml-language-server: $schema=rule.schema.json
rule: {name}
summary: TODO what it computes, in one sentence.
given:                                  # the shapes of the model: put size symbols (N, C, ...) for what may differ
{given}
match:
  - variant: plain
    pattern: |
{pattern}
{shared}emit:
  - kernel: {name}
    args: {{{args}}}
{results}tests:
  - fires: plain                        # fails until the kernel's reference is written
    onnx: {name}.onnx
"""
EXTRACTED_KERNEL = """\
# yaml-language-server: $schema=../kernel.schema.json
kernel: {name}
summary: TODO what it computes, in one sentence.
signature:
  inputs: {{{inputs}}}
  outputs: {{{outputs}}}
semantics: reference.py:{name}
axes: {{{axes}}}
access: |                               # `0:6` is a whole extent; index maps let the tiler split it
{access}
implementations:
- name: portable
  source: {name}.c
  symbol: {name}
  whole: [{whole}]
  cycles: 1000                          # TODO measure
"""
EXTRACTED_C = """\
#include "{name}_args.h"

#error "{name}: write the kernel, then remove this line"

void {name}(const void *args) {{
  const {name}_args *a = args;
  (void)a;
}}
"""


def elementwise(name: str) -> dict[str, str | bytes]:
    """Texts by path, for a rule that takes any shape."""
    return {
        f"rules/{name}.yaml": ELEMENTWISE_RULE.format(name=name),
        f"kernels/{name}/kernel.yaml": ELEMENTWISE_KERNEL.format(name=name),
        f"kernels/{name}/reference.py": REFERENCE.format(name=name, operands="x"),
        f"kernels/{name}/{name}.c": ELEMENTWISE_C.format(name=name),
    }


# ---- out of a model ----


def extracted(name: str, e: Extract) -> dict[str, str | bytes]:
    """Texts by path, for the pattern of selected nodes: operands and results with the shapes that the model has."""
    shared = f"    shared: [{', '.join(e.shared)}]\n" if e.shared else ""
    mapped = ", ".join(f"{r.name}: {r.name}" for r in e.results)
    rule = EXTRACTED_RULE.format(
        name=name,
        given="\n".join(f'  {o.name}: "{_given(o)}"' for o in e.operands),
        pattern="\n".join(f"      {line}" for line in e.lines),
        shared=shared,
        args=", ".join(f"{o.name}: {o.name}" for o in e.operands),
        results=f"    results: {{{mapped}}}\n" if len(e.results) > 1 else "",
    )
    operands = ", ".join(o.name for o in e.operands)
    return {
        f"rules/{name}.yaml": rule,
        f"kernels/{name}/kernel.yaml": _kernel(name, e),
        f"kernels/{name}/reference.py": REFERENCE.format(name=name, operands=operands),
        f"kernels/{name}/{name}.c": EXTRACTED_C.format(name=name),
    }


def _given(o: Operand) -> str:
    dtype = "real" if o.value.dtype in ("float32", "float16") else o.value.dtype
    return f"{'const ' if o.const else ''}{dtype}[{', '.join(_dims(o.value))}]"


def _dims(value: ViewValue) -> list[str]:
    return [str(d) for d in value.static_shape or ()]


def _kernel(name: str, e: Extract) -> str:
    inputs = [f'{o.name}: "{"const " if o.const else ""}{_type(o)}"' for o in e.operands]
    outputs = [f'{o.name}: "{_type(o)}"' for o in e.results]
    extents = _dims(e.results[-1].value)
    axes = [f"i{n}" for n in range(len(extents))]
    whole = [f"  {o.name}[{', '.join(f'0:{d}' for d in _dims(o.value))}]" for o in (*e.operands, *e.results[:-1])]
    access = [*whole, f"  {e.results[-1].name}[{', '.join(axes)}]"]
    return EXTRACTED_KERNEL.format(
        name=name,
        inputs=", ".join(inputs),
        outputs=", ".join(outputs),
        axes=", ".join(f"{a}: {d}" for a, d in zip(axes, extents, strict=True)),
        access="\n".join(access),
        whole=", ".join(axes),
    )


def _type(o: Operand) -> str:
    return f"{o.value.dtype}[{', '.join(_dims(o.value))}]"
