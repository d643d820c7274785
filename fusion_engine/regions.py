"""A candidate's part of the view as a model of its own: what fuse() writes as a function, what checks run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import onnx
from onnx import helper, numpy_helper

from fusion_engine.covering.types import Candidate
from fusion_engine.view import FLIP_SIGN, View, ViewNode, node_to_proto
from fusion_engine.view.operators import newest, split_op
from fusion_engine.view.write import flip_function, value_info, written_opset

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


def functions_called(functions: Sequence[onnx.FunctionProto], ops: Iterable[str]) -> list[onnx.FunctionProto]:
    """Those of the model's functions that `ops` (`domain::name`) call, and that these call in turn."""
    by_name: dict[str, list[onnx.FunctionProto]] = {}
    for f in functions:
        by_name.setdefault(f"{f.domain}::{f.name}", []).append(f)
    todo = sorted(ops)
    seen = set(todo)
    for op in todo:
        inner = {f"{n.domain}::{n.op_type}" for f in by_name.get(op, ()) for n in f.node if n.domain}
        todo += sorted(inner - seen)
        seen |= inner
    return [f for f in functions if f"{f.domain}::{f.name}" in seen]


def region_model(view: View, candidate: Candidate, functions: Sequence[onnx.FunctionProto]) -> onnx.ModelProto:
    """The candidate's body as a model: what it consumes are the inputs, what it produces the outputs."""
    body = body_of(view, candidate)
    opset = written_opset(view)
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
    called = functions_called(functions, {n.op for n in body if "::" in n.op})
    flips = [flip_function(opset)] if any(n.op == FLIP_SIGN for n in body) else []
    domains = {split_op(n.op)[0] for n in body} | {f.domain for f in called}
    imports = [helper.make_opsetid(d, newest(d)) for d in sorted(domains - {""})]
    return helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", opset), *imports],
        functions=[*called, *flips],
        ir_version=IR_VERSION,
    )
