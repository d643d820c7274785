"""From the model's protos to draft nodes: functions inlined, names made unique."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import onnx

from fusion_engine.diagnostics import Diagnostic, GapFuseError, Span
from fusion_engine.view.draft import Node
from fusion_engine.view.marks import KERNELS, MARKS, OUTLINED, Marks, Metadata
from fusion_engine.view.operators import FLIP_SIGN, attribute_value, join_op
from fusion_engine.view.restored import FunctionKey, computing, restored_names
from fusion_engine.view.scopes import scopes_of
from fusion_engine.view.subgraphs import free_names, renamed_graph
from fusion_engine.view.types import FUNCTION, Scope

_DEEPEST = 200  # calls inside calls; a function that calls itself goes past any limit


@dataclass(frozen=True, slots=True, eq=False)
class Library:
    """The model-local functions, which of them stay calls, but for the calls in `opened` (`call_key`); how often each
    prefix was given to an inlined body."""

    functions: Mapping[FunctionKey, onnx.FunctionProto]
    closed: frozenset[str]
    opened: frozenset[str] = frozenset()
    where: Span | None = None
    prefixes: dict[str, int] = field(default_factory=dict)
    restored: Mapping[str, Sequence[Marks]] = field(default_factory=dict)  # see `restored_names`
    made: set[str] = field(default_factory=set)  # values of kernel calls met so far
    taken: frozenset[str] = frozenset()  # values of the graph

    def prefix(self, label: str, function: onnx.FunctionProto) -> str:
        """What the names inside an inlined call begin with: two calls of one name differ, and none is the graph's."""
        inside = {o for n in function.node for o in n.output if o}
        while True:
            count = self.prefixes[label] = self.prefixes.get(label, 0) + 1
            prefix = f"{label}/" if count == 1 else f"{label}_{count}/"
            if self.taken.isdisjoint(f"{prefix}{name}" for name in inside):
                return prefix

    def body(self, node: onnx.NodeProto, prefix: str) -> onnx.FunctionProto | None:
        """The function to put in the place of this node, or None."""
        function = self.functions.get((node.domain, node.op_type, node.overload))
        if function is None:
            return None
        op = join_op(node.domain, node.op_type)
        return function if op not in self.closed or call_key(op, prefix + _label(node)) in self.opened else None


def call_key(op: str, name: str) -> str:
    """How one call of a function is named among the opened: the function, and the node that the call is."""
    return f"{op} {name}"


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """Where nodes are read from: operator sets, what names become, the call's attributes and scopes."""

    opsets: Mapping[str, int]
    rename: Mapping[str, str | None] = field(default_factory=dict)
    prefix: str = ""
    bound: Mapping[str, onnx.AttributeProto] = field(default_factory=dict)
    scopes: tuple[Scope, ...] = ()
    metadata: Metadata = ()
    depth: int = 0

    def names(self, names: Sequence[str]) -> list[str | None]:
        """Sliced, since iterating over a proto's field takes three times as long."""
        if self.prefix or self.rename:
            return [self.name(n) for n in names[:]]
        return [n or None for n in names[:]]

    def name(self, name: str) -> str | None:
        if not name:
            return None
        if name in self.rename:
            return self.rename[name]
        return f"{self.prefix}{name}" if self.prefix else name


def library(
    proto: onnx.ModelProto, closed: frozenset[str], where: Span | None, opened: frozenset[str] = frozenset()
) -> Library:
    functions = {(f.domain, f.name, f.overload): f for f in proto.functions}
    if not functions:
        return Library({}, closed | {FLIP_SIGN}, opened, where)
    graph = proto.graph
    taken = frozenset(v.name for v in (*graph.input, *graph.initializer)) | {o for n in graph.node for o in n.output}
    restored = restored_names(graph, functions)
    return Library(functions, closed | {FLIP_SIGN}, opened, where, restored=restored, taken=taken)


