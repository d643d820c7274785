"""A fused model read back: its kernel calls are opened, matched again by the rule that each names, and kept.

A call says which kernel, rule and variant made it; it does not get another one, and where the rule no longer fires
there, that is an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fusion_engine.covering.types import Candidate
from fusion_engine.diagnostics import Diagnostic, GapFuseError, Span, did_you_mean
from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.language.types import RuleSet
from fusion_engine.matching import Cost, explain_node
from fusion_engine.model import Model
from fusion_engine.view import KERNELS, View

RULE, VARIANT, RULE_VERSION = "gap_fuse.rule", "gap_fuse.variant", "gap_fuse.version"


@dataclass(frozen=True, slots=True)
class Pin:
    """A kernel call of a fused model: what it computes (names of values), and by which rule's variant."""

    call: str
    kernel: str
    rule: str
    variant: str
    version: str
    results: tuple[str, ...]


def pins_of(model: Model) -> tuple[Pin, ...]:
    """The kernel calls of the model that name their rule, in the file's order."""
    functions = {(f.name, f.overload): f for f in model.proto.functions if f.domain == KERNELS}
    found = []
    for node in model.proto.graph.node:
        function = functions.get((node.op_type, node.overload)) if node.domain == KERNELS else None
        said = {p.key: p.value for p in function.metadata_props} if function is not None else {}
        if RULE in said:
            results = tuple(o for o in node.output if o)
            rule, variant, version = (said.get(k, "") for k in (RULE, VARIANT, RULE_VERSION))
            found.append(Pin(node.name or results[0], node.op_type, rule, variant, version, results))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Pinned:
    """`candidates` that a cover may use, and the pins that none of them fits."""

    candidates: tuple[Candidate, ...]
    lost: tuple[Pin, ...]


def pinned(view: View, candidates: Sequence[Candidate], pins: Sequence[Pin], kernels: Mapping[str, Kernel]) -> Pinned:
    """Each pinned result is made by a candidate of its rule, variant and kernel, and no other reaches into it."""
    if not pins:
        return Pinned(tuple(candidates), ())
    wanted = {tuple(view.aliases.get(r, r) for r in p.results): p for p in pins}
    values = {v for results in wanted for v in results}
    makers = {view.producer[v] for v in values if v in view.producer}
    fitting: dict[tuple[str, ...], list[Candidate]] = {}
    free: list[Candidate] = []
    for c in candidates:
        pin = wanted.get(c.produces)
        if pin is not None and _fits(c, pin, kernels):
            fitting.setdefault(c.produces, []).append(c)
        elif not makers & c.nodes:
            free.append(c)
    kept = [replace(c, evidence=_evidence(wanted[c.produces])) for found in fitting.values() for c in found]
    known = {r for r in wanted if all(view.const(v) is not None for v in r)}  # computed when reading: no call is needed
    return Pinned((*free, *kept), tuple(p for results, p in wanted.items() if results not in {*fitting, *known}))


def _fits(c: Candidate, pin: Pin, kernels: Mapping[str, Kernel]) -> bool:
    return (c.rule, c.variant) == (pin.rule, pin.variant) and kernel_name(c, kernels) == pin.kernel


def kernel_name(c: Candidate, kernels: Mapping[str, Kernel]) -> str:
    """The kernel that names a candidate: the last that computes, a view where none does."""
    computing = [name for name in c.kernels if name not in kernels or kernels[name].view is None]
    return (computing or c.kernels)[-1]


def _evidence(pin: Pin) -> str:
    return f"function {KERNELS}::{pin.kernel}, matched again"


# ---- a rule that no longer fires ----


def lost_pins(
    model: Model,
    view: View,
    lost: Sequence[Pin],
    rules: RuleSet,
    kernels: Mapping[str, Kernel],
    cost: Cost,
    doubts: Sequence[str] = (),
) -> GapFuseError:
    """Each call whose rule no longer fires there, with the reason; `doubts` say which names were not believed."""
    where = Span(str(model.path)) if model.path is not None else None
    return GapFuseError([_lost(view, p, rules, kernels, cost, where, doubts) for p in lost[:8]])


def _lost(
    view: View,
    pin: Pin,
    rules: RuleSet,
    kernels: Mapping[str, Kernel],
    cost: Cost,
    where: Span | None,
    doubts: Sequence[str],
) -> Diagnostic:
    call = f"the call `{pin.call}` of {KERNELS}::{pin.kernel}"
    again = "fuse the original model again with the present rules"
    rule = next((r for r in rules.rules if r.name == pin.rule), None)
    if rule is None:
        hint = did_you_mean(pin.rule, [r.name for r in rules.rules])
        return Diagnostic(f"{call} is by the rule `{pin.rule}`, which is not there", where, hint or "`--rules DIR`")
    index = view.producer.get(view.aliases.get(pin.results[0], pin.results[0]))
    declines = () if index is None else explain_node(view, replace(rules, rules=(rule,)), kernels, index, cost)
    at = "nothing makes the value" if index is None else f"the value is made by {view.nodes[index].op}"
    reason = next((d.reason for d in declines if d.variant == pin.variant), at)
    changed = (f"the rule has changed: version {pin.version} then, {rule.version} now",)
    doubted = tuple(d for d in doubts if f"rule {pin.rule} ({pin.variant})" in d)
    notes = (*doubted, *(changed if pin.version and pin.version != rule.version else ()))
    says = f"{call} is by the rule `{pin.rule}` ({pin.variant}), which no longer fires there: {reason}"
    return Diagnostic(says, where, again, notes=notes)
