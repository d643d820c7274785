"""The walk: every node, in topological order, brought to normal form and typed; what is constant is computed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from fusion_engine.diagnostics import Diagnostic, GapFuseError
from fusion_engine.view.canon import canonical
from fusion_engine.view.control import Surroundings, settled
from fusion_engine.view.draft import Draft, Node, named
from fusion_engine.view.empty import settle_empty
from fusion_engine.view.fold import RANDOM, dequantised, evaluate
from fusion_engine.view.infer import Memo, attrs_key, filled, infer, presence
from fusion_engine.view.load import Library
from fusion_engine.view.noops import passed_through
from fusion_engine.view.opening import closed_types, function_body
from fusion_engine.view.operators import FLIP_SIGN, VIEW_OPSET, array_of, dense, operator, written_version
from fusion_engine.view.qlinear import expand_quantised
from fusion_engine.view.sink import sink
from fusion_engine.view.subgraphs import renamed_graph
from fusion_engine.view.types import view_value
from fusion_engine.view.upgrade import upgrade


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """What the walk needs beside the draft: functions, operator sets, operators to open, and inference's memory."""

    lib: Library
    opsets: Mapping[str, int]
    opened: frozenset[str] = frozenset()
    memo: Memo = field(default_factory=dict)


def normalise(draft: Draft, nodes: Iterable[Node], walk: Walk) -> None:
    """Add the nodes to the draft in normal form. `nodes` are in topological order.

    Raises GapFuseError, naming the node, where a node contradicts its operator.
    """
    for node in nodes:
        pending = [node]
        while pending:
            current = pending.pop()
            try:
                replaced = _rewritten(draft, current, walk)
            except GapFuseError:
                raise
            except Exception as error:
                raise _malformed(draft, current, error) from error
            if replaced is None:
                _place(draft, current, walk)
            else:
                pending.extend(reversed(replaced))


def _malformed(draft: Draft, node: Node, error: Exception) -> GapFuseError:
    """Attributes of another type, operands that are missing."""
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    return draft.fail(node, f"is malformed and has no normal form ({reason})")


def _rewritten(draft: Draft, node: Node, walk: Walk) -> list[Node] | None:
    """The nodes that replace this one; None once it is in normal form."""
    aliases = draft.aliases
    node.inputs = [i if i not in aliases else draft.resolve(i) for i in node.inputs]
    if node.captures:
        _resolve_captures(draft, node)
    if node.op in ("If", "Loop", "Scan"):
        around = Surroundings(walk.lib, walk.opsets)
        if (straight := settled(draft, node, around)) is not None:
            return straight
    if (known := expand_quantised(draft, node)) is not None:
        return known
    if "::" not in node.op:
        if operator(node.op, node.version) is None and operator(node.op) is not None:
            node.version = VIEW_OPSET  # an operator that was a contribution before it became standard
        if (newer := upgrade(draft, node)) is not None:
            return newer
        node.version = written_version(node.op, node.version)
    if node.op in walk.opened and (body := function_body(draft, node, walk.lib)) is not None:
        return body
    if node.op == FLIP_SIGN:
        node.attrs = {}
    canonical(draft, node)
    return sink(draft, node)


def _resolve_captures(draft: Draft, node: Node) -> None:
    names = {c: draft.resolve(c) or c for c in node.captures}
    node.captures = tuple(dict.fromkeys(names.values()))
    for key, value in node.attrs.items():
        if isinstance(value, onnx.GraphProto):
            node.attrs[key] = renamed_graph(value, names)


def _place(draft: Draft, node: Node, walk: Walk) -> None:
    """Fold the node, merge it with its twin, see through it, or keep it."""
    derived = not draft.producer.keys().isdisjoint(node.inputs)
    if not derived and node.op != "DequantizeLinear" and _folded(draft, node):
        return
    attrs = attrs_key(node)
    key = _twin_key(node, attrs)
    twin = draft.twins.get(key) if key is not None else None
    if twin is not None:
        _merge(draft, node, twin)
        return
    _declare(draft, node, attrs, walk)
    if settle_empty(draft, node):
        return
    stands = passed_through(draft, node)
    if stands is not None and stands not in node.outputs:
        _see_through(draft, node, stands)
        return
    _refine(draft, node)
    _keep(draft, node, key)
    _value(draft, node, derived)


