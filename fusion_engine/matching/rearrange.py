"""Index maps of movement operators: chains of them compared with an einops text.

A tensor that is a bijective rearrangement of another is a list of (extent, stride) factors, outermost first: flat
index of the source = sum of digit * stride. Reshape regroups the factors, Transpose permutes them; neighbours that run
on are merged, so that two maps are equal exactly when their lists are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from fusion_engine.language.axes import AxesText
from fusion_engine.language.operators import MOVEMENT as MOVEMENT_LIST
from fusion_engine.matching.facts import DEQUANTIZE, Facts, Tensor, Virtual
from fusion_engine.view.types import ViewNode

MOVEMENT = frozenset(MOVEMENT_LIST)
LONGEST = 16  # operators of one chain
Shape = tuple[int, ...]
Factors = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Map:
    """Factors in row-major sequence of the result, and the result's shape."""

    factors: Factors
    shape: Shape


@dataclass(frozen=True, slots=True)
class Chain:
    """`source` becomes the value through `nodes` (last first; the DequantizeLinear that sank below them included)."""

    source: Tensor
    nodes: tuple[int, ...]
    map: Map


def identity(shape: Shape) -> Map:
    return Map(_merge(((prod(shape), 1),)), shape)


def reshape(m: Map, shape: Shape) -> Map | None:
    return Map(m.factors, shape) if prod(shape) == prod(m.shape) else None


def transpose(m: Map, perm: tuple[int, ...]) -> Map | None:
    """None where an axis begins inside a factor that does not divide so: no einops text says such a map."""
    groups = _grouped(m)
    if groups is None or sorted(perm) != list(range(len(groups))):
        return None
    return Map(_merge(tuple(f for p in perm for f in groups[p])), tuple(m.shape[p] for p in perm))


def _grouped(m: Map) -> list[list[tuple[int, int]]] | None:
    """The factors of each axis."""
    if 0 in m.shape:
        return None
    left = list(reversed(m.factors))
    groups: list[list[tuple[int, int]]] = []
    for extent in m.shape:
        group: list[tuple[int, int]] = []
        need = extent
        while need > 1:
            size, stride = left.pop()
            if need % size == 0:
                group.append((size, stride))
                need //= size
            elif size % need == 0:
                rest = size // need
                group.append((need, stride * rest))
                left.append((rest, stride))
                need = 1
            else:
                return None
        groups.append(group)
    return groups


def _merge(factors: Factors) -> Factors:
    merged: list[tuple[int, int]] = []
    for size, stride in factors:
        if size == 1:
            continue
        if merged and merged[-1][1] == stride * size:
            merged[-1] = (merged[-1][0] * size, stride)
        else:
            merged.append((size, stride))
    return tuple(merged)


# ---- operators ----


def push(facts: Facts, m: Map, node: ViewNode) -> Map | None:
    """The map after one movement operator; None where it is no bijection that factors can say, or not known."""
    result = facts.view.values[node.outputs[0]].static_shape
    if result is None or prod(result) != prod(m.shape):
        return None
    match node.op:
        case "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze":
            return reshape(m, result)
        case "Transpose":
            perm = node.attrs.get("perm")
            return transpose(m, _ints(perm) or tuple(reversed(range(len(m.shape)))))
        case "Slice":
            return m if _forward(facts, node) and result == m.shape else None
        case "Split":
            return m if result == m.shape else None
        case "Gather":
            return _gather(facts, m, node, result)
        case "DepthToSpace":
            return _depth_to_space(m, node, result)
        case "SpaceToDepth":
            return _space_to_depth(m, node, result)
    return None


def _ints(value: object) -> tuple[int, ...]:
    return tuple(int(v) for v in value) if isinstance(value, (tuple, list)) else ()


def _forward(facts: Facts, node: ViewNode) -> bool:
    steps = facts.view.const(node.inputs[4]) if len(node.inputs) > 4 else None
    absent = len(node.inputs) <= 4 or node.inputs[4] is None
    return absent or (steps is not None and bool(np.all(steps == 1)))


