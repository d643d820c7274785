"""A name only proposes: what a rule took by a function's or a scope's name is checked against the body.

By structure where the rule has a variant that finds the same kernels in the opened body: then the call is opened, and
the cover sees it as it would without the name, attributes and constants as they are in the body. Else by numbers: the
body, run by whatever `check` is, against the kernels' references on seeded inputs. Else it is declined, with the
reason, and the call is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import onnx

from fusion_engine.apply import apply
from fusion_engine.covering.types import Candidate, Plan
from fusion_engine.diagnostics import GapFuseError
from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.language.trees import walk
from fusion_engine.language.types import OpPattern, RuleSet, Variant
from fusion_engine.matching import Cost, match
from fusion_engine.model import Model
from fusion_engine.outlining import Region
from fusion_engine.reference import run_reference
from fusion_engine.regions import FunctionKey, functions_of, region_model, signature
from fusion_engine.rewriting.rewrite import rewrite
from fusion_engine.tolerances import KERNEL, STEPS_PER_ROUNDING
from fusion_engine.view import View, ViewNode, call_key, view, view_to_model
from fusion_engine.view.write import written_opset

Check = Callable[[onnx.ModelProto, Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]
"""Runs a model on inputs by name, to its outputs by name. Raises GapFuseError where it cannot."""

SPREADS = (1.0, 0.1, 4.0)  # standard deviations of the inputs drawn, one run each


@dataclass(frozen=True, slots=True)
class Verdict:
    """`by` is "structure", "numbers", or "" for what was declined; `text` says what was found."""

    by: str
    text: str


@dataclass(frozen=True, slots=True)
class Proof:
    """Why a call was opened: a rule named it, and a variant without the name finds the same in its body.

    `region` is what was outlined, None for a call of a function: then `op` and `name` are the call's.
    """

    rule: str
    evidence: str
    op: str
    name: str
    region: Region | None


@dataclass(frozen=True, slots=True, eq=False)
class Believed:
    """The candidates that stand, the calls to open (with a proof or without), and what was declined."""

    candidates: tuple[Candidate, ...]
    opened: Mapping[str, Proof | None]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Judge:
    """What checking needs beside the view; `known` are verdicts given before, so that each is given once."""

    model: Model
    regions: Mapping[str, Region]
    rules: RuleSet
    kernels: Mapping[str, Kernel]
    cost: Cost
    check: Check | None = None
    known: dict[object, Verdict] = field(default_factory=dict)
    functions: dict[FunctionKey, onnx.FunctionProto] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "functions", functions_of(self.model.proto))


def believe(judge: Judge, seen: View, closed: frozenset[str], candidates: Sequence[Candidate]) -> Believed:
    """Check every candidate that contains a call of a function in `closed`."""
    calls = {n.index: n for n in seen.nodes if n.op in closed}
    if not calls:
        return Believed(tuple(candidates), {}, ())
    opset = written_opset(seen)
    kept: list[Candidate] = []
    proofs: dict[str, Proof | None] = {}
    doubts: list[tuple[list[ViewNode], str, str]] = []
    for c in candidates:
        named = [calls[n] for n in sorted(c.nodes) if n in calls]
        if not named:
            kept.append(c)
            continue
        what = " and ".join(dict.fromkeys(evidence(judge, n) for n in named))
        verdict = _verdict(judge, seen, c, opset)
        if verdict.by == "structure":
            proofs.update((_key(n), _proof(judge, n, c.rule, f"{what}, {verdict.text}")) for n in named)
        elif verdict.by == "numbers":
            kept.append(replace(c, evidence=f"{what}, {verdict.text}"))
        else:
            doubts.append((named, c.rule, f"{what}: rule {c.rule} ({c.variant}) declined: {verdict.text}"))
    kept = [c for c in kept if not any(_key(calls[n]) in proofs for n in c.nodes if n in calls)]
    taken = {n for c in kept for n in c.nodes}
    opened = {_key(n): proofs.get(_key(n)) for n in calls.values() if n.index not in taken}
    settled = {(c.rule, n) for c in kept for n in c.nodes} | {
        (proof.rule, n.index) for n in calls.values() if (proof := proofs.get(_key(n))) is not None
    }
    notes = (text for named, rule, text in doubts if not all((rule, n.index) in settled for n in named))
    return Believed(tuple(kept), opened, tuple(dict.fromkeys(notes)))


def evidence(judge: Judge, call: ViewNode) -> str:
    """The name that the call was taken by."""
    region = judge.regions.get(call.overload)
    return region.evidence if region is not None else f"function {call.op} {call.origins[0]}"


def _proof(judge: Judge, call: ViewNode, rule: str, evidence: str) -> Proof:
    return Proof(rule, evidence, call.op, call.origins[0], judge.regions.get(call.overload))


def _key(call: ViewNode) -> str:
    return call_key(call.op, call.origins[0])


def _verdict(judge: Judge, seen: View, c: Candidate, opset: int) -> Verdict:
    """Equal regions of a network are judged once."""
    proto = region_model(seen, c, judge.functions, opset)
    key = (c.rule, c.variant, c.emit, signature(proto))
    if key not in judge.known:
        judge.known[key] = _judged(judge, seen, c, proto)
    return judge.known[key]


def _judged(judge: Judge, seen: View, c: Candidate, proto: onnx.ModelProto) -> Verdict:
    opened = view(Model("region", proto))
    unread = [name for name in opened.inputs if name not in c.consumes]
    if unread:
        return Verdict("", f"its body reads {unread[0]}, which the rule leaves out")
    variant = _by_structure(judge, opened, c)
    if variant is not None:
        return Verdict("structure", f"its body matched by variant {variant}")
    return _by_numbers(judge, seen, opened, c)


# ---- by structure ----


def _by_structure(judge: Judge, opened: View, c: Candidate) -> str | None:
    """The variant that finds the candidate's kernels in the opened body without its name."""
    rule = next(r for r in judge.rules.rules if r.name == c.rule)
    plain = replace(rule, variants=tuple(v for v in rule.variants if not names_function(v)))
    if not plain.variants:
        return None
    found = match(rewrite(opened, judge.rules).view, replace(judge.rules, rules=(plain,)), judge.kernels, judge.cost)
    alike = (d for d in found.candidates if d.produces == c.produces and _kernels(d) == _kernels(c))
    return next((d.variant for d in alike), None)


