"""The choice over a network against trying everything: every set of staying tensors, and for each call every tile size,
loop order and set of double buffers, priced by an independent walk over all tiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations, product

from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_engine.graph import Call, Provenance
from tests.tiler import walk
from tests.tiler.calls import TARGET, bound_call, operand
from tiler.bound import BoundAxis, BoundCall
from tiler.grid import breakpoints
from tiler.liveness import Life
from tiler.options import CallOptions
from tiler.schedule import BoundOperand
from tiler.stay_choice import choose_stays
from tiler.tails import Early


@dataclass(frozen=True, slots=True)
class Net:
    """Hand-made calls, each with one result, and the activations that may stay."""

    calls: tuple[BoundCall, ...]
    lives: tuple[Life, ...]


@st.composite
def nets(draw: st.DrawFn) -> Net:
    """Layers over rows of channels and additions of an earlier tensor; kernels walk tiles by strides anywhere."""
    rows = draw(st.integers(2, 5))
    width = {"t0": draw(st.sampled_from([3, 16]))}
    calls: list[BoundCall] = []
    for i in range(draw(st.integers(2, 3))):
        x, y = f"t{i}", f"t{i + 1}"
        same = [t for t in width if t != x and width[t] == width[x]]
        if same and draw(st.booleans()):
            width[y] = width[x]
            calls.append(_addition(x, draw(st.sampled_from(same)), y, rows, width[x]))
        else:
            width[y] = draw(st.sampled_from([3, 16]))
            calls.append(_layer(x, y, rows, width[x], width[y]))
    return Net(tuple(calls), _lives(calls, rows, width))


def _layer(x: str, y: str, rows: int, c: int, k: int) -> BoundCall:
    operands = [
        _activation("x[p, c]", x, (rows, c)),
        operand("w[k, c]", (k, c), (0, 1), "const"),
        _activation("y[p, k]", y, (rows, k), "out"),
    ]
    axes = [BoundAxis("p", rows), BoundAxis("k", k, step=min(4, k)), BoundAxis("c", c, whole=True)]
    return bound_call(axes, operands, "20 + ceil(p*k / cores) * c * 3")


def _addition(a: str, b: str, y: str, rows: int, c: int) -> BoundCall:
    operands = [_activation(f"{n}[p, c]", root, (rows, c)) for n, root in (("a", a), ("b", b))]
    operands.append(_activation("y[p, c]", y, (rows, c), "out"))
    return bound_call([BoundAxis("p", rows), BoundAxis("c", c, whole=True)], operands, "20 + ceil(p*c / cores) * 4")


def _activation(access: str, root: str, extent: tuple[int, int], role: str = "in") -> BoundOperand:
    o = operand(access, extent, (0, 1), role)
    return replace(o, buffer=root, root=root, near=("stride", "stride"))


def _lives(calls: Sequence[BoundCall], rows: int, width: dict[str, int]) -> tuple[Life, ...]:
    """Of what is made and read inside the network."""
    used = {t: [i for i, c in enumerate(calls) for o in c.operands if o.root == t] for t in width}
    inner = [t for t in width if t not in ("t0", f"t{len(calls)}")]
    return tuple(Life(t, rows * width[t], min(used[t]), max(used[t])) for t in inner)


def _options(net: Net, l1: int) -> list[CallOptions]:
    calls = [Call(f"call{i}", "kernel", (), (), (), Provenance("", "", "", ())) for i in range(len(net.calls))]
    return [CallOptions(c, [b], {}, TARGET.with_budgets(l1)) for c, b in zip(calls, net.calls, strict=True)]


def _least(call: BoundCall, stays: frozenset[str], room: int) -> int | None:
    """The least cycles of a call of which these tensors are in L1 already, over everything that fits."""
    moving = replace(call, operands=tuple(o for o in call.operands if o.root not in stays))
    fitting = [
        walk.total_cycles(moving, loops, double, TARGET)
        for loops in _tilings(moving)
        for double in product([False, True], repeat=len(moving.operands))
        if walk.l1_bytes(moving, loops, double) <= room and _sensible(moving, loops, double)
    ]
    return min(fitting, default=None)


def _sensible(call: BoundCall, loops: walk.Loops, double: Sequence[bool]) -> bool:
    """What is copied once has one buffer."""
    return all(not d or len(list(walk.copies(call, o, loops))) > 1 for d, o in zip(double, call.operands, strict=True))


def _tilings(call: BoundCall) -> Iterator[list[tuple[str, int]]]:
    """All orders and sizes, a size being the least for its number of tiles: 4 of 5 rows, and one more, can be some
    cycles better than 3 and 2, and is no candidate."""
    for order in permutations([a for a in call.axes if not a.whole]):
        for tile in product(*(breakpoints(a).tolist() for a in order)):
            yield [(a.name, t) for a, t in zip(order, tile, strict=True) if t < a.extent]


@settings(max_examples=15)
@given(nets(), st.sampled_from([100, 160, 250, 400]))
def test_nothing_over_all_sets_and_tilings_is_better(net: Net, l1: int) -> None:
    options = _options(net, l1)
    totals = []
    for stays in (s for n in range(len(net.lives) + 1) for s in combinations(net.lives, n)):
        roots = frozenset(v.root for v in stays)
        rooms = [l1 - sum(walk.align(v.bytes) for v in stays if v.first <= i <= v.last) for i in range(len(options))]
        least = [_least(c, roots, room) for c, room in zip(net.calls, rooms, strict=True)]
        if None not in least:
            totals.append(sum(c for c in least if c is not None))
    found = choose_stays(options, net.lives, net.lives, l1, [0] * len(options), early=Early.NONE)
    assert (found is None) == (not totals)
    if found is not None:
        assert found.proven
        assert found.cost[0] == found.least == min(totals)
