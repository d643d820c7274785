"""fuse(): the plan as a valid ONNX model whose nodes are calls of model-local functions, one per kernel call.

A function is both the fused and the unfused form: domain and operator type name the kernel, its body holds the nodes
that the kernel stands for, and its overload is a hash of the body, so that equal bodies are shared. Read back, the
calls are opened and their nodes have the names, scopes and metadata that they had: see `view/marks.py`, `pinning.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import helper, numpy_helper

from fusion_engine.closed_calls import ClosedCalls
from fusion_engine.covering.types import Candidate, Plan
from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.overloads import without_overloads
from fusion_engine.pinning import RULE, RULE_VERSION, VARIANT, kernel_name
from fusion_engine.planning import Planned
from fusion_engine.regions import body_of
from fusion_engine.view import FLIP_SIGN, KERNELS, MARKS, Marks, View, ViewNode, marks_to_text, node_to_proto, scopes_of
from fusion_engine.view.operators import newest, split_op
from fusion_engine.view.write import flip_function, value_info, written_opset

DOMAIN = KERNELS
IR_VERSION = 10  # the first with overloads and with metadata on functions and nodes
SMALL = 16  # constants of at most so many elements stand in the body; larger ones are operands of the call


def fuse_model(planned: Planned) -> onnx.ModelProto:
    """The fused model of a planning result: see `fuse`."""
    versions = {r.name: r.version for r in planned.rules.rules}
    fused = fuse(planned.view, planned.plan, tuple(planned.model.proto.functions), planned.kernels, versions)
    keep_metadata(planned.model.proto, fused)
    return fused


def fuse(
    view: View,
    plan: Plan,
    functions: tuple[onnx.FunctionProto, ...] = (),
    kernels: Mapping[str, Kernel] | None = None,
    versions: Mapping[str, str] | None = None,
) -> onnx.ModelProto:
    """The plan as a ModelProto of IR 10, numerically equal to the model.

    `functions` are the model's own (needed where calls stayed closed); with `kernels`, a sequence is named by the
    kernel that computes, not by a view; `versions` gives rules' versions for the metadata of the functions.
    """
    opset = written_opset(view)
    own = {(f.domain, f.name, f.overload): f for f in functions}
    write = _Writer(view, kernels or {}, versions or {}, opset, ClosedCalls(own, opset))
    for candidate in plan.chosen:
        write.candidate(candidate)
    for output in view.outputs:
        write.constant_output(output)
    return write.model()


@dataclass(slots=True)
class _Writer:
    view: View
    kernels: Mapping[str, Kernel]
    versions: Mapping[str, str]
    opset: int
    closed: ClosedCalls
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    functions: dict[tuple[str, str], onnx.FunctionProto] = field(default_factory=dict)
    initializers: dict[str, onnx.TensorProto] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)  # operators outside the default domain

    def candidate(self, c: Candidate) -> None:
        body = body_of(self.view, c)
        if any(n.captures for n in body):
            self.used.update(n.op for n in body if "::" in n.op)
            self.nodes.extend(self.node(n) for n in body)
            for name in (i for n in body for i in n.inputs if i is not None):
                self.initialize(name)
            return
        operands, constants = _operands(self.view, c, body)
        function = self.function(c, body, operands, constants)
        call = helper.make_node(
            function.name, operands, list(c.produces), name=self.unique(body[0].origins), domain=DOMAIN
        )
        call.overload = function.overload
        _describe(call, {MARKS: marks_to_text(_marks(n) for n in body)})
        self.nodes.append(call)
        for name in operands:
            self.initialize(name)

    def function(
        self, c: Candidate, body: list[ViewNode], operands: list[str], constants: list[str]
    ) -> onnx.FunctionProto:
        """The function of a candidate, shared with every equal body."""
        rename = {name: f"x{i}" for i, name in enumerate(operands)} | {
            name: f"c{i}" for i, name in enumerate(constants)
        }
        rename |= {name: f"y{i}" for i, name in enumerate(c.produces)}
        nodes = [_constant_node(rename[k], np.asarray(self.view.const(k))) for k in constants]
        nodes += [self.inner(n, rename) for n in body]
        imports = sorted({split_op(n.op)[0] for n in body} - {""})
        self.used.update(n.op for n in body if "::" in n.op)
        function = helper.make_function(
            DOMAIN,
            kernel_name(c, self.kernels),
            [rename[o] for o in operands],
            [rename[p] for p in c.produces],
            nodes,
            [helper.make_opsetid("", self.opset), *(helper.make_opsetid(d, _version(d)) for d in imports)],
        )
        _describe(
            function,
            {RULE: c.rule, VARIANT: c.variant, RULE_VERSION: self.versions.get(c.rule, "")},
        )
        overload = hashlib.sha256(function.SerializeToString(deterministic=True)).hexdigest()[:12]
        function.overload = overload
        return self.functions.setdefault((function.name, overload), function)

    def node(self, node: ViewNode) -> onnx.NodeProto:
        proto = node_to_proto(node, self.view, self.opset)
        proto.overload = self.closed.overload(self.view, node) or proto.overload
        return proto

    def inner(self, node: ViewNode, rename: dict[str, str]) -> onnx.NodeProto:
        """A node of a body, its values renamed to x0, c0, v0, ..., so that equal bodies are equal bytes."""
        proto = self.node(node)
        for o in node.outputs:
            if o:
                rename.setdefault(o, f"v{len(rename)}")
        renamed_inputs = [rename[i] if i else "" for i in proto.input]
        renamed_outputs = [rename[o] if o else "" for o in proto.output]
        del proto.input[:], proto.output[:]
        proto.input.extend(renamed_inputs)
        proto.output.extend(renamed_outputs)
        proto.name = ""
        return proto

    def unique(self, origins: tuple[str, ...]) -> str:
        name = origins[0] if origins else "call"
        self.names[name] = self.names.get(name, 0) + 1
        return name if self.names[name] == 1 else f"{name}/{self.names[name]}"

    def initialize(self, name: str) -> None:
        data = self.view.const(name)
        if data is not None and name not in self.view.inputs and name not in self.initializers:
            self.initializers[name] = numpy_helper.from_array(np.ascontiguousarray(data).reshape(np.shape(data)), name)

    def constant_output(self, name: str) -> None:
        """A graph output that is known at compile time: its value, by Constant where no call reads it as well."""
        data = self.view.const(name)
        if data is not None and name not in self.view.inputs and name not in self.initializers:
            self.nodes.append(_constant_node(name, np.asarray(data)))

    def model(self) -> onnx.ModelProto:
        graph = helper.make_graph(
            self.nodes,
            self.view.name or "fused",
            [value_info(self.view.values[i]) for i in self.view.inputs],
            [value_info(self.view.values[o]) for o in self.view.outputs],
            initializer=list(self.initializers.values()),
        )
        own = list(self.closed.written.values())
        flip = [flip_function()] if FLIP_SIGN in self.used else []
        local = {DOMAIN, *(f.domain for f in own), *(o.domain for f in own for o in f.opset_import)}
        domains = sorted(local | {split_op(op)[0] for op in self.used})
        imports = [helper.make_opsetid("", self.opset), *(helper.make_opsetid(d, _version(d)) for d in domains if d)]
        model: onnx.ModelProto = helper.make_model(
            graph,
            opset_imports=imports,
            ir_version=IR_VERSION,
            functions=[*self.functions.values(), *flip, *own],
            producer_name="gap-fuse",
        )
        without_overloads(model)
        return model


def _operands(view: View, candidate: Candidate, body: list[ViewNode]) -> tuple[list[str], list[str]]:
    """What the body reads: the operands of the call (values, large constants), and the small constants in the body."""
    made = {o for n in body for o in n.outputs}
    read = list(dict.fromkeys(i for n in body for i in n.inputs if i is not None and i not in made))
    constants = [r for r in read if view.const(r) is not None and r not in view.inputs]
    small = [c for c in constants if np.asarray(view.const(c)).size <= SMALL]
    values = [r for r in read if r not in constants]
    order = {v: i for i, v in enumerate(candidate.consumes)}
    values.sort(key=lambda v: order.get(v, len(order)))
    return [*values, *(c for c in constants if c not in small)], small


def _marks(node: ViewNode) -> Marks:
    scopes = () if node.scopes == scopes_of(node.metadata) else node.scopes
    return Marks(node.origins, node.outputs, scopes, node.metadata)


def keep_metadata(source: onnx.ModelProto, fused: onnx.ModelProto) -> None:
    """Give `fused` what `source` says of the model, its graph and its tensors (statistics among it).

    A tensor that lies inside a kernel call keeps its entry in `value_info` under its name in the source.
    """
    fused.metadata_props.extend(source.metadata_props)
    fused.graph.metadata_props.extend(source.graph.metadata_props)
    ports = {v.name: v for v in (*fused.graph.input, *fused.graph.output)}
    own = [v for v in (*source.graph.input, *source.graph.output, *source.graph.value_info) if v.metadata_props]
    for value in own:
        if value.name in ports:
            ports[value.name].ClearField("metadata_props")
            ports[value.name].metadata_props.extend(value.metadata_props)
        else:
            fused.graph.value_info.append(value)


def _constant_node(name: str, data: np.ndarray) -> onnx.NodeProto:
    return helper.make_node(
        "Constant", [], [name], value=numpy_helper.from_array(np.ascontiguousarray(data).reshape(data.shape))
    )


def _describe(proto: onnx.NodeProto | onnx.FunctionProto, entries: Mapping[str, str]) -> None:
    for key, value in entries.items():
        if value:
            proto.metadata_props.append(onnx.StringStringEntryProto(key=key, value=value))


def _version(domain: str) -> int:
    return 1 if domain == DOMAIN else newest(domain)
