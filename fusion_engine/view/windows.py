"""Convolutions and pools: kernel_shape, strides, dilations and pads as explicit numbers."""

from __future__ import annotations

from fusion_engine.view.draft import Draft, Node


def window(draft: Draft, node: Node) -> None:
    """Conv, ConvInteger, ConvTranspose: kernel_shape from the weight, the rest as `_explicit`."""
    weight = draft.shape(node.inputs[1])
    if node.attrs["kernel_shape"] is None and weight is not None and all(isinstance(d, int) for d in weight[2:]):
        node.attrs["kernel_shape"] = tuple(weight[2:])
    _explicit(draft, node)


def pool(draft: Draft, node: Node) -> None:
    """MaxPool, AveragePool, LpPool: explicit numbers; ceil_mode only where it makes a difference."""
    _explicit(draft, node)
    a, shape = node.attrs, draft.static(node.inputs[0])
    if not a.get("ceil_mode") or shape is None or a["pads"] is None:
        return
    rank = len(a["kernel_shape"])
    spans = [(k - 1) * d + 1 for k, d in zip(a["kernel_shape"], a["dilations"] or (1,) * rank, strict=True)]
    rests = [(x + a["pads"][i] + a["pads"][i + rank] - spans[i]) % a["strides"][i] for i, x in enumerate(shape[2:])]
    if not any(rests):
        a["ceil_mode"] = 0


def _explicit(draft: Draft, node: Node) -> None:
    a, shape = node.attrs, draft.shape(node.inputs[0])
    rank = len(a["kernel_shape"]) if a.get("kernel_shape") is not None else None if shape is None else len(shape) - 2
    if rank is None:
        return
    for key in ("strides", "dilations"):
        if key in a and a[key] is None:
            a[key] = (1,) * rank
    if "output_padding" in a and a["output_padding"] is None:
        a["output_padding"] = (0,) * rank
    if node.op == "ConvTranspose" and (a["auto_pad"] != "NOTSET" or a["output_shape"] is not None):
        _transposed_pads(draft, node, rank)
    elif a["auto_pad"] in ("NOTSET", "VALID"):
        a["pads"] = (0,) * (2 * rank) if a["pads"] is None or a["auto_pad"] == "VALID" else a["pads"]
        a["auto_pad"] = "NOTSET"
    else:
        _same_pads(draft, node, rank)


def _same_pads(draft: Draft, node: Node, rank: int) -> None:
    """SAME: ceil(x / stride) outputs; the odd element of padding goes after (UPPER) or before (LOWER)."""
    a, shape = node.attrs, draft.static(node.inputs[0])
    if shape is None or a["kernel_shape"] is None:
        return
    totals = []
    for i, x in enumerate(shape[2:]):
        span = (a["kernel_shape"][i] - 1) * ((a.get("dilations") or (1,) * rank)[i]) + 1
        totals.append(max(0, (-(-x // a["strides"][i]) - 1) * a["strides"][i] + span - x))
    a["pads"] = _halves(totals, upper=a["auto_pad"] == "SAME_UPPER")
    a["auto_pad"] = "NOTSET"
    if "ceil_mode" in a:
        a["ceil_mode"] = 0


def _halves(totals: list[int], upper: bool) -> tuple[int, ...]:
    small, large = [t // 2 for t in totals], [t - t // 2 for t in totals]
    return tuple(small + large if upper else large + small)


def _transposed_pads(draft: Draft, node: Node, rank: int) -> None:
    a, shape = node.attrs, draft.static(node.inputs[0])
    if a["auto_pad"] == "VALID" and a["output_shape"] is None:
        a.update(pads=(0,) * (2 * rank), auto_pad="NOTSET")
        return
    if shape is None or a["kernel_shape"] is None:
        return
    wanted = a["output_shape"][-rank:] if a["output_shape"] is not None else None
    totals, extra = [], list(a["output_padding"])
    for i, x in enumerate(shape[2:]):
        span = (a["kernel_shape"][i] - 1) * a["dilations"][i] + 1
        out = wanted[i] if wanted is not None else x * a["strides"][i]
        total = a["strides"][i] * (x - 1) + extra[i] + span - out
        extra[i] += max(0, -total)
        totals.append(max(0, total))
    a["pads"] = _halves(totals, upper=a["auto_pad"] == "SAME_UPPER")
    a.update(auto_pad="NOTSET", output_shape=None, output_padding=tuple(extra))
