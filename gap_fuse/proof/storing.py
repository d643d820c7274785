"""A drawn float model with its captures stored as integers: DequantizeLinear in front, QuantizeLinear behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import onnx
from onnx import helper

from fusion_engine.language.types import EmitEntry, StoredType
from gap_fuse.proof.draft import Draft, NotDrawable

ZEROS = (0, -128, -7, 127)


def store_captures(draft: Draft, entry: EmitEntry) -> Draft:
    """The draft with what `entry.stored` names as integers, the result still real. Raises NotDrawable."""
    stored = replace(draft, nodes=[], constants=dict(draft.constants), inputs={}, limits={})
    renamed: dict[str, str] = {}
    scales: list[np.ndarray] = []
    biases: list[str] = []
    for name, wanted in _tensors(draft, entry):
        if wanted.dtype == "int32":
            biases.append(name)
        else:
            renamed[name] = _stored(stored, draft, name, wanted, scales)
    for name in biases:
        renamed[name] = _stored_bias(stored, draft, name, scales)
    left = [n for n in draft.inputs if n not in renamed]
    if left:
        raise NotDrawable(f"{left[0]} is not stored by this entry", always=True)
    stored.nodes += [_with_inputs(n, renamed) for n in draft.nodes]
    stored.results = [renamed.get(r, r) for r in draft.results]
    return stored


def _tensors(draft: Draft, entry: EmitEntry) -> list[tuple[str, StoredType]]:
    """The tensors behind the captures that are stored, variadic ones one by one."""
    found: list[tuple[str, StoredType]] = []
    for capture, wanted in entry.stored.items():
        own = draft.names.get(capture)
        if own in _made(draft):
            continue  # an inner value: `store_result` rounds it
        parts = [n for n in draft.inputs if n.startswith(capture) and n[len(capture) :].isdigit()]
        found += [(n, wanted) for n in ([own] if own is not None and capture != "y" else parts)]
    return found


def stored_inside(draft: Draft, entry: EmitEntry) -> list[str]:
    """The inner values that the entry takes as integers with a scale of their own."""
    named = dict.fromkeys(own for n in entry.stored if (own := draft.names.get(n)) in _made(draft))
    return [n for n in named if n is not None and n not in draft.results]


def _made(draft: Draft) -> set[str | None]:
    return {o for n in draft.nodes for o in n.output}


def store_result(stored: Draft, entry: EmitEntry, ranges: Mapping[str, tuple[float, float]]) -> Draft:
    """QuantizeLinear on the result, its scale fitting the results' range or equal to that of the capture that `when`
    names; inner values that the entry stores are quantised on their own range, those that it allows like the result,
    now and then."""
    result = replace(stored, nodes=list(stored.nodes), constants=dict(stored.constants))
    like = _like(entry)
    spans = [ranges[r] for r in result.results]
    low, high = min(s[0] for s in spans), max(s[1] for s in spans)
    scale, zero = (f"{like}_scale", f"{like}_zero") if like else _fitting(result, "y", low, high)
    if scale not in result.constants:
        raise NotDrawable(f"{like} has no scale", always=True)
    for own in stored_inside(stored, entry):
        _requantised(result, own, *_fitting(result, own, *ranges[own]))
    for name, _ in entry.inner:
        inner = result.names.get(name)
        if inner is not None and inner not in result.results and result.choices.chance(("inner", name)):
            _requantised(result, inner, scale, zero)
    result.results = [result.node("QuantizeLinear", [r, scale, zero]) for r in result.results]
    return result


def inner_roundings(draft: Draft) -> int:
    """QuantizeLinear nodes that are not the result."""
    return sum(n.op_type == "QuantizeLinear" and n.output[0] not in draft.results for n in draft.nodes)


def _like(entry: EmitEntry) -> str | None:
    for text, _ in entry.when:
        if text.startswith("same_as(") and text.endswith(", y)"):
            return text.removeprefix("same_as(").removesuffix(", y)")
    return None


def _fitting(draft: Draft, name: str, low: float, high: float) -> tuple[str, str]:
    low, high = min(low, 0.0), max(high, 0.0)
    scale = max((high - low) / 255, 1e-4)
    zero = int(np.clip(np.rint(-128 - low / scale), -128, 127))
    names = f"{name}_scale", f"{name}_zero"
    draft.constants.update(zip(names, (np.asarray(scale, np.float32), np.asarray(zero, np.int8)), strict=True))
    return names


def _requantised(draft: Draft, inner: str, scale: str, zero: str) -> None:
    """Q and DQ behind an inner value, in front of all its users."""
    at = next(i for i, n in enumerate(draft.nodes) if inner in n.output)
    pair = [
        helper.make_node("QuantizeLinear", [inner, scale, zero], [f"{inner}_stored"]),
        helper.make_node("DequantizeLinear", [f"{inner}_stored", scale, zero], [f"{inner}_again"]),
    ]
    behind = [_with_inputs(n, {inner: f"{inner}_again"}) for n in draft.nodes[at + 1 :]]
    draft.nodes[at + 1 :] = [*pair, *behind]


def _with_inputs(node: onnx.NodeProto, renamed: Mapping[str, str]) -> onnx.NodeProto:
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    for i, name in enumerate(copy.input):
        copy.input[i] = renamed.get(name, name)
    return copy


def _dequantised(draft: Draft, name: str, scale: np.ndarray, zero: np.ndarray, axis: int | None) -> str:
    draft.constants[f"{name}_scale"], draft.constants[f"{name}_zero"] = scale, zero
    attrs: dict[str, Any] = {"axis": axis} if scale.ndim else {}
    inputs = [name, f"{name}_scale", f"{name}_zero"]
    draft.nodes.append(helper.make_node("DequantizeLinear", inputs, [f"{name}_real"], **attrs))
    return f"{name}_real"


def _stored(stored: Draft, draft: Draft, name: str, wanted: StoredType, scales: list[np.ndarray]) -> str:
    if name in draft.constants:
        return _stored_constant(stored, draft.constants[name], name, wanted.axis, scales)
    zero = 0 if wanted.symmetric else stored.choices.pick(ZEROS)
    scale = np.asarray(stored.choices.between(5, 50) / 1000, np.float32)
    scales.append(scale)
    stored.inputs[name] = (wanted.dtype, draft.inputs[name][1])
    return _dequantised(stored, name, scale, np.asarray(zero, wanted.dtype), None)


def _stored_constant(stored: Draft, real: np.ndarray, name: str, axis: int | None, scales: list[np.ndarray]) -> str:
    per_axis = axis is not None and stored.choices.chance(("axis", name))
    at = (axis or 0) % max(real.ndim, 1)
    others = tuple(i for i in range(real.ndim) if i != at) if per_axis else None
    scale = np.asarray(np.max(np.abs(real), axis=others, initial=1e-3) / 127, np.float32)
    spread = scale.reshape([-1 if i == at else 1 for i in range(real.ndim)]) if per_axis else scale
    stored.constants[name] = np.clip(np.rint(real / spread), -127, 127).astype(np.int8)
    scales.append(scale)
    return _dequantised(stored, name, scale, np.zeros(scale.shape, np.int8), axis)


def _stored_bias(stored: Draft, draft: Draft, name: str, scales: list[np.ndarray]) -> str:
    """int32 at scale(x) * scale(w), or left float: the rule must take both."""
    if name not in draft.constants or not scales or not stored.choices.chance(("bias", name)):
        return name
    scale = np.asarray(reduce(np.multiply, scales), np.float32)
    real = draft.constants[name]
    if scale.ndim and real.shape != scale.shape:
        return name
    stored.constants[name] = np.rint(real / scale).astype(np.int32)
    return _dequantised(stored, name, scale, np.zeros(scale.shape, np.int32), 0)
