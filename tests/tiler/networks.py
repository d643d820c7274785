"""Small networks of kernel calls, built by hand or drawn: what schedules are tested on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from fusion_engine.graph import Alias, Buffer, Call, FusedGraph, Provenance
from fusion_engine.kernels import load_kernels

KERNELS = load_kernels([Path(__file__).resolve().parents[2] / "kernels"])
HWC = (0, 2, 3, 1)


class Builder:
    """Collects buffers and calls of one network of int8 tensors [1, C, H, W] stored H W C."""

    def __init__(self) -> None:
        self.buffers: list[Buffer] = []
        self.calls: list[Call] = []

    def tensor(self, c: int, h: int, w: int) -> str:
        name = f"t{len(self.buffers)}"
        self.buffers.append(Buffer(name, "int8", (1, c, h, w), order=HWC))
        return name

    def shape(self, name: str) -> tuple[int, ...]:
        return next(b.shape for b in self.buffers if b.name == name)

    def constants(self, call: str, shapes: dict[str, tuple[str, tuple[int, ...]]]) -> tuple[tuple[str, str], ...]:
        for operand, (dtype, shape) in shapes.items():
            self.buffers.append(Buffer(f"{call}.{operand}", dtype, shape, data=np.ones(shape, dtype)))
        return tuple((operand, f"{call}.{operand}") for operand in shapes)

    def call(self, kernel: str, operands: tuple[tuple[str, str], ...], result: str, /, **attrs: object) -> str:
        name = f"call{len(self.calls)}"
        provenance = Provenance("r", "v", "", (name,))
        self.calls.append(Call(name, kernel, operands, (("y", result),), tuple(attrs.items()), provenance))  # type: ignore[arg-type]
        return result

    def conv(self, x: str, k: int, size: int = 3, stride: int = 1) -> str:
        _, c, h, w = self.shape(x)
        pad = size // 2
        out = [(e + 2 * pad - size) // stride + 1 for e in (h, w)]
        wide = {"bias": ("int32", (k,)), "mul": ("int32", (k,)), "shift": ("uint8", (k,))}
        weights = self.constants(f"call{len(self.calls)}", {"weight": ("int8", (k, c, size, size)), **wide})
        attrs = {"pads": (pad,) * 4, "strides": (stride, stride)}
        return self.call("conv2d_i8", (("x", x), *weights), self.tensor(k, *out), **attrs)

    def depthwise(self, x: str) -> str:
        _, c, h, w = self.shape(x)
        wide = {"bias": ("int32", (c,)), "mul": ("int32", (c,)), "shift": ("uint8", (c,))}
        weights = self.constants(f"call{len(self.calls)}", {"weight": ("int8", (c, 1, 3, 3)), **wide})
        return self.call("depthwise_i8", (("x", x), *weights), self.tensor(c, h, w), pads=(1, 1, 1, 1))

    def add(self, a: str, b: str) -> str:
        return self.call("add_i8", (("a", a), ("b", b)), self.tensor(*self.shape(a)[1:]), ma=1, mb=1, shift=1)

    def pool(self, x: str) -> str:
        _, c, h, w = self.shape(x)
        return self.call("maxpool_i8", (("x", x),), self.tensor(c, h // 2, w // 2), kernel=(2, 2), strides=(2, 2))

    def concat(self, a: str, b: str) -> str:
        """a and b become boxes of one tensor (they must have been written already, as tensors of their own)."""
        (_, ca, h, w), (_, cb, _, _) = self.shape(a), self.shape(b)
        whole = self.tensor(ca + cb, h, w)
        for name, start in ((a, 0), (b, ca)):
            i = next(i for i, x in enumerate(self.buffers) if x.name == name)
            self.buffers[i] = Buffer(name, "int8", self.shape(name), alias=Alias(whole, start=(0, start, 0, 0)))
        return whole

    def graph(self, inputs: list[str], outputs: list[str]) -> FusedGraph:
        return FusedGraph("net", tuple(self.buffers), tuple(self.calls), tuple(inputs), tuple(outputs))


@st.composite
def networks(draw: st.DrawFn) -> FusedGraph:
    """A chain with skips, branches and concatenations."""
    b = Builder()
    first = b.tensor(draw(st.integers(1, 8)), draw(st.integers(4, 20)), draw(st.integers(4, 20)))
    x, free = first, [first]
    for _ in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(["conv", "stride", "depthwise", "add", "pool", "concat"]))
        _, _, h, w = b.shape(x)
        if kind == "conv":
            x = b.conv(x, draw(st.integers(1, 40)), draw(st.sampled_from([1, 3])))
        elif kind == "stride":
            x = b.conv(x, draw(st.integers(1, 24)), 3, 2)
        elif kind == "depthwise":
            x = b.depthwise(x)
        elif kind == "add":
            same = [f for f in free if b.shape(f) == b.shape(x)]
            x = b.add(x, draw(st.sampled_from(same)))
        elif kind == "pool" and min(h, w) >= 2:
            x = b.pool(x)
        elif kind == "concat":
            x = b.concat(b.conv(x, draw(st.integers(1, 9)), 1), b.conv(x, draw(st.integers(1, 9)), 3))
        free.append(x)
    return b.graph([first], [x])
