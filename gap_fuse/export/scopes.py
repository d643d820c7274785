"""Which instance of which module each node of an exported graph came from, as the exporter's marks say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import onnx

from fusion_engine.view.scopes import CLASSES, NAMES, texts_of

SEPARATOR = "/"


@dataclass(frozen=True, slots=True)
class Instance:
    """A module instance: its path in the model and its class ("" where only node names speak of it)."""

    path: str
    class_path: str


def instances(node: onnx.NodeProto) -> tuple[Instance, ...]:
    """The instances around a node, outermost first: by torch's metadata, whose last entry is the operator's own, or by
    the node name's prefixes."""
    return _of_metadata(node) or tuple(_of_name(node.name))


def relabel(node: onnx.NodeProto, source: onnx.NodeProto, inside: Instance) -> None:
    """Give a call that stands for `inside` the marks of the nodes it replaces, from the outermost to `inside`."""
    props = {p.key: p.value for p in source.metadata_props}
    names, classes = texts_of(props.get(NAMES, "")), texts_of(props.get(CLASSES, ""))
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
        values = texts_of(props.get(key, "")) or [own]
        props[key] = repr([*values[:-1], entry, values[-1]])
    onnx.helper.set_model_props(node, props)


def _of_metadata(node: onnx.NodeProto) -> tuple[Instance, ...]:
    props = {p.key: p.value for p in node.metadata_props}
    names, classes = texts_of(props.get(NAMES, "")), texts_of(props.get(CLASSES, ""))
    if len(names) != len(classes):
        return ()
    return tuple(Instance(n, c) for n, c in zip(names[:-1], classes[:-1], strict=True))


def _of_name(name: str) -> Iterator[Instance]:
    """`/layer1/conv/Conv` (TorchScript), `model/dense/MatMul` (tf2onnx): every prefix is an instance's path."""
    parts = name.strip(SEPARATOR).split(SEPARATOR)[:-1]
    for depth in range(1, len(parts) + 1):
        yield Instance(SEPARATOR.join(parts[:depth]), "")
