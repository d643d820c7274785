"""float16 models computed in float32, for targets whose kernels know no float16."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, numpy_helper

from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.model.read import Model

NOTE = "float16 is computed in float32, which is more exact: no kernel takes float16; inputs and outputs stay float16"
KERNEL_DOMAIN = "gap_fuse.kernels"
TYPE_ATTRIBUTES = ("to", "dtype", "output_dtype", "precision", "stash_type", "softmax_precision")


def widen_half(model: Model, kernels: Mapping[str, Kernel]) -> tuple[Model, tuple[str, ...]]:
    """The model with float32 inside in place of float16, and a note; as it is where it has none, where a kernel takes
    float16, and where it is a fused model, of which this has been done."""
    fused = any(f.domain == KERNEL_DOMAIN for f in model.proto.functions)
    if fused or not _has_half(model.proto) or any(_takes_half(k) for k in kernels.values()):
        return model, ()
    return replace(model, proto=_widened(model.proto)), (NOTE,)


def _takes_half(kernel: Kernel) -> bool:
    return any(o.dtype == "float16" for o in kernel.operands)


def _has_half(proto: onnx.ModelProto) -> bool:
    graph = proto.graph
    infos = (*graph.input, *graph.output, *graph.value_info)
    tensors = (*graph.initializer, *(a.t for n in graph.node for a in n.attribute if a.type == AttributeProto.TENSOR))
    return (
        any(i.type.tensor_type.elem_type == TensorProto.FLOAT16 for i in infos)
        or any(t.data_type == TensorProto.FLOAT16 for t in tensors)
        or any(n.op_type == "Cast" and any(a.i == TensorProto.FLOAT16 for a in n.attribute) for n in graph.node)
    )


def _widened(proto: onnx.ModelProto) -> onnx.ModelProto:
    wide = onnx.ModelProto()
    wide.CopyFrom(proto)
    _widen_ports(wide.graph)
    _widen_graph(wide.graph)
    for function in wide.functions:
        _widen_nodes(function.node)
        _widen_infos(function.value_info)
    return wide


def _widen_ports(graph: onnx.GraphProto) -> None:
    """Cast nodes behind float16 inputs and in front of float16 outputs."""
    constants = {t.name for t in graph.initializer}
    taken = [i.name for i in graph.input if i.name not in constants and _half(i)]
    given = [o.name for o in graph.output if _half(o)]
    known = {n for node in graph.node for n in (*node.input, *node.output)} | constants
    names = {n: _fresh(f"{n}_float32", known) for n in dict.fromkeys((*taken, *given))}
    _rename(graph.node, names)
    for t in graph.initializer:
        t.name = names.get(t.name, t.name)
    nodes = [_cast(n, names[n], TensorProto.FLOAT) for n in taken]
    nodes += [*graph.node, *(_back(names[n], n) for n in given)]
    del graph.node[:]
    graph.node.extend(nodes)


def _half(info: onnx.ValueInfoProto) -> bool:
    return bool(info.type.tensor_type.elem_type == TensorProto.FLOAT16)


def _fresh(name: str, known: set[str]) -> str:
    while name in known:
        name += "_"
    known.add(name)
    return name


def _cast(source: str, result: str, to: int) -> onnx.NodeProto:
    return onnx.helper.make_node("Cast", [source], [result], name=result, to=to)


def _back(source: str, result: str) -> onnx.NodeProto:
    return onnx.helper.make_node("Cast", [source], [result], name=f"{result}_float16", to=TensorProto.FLOAT16)


def _rename(nodes: Iterable[onnx.NodeProto], names: Mapping[str, str]) -> None:
    for node in nodes:
        node.input[:] = [names.get(n, n) for n in node.input]
        node.output[:] = [names.get(n, n) for n in node.output]
        for a in node.attribute:
            if a.type == AttributeProto.GRAPH:
                _rename(a.g.node, names)
                for o in a.g.output:
                    o.name = names.get(o.name, o.name)


def _widen_graph(graph: onnx.GraphProto, ports: bool = False) -> None:
    """Everything inside: constants, types, attributes, the graphs of control flow (`ports`: their own ports too)."""
    for t in graph.initializer:
        _widen_tensor(t)
    _widen_infos(graph.value_info)
    if ports:
        _widen_infos((*graph.input, *graph.output))
    ends = () if ports else _casts_back(graph)
    _widen_nodes(n for i, n in enumerate(graph.node) if i not in ends)


def _casts_back(graph: onnx.GraphProto) -> range:
    """The nodes that `_widen_ports` put at the end."""
    return range(len(graph.node) - sum(_half(o) for o in graph.output), len(graph.node))


def _widen_infos(infos: Iterable[onnx.ValueInfoProto]) -> None:
    for info in infos:
        if _half(info):
            info.type.tensor_type.elem_type = TensorProto.FLOAT


def _widen_nodes(nodes: Iterable[onnx.NodeProto]) -> None:
    for node in nodes:
        for a in node.attribute:
            if a.name in TYPE_ATTRIBUTES and a.i == TensorProto.FLOAT16:
                a.i = TensorProto.FLOAT
            if a.type == AttributeProto.TENSOR:
                _widen_tensor(a.t)
            if a.type == AttributeProto.GRAPH:
                _widen_graph(a.g, ports=True)


def _widen_tensor(tensor: onnx.TensorProto) -> None:
    if tensor.data_type == TensorProto.FLOAT16:
        value = numpy_helper.to_array(tensor).astype(np.float32)
        tensor.CopyFrom(numpy_helper.from_array(value, tensor.name))
