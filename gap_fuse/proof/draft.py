"""A model under construction: what a drawn case is before it is ONNX."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from fusion_engine.diagnostics import Span
from fusion_engine.language.operators import operators
from fusion_engine.language.types import Rule
from gap_fuse.proof.choices import Choices

_INFERENCE = re.compile(r"\[\w+Error\] (Inference error\(s\): )?")  # what onnx puts around its sentences

OPSET = 23


class NotDrawable(Exception):  # noqa: N818
    """This draw makes no legal model; the message says why. `always`: no draw of this variant would."""

    def __init__(self, reason: str, always: bool = False) -> None:
        super().__init__(reason)
        self.always = always


@dataclass(eq=False)
class Draft:
    """Nodes, constants and inputs so far.

    `names` says which tensor a captured or named value of the pattern is (None: absent), `attrs` what a captured
    attribute is, `limits` between which integers the values of an input lie.
    """

    rule: Rule
    classes: Mapping[str, tuple[str, ...]]
    choices: Choices
    dtype: str = "float32"  # of captures that may be anything
    integer: str = "int64"  # of captures that are data of some integer type
    sizes: dict[str, Any] = field(default_factory=dict)
    base: tuple[int, ...] = ()
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    inputs: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    limits: dict[str, tuple[int, int]] = field(default_factory=dict)
    names: dict[str, str | None] = field(default_factory=dict)
    scalars: set[str] = field(default_factory=set)  # captures that the standard wants of rank 0
    attrs: dict[str, Any] = field(default_factory=dict)
    results: list[str] = field(default_factory=list)
    used: list[tuple[Span, int]] = field(default_factory=list)  # alternatives taken: (pattern, option)

    def fresh(self, stem: str) -> str:
        return f"{stem}_{len(self.nodes)}_{len(self.constants)}"

    def constant(self, value: np.ndarray, stem: str = "literal") -> str:
        name = self.fresh(stem)
        self.constants[name] = value
        return name

    def node(self, op: str, inputs: list[str | None], attrs: Mapping[str, Any] | None = None, output: int = 0) -> str:
        """Append a node and return one of its outputs; of the others, those that must be there get a name."""
        least = max(1, operators()[op].min_output)
        wanted = [i == output or i < least for i in range(max(output + 1, least))]
        made = [self.fresh(f"{op.lower()}{i or ''}") if there else "" for i, there in enumerate(wanted)]
        self.nodes.append(helper.make_node(op, [i or "" for i in inputs], made, **(attrs or {})))
        return made[output]

    def shape(self, name: str) -> tuple[int, ...]:
        """The extents of a tensor so far. Raises NotDrawable where inference does not know them."""
        if name in self.constants:
            return self.constants[name].shape
        if name in self.inputs:
            return self.inputs[name][1]
        model = to_model(self, [name])
        return tuple(d.dim_value for d in model.graph.output[0].type.tensor_type.shape.dim)


def to_model(draft: Draft, results: list[str] | None = None) -> onnx.ModelProto:
    """The draft as a typed model. Raises NotDrawable where the shapes do not fit."""
    wanted = list(dict.fromkeys(results or draft.results))
    inputs = [helper.make_tensor_value_info(n, _kind(d), s) for n, (d, s) in draft.inputs.items()]
    outputs = [helper.make_tensor_value_info(n, TensorProto.UNDEFINED, None) for n in wanted]
    constants = [numpy_helper.from_array(v, n) for n, v in draft.constants.items()]
    graph = helper.make_graph(draft.nodes, "drawn", inputs, outputs, constants)
    opset = max([OPSET, *(_first_version(n.op_type) for n in draft.nodes)])
    return typed(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10))


def _first_version(op: str) -> int:
    """0, or the operator set that brought an operator which OPSET lacks."""
    return 0 if onnx.defs.has(op, OPSET) else int(operators()[op].since_version)


def _kind(dtype: str) -> int:
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def _tell_group_norms(model: onnx.ModelProto) -> None:
    """Declare the results of GroupNormalization, for which onnx has no inference, where the operand is an input."""
    known = {i.name: i for i in model.graph.input}
    for node in model.graph.node:
        if node.op_type == "GroupNormalization" and node.input[0] in known:
            info = onnx.ValueInfoProto()
            info.CopyFrom(known[node.input[0]])
            info.name = node.output[0]
            model.graph.value_info.append(info)


def typed(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with its outputs' types inferred, inner types left out. Raises NotDrawable where they do not fit."""
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    del bare.graph.output[:], bare.graph.value_info[:]
    _tell_group_norms(bare)
    try:
        found = onnx.shape_inference.infer_shapes(bare, strict_mode=True, data_prop=True)
    except (onnx.shape_inference.InferenceError, ValueError, RuntimeError) as e:
        raise NotDrawable(_INFERENCE.sub("", str(e).strip().splitlines()[-1])) from e
    known = {v.name: v for v in (*found.graph.value_info, *found.graph.input)}
    result = onnx.ModelProto()
    result.CopyFrom(model)
    del result.graph.value_info[:]
    for output in result.graph.output:
        info = known.get(output.name)
        if info is None or not _static(info):
            raise NotDrawable(f"the shape of {output.name} is not inferred")
        output.CopyFrom(info)
    return result


def _static(info: onnx.ValueInfoProto) -> bool:
    type_ = info.type.tensor_type
    return type_.HasField("shape") and all(d.HasField("dim_value") and d.dim_value > 0 for d in type_.shape.dim)
