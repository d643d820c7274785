"""Storage orders: every call finds an implementation, values stay, and nothing is copied where nothing need be."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion_engine.graph import Alias, Buffer, Call, FusedGraph, Provenance
from fusion_engine.graph_json import graph_from_json, graph_to_json
from fusion_engine.kernels import load_kernels
from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.layouts import order_layouts
from fusion_engine.reference import run_reference
from tiler.binding import bind

WHY = Provenance("test", "test", "", ("node",))

NHWC = """
kernel: nhwc_only
signature: {inputs: {x: "float32[N, C, H, W]"}, outputs: {y: "float32[N, C, H, W]"}}
semantics: reference.py:twice
axes: {n: N, c: C, h: H, w: W}
access: |
  x[n, c, h, w]
  y[n, c, h, w]
implementations:
- {name: only, source: k.c, symbol: gf_a, orders: {x: n h w c, y: n h w c}, team: h, cycles: 10}
---
kernel: nchw_only
signature: {inputs: {x: "float32[N, C, H, W]"}, outputs: {y: "float32[N, C, H, W]"}}
semantics: reference.py:twice
axes: {n: N, c: C, h: H, w: W}
access: |
  x[n, c, h, w]
  y[n, c, h, w]
implementations:
- {name: only, source: k.c, symbol: gf_b, orders: {x: n c h w, y: n c h w}, team: h, cycles: 10}
---
kernel: to_chw
signature: {inputs: {x: "float32[N, C, H, W]"}, outputs: {y: "float32[N, C, H, W]"}}
semantics: reference.py:twice
axes: {n: N, c: C, h: H, w: W}
access: |
  x[n, c, h, w]
  y[n, c, h, w]
implementations:
- {name: only, source: k.c, symbol: gf_c, orders: {x: n h w c, y: n c h w}, team: h, cycles: 10}
---
kernel: last
signature: {inputs: {x: "float32[*B, D]"}, outputs: {y: "float32[*B, D]"}}
semantics: reference.py:twice
axes: {b: "*B", d: D}
access: |
  x[b, d]
  y[b, d]
implementations:
- {name: only, source: k.c, symbol: gf_d, rank: 4, orders: {x: "*b d", y: "*b d"}, team: b, cycles: 10}
---
kernel: add
signature: {inputs: {a: "float32[*A]", b: "float32[*B]"}, outputs: {y: "float32[*Y]"}, sizes: {"*Y": "broadcast(A, B)"}}
semantics: reference.py:add
axes: {i: "*Y"}
access: |
  a[i]
  b[i]
  y[i]
implementations:
- {name: only, source: k.c, symbol: gf_e, rank: 4, orders: {a: any, b: "same:a", y: "same:a"}, team: i, cycles: 10}
---
kernel: copy
signature: {inputs: {x: "float32[*S]"}, outputs: {y: "float32[*S]"}}
semantics: reference.py:copy
axes: {i: "*S"}
access: |
  x[i]
  y[i]
implementations:
- {name: only, source: k.c, symbol: gf_f, rank: 6, orders: {x: any, y: any}, team: i, cycles: 10}
"""
CODE = """
def twice(x):
    return x * 2


def add(a, b):
    return a + b


def copy(x):
    return x.copy()