def _gather(facts: Facts, m: Map, node: ViewNode, result: Shape) -> Map | None:
    """Taking every element in sequence; a scalar index drops an axis of extent 1."""
    indices, axis = facts.view.const(node.inputs[1]), node.attrs.get("axis")
    if indices is None or not isinstance(axis, int) or not -len(m.shape) <= axis < len(m.shape):
        return None
    extent = m.shape[axis]
    in_order = np.array_equal(indices.reshape(-1) % extent, np.arange(extent)) if extent else False
    return reshape(m, result) if in_order else None


def _depth_to_space(m: Map, node: ViewNode, result: Shape) -> Map | None:
    b = node.attrs.get("blocksize")
    if not isinstance(b, int) or len(m.shape) != 4:
        return None
    n, c, h, w = m.shape
    crd = node.attrs.get("mode") in ("CRD", b"CRD")
    split = (n, c // b**2, b, b, h, w) if crd else (n, b, b, c // b**2, h, w)
    opened = reshape(m, split)
    moved = None if opened is None else transpose(opened, (0, 1, 4, 2, 5, 3) if crd else (0, 3, 4, 1, 5, 2))
    return None if moved is None else reshape(moved, result)


def _space_to_depth(m: Map, node: ViewNode, result: Shape) -> Map | None:
    b = node.attrs.get("blocksize")
    if not isinstance(b, int) or len(m.shape) != 4:
        return None
    n, c, h, w = m.shape
    opened = reshape(m, (n, c, h // b, b, w // b, b))
    moved = None if opened is None else transpose(opened, (0, 3, 5, 1, 2, 4))
    return None if moved is None else reshape(moved, result)


# ---- chains ----


def chains(facts: Facts, value: Tensor) -> Iterator[Chain]:
    """Every chain of movement operators that ends in `value`, the empty one first."""
    nodes: list[int] = []
    source: Tensor = value
    while True:
        m = _replay(facts, source, nodes)
        if m is not None:
            yield Chain(source, tuple(nodes), m)
        below = _below(facts, source) if len(nodes) < LONGEST else None
        if below is None:
            return
        source, passed = below
        nodes.append(passed)


def _below(facts: Facts, value: Tensor) -> tuple[Tensor, int] | None:
    """One step towards the source: over a movement operator, or over a DequantizeLinear of one."""
    name = value.stored if isinstance(value, Virtual) else value
    node = facts.maker(name)
    if node is None or node.inputs[0] is None or node.outputs[0] != name:
        return None
    if node.op == DEQUANTIZE and isinstance(value, str):
        quantisation = facts.lens(node)
        made = facts.maker(node.inputs[0])
        if quantisation is None or quantisation.axis is not None or made is None or made.op not in MOVEMENT:
            return None
        return Virtual(node.inputs[0], quantisation), node.index
    if node.op not in MOVEMENT:
        return None
    return (Virtual(node.inputs[0], value.quantisation) if isinstance(value, Virtual) else node.inputs[0]), node.index


def _replay(facts: Facts, source: Tensor, nodes: list[int]) -> Map | None:
    shape = facts.view.values[source.stored if isinstance(source, Virtual) else source].static_shape
    m = None if shape is None else identity(shape)
    for index in reversed(nodes):
        node = facts.view.nodes[index]
        if m is None:
            return None
        if node.op != DEQUANTIZE:
            m = push(facts, m, node)
    return m


# ---- what a text says ----


def expected_map(text: AxesText, extents: Mapping[str, int]) -> Map | None:
    """The map that the text says."""
    names = [a for g in text.left for a in g if isinstance(a, str)]
    order = [a for g in text.right for a in g if isinstance(a, str)]
    opened = identity(tuple(extents[n] for n in names))
    moved = transpose(opened, tuple(names.index(n) for n in order))
    shape = tuple(prod(extents[a] for a in g if isinstance(a, str)) for g in text.right)
    return None if moved is None else reshape(moved, shape)
