"""Hand-made bound calls and targets for the search's tests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import strategies as st

from fusion_engine.expr import parse_access, parse_expr
from tiler.bound import BoundAccumulator, BoundAxis, BoundCall
from tiler.schedule import BoundOperand
from tiler.target import Target, load_target

TARGET = load_target(Path(__file__).resolve().parents[2] / "targets" / "host")


def tight_target(max_bytes: int = 64, max_stride: int = 40) -> Target:
    """The host target with commands so short that they split."""
    hop = replace(TARGET.hops["l2_l1"], max_bytes=max_bytes, max_stride=max_stride)
    return replace(TARGET, hops={**TARGET.hops, "l2_l1": hop})


def operand(
    access: str, extent: tuple[int, ...], order: tuple[int, ...], role: str = "in", itemsize: int = 1, pad: int = 0
) -> BoundOperand:
    """An operand from its access over logical dims, stored in `order`, its innermost rows `pad` elements longer than
    read."""
    name, index = parse_access(access)
    strides = [0] * len(extent)
    step = 1
    for position, axis in enumerate(reversed(order)):
        strides[axis] = step
        step *= extent[axis] + (pad if position == 0 else 0)
    return BoundOperand(
        name=name,
        buffer=name,
        root=name,
        role=role,
        dtype={1: "int8", 2: "int16", 4: "float32"}[itemsize],
        itemsize=itemsize,
        dims=tuple(f"d{a}" for a in order),
        index=tuple(index[a] for a in order),
        extent=tuple(extent[a] for a in order),
        far_offset=0,
        far_strides=tuple(strides[a] for a in order),
        outside="border",
    )


def bound_call(
    axes: list[BoundAxis], operands: list[BoundOperand], cycles: str, accumulate: BoundAccumulator | None = None
) -> BoundCall:
    return BoundCall(
        "call", "kernel", "portable", tuple(axes), {}, tuple(operands), (), {}, parse_expr(cycles), (), accumulate
    )


@st.composite
def convolutions(draw: st.DrawFn, largest: int = 9) -> BoundCall:
    """A one-dimensional strided, padded convolution; its channels whole, or split with partial sums."""
    p, k, c = (draw(st.integers(1, largest)) for _ in range(3))
    r, s, d = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 2))
    before = draw(st.integers(0, 3))
    h = max(1, (p - 1) * s + (r - 1) * d + 1 - before - draw(st.integers(0, 3)))
    item = draw(st.sampled_from([1, 2, 4]))
    pad = draw(st.sampled_from([0, 0, 3]))
    split = draw(st.booleans())
    x = operand(f"x[c, p*{s} + r*{d} - {before}]", (c, h), draw(st.sampled_from([(0, 1), (1, 0)])), "in", item, pad)
    w = operand("w[k, c, r]", (k, c, r), draw(st.permutations([0, 1, 2]).map(tuple)), "const", item)
    b = operand("b[k]", (k,), (0,), "const", 4)
    y = operand("y[k, p]", (k, p), draw(st.sampled_from([(0, 1), (1, 0)])), "out", item, pad)
    step = draw(st.sampled_from([1, 2, 4]))
    axes = [
        BoundAxis("p", p),
        BoundAxis("k", k, step=step),
        BoundAxis("c", c, whole=not split),
        BoundAxis("r", r, whole=True),
    ]
    index = tuple(parse_expr(a) for a in ("k", "p"))
    acc = BoundAccumulator("acc", 4, index, ("c",)) if split else None
    return bound_call(axes, [x, w, b, y], "40 + ceil(p / cores) * k * (c*r*3 + 10)", acc)


@st.composite
def resizes(draw: st.DrawFn) -> BoundCall:
    """Nearest-neighbour rows: an index map with a division and a clamp."""
    p, h, c = draw(st.integers(1, 12)), draw(st.integers(1, 9)), draw(st.integers(1, 5))
    x = operand(f"x[c, clamp((p*{h} + {draw(st.integers(0, 3))}) // {p}, 0, {h - 1})]", (c, h), (1, 0))
    y = operand("y[c, p]", (c, p), (1, 0), "out")
    return bound_call(
        [BoundAxis("p", p, limit=draw(st.sampled_from([None, 3]))), BoundAxis("c", c)], [x, y], "20 + p*c*4"
    )


@st.composite
def grouped(draw: st.DrawFn) -> BoundCall:
    """A grouped pointwise convolution: two axes in one index map, of which one tile has a whole part (see bind)."""
    g, k, c, p = (draw(st.integers(1, 4)) for _ in range(4))
    x = operand(f"x[g*{c} + c, p]", (g * c, p), (1, 0))
    w = operand(f"w[g*{k} + k, c]", (g * k, c), (0, 1), "const")
    y = operand(f"y[g*{k} + k, p]", (g * k, p), (1, 0), "out")
    whole = draw(st.booleans())
    axes = [
        BoundAxis("g", g, limit=None if whole else 1),
        BoundAxis("k", k, whole=whole),
        BoundAxis("p", p),
        BoundAxis("c", c, whole=True),
    ]
    return bound_call(axes, [x, w, y], "20 + g*k*p*c")


def calls() -> st.SearchStrategy[BoundCall]:
    return st.one_of(convolutions(), resizes(), grouped())