def _kernels(c: Candidate) -> list[str]:
    return [call.kernel for call in c.calls]


def names_function(variant: Variant) -> bool:
    """Whether a variant's pattern has a string callee."""
    return any(isinstance(p, OpPattern) and p.callee for root in (variant.pattern, *variant.extra) for p in walk(root))


# ---- by numbers ----


def _by_numbers(judge: Judge, seen: View, opened: View, c: Candidate) -> Verdict:
    if judge.check is None:
        return Verdict("", "no variant finds it in the body, and there is nothing to run the body with")
    alone = replace(seen, inputs=c.consumes, outputs=c.produces)
    body = view_to_model(opened)
    worst = 0.0
    for seed, spread in enumerate(SPREADS):
        inputs = {name: _drawn(alone, name, spread, seed) for name in c.consumes}
        undrawn = next((why for why in inputs.values() if isinstance(why, str)), None)
        if undrawn is not None:
            return Verdict("", f"no variant finds it in the body, which cannot be run: {undrawn}")
        given = {name: value for name, value in inputs.items() if not isinstance(value, str)}
        try:
            graph = apply(alone, Plan((c,), c.cost, 0.0), judge.kernels)
            mine = run_reference(graph, judge.kernels, given)
            theirs = judge.check(body, {name: given[name] for name in opened.inputs})
        except GapFuseError as e:
            return Verdict("", f"its body could not be compared: {e.diagnostics[0].message}")
        for name in c.produces:
            off = _difference(mine[name], theirs[name])
            if isinstance(off, str):
                return Verdict("", f"its body differs: {off}")
            worst = max(worst, off)
    kernels = " + ".join(dict.fromkeys(call.kernel for call in c.calls))
    return Verdict("numbers", f"its body computed as {kernels} does ({len(SPREADS)} seeded inputs, off by {worst:.1e})")


def _drawn(where: View, name: str, spread: float, seed: int) -> np.ndarray | str:
    value = where.values[name]
    shape = value.static_shape
    if shape is None:
        return f"the shape of {name} is unknown"
    rng = np.random.default_rng(seed)
    if value.dtype in KERNEL:
        return (rng.standard_normal(shape) * spread).astype(value.dtype)
    if value.dtype in ("int8", "uint8"):
        info = np.iinfo(value.dtype)
        return rng.integers(info.min, info.max, shape, endpoint=True).astype(value.dtype)
    return f"no {value.dtype} values can be drawn for {name}"


def _difference(mine: np.ndarray, theirs: np.ndarray) -> float | str:
    """The largest difference, relative to the largest magnitude for floats, in steps for integers; or what is wrong."""
    if mine.shape != theirs.shape or mine.dtype != theirs.dtype:
        return f"it makes {theirs.dtype}{list(theirs.shape)}, the kernel {mine.dtype}{list(mine.shape)}"
    a, b = mine.astype(np.float64), theirs.astype(np.float64)
    if not a.size:
        return 0.0
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return "infinite or undefined values at other places than the kernel's"
    off = float(np.abs(np.where(np.isfinite(a), a - b, 0)).max())
    floats = mine.dtype.name in KERNEL
    scale = max(float(np.abs(b[np.isfinite(b)]).max(initial=0.0)), 1e-30) if floats else 1.0
    most = KERNEL[mine.dtype.name] if floats else float(STEPS_PER_ROUNDING)
    return off / scale if off / scale <= most else f"by {off / scale:.1e} from the kernel, {most:.0e} is allowed"


# ---- which functions a rule names ----


def functions_named(rules: RuleSet) -> tuple[str, ...]:
    """The globs of string callees of all rules."""
    variants = (v for rule in rules.rules for v in rule.variants)
    patterns = (p for v in variants for root in (v.pattern, *v.extra) for p in walk(root))
    return tuple(sorted({p.callee for p in patterns if isinstance(p, OpPattern) and p.callee}))
