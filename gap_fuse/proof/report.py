"""What a proof says: a table per rule, failures with the model that shows them, JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import onnx

from fusion_engine.diagnostics import counted
from gap_fuse.proof.mutations import MUTATIONS
from gap_fuse.proof.types import Failure, MissCount, RuleProof, VariantProof

DETAILED = 4  # rules at most that are shown in full unless asked for
REASONS = 5  # reasons shown of each sort


def proof_lines(proofs: Sequence[RuleProof], verbose: bool | None = None) -> Iterator[str]:
    """A table of all rules, or (few rules, or `verbose`) one per rule; then failures, then the sum."""
    detailed = len(proofs) <= DETAILED if verbose is None else verbose
    if detailed:
        for proof in proofs:
            yield from _rule_lines(proof)
    else:
        yield from _table([_head(), *(_row(p, v) for p in proofs for v in p.variants)])
    for proof in proofs:
        for failure in proof.failures:
            yield ""
            yield str(failure)
    yield ""
    yield summary(proofs)


def summary(proofs: Sequence[RuleProof]) -> str:
    """One line: rules, cases, near misses, failures."""
    variants = [v for p in proofs for v in p.variants]
    fired = sum(sum(v.fired.values()) for v in variants)
    misses = [m for v in variants for m in v.misses.values()]
    near = sum(m.declined + m.right + m.wrong for m in misses)
    failures = sum(len(p.failures) for p in proofs)
    failed = [p.rule for p in proofs if not p.passed]
    verdict = "proved" if not failed else f"{counted(failures, 'failure')} in {', '.join(failed)}"
    examples = sum(p.examples for p in proofs)
    ran = f"{counted(fired, 'fired case')}, {near:,} near misses, {counted(examples, 'test')} of their own"
    return f"{counted(len(proofs), 'rule')}, {ran}: {verdict}"


# ---- one table for all ----


def _head() -> list[str]:
    return ["rule", "variant", "drawn", "fired", "declined", "near misses", "right", "unchanged", "worst error", ""]


def _row(proof: RuleProof, v: VariantProof) -> list[str]:
    misses = list(v.misses.values())
    wrong = any(f.variant == v.name for f in proof.failures)
    return [
        proof.rule,
        v.name,
        str(v.drawn),
        str(sum(v.fired.values())),
        str(sum(v.declined.values())),
        str(sum(m.declined + m.right + m.wrong for m in misses)),
        str(sum(m.right for m in misses)),
        str(sum(m.unchanged for m in misses)),
        str(v.worst),
        "FAILED" if wrong else v.notes[0] if v.notes else "",
    ]


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = [c.rjust(w) if 2 <= i <= 7 else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))]
        yield "  ".join(cells).rstrip()


# ---- one table per rule ----


def _rule_lines(proof: RuleProof) -> Iterator[str]:
    yield f"{proof.rule}  ({proof.span.file})  {counted(proof.examples, 'test')} of its own"
    for v in proof.variants:
        yield f"  {v.name}: drawn {v.drawn}, fired {sum(v.fired.values())}, worst error {v.worst}"
        yield from (f"    note: {note}" for note in v.notes)
        yield from _counted("fired", v.fired.most_common())
        yield from _counted("declined", v.declined.most_common(REASONS))
        yield from _counted("not drawn", v.discarded.most_common(REASONS))
        if v.misses:
            yield from (f"    {line}" for line in _table(_miss_rows(v)))
            yield from _counted("near misses declined because", v.reasons.most_common(REASONS))
    yield ""


def _counted(what: str, counts: Sequence[tuple[str, int]]) -> Iterator[str]:
    if counts:
        yield f"    {what}"
    yield from (f"      {n:>4}  {text}" for text, n in counts)


def _miss_rows(v: VariantProof) -> list[list[str]]:
    kinds = [k for k in MUTATIONS if k in v.misses]
    rows = [["near miss", "", "declined", "right", "unchanged", "wrong", "no model", ""]]
    for k in kinds:
        m = v.misses[k]
        rows.append([k, "", *(str(n) for n in (m.declined, m.right, m.unchanged, m.wrong, m.illegal)), ""])
    return [[r[0], r[1], *r[2:]] for r in rows]


# ---- JSON ----


def proof_json(proofs: Sequence[RuleProof]) -> dict[str, Any]:
    """Everything as plain data."""
    return {"passed": all(p.passed for p in proofs), "rules": [_rule_json(p) for p in proofs]}


def _rule_json(p: RuleProof) -> dict[str, Any]:
    return {
        "rule": p.rule,
        "file": p.span.file,
        "passed": p.passed,
        "tests": p.examples,
        "variants": [_variant_json(v) for v in p.variants],
        "failures": [_failure_json(f) for f in p.failures],
    }


def _variant_json(v: VariantProof) -> dict[str, Any]:
    return {
        "variant": v.name,
        "drawn": v.drawn,
        "fired": dict(v.fired),
        "declined": dict(v.declined),
        "not_drawn": dict(v.discarded),
        "near_misses": {k: _miss_json(m) for k, m in v.misses.items()},
        "worst": {"steps": v.worst.steps, "ulp": v.worst.ulp},
        "notes": v.notes,
    }


def _miss_json(m: MissCount) -> dict[str, int]:
    return {
        "declined": m.declined,
        "right": m.right,
        "unchanged": m.unchanged,
        "wrong": m.wrong,
        "no_model": m.illegal,
    }


def _failure_json(f: Failure) -> dict[str, Any]:
    return {
        "check": f.check,
        "variant": f.variant,
        "message": f.message,
        "at": str(f.span),
        "model": None if f.model is None else onnx.printer.to_text(f.model),
    }
