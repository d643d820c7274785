"""Bindings read through their far strides give the numbers that numpy gives on logical tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fusion_engine.expr import Num, evaluate
from fusion_engine.graph import Alias, Buffer, Call, FusedGraph, Provenance
from fusion_engine.kernels import load_kernels
from fusion_engine.kernels.descriptor import Kernel, TileRule
from gap_fuse.proof.tiles import bind_kernel
from tiler.binding import bind
from tiler.bound import BoundCall
from tiler.emit.pack import pack
from tiler.schedule import BoundOperand

ROOT = Path(__file__).resolve().parents[2]
KERNELS: Mapping[str, Kernel] = load_kernels([ROOT / "kernels"])
NONE = Provenance("test", "", "", ())


def one_call(
    kernel: str, buffers: list[Buffer], operands: list[str], results: list[str], attrs: dict[str, object]
) -> FusedGraph:
    inputs = [o.name for o in KERNELS[kernel].inputs]
    outputs = [o.name for o in KERNELS[kernel].outputs]
    call = Call(
        "call",
        kernel,
        tuple(zip(inputs, operands, strict=False)),
        tuple(zip(outputs, results, strict=True)),
        tuple(attrs.items()),  # type: ignore[arg-type]
        NONE,
    )
    return FusedGraph("test", tuple(buffers), (call,), (), ())


def bound(graph: FusedGraph, implementation: str = "portable") -> BoundCall | str:
    kernel = KERNELS[graph.calls[0].kernel]
    chosen = next(i for i in kernel.implementations if i.name == implementation)
    return bind(kernel, chosen, graph, graph.calls[0])


def memory(graph: FusedGraph, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Flat storage of every root, the named logical values in it."""
    flat = {b.name: np.zeros(int(np.prod(b.shape)), b.dtype) for b in graph.buffers if b.alias is None}
    for name, value in values.items():
        s = graph.storage(name)
        at = np.full(s.shape, s.offset)
        for axis, (extent, stride) in enumerate(zip(s.shape, s.strides, strict=True)):
            at += (np.arange(extent) * stride).reshape([-1 if i == axis else 1 for i in range(len(s.shape))])
        flat[s.root][at] = value
    return flat


def read(operand: BoundOperand, flat: np.ndarray, points: Mapping[str, np.ndarray]) -> np.ndarray:
    """The operand at every point of the axes, through its far strides."""
    at = operand.far_offset
    for index, stride in zip(operand.index, operand.far_strides, strict=True):
        assert index is not None
        at = at + evaluate(index, points) * stride
    return flat[at]


def grid(call: BoundCall) -> dict[str, np.ndarray]:
    mesh = np.meshgrid(*(np.arange(a.extent) for a in call.axes), indexing="ij")
    return dict(zip((a.name for a in call.axes), mesh, strict=True))


@st.composite
def broadcasts(draw: st.DrawFn) -> FusedGraph:
    """y = a + b that broadcast, in one random storage order; b sometimes a constant, a sometimes a transposed view."""
    shape = tuple(draw(st.integers(1, 4)) for _ in range(draw(st.integers(1, 4))))
    order = tuple(draw(st.permutations(range(len(shape)))))
    cut = draw(st.integers(0, len(shape)))
    other = tuple(draw(st.sampled_from([1, e])) for e in shape[cut:])
    own = [o - cut for o in order if o >= cut]
    constant = np.arange(int(np.prod(other)), dtype=np.float32).reshape(other) if draw(st.booleans()) else None
    b = Buffer("b", "float32", other, order=None if constant is not None else tuple(own), data=constant)
    y = Buffer("y", "float32", shape, order=order)
    if draw(st.booleans()):  # stored as the view's bytes lie
        base = Buffer("base", "float32", tuple(shape[o] for o in order))
        perm = tuple(order.index(i) for i in range(len(shape)))
        return one_call(
            "add_f32",
            [base, Buffer("a", "float32", shape, alias=Alias("base", perm=perm)), b, y],
            ["a", "b"],
            ["y"],
            {},
        )
    return one_call("add_f32", [Buffer("a", "float32", shape, order=order), b, y], ["a", "b"], ["y"], {})


