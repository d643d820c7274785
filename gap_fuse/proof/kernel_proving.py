"""The proof of a kernel's C: every implementation at random legal tilings against the reference, and its `cycles`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from zlib import crc32

import numpy as np

from fusion_engine.diagnostics import GapFuseError, counted
from fusion_engine.kernels.descriptor import Implementation, Kernel
from fusion_engine.kernels.references import answer
from fusion_engine.tolerances import KERNEL
from gap_fuse.comparing import difference
from gap_fuse.proof.cycles import odd_cycles, tile_cycles
from gap_fuse.proof.judging import ULP
from gap_fuse.proof.kernel_calls import KernelCall
from gap_fuse.proof.tiles import BoundKernel, Setting, StrayAccess, bind_kernel, in_place, run_team
from gap_fuse.proof.tiles.building import FLAGS
from gap_fuse.proof.tiles.inside import staying
from tiler.bound import BoundAxis, BoundCall

TILES = 400  # tiles of one run at most: each is a call from Python
WORTH_SHARING = 200  # cycles that a team saves; kernels that share blocks leave less to one core


@dataclass(eq=False)
class ImplementationProof:
    """One implementation: calls taken, runs (a call at one tiling; some ragged, some in place, some `inside` tensors
    that stay in L1), why others were declined, the worst error in ULP (0 where integers are equal), the range of
    modelled cycles, how many cores wrote at once, the most cycles that a team would save where one core wrote alone,
    and what is wrong."""

    kernel: str
    implementation: str
    calls: int = 0
    runs: int = 0
    ragged: int = 0
    in_place: int = 0
    inside: int = 0
    declined: dict[str, int] = field(default_factory=dict)
    worst: float = 0.0
    cycles: tuple[float, float] | None = None
    cores: int = 0
    unshared: float = 0.0
    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def prove_implementation(
    kernel: Kernel,
    implementation: Implementation,
    calls: Sequence[KernelCall],
    seed: int = 0,
    flags: Sequence[str] = FLAGS,
) -> ImplementationProof:
    """Run every call that the implementation takes at several tilings; the first wrong one ends it."""
    proof = ImplementationProof(kernel.name, implementation.name)
    rng = np.random.default_rng([seed, crc32(f"{kernel.name}/{implementation.name}".encode())])
    for call in calls:
        orders = _orders(implementation, call, rng)
        given = call.operands, call.attrs, call.results, orders, call.dtypes
        bound = bind_kernel(kernel, implementation, *given)
        if isinstance(bound, str):
            proof.declined[bound] = proof.declined.get(bound, 0) + 1
            continue
        framed = bind_kernel(kernel, implementation, *given, framed=True)
        taken = BoundKernel(kernel, implementation, call.operands, *bound)
        larger = None if isinstance(framed, str) else BoundKernel(kernel, implementation, call.operands, *framed)
        proof.failures += _prove_call(taken, larger, call, rng, tuple(flags), proof)
        if proof.failures:
            return proof
    proof.failures += [*_never_run(proof), *_never_shared(proof)]
    return proof


def _prove_call(
    taken: BoundKernel,
    framed: BoundKernel | None,
    call: KernelCall,
    rng: np.random.Generator,
    flags: tuple[str, ...],
    proof: ImplementationProof,
) -> list[str]:
    """What is wrong with one call, in each of its tilings in place of an operand too, and inside tensors that stay,
    also where these lie inside larger ones (`framed`); the first wrong run ends it."""
    bound = taken.bound
    proof.calls += 1
    _note_cycles(proof, bound)
    odd = list(dict.fromkeys(odd_cycles(bound)))
    over = in_place(bound)
    for tile in tilings(bound, rng):
        for one, reused, inside, where in _ways(taken, framed, tile, over[proof.in_place % max(len(over), 1) :][:1]):
            cores, seed = int(rng.choice([1, 3, 8])), int(rng.integers(2**31))
            message = _run(
                one, Setting(_fitting(one.bound, tile, bound.extents), cores, seed, flags, reused, inside), proof
            )
            if message is not None:
                return [*odd, f"{message} at {_shown(bound, tile)}{where}; the call: {_described(call)}"]
            if odd:
                return odd
    return odd


def _ways(
    taken: BoundKernel, framed: BoundKernel | None, tile: Mapping[str, int], over: Sequence[tuple[str, str]]
) -> Iterator[tuple[BoundKernel, dict[str, str], bool, str]]:
    """The call, results in place of operands, whether tiles lie inside tensors that stay, and that in words."""
    yield taken, {}, False, ""
    yield from ((taken, {y: x}, False, f", {y} in place of {x}") for y, x in over)
    if staying(taken.bound, tile):
        yield taken, {}, True, ", tiles inside their tensors in L1"
    if framed is not None and staying(framed.bound, _fitting(framed.bound, tile, taken.bound.extents)):
        yield framed, {}, True, ", tensors inside larger ones in L1"


def _fitting(bound: BoundCall, tile: Mapping[str, int], extents: Mapping[str, int]) -> dict[str, int]:
    """The same tiles where axes are merged otherwise: what was whole of its extent is whole."""
    whole = {a for a, n in extents.items() if tile[a] == n}
    return {a: n if a in whole else min(tile[a], n) for a, n in bound.extents.items()}


def _never_run(proof: ImplementationProof) -> list[str]:
    if proof.runs:
        return []
    reasons = "; ".join(proof.declined) or "no call of it could be drawn: give its rule `draw` ranges"
    return [f"never run: {reasons}"]


def _never_shared(proof: ImplementationProof) -> list[str]:
    if proof.cores != 1 or proof.unshared < WORTH_SHARING:
        return []
    return [
        f"only one core ever writes, but `cycles` says that a team saves {proof.unshared:.0f} of them in one tile: "
        "share the axis `team` with gf_share"
    ]


def _note_cycles(proof: ImplementationProof, bound: BoundCall) -> None:
    now = tile_cycles(bound, bound.extents, 8)
    low, high = proof.cycles or (now, now)
    proof.cycles = min(low, now), max(high, now)


def _orders(
    implementation: Implementation, call: KernelCall, rng: np.random.Generator
) -> dict[str, tuple[int, ...]] | None:
    """A random storage order of each operand that may have any."""
    ranks = {n: v.ndim for n, v in call.operands.items()} | {n: len(s) for n, s in call.results.items()}
    chosen = {
        n: tuple(int(i) for i in rng.permutation(r))
        for n, r in ranks.items()
        if implementation.orders.get(n) == "any" and r > 1
    }
    return chosen or None


def tilings(bound: BoundCall, rng: np.random.Generator) -> Iterator[dict[str, int]]:
    """Whole, as small as may be, and two at random; each axis a multiple of its step, the last tile ragged."""
    choices = {a.name: _sizes(a) for a in bound.axes}
    yield {n: sizes[-1] for n, sizes in choices.items()}
    for _ in range(3):
        tile = {n: int(rng.choice(sizes)) for n, sizes in choices.items()}
        if _count(bound, tile) <= TILES:
            yield tile
    least = {n: sizes[0] for n, sizes in choices.items()}
    if _count(bound, least) <= TILES:
        yield least


def _sizes(axis: BoundAxis) -> list[int]:
    if axis.whole:
        return [axis.extent]
    most = min(axis.extent, axis.limit or axis.extent)
    return [*range(axis.step, most, axis.step), axis.extent if most == axis.extent else most]


def _count(bound: BoundCall, tile: Mapping[str, int]) -> int:
    return prod(-(-n // max(tile[a], 1)) for a, n in bound.extents.items())


def _run(call: BoundKernel, setting: Setting, proof: ImplementationProof) -> str | None:
    """Compute a call; what is wrong, or None."""
    try:
        got, team = run_team(call, setting)
    except (StrayAccess, GapFuseError) as e:
        return str(e)
    tiles = setting.tiles
    proof.runs += 1
    proof.cores, proof.unshared = max(proof.cores, team.busy), max(proof.unshared, team.unshared)
    proof.in_place += bool(setting.reused)
    proof.inside += setting.inside
    proof.ragged += any(n % tiles[a] for a, n in call.bound.extents.items() if tiles[a])
    try:
        return _compared(call, got, proof)
    except GapFuseError as e:
        return str(e)


def _compared(call: BoundKernel, got: Mapping[str, np.ndarray], proof: ImplementationProof) -> str | None:
    wanted, magnitude = expected(call)
    for name, reference_value in wanted.items():
        value = got[name]
        if value.shape != reference_value.shape or value.dtype != reference_value.dtype:
            return (
                f"{name} is {value.dtype}{list(value.shape)}, not {reference_value.dtype}{list(reference_value.shape)}"
            )
        found = difference(value, reference_value)
        if value.dtype.kind != "f":
            if found.differing:
                return f"{name}: {found.differing} of {found.values} integers differ, by up to {found.worst:g}"
            continue
        scale = max(magnitude, found.scale, 1e-6)
        proof.worst = max(proof.worst, found.worst / (scale * ULP))
        if found.worst > KERNEL[str(value.dtype)] * scale:
            return (
                f"{name} is off by {found.worst / (scale * ULP):.3g} ULP, {KERNEL[str(value.dtype)] / ULP:.3g} allowed"
            )
    return None


def expected(call: BoundKernel) -> tuple[dict[str, np.ndarray], float]:
    """What the reference answers, by result, and the largest magnitude of what it adds up."""
    plain = _answer(call.kernel, call.operands, call.bound)
    absolute = {n: np.abs(v) if v.dtype.kind == "f" else v for n, v in call.operands.items()}
    try:
        summed = _answer(call.kernel, absolute, call.bound)
    except Exception:  # magnitudes that the reference does not take say nothing
        summed = plain
    arrays = [*plain.values(), *summed.values(), *call.operands.values()]
    floats = [np.abs(a[np.isfinite(a)]) for a in arrays if a.dtype.kind == "f"]
    return plain, max((float(a.max(initial=0.0)) for a in floats), default=0.0)


def _answer(kernel: Kernel, operands: Mapping[str, np.ndarray], bound: BoundCall) -> dict[str, np.ndarray]:
    arguments: list[object] = []
    for o in kernel.inputs:
        parts = [operands[f"{o.name}{i}"] for i in range(len(operands)) if f"{o.name}{i}" in operands]
        arguments.append(tuple(parts) if o.variadic else operands.get(o.name))
    with np.errstate(all="ignore"):
        made = answer(kernel, arguments, bound.attrs)
    results = made if isinstance(made, tuple) else (made,)
    if len(results) != len(kernel.outputs):
        raise GapFuseError(
            f"the reference of {kernel.name} answers {counted(len(results), 'result')}, not {len(kernel.outputs)}"
        )
    return {o.name: np.asarray(r) for o, r in zip(kernel.outputs, results, strict=True)}


def _shown(bound: BoundCall, tile: Mapping[str, int]) -> str:
    return "tiles " + ", ".join(f"{a}={tile[a]} of {n}" for a, n in bound.extents.items())


def _described(call: KernelCall) -> str:
    operands = ", ".join(f"{n}: {v.dtype}{list(v.shape)}" for n, v in call.operands.items())
    return f"{operands}; {', '.join(f'{n}={v}' for n, v in call.attrs.items())} (from {call.source})"
