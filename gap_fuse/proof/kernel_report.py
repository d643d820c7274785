"""What the proof of kernels says: a table, failures, JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from fusion_engine.diagnostics import counted
from gap_fuse.proof.kernel_proving import ImplementationProof


def kernel_lines(proofs: Sequence[ImplementationProof]) -> Iterator[str]:
    """A row per implementation, failures, the sum."""
    head = [
        "kernel",
        "implementation",
        "calls",
        "runs",
        "ragged",
        "in place",
        "in L1",
        "declined",
        "cores",
        "worst error",
    ]
    rows = [[*head, "cycles", ""]]
    rows += [_row(p) for p in proofs]
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = [c.rjust(w) if 2 <= i <= 7 else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))]
        yield "  ".join(cells).rstrip()
    for p in proofs:
        for failure in p.failures:
            yield ""
            yield f"kernel {p.kernel}, implementation {p.implementation}: {failure}"
    yield ""
    yield from dict.fromkeys(n for p in proofs for n in p.notes)
    yield _summary(proofs)


def _row(p: ImplementationProof) -> list[str]:
    low, high = p.cycles or (0.0, 0.0)
    worst = f"{p.worst:.2g} ULP" if p.worst else "exact"
    return [
        p.kernel,
        p.implementation,
        str(p.calls),
        str(p.runs),
        str(p.ragged),
        str(p.in_place),
        str(p.inside),
        str(sum(p.declined.values())),
        str(p.cores) if p.cores else "-",
        worst if p.runs else "-",
        f"{low:g} to {high:g}" if p.cycles else "-",
        "FAILED" if p.failures else "",
    ]


def _summary(proofs: Sequence[ImplementationProof]) -> str:
    failed = [f"{p.kernel}/{p.implementation}" for p in proofs if p.failures]
    verdict = "proved" if not failed else f"failed: {', '.join(failed)}"
    return f"{counted(len(proofs), 'implementation')}, {counted(sum(p.runs for p in proofs), 'run')}: {verdict}"


def kernel_json(proofs: Sequence[ImplementationProof]) -> dict[str, Any]:
    """Everything as plain data."""
    return {"passed": not any(p.failures for p in proofs), "implementations": [asdict(p) for p in proofs]}