def opsets(imports: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    return {"" if o.domain == "ai.onnx" else o.domain: o.version for o in imports}


def read_nodes(protos: Iterable[onnx.NodeProto], frame: Frame, lib: Library) -> list[Node]:
    """Draft nodes of a node list, calls of functions that are not closed replaced by their bodies."""
    result: list[Node] = []
    for proto in protos:
        function = lib.body(proto, frame.prefix) if lib.functions else None
        if function is None:
            result.append(_node(proto, frame))
        else:
            result.extend(_inlined(proto, function, frame, lib))
    return result


def _node(proto: onnx.NodeProto, frame: Frame) -> Node:
    domain = "" if proto.domain == "ai.onnx" else proto.domain
    attrs = _values(proto, frame) if len(proto.attribute) else {}
    captures: dict[str, None] = {}
    for key, value in attrs.items():
        if isinstance(value, onnx.GraphProto):
            names = free_names(value)
            attrs[key] = renamed_graph(bound_graph(value, frame), {n: frame.name(n) or "" for n in names})
            captures.update((c, None) for n in names if (c := frame.name(n)))
    marked = len(proto.metadata_props)
    return Node(
        join_op(domain, proto.op_type),
        frame.names(proto.input),
        [o or "" for o in frame.names(proto.output)],
        attrs,
        (frame.prefix + _label(proto),),
        frame.scopes + _scopes(proto) if marked else frame.scopes,
        frame.opsets.get(domain, 1),
        proto.overload,
        tuple(captures),
        _metadata(proto, frame) if marked else frame.metadata,
    )


def _values(proto: onnx.NodeProto, frame: Frame) -> dict[str, Any]:
    try:
        return {a.name: attribute_value(a) for a in _attributes(proto, frame)}
    except Exception as error:  # a tensor with a wrong byte count: whatever numpy raises
        reason = " ".join(str(error).split())
        message = f"node `{frame.prefix}{_label(proto)}` ({proto.op_type}) has an undecodable attribute: {reason}"
        raise GapFuseError(Diagnostic(message)) from error


def _label(proto: onnx.NodeProto) -> str:
    """The node's name; a nameless node is called by the first value it makes."""
    return proto.name or next((o for o in proto.output if o), proto.op_type)


def _attributes(proto: onnx.NodeProto, frame: Frame) -> list[onnx.AttributeProto]:
    """The node's attributes, those that refer to the function's own replaced by the call's."""
    own: list[onnx.AttributeProto] = proto.attribute[:]
    if not [a for a in own if a.ref_attr_name]:
        return own
    result = []
    for a in own:
        if not a.ref_attr_name:
            result.append(a)
        elif a.ref_attr_name in frame.bound:
            copy = onnx.AttributeProto()
            copy.CopyFrom(frame.bound[a.ref_attr_name])
            copy.name = a.name
            result.append(copy)
    return result


def _inlined(call: onnx.NodeProto, function: onnx.FunctionProto, frame: Frame, lib: Library) -> list[Node]:
    if frame.depth > _DEEPEST:
        raise GapFuseError(Diagnostic(f"function `{function.domain}::{function.name}` calls itself", lib.where))
    if function.overload.startswith(OUTLINED) and frame.depth == 0 and list(call.input) == list(function.input):
        return read_nodes(function.node, replace(frame, depth=1), lib)  # the file's own nodes, under their names
    rename: dict[str, str | None] = dict.fromkeys(function.input)
    rename.update({f: frame.name(a) for f, a in zip(function.input, call.input, strict=False)})
    returned = {f: frame.name(a) for f, a in zip(function.output, call.output, strict=False) if a}
    echoes = [(f, r) for f, r in returned.items() if f in rename]  # an output that is an input, unchanged
    rename.update({f: r for f, r in returned.items() if f not in rename})
    label = frame.prefix + _label(call)
    own = () if function.domain == KERNELS else (Scope(f"{function.domain}.{function.name}", label, FUNCTION),)
    inner = Frame(
        opsets={**frame.opsets, **opsets(function.opset_import)},
        rename=rename,
        prefix=lib.prefix(label, function),
        bound=_bound(call, function, frame),
        scopes=(*frame.scopes, *_scopes(call), *own),
        metadata=_metadata(call, frame),
        depth=frame.depth + 1,
    )
    if function.domain == KERNELS and frame.depth == 0 and (marks := lib.restored.get(call.output[0])):
        return _kernel_nodes(function, marks, inner, lib)
    nodes = read_nodes(function.node, inner, lib)
    nodes += [Node("Identity", [rename[f]], [r or ""], {}, (label,), inner.scopes) for f, r in echoes]
    return nodes


def _kernel_nodes(function: onnx.FunctionProto, marks: Sequence[Marks], frame: Frame, lib: Library) -> list[Node]:
    """The nodes of a kernel call as they were in the model that was fused; what another call has made too, once."""
    pairs = list(zip(computing(function), marks, strict=True))
    names = {o: v for proto, m in pairs for o, v in zip(proto.output, m.values, strict=True) if o}
    constants = [n for n in function.node if n.op_type == "Constant"]
    nodes = read_nodes(constants, frame, lib)
    names |= {o: frame.name(o) or "" for n in constants for o in n.output}
    frame = replace(frame, rename={**names, **frame.rename}, prefix="")
    for proto, m in pairs:
        if not lib.made.issuperset(v for v in m.values if v):
            lib.made.update(m.values)
            nodes += _kernel_node(proto, m, frame, lib)
    return nodes


def _kernel_node(proto: onnx.NodeProto, m: Marks, frame: Frame, lib: Library) -> list[Node]:
    """One node inside a kernel call; a call of a function of the model may be opened here."""
    named = onnx.NodeProto()
    named.CopyFrom(proto)
    named.name = m.origins[0] if m.origins else proto.name
    scopes = m.scopes or scopes_of(m.metadata)
    nodes = read_nodes([named], replace(frame, scopes=scopes, metadata=m.metadata), lib)
    return nodes if lib.body(named, "") is not None else [replace(n, origins=m.origins) for n in nodes]


def _metadata(proto: onnx.NodeProto, frame: Frame) -> Metadata:
    """What the file says of a node beside its scopes; a call's is said of every node inside it."""
    own = tuple((p.key, p.value) for p in proto.metadata_props if p.key != MARKS)
    if not frame.metadata or not own:
        return own or frame.metadata
    return tuple({**dict(frame.metadata), **dict(own)}.items())


def _bound(call: onnx.NodeProto, function: onnx.FunctionProto, frame: Frame) -> dict[str, onnx.AttributeProto]:
    defaults = {a.name: a for a in function.attribute_proto}
    return {**defaults, **{a.name: a for a in _attributes(call, frame)}}


def _scopes(proto: onnx.NodeProto) -> tuple[Scope, ...]:
    return scopes_of((p.key, p.value) for p in proto.metadata_props) if proto.metadata_props else ()


def bound_graph(graph: onnx.GraphProto, frame: Frame) -> onnx.GraphProto:
    """A copy in which attributes that refer to the enclosing function's have the call's values."""
    if not any(a.ref_attr_name or a.HasField("g") for n in graph.node for a in n.attribute):
        return graph
    copy = onnx.GraphProto()
    copy.CopyFrom(graph)
    for node in copy.node:
        attributes = _attributes(node, frame)
        for a in attributes:
            if a.HasField("g"):
                a.g.CopyFrom(bound_graph(a.g, frame))
        kept = [onnx.AttributeProto.FromString(a.SerializeToString()) for a in attributes]
        del node.attribute[:]
        node.attribute.extend(kept)
    return copy