@given(broadcasts())
def test_folded_groups_add_like_numpy(graph: FusedGraph) -> None:
    call = bound(graph)
    if isinstance(call, str):
        assert "axes that cannot be merged" in call or "another order" in call
        return
    assert len(call.axes) == 4
    a, b = (np.random.default_rng(1).normal(size=graph.buffer[n].shape).astype(np.float32) for n in ("a", "b"))
    b = b if graph.buffer["b"].data is None else graph.buffer["b"].data
    flat = memory(graph, {"a": a} | ({"b": b} if graph.buffer["b"].data is None else {}))
    for p in call.packings:
        flat[p.root] = pack(graph.buffer[p.buffer].data, p.dims, p.order).ravel()
    points = grid(call)
    left, right, out = call.operands
    values = read(left, flat[left.root], points) + read(right, flat[right.root], points)
    at = sum(evaluate(i, points) * s for i, s in zip(out.index, out.far_strides, strict=True))
    flat["y"][at] = values
    expected = memory(graph, {"y": (a + b).astype(np.float32)})["y"]
    np.testing.assert_array_equal(flat["y"], expected)


@given(st.integers(1, 40), st.integers(1, 5), st.sampled_from([1, 3]))
def test_blocked_weights_hold_every_weight(k: int, c: int, r: int) -> None:
    weight = np.random.default_rng(k).integers(-128, 127, (k, c, r, r), dtype=np.int8)
    wide = {n: np.zeros(k, d) for n, d in (("bias", np.int32), ("mul", np.int32), ("shift", np.uint8))}
    constants = [Buffer(n, str(v.dtype), v.shape, data=v) for n, v in {"weight": weight, **wide}.items()]
    x = Buffer("x", "int8", (1, c, 6, 6), order=(0, 2, 3, 1))
    y = Buffer("y", "int8", (1, k, 7 - r, 7 - r), order=(0, 2, 3, 1))
    graph = one_call("conv2d_i8", [x, *constants, y], ["x", "weight", "bias", "mul", "shift"], ["y"], {})
    call = bound(graph, "blocked")
    assert isinstance(call, BoundCall), call
    packing = next(p for p in call.packings if p.buffer == "weight")
    stored = pack(weight, packing.dims, packing.order)
    assert stored.nbytes == packing.bytes
    assert next(o for o in call.operands if o.name == "weight").extent == stored.shape
    restored = stored.transpose(0, 4, 3, 1, 2).reshape(-1, c, r, r)
    np.testing.assert_array_equal(restored[:k], weight)
    assert not restored[k:].any()
    assert all(a.step == 16 for a in call.axes if a.name == "k" and k > 1)


@given(st.integers(3, 9), st.integers(1, 3))
def test_gathered_pixels_are_those_the_stride_reads(h: int, stride: int) -> None:
    out = (h - 1) // stride + 1
    names = ("weight", "bias", "mul", "shift")
    constants = [
        Buffer(n, d, s, data=np.zeros(s, d))
        for n, d, s in zip(names, ("int8", "int32", "int32", "uint8"), ((4, 2, 1, 1), (4,), (4,), (4,)), strict=True)
    ]
    x, y = (
        Buffer("x", "int8", (1, 2, h, h), order=(0, 2, 3, 1)),
        Buffer("y", "int8", (1, 4, out, out), order=(0, 2, 3, 1)),
    )
    graph = one_call("pointwise_i8", [x, *constants, y], ["x", *names], ["y"], {"strides": (stride, stride)})
    call = bound(graph, "blocked")
    assert isinstance(call, BoundCall), call
    value = np.random.default_rng(h).integers(-9, 9, (1, 2, h, h), dtype=np.int8)
    operand = call.operands[0]
    if out > 1:  # a dense operand of the pixels read
        assert sorted(operand.extent) == sorted((1, out, out, 2))
    points = grid(call)
    found = read(operand, memory(graph, {"x": value})["x"], points)
    expected = value[points["n"], points["c"], points["p"] * stride, points["q"] * stride]
    np.testing.assert_array_equal(found, expected)


