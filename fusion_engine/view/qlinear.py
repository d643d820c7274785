"""Quantised operators (QLinear*, QGemm, com.microsoft's) as DequantizeLinear - operator - QuantizeLinear."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx

from fusion_engine.view.draft import Draft, Node

MS = "com.microsoft::"


def expand_quantised(draft: Draft, node: Node) -> list[Node] | None:
    """The nodes that stand for a quantised operator, or None if `node` is none."""
    step = _STEPS.get(node.op)
    return None if step is None else step(draft, node)


def _dq(
    draft: Draft, node: Node, x: str | None, scale: str | None, zero: str | None, axis: int = 1
) -> tuple[str, Node]:
    y = draft.fresh(f"{x}_dequantised")
    return y, node.derive("DequantizeLinear", [x, scale, zero], [y], axis=axis)


def _q(node: Node, x: str, scale: str | None, zero: str | None) -> Node:
    return node.derive("QuantizeLinear", [x, scale, zero], node.outputs[:1])


def _attrs(node: Node, *without: str) -> dict[str, object]:
    return {k: v for k, v in node.attrs.items() if k not in without}


def _conv(draft: Draft, node: Node) -> list[Node]:
    x, xs, xz, w, ws, wz, ys, yz = node.inputs[:8]
    fx, dx = _dq(draft, node, x, xs, xz)
    fw, dw = _dq(draft, node, w, ws, wz, axis=0)
    fb, db = _bias(draft, node, node.input(8), (xs, ws), 1.0)
    fy = draft.fresh(f"{node.outputs[0]}_real")
    return [dx, dw, *db, node.derive("Conv", [fx, fw, fb], [fy], **_attrs(node)), _q(node, fy, ys, yz)]


def _bias(
    draft: Draft, node: Node, bias: str | None, scales: tuple[str | None, str | None], alpha: float
) -> tuple[str | None, list[Node]]:
    """An int32 bias counts in steps of the product of the scales."""
    if bias is None:
        return None, []
    a, b = (draft.const(s) for s in scales)
    if a is None or b is None:
        raise draft.fail(node, "has a bias and scales that are not constant")
    step = np.asarray(np.float32(alpha) * a.astype(np.float32) * b.astype(np.float32), np.float32)
    scale = draft.put_const(step.reshape(-1) if step.size > 1 else step.reshape(()), f"{bias}_scale")
    zero = draft.put_const(np.zeros(step.shape if step.size > 1 else (), np.int32), f"{bias}_zero")
    name, dq = _dq(draft, node, bias, scale, zero, axis=max(0, (draft.rank(bias) or 1) - 1))
    return name, [dq]


def _matmul(draft: Draft, node: Node) -> list[Node]:
    a, sa, za, b, sb, zb, sy, zy = node.inputs[:8]
    fa, da = _dq(draft, node, a, sa, za, axis=-2)
    fb, db = _dq(draft, node, b, sb, zb, axis=-1)
    fy = draft.fresh(f"{node.outputs[0]}_real")
    return [da, db, node.derive("MatMul", [fa, fb], [fy]), _q(node, fy, sy, zy)]


def _gemm(draft: Draft, node: Node) -> list[Node]:
    a, sa, za, b, sb, zb = node.inputs[:6]
    transposed, alpha = node.attrs.get("transB", 0), node.attrs.get("alpha", 1.0)
    fa, da = _dq(draft, node, a, sa, za)
    fb, db = _dq(draft, node, b, sb, zb, axis=0 if transposed else 1)
    fc, dc = _bias(draft, node, node.input(6), (sa, sb), alpha)
    real = node.input(7) is None
    fy = node.outputs[0] if real else draft.fresh(f"{node.outputs[0]}_real")
    attrs = {"alpha": alpha, "transA": node.attrs.get("transA", 0), "transB": transposed}
    nodes = [da, db, *dc, node.derive("Gemm", [fa, fb, fc], [fy], **attrs)]
    return nodes if real else [*nodes, _q(node, fy, node.inputs[7], node.input(8))]


def _binary(op: str) -> Callable[[Draft, Node], list[Node]]:
    def step(draft: Draft, node: Node) -> list[Node]:
        a, sa, za, b, sb, zb, sy = node.inputs[:7]
        fa, da = _dq(draft, node, a, sa, za)
        fb, db = _dq(draft, node, b, sb, zb)
        fy = draft.fresh(f"{node.outputs[0]}_real")
        return [da, db, node.derive(op, [fa, fb], [fy]), _q(node, fy, sy, node.input(7))]

    return step


def _unary(op: str, *without: str) -> Callable[[Draft, Node], list[Node]]:
    """Operators X, X_scale, X_zero, Y_scale, Y_zero."""

    def step(draft: Draft, node: Node) -> list[Node]:
        x, sx, zx, sy = node.inputs[:4]
        fx, dx = _dq(draft, node, x, sx, zx)
        fy = draft.fresh(f"{node.outputs[0]}_real")
        middle = node.derive(op, [fx], [fy], **_attrs(node, "channels_last", "opset", *without))
        middle.version = node.attrs.get("opset", middle.version)
        return [dx, *_channels_first(draft, node, middle), _q(node, fy, sy, node.input(4))]

    return step


def _channels_first(draft: Draft, node: Node, middle: Node) -> list[Node]:
    """The operator between transpositions, where the quantised one worked on channels last."""
    rank = draft.rank(node.inputs[0])
    if not node.attrs.get("channels_last"):
        return [middle]
    if rank is None:
        raise draft.fail(node, "works on channels last and needs the rank of its operand, which is unknown")
    x, y = middle.inputs[0], middle.outputs[0]
    first, made = draft.fresh(f"{x}_first"), draft.fresh(f"{y}_first")
    middle.inputs[0], middle.outputs[0] = first, made
    return [
        node.derive("Transpose", [x], [first], perm=(0, rank - 1, *range(1, rank - 1))),
        middle,
        node.derive("Transpose", [made], [y], perm=(0, *range(2, rank), 1)),
    ]


def _reduce_mean(draft: Draft, node: Node) -> list[Node]:
    nodes = _unary("ReduceMean", "axes")(draft, node)
    axes = node.attrs.get("axes")
    if axes is not None:
        nodes[1].inputs.append(draft.put_const(np.asarray(axes, np.int64), f"{node.outputs[0]}_axes"))
    return nodes


def _concat(draft: Draft, node: Node) -> list[Node]:
    sy, zy = node.inputs[:2]
    triples = zip(node.inputs[2::3], node.inputs[3::3], node.inputs[4::3], strict=True)
    parts = [_dq(draft, node, x, scale, zero) for x, scale, zero in triples]
    fy = draft.fresh(f"{node.outputs[0]}_real")
    joined = node.derive("Concat", [name for name, _ in parts], [fy], axis=node.attrs["axis"])
    return [*(dq for _, dq in parts), joined, _q(node, fy, sy, zy)]


def _renamed(op: str) -> Callable[[Draft, Node], list[Node]]:
    """Operators that ONNX has by now, with the same inputs and attributes."""
    return lambda _, node: [node.derive(op, node.inputs, node.outputs, **node.attrs)]


def _fused_matmul(draft: Draft, node: Node) -> list[Node] | None:
    a = node.attrs
    if any(a.get(k, 0) for k in ("transBatchA", "transBatchB")) or a.get("alpha", 1.0) != 1.0:
        return None
    nodes, names = [], []
    for name, key in zip(node.inputs, ("transA", "transB"), strict=False):
        rank = draft.rank(name)
        if a.get(key, 0) and rank is None:
            return None
        if a.get(key, 0) and rank is not None and rank > 1:
            turned = draft.fresh(f"{name}_turned")
            nodes.append(node.derive("Transpose", [name], [turned], perm=(*range(rank - 2), rank - 1, rank - 2)))
            name = turned
        names.append(name)
    return [*nodes, node.derive("MatMul", names, node.outputs)]


def _matmul_nbits(draft: Draft, node: Node) -> list[Node] | None:
    """MatMulNBits with its blocks of 2, 4 or 8 bits written out as one float weight; None where they are no constants
    of that form."""
    blocks, scales = (draft.const(i) for i in node.inputs[1:3])
    bits, n, k, length = (int(node.attrs.get(a) or 0) for a in ("bits", "N", "K", "block_size"))
    zeros, order, bias = (node.input(i) for i in (3, 4, 5))
    if blocks is None or scales is None or order is not None or bits not in (2, 4, 8) or min(n, k, length) < 1:
        return None
    count = -(-k // length)
    stored = None if zeros is None else draft.const(zeros)
    if (
        (zeros is not None and stored is None)
        or blocks.size * 8 != n * count * length * bits
        or scales.size != n * count
    ):
        return None
    middle = np.full((n, count, 1), 1 << (bits - 1), np.float32)
    if stored is not None and stored.dtype == np.uint8:
        middle = _unpacked(stored.reshape(n, -1), bits)[:, :count, None]
    elif stored is not None:
        middle = stored.astype(np.float32).reshape(n, count, 1)
    steps = _unpacked(blocks.reshape(n, -1), bits).reshape(n, count, length) - middle
    weight = (steps * scales.reshape(n, count, 1).astype(np.float32)).reshape(n, -1)[:, :k]
    y, w = node.outputs[0], draft.put_const(np.ascontiguousarray(weight.T), f"{node.inputs[1]}_real")
    if bias is None:
        return [node.derive("MatMul", [node.inputs[0], w], [y])]
    product = draft.fresh(f"{y}_product")
    return [node.derive("MatMul", [node.inputs[0], w], [product]), node.derive("Add", [product, bias], [y])]


def _unpacked(rows: np.ndarray, bits: int) -> np.ndarray:
    """The numbers of `bits` bits in each row of bytes, lowest bits first, as float32."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return ((rows[:, :, None] >> shifts) & ((1 << bits) - 1)).reshape(len(rows), -1).astype(np.float32)


