"""A FusedGraph as JSON text and back: constants in base64, everything else readable."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np

from fusion_engine.diagnostics import GapFuseError
from fusion_engine.graph import Alias, Buffer, Call, CallAttr, FusedGraph, Provenance, Quantisation

FORMAT = 1


def graph_to_json(graph: FusedGraph) -> str:
    """Deterministic text; `graph_from_json` gives the same graph back."""
    document = {
        "format": FORMAT,
        "name": graph.name,
        "inputs": list(graph.inputs),
        "outputs": list(graph.outputs),
        "buffers": [_buffer(b) for b in graph.buffers],
        "calls": [_call(c) for c in graph.calls],
    }
    return json.dumps(document, indent=1) + "\n"


def graph_from_json(text: str) -> FusedGraph:
    """Read what `graph_to_json` wrote. Raises GapFuseError for anything else."""
    try:
        d = json.loads(text)
        if d["format"] != FORMAT:
            raise GapFuseError(f"this is a graph of format {d['format']}; this version reads {FORMAT}")
        return FusedGraph(
            d["name"],
            tuple(_read_buffer(b) for b in d["buffers"]),
            tuple(_read_call(c) for c in d["calls"]),
            tuple(d["inputs"]),
            tuple(d["outputs"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        raise GapFuseError(f"not a fused graph in JSON: {type(e).__name__}: {e}") from e


def _buffer(b: Buffer) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": b.name, "dtype": b.dtype, "shape": list(b.shape)}
    if b.quantisation is not None:
        q = b.quantisation
        entry["quantisation"] = {"scale": list(q.scale), "zero": list(q.zero), "axis": q.axis}
    if b.order is not None:
        entry["order"] = list(b.order)
    if b.data is not None:
        raw = np.ascontiguousarray(b.data)
        entry["data"] = base64.b64encode(raw.astype(raw.dtype.newbyteorder("<")).tobytes()).decode()
    if b.alias is not None:
        entry["alias"] = _alias(b.alias)
    if b.provenance is not None:
        entry["provenance"] = _provenance(b.provenance)
    return entry


def _alias(a: Alias) -> dict[str, Any]:
    entry: dict[str, Any] = {"of": a.of}
    if a.reshape:
        entry["reshape"] = True
    for key in ("perm", "start", "step"):
        value = getattr(a, key)
        if value is not None:
            entry[key] = list(value)
    return entry


def _provenance(p: Provenance) -> dict[str, Any]:
    return {"rule": p.rule, "variant": p.variant, "evidence": p.evidence, "nodes": list(p.nodes)}


def _call(c: Call) -> dict[str, Any]:
    return {
        "name": c.name,
        "kernel": c.kernel,
        "operands": [list(o) for o in c.operands],
        "results": [list(r) for r in c.results],
        "attrs": [[k, list(v) if isinstance(v, tuple) else v] for k, v in c.attrs],
        "provenance": _provenance(c.provenance),
    }


def _ints(values: list[Any] | None) -> tuple[int, ...] | None:
    return None if values is None else tuple(int(v) for v in values)


def _read_buffer(d: dict[str, Any]) -> Buffer:
    shape = tuple(int(v) for v in d["shape"])
    data = None
    if "data" in d:
        raw = np.frombuffer(base64.b64decode(d["data"]), np.dtype(d["dtype"]).newbyteorder("<"))
        data = raw.astype(d["dtype"]).reshape(shape)
    q = d.get("quantisation")
    quantisation = q and Quantisation(tuple(q["scale"]), tuple(q["zero"]), q["axis"])
    a = d.get("alias")
    alias = a and Alias(
        a["of"], bool(a.get("reshape")), _ints(a.get("perm")), _ints(a.get("start")), _ints(a.get("step"))
    )
    provenance = _read_provenance(d["provenance"]) if "provenance" in d else None
    return Buffer(d["name"], d["dtype"], shape, quantisation, _ints(d.get("order")), data, alias, provenance)


def _read_provenance(d: dict[str, Any]) -> Provenance:
    return Provenance(d["rule"], d["variant"], d["evidence"], tuple(d["nodes"]))


def _read_call(d: dict[str, Any]) -> Call:
    attrs: list[tuple[str, CallAttr]] = [(k, tuple(v) if isinstance(v, list) else v) for k, v in d["attrs"]]
    return Call(
        d["name"],
        d["kernel"],
        tuple((k, v) for k, v in d["operands"]),
        tuple((k, v) for k, v in d["results"]),
        tuple(attrs),
        _read_provenance(d["provenance"]),
    )