"""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Kernel]:
    room = tmp_path_factory.mktemp("kernels")
    (room / "all").mkdir()
    (room / "all" / "kernel.yaml").write_text(NHWC)
    (room / "all" / "reference.py").write_text(CODE)
    (room / "all" / "k.c").write_text("")
    return load_kernels([Path(room)])


class Net:
    """Builds graphs of the kernels above, tracking shapes."""

    def __init__(self, **inputs: tuple[int, ...]) -> None:
        self.buffers = [Buffer(n, "float32", s) for n, s in inputs.items()]
        self.inputs = tuple(inputs)
        self.calls: list[Call] = []

    def shape(self, name: str) -> tuple[int, ...]:
        return next(b.shape for b in self.buffers if b.name == name)

    def call(self, kernel: str, *operands: str, into: str | None = None) -> str:
        names = ("a", "b") if kernel == "add" else ("x",)
        result = into or f"v{len(self.buffers)}"
        if into is None:
            shape = np.broadcast_shapes(*(self.shape(o) for o in operands))
            self.buffers.append(Buffer(result, "float32", shape))
        bound = tuple(zip(names, operands, strict=True))
        self.calls.append(Call(f"{kernel}_{len(self.calls)}", kernel, bound, (("y", result),), (), WHY))
        return result

    def buffer(self, shape: tuple[int, ...], alias: Alias | None = None, data: np.ndarray | None = None) -> str:
        name = f"v{len(self.buffers)}"
        self.buffers.append(Buffer(name, "float32", shape, alias=alias, data=data))
        return name

    def reshape(self, of: str, *shape: int) -> str:
        return self.buffer(shape, Alias(of, reshape=True))

    def transpose(self, of: str, *perm: int) -> str:
        return self.buffer(tuple(self.shape(of)[p] for p in perm), Alias(of, perm=perm))

    def done(self, *outputs: str) -> FusedGraph:
        return FusedGraph("net", tuple(self.buffers), tuple(self.calls), self.inputs, outputs)


def ordered(graph: FusedGraph, kernels: Mapping[str, Kernel]) -> FusedGraph:
    """order_layouts, and everything that must hold of its result."""
    result = order_layouts(graph, kernels)
    for call in result.calls:
        bound = [bind(kernels[call.kernel], i, result, call) for i in kernels[call.kernel].implementations]
        assert any(not isinstance(b, str) for b in bound), f"{call.name}: {bound}"
    for name in (*graph.inputs, *graph.outputs):
        assert result.buffer[name].order is None
        assert result.buffer[name].alias is None
    assert (result.inputs, result.outputs) == (graph.inputs, graph.outputs)
    rng = np.random.default_rng(0)
    values = {n: rng.standard_normal(graph.buffer[n].shape).astype(np.float32) for n in graph.inputs}
    before, after = run_reference(graph, kernels, values), run_reference(result, kernels, values)
    for name in graph.outputs:
        np.testing.assert_array_equal(before[name], after[name])
    assert graph_to_json(graph_from_json(graph_to_json(result))) == graph_to_json(result)
    assert graph_to_json(order_layouts(graph, kernels)) == graph_to_json(result)
    return result


def copies(graph: FusedGraph) -> list[str]:
    return [c.operands[0][1] for c in graph.calls if c.kernel == "copy"]


def test_an_nhwc_chain_is_copied_only_at_its_ends(kernels: Mapping[str, Kernel]) -> None:
    net = Net(x=(1, 3, 8, 8))
    y = "x"
    for kernel in ("nhwc_only", "add", "nhwc_only", "nhwc_only"):
        y = net.call(kernel, *([y, y] if kernel == "add" else [y]))
    graph = ordered(net.done(y), kernels)
    assert len(copies(graph)) == 2
    assert graph.buffer["v1"].order == (0, 2, 3, 1)


def test_a_transposed_nhwc_input_costs_no_copy(kernels: Mapping[str, Kernel]) -> None:
    net = Net(x=(1, 8, 9, 3))
    y = net.call("nhwc_only", net.call("nhwc_only", net.transpose("x", 0, 3, 1, 2)))
    flat = net.reshape(net.transpose(y, 0, 2, 3, 1), 1, 8 * 9 * 3)
    out = net.call("last", flat)
    assert copies(ordered(net.done(out), kernels)) == []


def test_one_channel_needs_no_copy(kernels: Mapping[str, Kernel]) -> None:
    net = Net(x=(1, 1, 8, 9))
    graph = ordered(net.done(net.call("nhwc_only", "x")), kernels)
    assert copies(graph) == []


def test_flattening_nhwc_copies_once_in_front(kernels: Mapping[str, Kernel]) -> None:
    net = Net(x=(1, 1, 4, 5))
    wide = net.call("add", net.buffer((1, 6, 1, 1), data=np.ones((1, 6, 1, 1), np.float32)), "x")
    y = net.call("nhwc_only", wide)
    graph = ordered(net.done(net.call("last", net.reshape(y, 1, 6 * 4 * 5))), kernels)
    assert len(copies(graph)) == 1


def test_two_readers_share_a_copy(kernels: Mapping[str, Kernel]) -> None:
    net = Net(x=(1, 3, 4, 4))
    a, b = net.call("nhwc_only", "x"), net.call("nhwc_only", "x")
    graph = ordered(net.done(net.call("to_chw", net.call("add", a, b))), kernels)
    assert copies(graph) == ["x"]


def test_an_output_read_elsewhere_is_copied_once(kernels: Mapping[str, Kernel]) -> None:
    net = Net(x=(1, 4, 4, 3))
    y = net.call("nhwc_only", net.transpose("x", 0, 3, 1, 2))
    z = net.call("to_chw", net.call("nhwc_only", y))
    graph = ordered(net.done(y, z), kernels)
    assert len(copies(graph)) == 1
    assert graph.calls[1].kernel == "copy"


def test_parts_of_a_concatenation_take_its_order(kernels: Mapping[str, Kernel]) -> None:
    net = Net(x=(1, 4, 5, 3))
    seen = net.transpose("x", 0, 3, 1, 2)
    whole = net.buffer((1, 6, 4, 5))
    for start in (0, 3):
        part = net.buffer((1, 3, 4, 5), Alias(whole, start=(0, start, 0, 0)))
        net.call("nhwc_only", seen, into=part)
    graph = ordered(net.done(net.call("to_chw", whole)), kernels)
    assert copies(graph) == []
    assert graph.storage(whole).strides == (120, 1, 30, 6)


def test_a_part_that_cannot_be_written_there_is_made_beside(kernels: Mapping[str, Kernel]) -> None:
    net = Net(x=(1, 3, 4, 5))
    whole = net.buffer((1, 6, 4, 5))
    net.call("nhwc_only", "x", into=net.buffer((1, 3, 4, 5), Alias(whole, start=(0, 0, 0, 0))))
    net.call("nchw_only", "x", into=net.buffer((1, 3, 4, 5), Alias(whole, start=(0, 3, 0, 0))))
    ordered(net.done(net.call("nchw_only", whole)), kernels)


KINDS = ("nhwc_only", "nchw_only", "to_chw", "last", "add", "reshape", "transpose", "slice")


@st.composite
def networks(draw: st.DrawFn) -> FusedGraph:
    channels, height, width = draw(st.sampled_from([(1, 2, 3), (2, 2, 2), (3, 1, 4), (2, 3, 2)]))
    net = Net(x=(1, channels, height, width), z=(1, channels, height, width))
    made = ["x", "z"]
    for _ in range(draw(st.integers(1, 7))):
        kind = draw(st.sampled_from(KINDS))
        source = draw(st.sampled_from(made))
        made.append(grow(draw, net, kind, source, made))
    written = [v for v in made if any(v == b for c in net.calls for _, b in c.results)]
    last = net.call("last", made[-1]) if made[-1] not in written else made[-1]
    others = draw(st.sets(st.sampled_from(written), max_size=2)) if written else set()
    return net.done(last, *sorted(others - {last}))


def grow(draw: st.DrawFn, net: Net, kind: str, source: str, made: list[str]) -> str:
    shape = net.shape(source)
    if kind == "add":
        other = draw(st.sampled_from([m for m in made if net.shape(m) == shape]))
        return net.call("add", source, other)
    if kind == "transpose":
        return net.transpose(source, *draw(st.permutations(range(len(shape)))))
    if kind == "slice":
        start = tuple(draw(st.integers(0, d - 1)) for d in shape)
        extents = tuple(draw(st.integers(1, d - s)) for d, s in zip(shape, start, strict=True))
        return net.buffer(extents, Alias(source, start=start, step=(1,) * len(shape)))
    if kind == "reshape":
        size = int(np.prod(shape))
        return net.reshape(
            source, *draw(st.sampled_from([(1, size), (1, 1, size, 1), (size, 1, 1, 1), (*shape[::-1],)]))
        )
    return net.call(kind if len(shape) == 4 else "last", source)


@given(networks())
def test_any_network_keeps_its_values_and_finds_implementations(
    kernels: Mapping[str, Kernel], graph: FusedGraph
) -> None:
    ordered(graph, kernels)