def _requant_shift(draft: Draft, node: Node) -> list[Node] | None:
    """Deeploy's RequantShift, clip(floor((x * mul + add + div / 2) / div)), in int64: ONNX's own Div cuts off."""
    x, (mul, add) = node.inputs[0], (draft.const(i) for i in node.inputs[1:3])
    div, levels, signed = (np.asarray(node.attrs.get(k, 0)).reshape(-1) for k in ("div", "n_levels_out", "signed"))
    if mul is None or add is None or not (div.size == levels.size == signed.size == 1 and div[0] > 0):
        return None
    low = -levels[0] // 2 if signed[0] else 0
    numbers = (mul, add + div[0] // 2, div[0], low, low + levels[0] - 1)
    if any(np.any(n != np.rint(n)) for n in numbers):
        return None
    mul, add = _per_channel(draft, node, "mul", mul), _per_channel(draft, node, "add", add)
    numbers = (mul, add + div[0] // 2, *numbers[2:])
    y = node.outputs[0]
    by, plus, over, lo, hi = (draft.put_const(np.asarray(n, np.int64), f"{y}_{i}") for i, n in enumerate(numbers))
    wide, scaled, sums, rest, floored, whole, bounded = (draft.fresh(f"{y}_{k}") for k in "abcdefg")
    return [
        node.derive("Cast", [x], [wide], to=onnx.TensorProto.INT64),
        node.derive("Mul", [wide, by], [scaled]),
        node.derive("Add", [scaled, plus], [sums]),
        node.derive("Mod", [sums, over], [rest]),
        node.derive("Sub", [sums, rest], [floored]),
        node.derive("Div", [floored, over], [whole]),
        node.derive("Clip", [whole, lo, hi], [bounded]),
        node.derive("Cast", [bounded], [y], to=onnx.TensorProto.FLOAT),
    ]


def _per_channel(draft: Draft, node: Node, name: str, value: np.ndarray) -> np.ndarray:
    """Deeploy's first axis is the channels', the input's axis 1; the others follow it: [C] and [C, 1, 1] are alike."""
    rank, shape = draft.rank(node.inputs[0]), draft.static(node.inputs[0])
    if rank is not None and 0 < value.ndim < rank:
        value = value.reshape(*value.shape, *(1,) * (rank - 1 - value.ndim))
    if shape is not None and not _broadcasts(value.shape, shape):
        message = f"has `{name}` of shape {list(value.shape)}, which does not fit its input {list(shape)}"
        raise draft.fail(node, message, "one number for all, or one per channel: [C] or [C, 1, 1]")
    return value


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    return len(shape) <= len(to) and all(a in (1, b) for a, b in zip(shape[::-1], to[::-1], strict=False))


_STEPS: dict[str, Callable[[Draft, Node], list[Node] | None]] = {
    "QLinearConv": _conv,
    "QLinearMatMul": _matmul,
    f"{MS}DequantizeLinear": _renamed("DequantizeLinear"),
    f"{MS}FusedMatMul": _fused_matmul,
    f"{MS}Gelu": _renamed("Gelu"),
    f"{MS}MatMulNBits": _matmul_nbits,
    f"{MS}QGemm": _gemm,
    f"{MS}QLinearAdd": _binary("Add"),
    f"{MS}QLinearAveragePool": _unary("AveragePool"),
    f"{MS}QLinearConcat": _concat,
    f"{MS}QLinearConv": _conv,
    f"{MS}QLinearGlobalAveragePool": _unary("GlobalAveragePool"),
    f"{MS}QLinearLeakyRelu": _unary("LeakyRelu"),
    f"{MS}QLinearMul": _binary("Mul"),
    f"{MS}QLinearReduceMean": _reduce_mean,
    f"{MS}QLinearSigmoid": _unary("Sigmoid"),
    f"{MS}QLinearSoftmax": _unary("Softmax"),
    f"{MS}QuantizeLinear": _renamed("QuantizeLinear"),
    "PACTOps::RequantShift": _requant_shift,
    "RequantShift": _requant_shift,
}
