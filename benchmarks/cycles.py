"""Whether the `cycles` formulas of kernel.yaml rank tiles as counted instructions do.

Each implementation runs calls of middling size in several legal tilings; valgrind counts the instructions of the
busiest of eight cores in every tile. Of a kernel's calls the worst stands in the table. tau: Kendall's, over the pairs
of tilings of one call that differ by 5 % in instructions; a pair that the formula holds equal counts 0. wrong: pairs
that differ by 10 % and that the formula ranks the other way or holds equal. lost: the instructions of the tiling that
the formula likes best over the least. spread: instructions per formula cycle, greatest over least. `ranked` is a
call's implementations together.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.call_makers import KernelCall
from benchmarks.instructions import Case, Measured, NoValgrindError, measure, tilings_of
from benchmarks.measured_calls import CALLS
from benchmarks.networks import ROOT
from fusion_engine.kernels import load_kernels
from fusion_engine.kernels.descriptor import Kernel
from gap_fuse.proof.tiles import bind_kernel

ALIKE = 1.05  # counts within this factor are the same
CLEAR = 1.1  # counts further apart than this must not be ranked the wrong way


@dataclass(frozen=True, slots=True)
class Ranking:
    """How well formulas rank: `tau` in [-1, 1], None where nothing differs; `wrong` pairs; `lost` and `spread` are
    factors >= 1."""

    tau: float | None
    wrong: int
    lost: float
    spread: float
    tilings: int


def ranking(measured: Sequence[Measured]) -> Ranking:
    """Of tilings of one call."""
    signs = [_agree(a, b) for a, b in combinations(measured, 2) if _apart(a.instructions, b.instructions)]
    clear = [_agree(a, b) for a, b in combinations(measured, 2) if _apart(a.instructions, b.instructions, CLEAR)]
    chosen = min(measured, key=lambda m: (m.formula, m.instructions))
    rates = [m.instructions / m.formula for m in measured]
    return Ranking(
        sum(signs) / len(signs) if signs else None,
        sum(s < 1 for s in clear),
        chosen.instructions / min(m.instructions for m in measured),
        max(rates) / min(rates),
        len(measured),
    )


def _apart(a: float, b: float, factor: float = ALIKE) -> bool:
    return max(a, b) > factor * min(a, b)


def _agree(a: Measured, b: Measured) -> int:
    """1 if formula and count say the same, -1 the opposite, 0 if the formula sees no difference."""
    if a.formula == b.formula:
        return 0
    return 1 if (a.formula < b.formula) == (a.instructions < b.instructions) else -1


def measured_calls(kernel: Kernel, calls: Sequence[KernelCall], tilings: int) -> list[dict[str, list[Measured]]]:
    """Of each call, by implementation that takes it. Raises NoValgrindError."""
    tried = [
        (c, i, bind_kernel(kernel, i, c.operands, c.attrs, orders=c.orders, dtypes=c.dtypes))
        for c in calls
        for i in kernel.implementations
    ]
    cases = [Case(i, b, c, tilings_of(b[1], tilings)) for c, i, b in tried if not isinstance(b, str)]
    counted = zip(cases, measure(kernel, cases), strict=True)
    found: list[dict[str, list[Measured]]] = [{} for _ in calls]
    for case, measured in counted:
        found[calls.index(case.call)][case.implementation.name] = measured
    return found


def rankings(kernel: Kernel, calls: Sequence[KernelCall], tilings: int) -> Iterator[tuple[str, list[Ranking]]]:
    """(implementation, a ranking per call that it takes), and at last all together as "ranked"."""
    found = measured_calls(kernel, calls, tilings)
    for i in kernel.implementations:
        yield i.name, [ranking(f[i.name]) for f in found if i.name in f]
    if len(kernel.implementations) > 1:
        yield "ranked", [ranking([m for one in f.values() for m in one]) for f in found]


def worst(rankings: Sequence[Ranking]) -> Ranking:
    """The least tau and the greatest factors."""
    taus = [r.tau for r in rankings if r.tau is not None]
    return Ranking(
        min(taus, default=None),
        sum(r.wrong for r in rankings),
        max(r.lost for r in rankings),
        max(r.spread for r in rankings),
        sum(r.tilings for r in rankings),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="TEXT", help="kernels whose name contains TEXT")
    parser.add_argument("--tilings", type=int, default=14, metavar="N", help="per call and implementation (14)")
    parser.add_argument("--show", action="store_true", help="print every tiling")
    options = parser.parse_args()
    kernels: Mapping[str, Kernel] = load_kernels([ROOT / "kernels"])
    console = Console(width=200)
    table = Table(
        "kernel", "implementation", "tau", "wrong", "lost", "spread", "tilings", title="formulas against instructions"
    )
    names = [n for n in CALLS if options.only in n]
    if not names:
        sys.exit(f"no kernel's name contains {options.only!r}")
    try:
        for name in track(names, description="kernels", console=Console(stderr=True)):
            calls = [make(name) for make in CALLS[name]]
            if options.show:
                _show(kernels[name], calls, options.tilings)
            for implementation, found in rankings(kernels[name], calls, options.tilings):
                if found:
                    table.add_row(name, implementation, *_texts(worst(found)))
    except NoValgrindError as e:
        sys.exit(str(e))
    console.print(table)


def _texts(r: Ranking) -> list[str]:
    tau = "no difference" if r.tau is None else f"{r.tau:.2f}"
    return [tau, str(r.wrong), f"{r.lost:.3f}x", f"{r.spread:.2f}x", str(r.tilings)]


def _show(kernel: Kernel, calls: Sequence[KernelCall], tilings: int) -> None:
    for of_call in measured_calls(kernel, calls, tilings):
        for name, found in of_call.items():
            for m in found:
                print(f"{kernel.name}/{name} {dict(m.tiles)}: {m.count} tiles, {m.formula:.0f} cycles, "
                      f"{m.instructions} instructions, {m.instructions / m.formula:.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
