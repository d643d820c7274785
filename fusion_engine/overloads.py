"""Overloads of a file's functions as names of their own in the fused file, and back.

onnxruntime 1.32 takes the wrong overload, or none, for a call inside a function; and what stayed closed is called
inside the functions of kernels. So `F:two` is written as `F.1`, and metadata says what it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import count

import onnx

from fusion_engine.view import KERNELS

FUNCTION = "gap_fuse.function"  # [name, overload]

Key = tuple[str, str, str]  # domain, name, overload


def without_overloads(model: onnx.ModelProto) -> None:
    """Give each function with an overload, kernels' aside, a name that no other function of its domain has."""
    taken = {(f.domain, f.name) for f in model.functions}
    names: dict[Key, tuple[str, str]] = {}
    for f in model.functions:
        if f.domain == KERNELS or not f.overload:
            continue
        name = next(n for k in count(1) if (f.domain, n := f"{f.name}.{k}") not in taken)
        taken.add((f.domain, name))
        names[(f.domain, f.name, f.overload)] = (name, "")
        f.metadata_props.add(key=FUNCTION, value=json.dumps([f.name, f.overload]))
    _rename(model, names)


def with_overloads(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the names and overloads that `without_overloads` took away."""
    said = {_key(f): p.value for f in model.functions for p in f.metadata_props if p.key == FUNCTION}
    names = {key: named for key, text in said.items() if (named := _named(text)) is not None}
    if not names:
        return model
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for f in copy.functions:
        if _key(f) in names:
            kept = [p for p in f.metadata_props if p.key != FUNCTION]
            del f.metadata_props[:]
            f.metadata_props.extend(kept)
    _rename(copy, names)
    return copy


def _named(text: str) -> tuple[str, str] | None:
    """What the metadata says; None where it is not ours."""
    try:
        name, overload = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None
    return (name, overload) if isinstance(name, str) and isinstance(overload, str) else None


def _key(f: onnx.FunctionProto) -> Key:
    return (f.domain, f.name, f.overload)


def _rename(model: onnx.ModelProto, names: Mapping[Key, tuple[str, str]]) -> None:
    for f in model.functions:
        f.name, f.overload = names.get(_key(f), (f.name, f.overload))
        _rename_calls(f.node, names)
    _rename_calls(model.graph.node, names)


def _rename_calls(nodes: Iterable[onnx.NodeProto], names: Mapping[Key, tuple[str, str]]) -> None:
    for node in nodes:
        key = (node.domain, node.op_type, node.overload)
        node.op_type, node.overload = names.get(key, key[1:])
        for a in node.attribute:
            if a.HasField("g"):
                _rename_calls(a.g.node, names)
