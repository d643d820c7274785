"""Which instance of which module each node of an exported graph came from, as the exporter's marks say."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import onnx

CLASSES = "pkg.torch.onnx.class_hierarchy"
NAMES = "pkg.torch.onnx.name_scopes"
"""Parallel lists, outermost first; the last entries are the operator's own (torch.onnx, dynamo=True)."""
SEPARATOR = "/"


@dataclass(frozen=True, slots=True)
class Instance:
    """A module instance: its path in the model and its class ("" where only node names speak of it)."""

    path: str
    class_path: str


def instances(node: onnx.NodeProto) -> tuple[Instance, ...]:
    """The instances around a node, outermost first: by torch's metadata, else by the node name's prefixes."""
    return _of_metadata(node) or tuple(_of_name(node.name))


def relabel(node: onnx.NodeProto, source: onnx.NodeProto, inside: Instance) -> None:
    """Give a call that stands for `inside` the marks of the nodes it replaces, from the outermost to `inside`."""
    props = {p.key: p.value for p in source.metadata_props}
    names, classes = _list(props.get(NAMES)), _list(props.get(CLASSES))
    pairs = list(zip(names, classes, strict=False))
    if (inside.path, inside.class_path) not in pairs:
        node.name = SEPARATOR.join([inside.path, node.op_type])
        return
    depth = pairs.index((inside.path, inside.class_path)) + 1
    for key, values in ((NAMES, names), (CLASSES, classes)):
        node.metadata_props.add(key=key, value=repr(values[:depth]))
    node.name = f"{inside.path or 'model'}{SEPARATOR}{node.op_type}"


def add_instance(node: onnx.NodeProto, instance: Instance) -> None:
    """Mark a node as inside one more, innermost, instance."""
    props = {p.key: p.value for p in node.metadata_props}
    own = node.op_type.lower()
    for key, entry in ((NAMES, instance.path), (CLASSES, instance.class_path)):
        values = list(_list(props.get(key))) or [own]
        props[key] = repr([*values[:-1], entry, values[-1]])
    onnx.helper.set_model_props(node, props)


def _of_metadata(node: onnx.NodeProto) -> tuple[Instance, ...]:
    props = {p.key: p.value for p in node.metadata_props}
    names, classes = _list(props.get(NAMES)), _list(props.get(CLASSES))
    if len(names) != len(classes):
        return ()
    return tuple(Instance(n, c) for n, c in zip(names[:-1], classes[:-1], strict=True))


def _of_name(name: str) -> Iterator[Instance]:
    """`/layer1/conv/Conv` (TorchScript), `model/dense/MatMul` (tf2onnx): every prefix is an instance's path."""
    parts = name.strip(SEPARATOR).split(SEPARATOR)[:-1]
    for depth in range(1, len(parts) + 1):
        yield Instance(SEPARATOR.join(parts[:depth]), "")


def _list(text: str | None) -> Sequence[str]:
    try:
        value = ast.literal_eval(text or "[]")
    except (ValueError, SyntaxError):
        return []
    return value if isinstance(value, list) and all(isinstance(v, str) for v in value) else []
