"""Whether a `cycles` formula can be what a call costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fusion_engine.expr import evaluate
from tiler.bound import BoundCall
from tiler.emit.affine import number
from tiler.emit.boxes import AxisRange, operand_box

CORES = (1, 8)


def tile_cycles(bound: BoundCall, tile: Mapping[str, int], cores: int) -> float:
    """The formula at the first tile of that size (axes left out are whole)."""
    extents = bound.extents
    sizes = {a: min(tile.get(a, n), n) for a, n in extents.items()}
    ranges = {a: AxisRange(number(0), number(n)) for a, n in sizes.items()}
    env: dict[str, int] = {**sizes, "cores": cores}
    for o in bound.operands:
        box = operand_box(o, ranges, extents)
        env |= {f"{o.name}_{d}": b.extent.const for d, b in zip(o.dims, box, strict=True)}
    return float(evaluate(bound.cycles, env))


def odd_cycles(bound: BoundCall) -> Iterator[str]:
    """What is wrong with the formula: not positive, less for more work, more with more cores."""
    extents = bound.extents
    for cores in CORES:
        whole = tile_cycles(bound, extents, cores)
        if not 0 < whole < float("inf"):
            yield f"cycles are {whole:g} at {_shown(extents)} on {cores} cores: not positive"
        for axis, extent in extents.items():
            yield from _falls(bound, axis, extent, cores)
    if tile_cycles(bound, extents, CORES[-1]) > tile_cycles(bound, extents, CORES[0]):
        yield f"cycles grow with the cores at {_shown(extents)}"


def _falls(bound: BoundCall, axis: str, extent: int, cores: int) -> Iterator[str]:
    """Each smaller tile along one axis must not cost more than the next larger one."""
    before = 0.0
    for n in sorted({1, (extent + 1) // 2, max(extent - 1, 1), extent}) if extent else ():
        now = tile_cycles(bound, {axis: n}, cores)
        if now < before:
            yield f"cycles fall from {before:g} to {now:g} where {axis} grows to {n} of {_shown(bound.extents)}"
            return
        before = now


def _shown(extents: Mapping[str, int]) -> str:
    return ", ".join(f"{a}={n}" for a, n in extents.items())
