"""A candidate's part of the view as a model of its own: what fuse() writes as a function, what checks run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import onnx
from onnx import helper, numpy_helper

from fusion_engine.covering.types import Candidate
from fusion_engine.view import FLIP_SIGN, View, ViewNode, node_to_proto
from fusion_engine.view.operators import newest, split_op
from fusion_engine.view.write import flip_function, value_info

IR_VERSION = 10  # the first with overloads


def body_of(view: View, candidate: Candidate) -> list[ViewNode]:
    """The nodes that make the candidate's results from what it consumes and from stored constants, in topological
    order."""
    stop = {*candidate.consumes, *view.inputs}
    todo = list(candidate.produces)
    found: set[int] = set()
    while todo:
        value = todo.pop()
        index = view.producer.get(value)
        if index is None or index in found:
            continue
        found.add(index)
        node = view.nodes[index]
        todo.extend(i for i in (*node.inputs, *node.captures) if i is not None and i not in stop)
    return [view.nodes[i] for i in sorted(found)]


FunctionKey = tuple[str, str, str]


def functions_of(model: onnx.ModelProto) -> dict[FunctionKey, onnx.FunctionProto]:
    """The model's functions by domain, name and overload."""
    return {(f.domain, f.name, f.overload): f for f in model.functions}


def _called(
    functions: Mapping[FunctionKey, onnx.FunctionProto], keys: Iterable[FunctionKey]
) -> list[onnx.FunctionProto]:
    """Those of the model's functions that are called, and that these call in turn."""
    todo = sorted(set(keys))
    found: dict[FunctionKey, onnx.FunctionProto] = {}
    for key in todo:
        function = functions.get(key)
        if function is not None and key not in found:
            found[key] = function
            todo += _calls(function.node)
    return list(found.values())


def _calls(nodes: Iterable[onnx.NodeProto]) -> Iterator[FunctionKey]:
    """What could be functions of the model among the nodes and those of their bodies."""
    for node in nodes:
        if node.domain:
            yield (node.domain, node.op_type, node.overload)
        for a in node.attribute:
            if a.HasField("g"):
                yield from _calls(a.g.node)


def region_model(
    view: View, candidate: Candidate, functions: Mapping[FunctionKey, onnx.FunctionProto], opset: int
) -> onnx.ModelProto:
    """The candidate's body as a model: what it consumes are the inputs, what it produces the outputs.

    `opset` is the operator set of the view's operators (`written_opset`).
    """
    body = body_of(view, candidate)
    made = {o for n in body for o in n.outputs}
    read = dict.fromkeys(i for n in body for i in n.inputs if i is not None and i not in made)
    constants = [r for r in read if r not in candidate.consumes and view.const(r) is not None]
    graph = helper.make_graph(
        [node_to_proto(n, view, opset) for n in body],
        "region",
        [value_info(view.values[r]) for r in read if r not in constants],
        [value_info(view.values[o]) for o in candidate.produces],
        initializer=[numpy_helper.from_array(np.asarray(view.const(c)), c) for c in constants],
    )
    called = _called(functions, ((*split_op(n.op), n.overload) for n in body if "::" in n.op))
    flips = [flip_function(opset)] if any(n.op == FLIP_SIGN for n in body) else []
    domains = {split_op(n.op)[0] for n in body} | {f.domain for f in called}
    imports = [helper.make_opsetid(d, newest(d)) for d in sorted(domains - {""})]
    return helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", opset), *imports],
        functions=[*called, *flips],
        ir_version=IR_VERSION,
    )


def signature(model: onnx.ModelProto) -> bytes:
    """The model without the names of its values, nodes and overloads: equal for equal regions of a network."""
    plain = onnx.ModelProto()
    plain.CopyFrom(model)
    overloads = {(f.domain, f.name, f.overload): str(i) for i, f in enumerate(plain.functions)}
    graph = plain.graph
    names = {v.name: f"v{i}" for i, v in enumerate((*graph.input, *graph.initializer))}
    for value in (*graph.input, *graph.initializer):
        value.name = names[value.name]
        value.doc_string = ""
    _strip(graph.node, names, overloads)
    for value in graph.output:
        value.name = names.get(value.name, value.name)
    for function in plain.functions:
        function.overload = overloads[(function.domain, function.name, function.overload)]
        inner = {name: f"v{i}" for i, name in enumerate(function.input)}
        _strip(function.node, inner, overloads)
        inputs, outputs = [inner[i] for i in function.input], [inner.get(o, o) for o in function.output]
        del function.input[:], function.output[:], function.metadata_props[:]
        function.input.extend(inputs)
        function.output.extend(outputs)
    return bytes(plain.SerializeToString(deterministic=True))


def _strip(nodes: Iterable[onnx.NodeProto], names: dict[str, str], overloads: Mapping[FunctionKey, str]) -> None:
    for node in nodes:
        for output in node.output:
            if output:
                names.setdefault(output, f"v{len(names)}")
        inputs, outputs = [names.get(i, i) for i in node.input], [names.get(o, o) for o in node.output]
        node.overload = overloads.get((node.domain, node.op_type, node.overload), node.overload)
        node.name = node.doc_string = ""
        del node.input[:], node.output[:], node.metadata_props[:]
        node.input.extend(inputs)
        node.output.extend(outputs)
        for a in node.attribute:
            if a.HasField("t"):
                a.t.name = ""