def test_a_wrong_storage_order_is_declined_with_the_reason() -> None:
    x, y = Buffer("x", "float32", (1, 3, 8, 8)), Buffer("y", "float32", (1, 3, 4, 4), order=(0, 2, 3, 1))
    graph = one_call("maxpool_f32", [x, y], ["x"], ["y"], {"kernel": (2, 2), "strides": (2, 2)})
    assert bound(graph) == "x is not stored in the order n h w c"


def test_axes_of_extent_one_may_lie_anywhere() -> None:
    x, y = Buffer("x", "float32", (1, 1, 8, 8)), Buffer("y", "float32", (1, 1, 4, 4), order=(0, 2, 3, 1))
    graph = one_call("maxpool_f32", [x, y], ["x"], ["y"], {"kernel": (2, 2), "strides": (2, 2)})
    assert isinstance(bound(graph), BoundCall)


def test_reductions_are_whole_unless_summed_up() -> None:
    x, y = (
        Buffer("x", "float32", (1, 3, 8, 8), order=(0, 2, 3, 1)),
        Buffer("y", "float32", (1, 3, 4, 4), order=(0, 2, 3, 1)),
    )
    pool = bound(one_call("maxpool_f32", [x, y], ["x"], ["y"], {"kernel": (2, 2), "strides": (2, 2)}))
    assert isinstance(pool, BoundCall)
    assert {a.name for a in pool.axes if not a.whole} == {"c", "p", "q"}
    small = Buffer("y", "float32", (1, 3, 1, 1), order=(0, 2, 3, 1))
    mean = bound(one_call("global_avgpool_f32", [x, small], ["x"], ["y"], {"factor": 1.0}))
    assert isinstance(mean, BoundCall)
    assert {a.name for a in mean.axes if not a.whole} == {"c", "h", "w"}
    assert mean.accumulate is not None
    assert mean.accumulate.over == ("h", "w")


def test_a_parameter_must_be_constant() -> None:
    buffers = [Buffer("x", "float32", (2, 8)), Buffer("gamma", "float32", (8,)), Buffer("y", "float32", (2, 8))]
    graph = one_call("layernorm_f32", buffers, ["x", "gamma"], ["y"], {})
    assert bound(graph) == "gamma must be a constant"


def grouped(whole: tuple[str, ...], tile: Mapping[str, TileRule] | None, groups: int = 2) -> BoundCall | str:
    """A convolution of `groups` groups with 3 channels each, bound to an implementation that keeps `whole` whole."""
    kernel = KERNELS["conv2d_f32"]
    chosen = replace(next(i for i in kernel.implementations if i.name == "grouped"), when=(), whole=whole, tile=tile)
    rng = np.random.default_rng(0)
    arrays = {"x": (1, 2 * groups, 5, 5), "weight": (3 * groups, 2, 3, 3), "bias": (3 * groups,)}
    operands = {n: rng.standard_normal(s).astype(np.float32) for n, s in arrays.items()}
    found = bind_kernel(kernel, chosen, operands, {"groups": groups, "pads": (0, 0, 0, 0)})
    return found if isinstance(found, str) else found[1]


def test_a_tile_of_two_axes_makes_one_part_of_the_result() -> None:
    """Nothing said so: a kernel that left both to be cut had the junk between its parts stored as results."""
    torn = grouped(("c", "r", "s"), None)
    assert isinstance(torn, str)
    assert "a tile of k and g makes no one part of y along k" in torn
    assert "`whole: [k]` or `tile: {g: {max: 1}}`" in torn
    assert isinstance(grouped(("k", "c", "r", "s"), None), BoundCall)
    assert isinstance(grouped(("c", "r", "s"), {"g": TileRule(max=Num(1))}), BoundCall)
    assert isinstance(grouped(("c", "r", "s"), None, groups=1), BoundCall)
