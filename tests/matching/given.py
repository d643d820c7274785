"""Rules, kernels and views for the matcher's tests, out of a few lines of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
from onnx import numpy_helper

from fusion_engine.expr import parse_expr
from fusion_engine.kernels.descriptor import Kernel, OperandType
from fusion_engine.kernels.signature import parse_attr, parse_operand
from fusion_engine.language import load_rules
from fusion_engine.language.types import RuleSet
from fusion_engine.matching import MatchResult, match
from fusion_engine.model import read_model
from fusion_engine.view import View, view

CLASSES = "classes: {unary: [Sigmoid, Tanh, Exp], elementwise: [unary, Add, Mul, Relu, Clip, LeakyRelu]}"
FRAGMENTS = """
fragments:
  act(v) -> lo, hi:
    - Relu(v) with lo = 0.0, hi = inf
    - Clip(v, lo = -inf, hi = inf)
    - v with lo = -inf, hi = inf
  square(d):
    - d * d
    - Pow(d, 2.0)
  over_root(d, v):
    - d / Sqrt(v)
    - d * Reciprocal(Sqrt(v))
"""


def rules_of(*texts: str) -> RuleSet:
    """A rule set of the texts, with the classes and fragments above."""
    with TemporaryDirectory() as folder:
        for i, text in enumerate((*texts,)):
            (Path(folder) / f"r{i}.yaml").write_text(text)
        (Path(folder) / "classes.yaml").write_text(CLASSES)
        (Path(folder) / "fragments.yaml").write_text(FRAGMENTS)
        return load_rules([Path(folder)], None)


def kernel(
    name: str,
    inputs: Mapping[str, str],
    output: str,
    attrs: Mapping[str, str] | None = None,
    sizes: Mapping[str, str] | None = None,
    outputs: Mapping[str, str] | None = None,
    view: str | None = None,
) -> Kernel:
    """A signature without code."""
    results: Sequence[OperandType] = [parse_operand(n, t) for n, t in (outputs or {"y": output}).items()]
    return Kernel(
        name=name,
        summary="",
        folder=Path(),
        inputs=tuple(parse_operand(n, t) for n, t in inputs.items()),
        outputs=tuple(results),
        attrs=tuple(parse_attr(n, t) for n, t in (attrs or {}).items()),
        sizes=tuple((n, parse_expr(t)) for n, t in (sizes or {}).items()),
        where=(),
        dtypes={"T": ("float32", "int8", "int64")},
        semantics=None,
        axes=(),
        access=(),
        outside={},
        implementations=(),
        view=view,  # type: ignore[arg-type]
    )


def kernels_of(*kernels: Kernel) -> dict[str, Kernel]:
    return {k.name: k for k in kernels}


def view_of(text: str, **constants: object) -> View:
    """The view of a model in ONNX text; `constants` turn inputs of those names into initializers."""
    head = '<ir_version: 8, opset_import: ["" : 18, "test.domain" : 1, "com.microsoft" : 1]>\n'
    proto = onnx.parser.parse_model(head + text)
    for name, value in constants.items():
        array = np.asarray(value)
        proto.graph.initializer.append(numpy_helper.from_array(array, name))
        kept = [i for i in proto.graph.input if i.name != name]
        del proto.graph.input[:]
        proto.graph.input.extend(kept)
    return view(read_model(proto))


def run(v: View, rules: RuleSet, kernels: Mapping[str, Kernel], explain: bool = True) -> MatchResult:
    return match(v, rules, kernels, cost=lambda *_: 1.0, explain=explain)


def fired(result: MatchResult) -> list[str]:
    """`rule.variant/entry` of every candidate, in order."""
    return [f"{c.rule}.{c.variant}/{c.emit}" for c in result.candidates]


def reasons(result: MatchResult) -> str:
    return "\n".join(d.reason for d in result.declines)
