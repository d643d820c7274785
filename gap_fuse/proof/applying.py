"""One rule applied to a small model: which of its candidates there are, and what they compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx

from fusion_engine.apply import apply
from fusion_engine.covering.types import Candidate, Plan
from fusion_engine.diagnostics import GapFuseError
from fusion_engine.graph import FusedGraph
from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.language.types import Rule, RuleSet
from fusion_engine.matching import match
from fusion_engine.model import read_model
from fusion_engine.reference import run_reference
from fusion_engine.view import View, view
from gap_fuse.proof.draft import NotDrawable

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True, slots=True, eq=False)
class Bench:
    """A rule alone with its operator classes, and the kernels."""

    rule: Rule
    classes: Mapping[str, tuple[str, ...]]
    kernels: Mapping[str, Kernel]

    @property
    def rules(self) -> RuleSet:
        return RuleSet((self.rule,), self.classes)


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """A model's view, the rule's candidates in it, and why the rule declined elsewhere, the nearest miss first."""

    view: View
    candidates: tuple[Candidate, ...]
    reasons: tuple[str, ...]

    @property
    def whole(self) -> tuple[Candidate, ...]:
        """Candidates that make every output of the graph inputs alone."""
        v = self.view
        return tuple(
            c for c in self.candidates if set(c.produces) == set(v.outputs) and set(c.consumes) <= set(v.inputs)
        )


def look(bench: Bench, model: onnx.ModelProto, variant: str | None = None, explain: bool = True) -> Seen:
    """View and match; reasons are those of `variant` where one is named. Raises NotDrawable: no legal model."""
    try:
        seen = view(read_model(model.SerializeToString()))
    except GapFuseError as e:
        raise NotDrawable(e.diagnostics[0].message) from e
    found = match(seen, bench.rules, bench.kernels, explain=explain)
    declines = sorted((d for d in found.declines if variant in (None, d.variant)), key=lambda d: -d.depth)
    return Seen(seen, found.candidates, tuple(dict.fromkeys(d.reason for d in declines)))


def compute(seen: View, chosen: Candidate, values: Arrays, kernels: Mapping[str, Kernel]) -> list[np.ndarray]:
    """What the candidate's calls make of its operands, by the kernels' references, in order of `chosen.produces`.

    `values` holds what the candidate consumes. Raises GapFuseError where a reference and its kernel.yaml disagree.
    """
    graph, found = trace(seen, chosen, values, kernels)
    return [found[n] for n in graph.outputs]


def trace(seen: View, chosen: Candidate, values: Arrays, kernels: Mapping[str, Kernel]) -> tuple[FusedGraph, Arrays]:
    """The candidate as a graph of its own, and what every buffer of it holds."""
    free = tuple(n for n in chosen.consumes if seen.values[n].const is None or n in seen.inputs)
    part = replace(seen, inputs=free, outputs=chosen.produces)
    graph = apply(part, Plan((chosen,), chosen.cost, 0.0), kernels)
    with np.errstate(all="ignore"):
        return graph, run_reference(graph, kernels, {n: values[n] for n in free})


def explain_left_over(seen: Seen) -> str:
    """Which nodes no candidate of the rule took."""
    taken = frozenset[int]().union(*(c.nodes for c in seen.candidates))
    left = [n for n in seen.view.nodes if n.index not in taken]
    names = ", ".join(f"{n.op} ({n.outputs[0]})" for n in left) or "the operands between its candidates"
    return f"it fires, but leaves over {names}"


def names_of(seen: Seen, candidates: Sequence[Candidate]) -> list[str]:
    """The values that candidates take and make, constants left out, in order."""
    every = [n for c in candidates for n in (*c.consumes, *c.produces)]
    known = seen.view.values
    return [n for n in dict.fromkeys(every) if known[n].const is None or n in seen.view.inputs]
