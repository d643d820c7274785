"""Random small integer networks as fused graphs, of real kernels: branches, borders, strides, splits, reductions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from hypothesis import strategies as st

from fusion_engine.graph import Alias, Buffer, Call, CallAttr, FusedGraph, Provenance
from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.kernels.sizes import fill_attrs

SHIFT = 10


@dataclass
class Growing:
    """A graph being drawn: `shape` of the newest feature map (N, C, H, W)."""

    draw: st.DrawFn
    kernels: Mapping[str, Kernel]
    rng: np.random.Generator
    buffers: list[Buffer] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)

    def constant(self, data: np.ndarray) -> str:
        name = f"c{len(self.buffers)}"
        self.buffers.append(Buffer(name, str(data.dtype), data.shape, data=data))
        return name

    def call(
        self,
        kernel: str,
        operands: dict[str, str],
        shape: tuple[int, ...],
        attrs: dict[str, CallAttr],
        dtype: str = "int8",
    ) -> str:
        name = f"{kernel}_{len(self.calls)}"
        self.buffers.append(Buffer(f"{name}.y", dtype, shape))
        filled = fill_attrs(self.kernels[kernel], attrs)
        origin = Provenance("drawn", "test", "", (name,))
        self.calls.append(
            Call(name, kernel, tuple(operands.items()), (("y", f"{name}.y"),), tuple(filled.items()), origin)
        )
        return f"{name}.y"

    def view(self, name: str, alias: Alias) -> None:
        """Make a buffer a view."""
        at = next(i for i, b in enumerate(self.buffers) if b.name == name)
        self.buffers[at] = replace(self.buffers[at], alias=alias)

    def weights(self, *shape: int) -> dict[str, str]:
        """Weight, bias and requantisation of a dense kernel with `shape[0]` outputs."""
        k = shape[0]
        return {
            "weight": self.constant(self.rng.integers(-127, 128, shape, dtype=np.int8)),
            "bias": self.constant(self.rng.integers(-500, 500, k, dtype=np.int32)),
            "mul": self.constant(self.rng.integers(1, 40, k, dtype=np.int32)),
            "shift": self.constant(np.full(k, SHIFT, np.uint8)),
        }

    def shape(self, name: str) -> tuple[int, ...]:
        return next(b.shape for b in self.buffers if b.name == name)


def _window(g: Growing, x: str) -> tuple[dict[str, CallAttr], int, int, int, int]:
    """Pads, strides and kernel that fit, and the resulting height and width."""
    _, _, h, w = g.shape(x)
    r, s = (g.draw(st.integers(1, min(3, n))) for n in (h, w))
    stride = g.draw(st.integers(1, 2))
    pads = tuple(g.draw(st.integers(0, k - 1)) for k in (r, s, r, s))
    p = (h + pads[0] + pads[2] - r) // stride + 1
    q = (w + pads[1] + pads[3] - s) // stride + 1
    return {"strides": (stride, stride), "pads": pads}, r, s, p, q


def _conv(g: Growing, x: str) -> str:
    n, c, _, _ = g.shape(x)
    attrs, r, s, p, q = _window(g, x)
    k = g.draw(st.integers(1, 20))
    zero = g.draw(st.integers(-128, 127))
    return g.call("conv2d_i8", {"x": x, **g.weights(k, c, r, s)}, (n, k, p, q), {**attrs, "x_zero": zero, "lo": -100})


def _depthwise(g: Growing, x: str) -> str:
    n, c, _, _ = g.shape(x)
    attrs, r, s, p, q = _window(g, x)
    return g.call("depthwise_i8", {"x": x, **g.weights(c, 1, r, s)}, (n, c, p, q), {**attrs, "x_zero": -128})


def _pointwise(g: Growing, x: str) -> str:
    n, c, h, w = g.shape(x)
    k = g.draw(st.integers(1, 40))
    return g.call("pointwise_i8", {"x": x, **g.weights(k, c, 1, 1)}, (n, k, h, w), {"y_zero": 5})


def _pool(g: Growing, x: str) -> str:
    n, c, _, _ = g.shape(x)
    attrs, r, s, p, q = _window(g, x)
    return g.call("maxpool_i8", {"x": x}, (n, c, p, q), {**attrs, "kernel": (r, s)})


def _add(g: Growing, x: str) -> str:
    """With an earlier map of the same shape, or with itself."""
    same = [b.name for b in g.buffers if b.data is None and b.shape == g.shape(x)]
    other = g.draw(st.sampled_from(same))
    return g.call("add_i8", {"a": x, "b": other}, g.shape(x), {"ma": 500, "mb": 300, "shift": SHIFT, "a_zero": 3})


def _residual(g: Growing, x: str) -> str:
    """A convolution that keeps the shape, and an earlier map of that shape added in the same call, maybe its input."""
    n, c, h, w = g.shape(x)
    same = [b.name for b in g.buffers if b.data is None and b.shape == g.shape(x)]
    r, s = (g.draw(st.sampled_from([k for k in (1, 3) if k <= n])) for n in (h, w))
    kind = g.draw(st.sampled_from(("conv2d_i8", "depthwise_i8") if (r, s) != (1, 1) else ("pointwise_i8",)))
    weights = g.weights(c, 1 if kind == "depthwise_i8" else c, r, s)
    window: dict[str, CallAttr] = {} if kind == "pointwise_i8" else {"pads": (r // 2, s // 2, r // 2, s // 2)}
    attrs: dict[str, CallAttr] = {"y_zero": -9, "addend_zero": 4, "addend_mul": 500, "sum_mul": 700, "sum_shift": SHIFT}
    operands = {"x": x, **weights, "addend": g.draw(st.sampled_from(same))}
    return g.call(kind, operands, (n, c, h, w), {**window, **attrs, "sum_zero": 7, "sum_lo": -90})


def _average(g: Growing, x: str) -> str:
    n, c, h, w = g.shape(x)
    mul = (1 << 16) // (h * w)
    return g.call("global_avgpool_i8", {"x": x}, (n, c, 1, 1), {"mul": mul, "shift": 16, "x_zero": -7})


def _join(g: Growing, x: str) -> str:
    """Two branches that write their parts of one map along the channels."""
    n, c, h, w = g.shape(x)
    ks = (g.draw(st.integers(1, 9)), g.draw(st.integers(1, 9)))
    whole = f"join_{len(g.buffers)}"
    g.buffers.append(Buffer(whole, "int8", (n, sum(ks), h, w)))
    for k, start in zip(ks, (0, ks[0]), strict=True):
        part = g.call("pointwise_i8", {"x": x, **g.weights(k, c, 1, 1)}, (n, k, h, w), {"x_zero": start})
        g.view(part, Alias(whole, start=(0, start, 0, 0)))
    return whole


def _slice(g: Growing, x: str) -> str:
    """A part of the map, read in place, every other row."""
    n, c, h, w = g.shape(x)
    start = g.draw(st.integers(0, c - 1))
    rows = g.draw(st.integers(0, h - 1))
    name = f"slice_{len(g.buffers)}"
    shape = (n, c - start, (h - rows + 1) // 2, w)
    g.buffers.append(Buffer(name, "int8", shape, alias=Alias(x, start=(0, start, rows, 0), step=(1, 1, 2, 1))))
    return _pool(g, name)


def _pad(g: Growing, x: str) -> str:
    """A frame of one value around any of the axes; what it frames is read by others, too."""
    n, c, h, w = g.shape(x)
    pads = tuple(g.draw(st.integers(0, 2 if axis % 4 > 1 else 1)) for axis in range(8))
    shape = tuple(e + pads[i] + pads[4 + i] for i, e in enumerate((n, c, h, w)))
    return g.call("pad_i8", {"x": x}, shape, {"pads": pads, "value": g.draw(st.integers(-128, 127))})


def _linear(g: Growing, x: str) -> str:
    """On the flattened map; the result is a map again."""
    n, c, h, w = g.shape(x)
    flat = f"flat_{len(g.buffers)}"
    g.buffers.append(Buffer(flat, "int8", (n, c * h * w), alias=Alias(x, reshape=True)))
    j = g.draw(st.integers(1, 24))
    y = g.call("linear_i8", {"x": flat, **g.weights(j, c * h * w)}, (n, j), {"x_zero": 9})
    name = f"map_{len(g.buffers)}"
    g.buffers.append(Buffer(name, "int8", (n, j, 1, 1), alias=Alias(y, reshape=True)))
    return name


LAYERS = (_conv, _depthwise, _pointwise, _residual, _pool, _add, _join, _slice, _linear, _pad, _pad)


@st.composite
def networks(draw: st.DrawFn, kernels: Mapping[str, Kernel]) -> FusedGraph:
    """One input, up to five layers, now and then a global average at the end; a branch's end is a second output."""
    g = Growing(draw, kernels, np.random.default_rng(draw(st.integers(0, 1000))))
    shape = (draw(st.integers(1, 2)), draw(st.integers(1, 17)), draw(st.integers(1, 14)), draw(st.integers(1, 14)))
    g.buffers.append(Buffer("input", "int8", shape))
    x = "input"
    for layer in draw(st.lists(st.sampled_from(LAYERS), min_size=1, max_size=5)):
        x = layer(g, x)
    if draw(st.booleans()):
        x = _average(g, x)
    read = {b for c in g.calls for _, b in c.operands} | {b.alias.of for b in g.buffers if b.alias}
    outputs = tuple(b.name for b in g.buffers if b.data is None and b.name not in read and not _is_part(b))
    return FusedGraph("drawn", tuple(g.buffers), tuple(g.calls), ("input",), outputs)


def _is_part(b: Buffer) -> bool:
    return b.alias is not None and b.alias.start is not None
