"""Is the model well formed? onnx's own checker first; what it rejects is located, unknown operators are let through."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import onnx
from onnx import defs

from fusion_engine.diagnostics import Diagnostic, GapFuseError, Span


def not_text(proto: onnx.ModelProto, where: Span | None) -> list[Diagnostic]:
    """Names that are not UTF-8, which protobuf hands out as bytes: a damaged file, or not one of ONNX at all."""
    for graph in [proto.graph, *_graphs(proto.graph.node), *(g for f in proto.functions for g in _graphs(f.node))]:
        values = [*graph.input, *graph.output, *graph.value_info]
        symbols = (d.dim_param for v in values for d in v.type.tensor_type.shape.dim)
        names = [graph.name, *(v.name for v in values), *symbols, *(t.name for t in graph.initializer)]
        if not (_all_text(names) and _nodes_are_text(graph.node)):
            return [Diagnostic("the file is damaged: names in its graph are not UTF-8 text", where)]
    for function in proto.functions:
        names = [function.domain, function.name, function.overload, *function.input, *function.output]
        if not (_all_text(names) and _nodes_are_text(function.node)):
            return [Diagnostic("the file is damaged: names in a function are not UTF-8 text", where)]
    if not _all_text(o.domain for o in proto.opset_import):
        return [Diagnostic("the file is damaged: names of its operator sets are not UTF-8 text", where)]
    return []


def _graphs(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.GraphProto]:
    for attribute in (a for node in nodes for a in node.attribute):
        if attribute.HasField("g"):
            yield attribute.g
            yield from _graphs(attribute.g.node)


def _nodes_are_text(nodes: Iterable[onnx.NodeProto]) -> bool:
    return all(
        _all_text((n.op_type, n.domain, n.name, n.overload, *n.input, *n.output))
        and _all_text(a.name for a in n.attribute)
        and _all_text(text for p in n.metadata_props for text in (p.key, p.value))
        for n in nodes
    )


def _all_text(names: Iterable[object]) -> bool:
    return all(isinstance(n, str) for n in names)


def check_model(proto: onnx.ModelProto, where: Span | None) -> None:
    """Raise GapFuseError for a model that breaks ONNX's rules.

    Operators that ONNX does not define are allowed here (a rule may take them); so are nodes out of order.
    """
    if proto.ir_version < 2:
        _fill_attribute_types(proto.graph)
    _fill_opsets(proto)
    _check_opset(proto, where)
    try:
        onnx.checker.check_model(proto)
    except Exception as error:  # ValidationError, and DecodeError for models that do not survive serialisation
        problems = _located(proto, where)
        if problems:
            raise GapFuseError(problems[:10]) from error
        if not _forgiven(str(error)):
            raise GapFuseError(Diagnostic(f"the model is not valid ONNX: {_first_line(error)}", where)) from error


def _check_opset(proto: onnx.ModelProto, where: Span | None) -> None:
    """Of operators that the installed onnx does not define nobody knows what they mean."""
    newest = defs.onnx_opset_version()
    for o in proto.opset_import:
        if o.domain in ("", "ai.onnx") and o.version > newest:
            message = f"the model is of opset {o.version}; the newest known to onnx {onnx.__version__} is {newest}"
            raise GapFuseError(Diagnostic(message, where, "export it with an older opset, or install a newer onnx"))


def _fill_opsets(proto: onnx.ModelProto) -> None:
    """A model of IR 1 or 2 names no operator set: it is version 1. From here on it is one of IR 3."""
    if not proto.opset_import and proto.ir_version < 3:
        proto.opset_import.append(onnx.helper.make_opsetid("", 1))
        proto.ir_version = 3


_FIELDS = {
    "f": "FLOAT",
    "i": "INT",
    "s": "STRING",
    "t": "TENSOR",
    "g": "GRAPH",
    "floats": "FLOATS",
    "ints": "INTS",
    "strings": "STRINGS",
}


def _fill_attribute_types(graph: onnx.GraphProto) -> None:
    """Attributes of IR 1 do not say their type: it is the field that is set."""
    for attribute in (a for node in graph.node for a in node.attribute):
        kind = next((_FIELDS[f.name] for f, _ in attribute.ListFields() if f.name in _FIELDS), "UNDEFINED")
        attribute.type = onnx.AttributeProto.AttributeType.Value(kind)


def _located(proto: onnx.ModelProto, where: Span | None) -> list[Diagnostic]:
    return [*_tensor_problems(proto, where), *_name_problems(proto, where), *_node_problems(proto, where)]


def _tensor_problems(proto: onnx.ModelProto, where: Span | None) -> list[Diagnostic]:
    found = []
    for tensor in proto.graph.initializer:
        try:
            onnx.numpy_helper.to_array(tensor)
        except Exception as error:  # wrong byte count, unknown element type
            found.append(Diagnostic(f"initializer `{tensor.name}` cannot be decoded: {_first_line(error)}", where))
    return found


def _name_problems(proto: onnx.ModelProto, where: Span | None) -> list[Diagnostic]:
    graph = proto.graph
    made = Counter(name for node in graph.node for name in node.output if name)
    known = {*made, *(i.name for i in graph.input), *(t.name for t in graph.initializer)}
    known |= {t.values.name for t in graph.sparse_initializer}
    found = [Diagnostic(f"value `{name}` is made by {n} nodes", where) for name, n in made.items() if n > 1]
    for node in graph.node:
        for name in node.input:
            if name and name not in known:
                found.append(Diagnostic(f"{describe(node)} reads `{name}`, which nothing makes", where))
    for output in graph.output:
        if output.name not in known:
            found.append(Diagnostic(f"the graph's output `{output.name}` is made by no node", where))
    return found


def _node_problems(proto: onnx.ModelProto, where: Span | None) -> list[Diagnostic]:
    context = onnx.checker.C.CheckerContext()
    context.ir_version = proto.ir_version
    context.opset_imports = {o.domain: o.version for o in proto.opset_import}
    found = []
    for node in proto.graph.node:
        if any(a.HasField("g") for a in node.attribute) or not _is_defined(node, context.opset_imports):
            continue
        try:
            onnx.checker.check_node(node, context)
        except Exception as error:
            found.append(Diagnostic(f"{describe(node)} is not valid: {_first_line(error)}", where))
    return found


def _is_defined(node: onnx.NodeProto, opsets: dict[str, int]) -> bool:
    version = opsets.get(node.domain, opsets.get("" if node.domain == "ai.onnx" else node.domain, 0))
    try:
        defs.get_schema(node.op_type, version, node.domain)
    except Exception:  # SchemaError is not a public class in every release
        return False
    return True


_EXCUSES = (
    "No Op registered for",
    "No Schema registered for",
    "No opset import for domain",
    "Nodes in a graph must be topologically sorted",
    "Field 'name' of 'graph' is required",
    "Field 'shape' of 'type' is required",
    "Field 'type' of 'value_info' is required",
)


def _forgiven(message: str) -> bool:
    """Not about the meaning: an unknown operator, an unsorted node list, no name, an output of undeclared type."""
    return any(e in message for e in _EXCUSES)


def describe(node: onnx.NodeProto) -> str:
    """How messages name a node of the file."""
    made = next((o for o in node.output if o), "")
    return f"node `{node.name or made}` ({node.op_type})"


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0].strip()