def _folded(draft: Draft, node: Node) -> bool:
    if any(draft.stored(i) is None for i in node.inputs if i is not None) or not any(node.inputs):
        return False
    results = evaluate(draft, node)
    if results is None:
        return False
    for name, array in zip(node.outputs, results, strict=True):
        if name:
            draft.name_const(name, array)
    return True


def _twin_key(node: Node, attrs: Hashable) -> Hashable:
    if attrs is None or node.op in RANDOM or node.captures:
        return None
    return (node.op, node.overload, tuple(node.inputs), presence(node.outputs), attrs)


def _merge(draft: Draft, node: Node, twin: Node) -> None:
    for name, same in zip(node.outputs, twin.outputs, strict=True):
        if name:
            draft.aliases[name] = same
    _add_origins(twin, node)


def _add_origins(node: Node, other: Node) -> None:
    new = tuple(o for o in other.origins if o not in node.origins)
    if new and len(node.origins) < 64:  # a node that stands for thousands need not list them all
        node.origins += new


def _see_through(draft: Draft, node: Node, stands: str) -> None:
    draft.aliases[node.outputs[0]] = stands
    draft.values.pop(node.outputs[0], None)
    maker = draft.producer.get(stands)
    if maker is not None:
        _add_origins(maker, node)


def _declare(draft: Draft, node: Node, attrs: Hashable, walk: Walk) -> None:
    body = closed_types(draft, node, walk) if "::" in node.op else None
    types = infer(draft, node, attrs, walk.memo) if body is None else filled(draft, node, list(body))
    for name, (dtype, shape) in zip(node.outputs, types, strict=True):
        if name:
            draft.values[name] = view_value(name, dtype, shape)


def _refine(draft: Draft, node: Node) -> None:
    """Reshape and Expand to a known shape say that shape."""
    if node.op not in ("Reshape", "Expand"):
        return
    shape = draft.static(node.outputs[0])
    if shape is None or 0 in shape:
        return
    node.inputs[1] = draft.put_const(np.asarray(shape, np.int64), f"{node.outputs[0]}_shape")
    if node.op == "Reshape":
        node.attrs["allowzero"] = 0


def _keep(draft: Draft, node: Node, key: Hashable) -> None:
    draft.nodes.append(node)
    if key is not None:
        draft.twins[key] = node
    for name in node.outputs:
        if name:
            draft.producer[name] = node
            draft.taken.add(name)


def _value(draft: Draft, node: Node, derived: bool) -> None:
    """Values that follow from DequantizeLinear of a constant are known, though their nodes stay."""
    if node.op == "DequantizeLinear":
        x = draft.const(node.inputs[0])
        if x is None:
            return
        scale = draft.const(node.inputs[1])
        if scale is None or (node.inputs[2] is not None and draft.const(node.inputs[2]) is None):
            return
        try:
            results: list[Any] | None = [dequantised(x, scale, draft.const(node.inputs[2]), node.attrs)]
        except (ValueError, IndexError, ZeroDivisionError) as error:
            reason = (
                f"has a scale or zero point of {list(scale.shape)} that does not fit {list(x.shape)} along its axis"
            )
            raise draft.fail(node, reason) from error
    elif derived and _all_known(draft, node):
        results = evaluate(draft, node)
    else:
        return
    for name, array in zip(node.outputs, results or [], strict=False):
        if name:
            draft.values[name] = view_value(name, named(array.dtype), array.shape, array)


def _all_known(draft: Draft, node: Node) -> bool:
    values = draft.values
    for name in node.inputs:
        if name is not None and ((value := values.get(name)) is None or value.const is None):
            return False
    return True


def add_initializers(draft: Draft, graph: onnx.GraphProto) -> None:
    """The graph's initializers, sparse ones made dense, as constants of the draft; equal ones shared."""
    for tensor in graph.initializer:
        _add(draft, tensor.name, tensor, array_of)
    for sparse in graph.sparse_initializer:
        _add(draft, sparse.values.name, sparse, dense)


def _add(draft: Draft, name: str, tensor: Any, decode: Callable[[Any], np.ndarray]) -> None:
    try:
        array = decode(tensor)
    except Exception as error:  # wrong byte count, unknown element type: whatever numpy raises
        reason = " ".join(str(error).split())
        raise GapFuseError(Diagnostic(f"initializer `{name}` cannot be decoded: {reason}", draft.where)) from error
    draft.name_const(name, array)
