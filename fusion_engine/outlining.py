"""Module scopes as calls: what metadata attributes to one module instance becomes a function of the model.

A rule with `scope:` and a call for its pattern names such a region as it would name a function. Only the regions that
some rule asks for are outlined; opened again (see `view/load.py`), their nodes are the file's, under the file's names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from math import inf, prod

import onnx
import onnx.numpy_helper

from fusion_engine.language.types import Named, OpPattern, RuleSet
from fusion_engine.model import Model
from fusion_engine.view import OUTLINED, Scope, scopes_of
from fusion_engine.view.scopes import CLASSES, NAMES
from fusion_engine.view.subgraphs import reads

SMALL = 16  # elements
REAL = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE)
SCALARS = "scalars"  # the attribute of a region's call: its positive real scalars in ascending order (an epsilon)
SCOPE, TARGET, PREFIX = "scope", "custom target", "node-name prefix"


@dataclass(frozen=True, slots=True)
class Region:
    """What evidence attributes to one instance: `levels` from the outermost, by metadata or by node names."""

    kind: str
    levels: tuple[Scope, ...]

    @property
    def evidence(self) -> str:
        last = self.levels[-1]
        return f"{self.kind} {last.cls}" + (f" {last.name}" if last.name else "")


@dataclass(frozen=True, slots=True, eq=False)
class Outlined:
    """`regions` by the overload of the function that each became; `notes` on those that could not become one."""

    model: Model
    regions: Mapping[str, Region]
    notes: tuple[str, ...] = ()


def outline(model: Model, rules: RuleSet) -> Outlined:
    """The model with every region that a rule's `scope` names as a call of a function, inner regions first."""
    globs = scope_globs(rules)
    members = _members(model.proto.graph.node, globs) if globs else {}
    if not members:
        return Outlined(model, {})
    graph = _Graph(model.proto)
    already = sum(f.overload.startswith(OUTLINED) for f in model.proto.functions)
    regions: dict[str, Region] = {}
    notes: list[str] = []
    for region in sorted(members, key=lambda r: (-len(r.levels), [(s.cls, s.name) for s in r.levels])):
        for part in graph.parts(members[region]):
            overload = f"{OUTLINED}{len(regions) + already}"
            call = graph.outline(region, part, overload)
            if isinstance(call, str):
                notes.append(f"{region.evidence} is not taken as one region: {call}")
                continue
            regions[overload] = region
            for depth in range(1, len(region.levels)):
                outer = Region(PREFIX if region.kind == PREFIX else SCOPE, region.levels[:depth])
                if outer in members:
                    members[outer].append(call)
    return Outlined(replace(model, proto=graph.model()), regions, tuple(notes))


def scope_globs(rules: RuleSet) -> tuple[str, ...]:
    """What `scope:` says on variants whose pattern is a call."""
    variants = (v for rule in rules.rules for v in rule.variants)
    roots = ((v.scope, v.pattern.pattern if isinstance(v.pattern, Named) else v.pattern) for v in variants if v.scope)
    return tuple(sorted({scope for scope, p in roots if scope and isinstance(p, OpPattern) and p.callee}))


# ---- which regions ----


def _members(nodes: Sequence[onnx.NodeProto], globs: Sequence[str]) -> dict[Region, list[int]]:
    """The nodes, by position, of each region that is asked for."""
    wanted = lru_cache(maxsize=None)(lambda cls: any(fnmatchcase(cls, g) for g in globs))
    found: dict[Region, list[int]] = {}
    for i, node in enumerate(nodes):
        for region in _around(node):
            if wanted(region.levels[-1].cls):
                found.setdefault(region, []).append(i)
    return found


def _around(node: onnx.NodeProto) -> Iterator[Region]:
    """The instances around a node: by torch's metadata, whose last level is what was traced; else by its name."""
    levels = scopes_of((p.key, p.value) for p in node.metadata_props)
    for depth, level in enumerate(levels):
        traced = depth == len(levels) - 1 and _is_target(level)
        yield Region(TARGET if traced else SCOPE, levels[: depth + 1])
    if not levels:
        path = node.name.split("/")[:-1]
        prefixes = tuple(Scope("/".join(path[: i + 1]), "") for i in range(len(path)) if path[i])
        yield from (Region(PREFIX, prefixes[: i + 1]) for i in range(len(prefixes)))


def _is_target(level: Scope) -> bool:
    """`mylib.op.default`: torch's names of operators (namespace, name in lower case, overload), not of classes."""
    parts = level.cls.split(".")
    return len(parts) == 3 and parts[-2] == parts[-2].lower()


# ---- a region into a function ----


@dataclass(slots=True, eq=False)
class _Node:
    """A node of the graph; `first` and `last`: where what it stands for lies in topological order."""

    proto: onnx.NodeProto
    reads: tuple[str, ...]
    first: int
    last: int
    alive: bool = True


class _Graph:
    """The graph while regions are replaced by calls."""

    def __init__(self, source: onnx.ModelProto) -> None:
        self.source = source
        self.functions: list[onnx.FunctionProto] = []
        self.domains: dict[str, None] = {}
        self.nodes: list[_Node] = []
        self.users: dict[str, list[int]] = {}
        self.maker: dict[str, int] = {}
        graph = source.graph
        self.outputs = {o.name for o in graph.output}
        inputs = {i.name for i in graph.input}
        self.constants = {t.name: t for t in graph.initializer if t.name not in inputs}
        for i, proto in enumerate(graph.node):
            self.add(proto, i, i)

    def add(self, proto: onnx.NodeProto, first: int, last: int) -> int:
        index = len(self.nodes)
        self.nodes.append(_Node(proto, reads(proto), first, last))
        for value in self.nodes[index].reads:
            self.users.setdefault(value, []).append(index)
        self.maker.update((o, index) for o in proto.output if o)
        return index

    def parts(self, members: Sequence[int]) -> list[list[int]]:
        """The members, with constants that only they read, in pieces that hang together: one per call of the module."""
        inside = {i for i in members if self.nodes[i].alive}
        group = {i: i for i in inside}
        for i in sorted(inside):
            for value in self.nodes[i].reads:
                other = self.maker.get(value)
                if other in inside and self.nodes[other].proto.op_type != "Constant":
                    _join(group, i, other)
        pieces: dict[int, set[int]] = {}
        for i in sorted(inside):
            if self.nodes[i].proto.op_type != "Constant":
                pieces.setdefault(_find(group, i), set()).add(i)
        return [sorted(p | self._constants(p)) for p in pieces.values()]

    def _constants(self, piece: set[int]) -> set[int]:
        """Constant nodes that nothing else reads."""
        read = {self.maker[v] for i in piece for v in self.nodes[i].reads if v in self.maker}
        return {i for i in read if self.nodes[i].proto.op_type == "Constant" and self._only(i, piece)}

    def _only(self, index: int, piece: set[int]) -> bool:
        values = self.nodes[index].proto.output
        return all(u in piece or not self.nodes[u].alive for v in values for u in self.users.get(v, ())) and not (
            self.outputs.intersection(values)
        )

    def outline(self, region: Region, part: Sequence[int], overload: str) -> int | str:
        """Replace the nodes by one call, and say which; or the reason why they cannot be one."""
        inside = set(part)
        protos = [self.nodes[i].proto for i in part]
        made = {o for n in protos for o in n.output if o}
        results = [o for n in protos for o in n.output if o and (o in self.outputs or self._read_outside(o, inside))]
        operands = list(dict.fromkeys(v for i in part for v in self.nodes[i].reads if v not in made))
        last = max(self.nodes[i].last for i in part)
        if not results:
            return "nothing reads what it makes"
        if self._comes_back(results, set(operands), inside, last):
            return "what it makes flows back into it through other nodes"
        settings = [self.constants[v] for v in operands if v in self.constants and _is_setting(self.constants[v])]
        protos = [*(onnx.helper.make_node("Constant", [], [t.name], value=t) for t in settings), *protos]
        operands = [v for v in operands if v not in {t.name for t in settings}]
        operands.sort(key=lambda v: v in self.constants)  # stable: values first, each in order of first use
        call = self._call(region, operands, results, protos, overload)
        for i in part:
            self.nodes[i].alive = False
        return self.add(call, min(self.nodes[i].first for i in part), last)

    def _read_outside(self, value: str, inside: set[int]) -> bool:
        return any(u not in inside and self.nodes[u].alive for u in self.users.get(value, ()))

    def _comes_back(self, results: Sequence[str], operands: set[str], inside: set[int], last: int) -> bool:
        seen: set[int] = set(inside)
        todo = list(results)
        while todo:
            for user in self.users.get(todo.pop(), ()):
                node = self.nodes[user]
                if user in seen or not node.alive or node.first > last:
                    continue
                if operands.intersection(node.proto.output):
                    return True
                seen.add(user)
                todo.extend(o for o in node.proto.output if o)
        return False

    def _call(
        self, region: Region, operands: list[str], results: list[str], body: list[onnx.NodeProto], overload: str
    ) -> onnx.NodeProto:
        domain, _, name = region.levels[-1].cls.strip("/").replace("/", ".").rpartition(".")
        domain = domain or OUTLINED.rstrip(".")
        imports = [*self.source.opset_import, *(onnx.helper.make_opsetid(d, 1) for d in self.domains)]
        function = onnx.helper.make_function(domain, name, operands, results, body, imports)
        function.overload = overload
        scalars = sorted({v for n in body for v in _scalars(n)})
        if scalars:
            function.attribute.append(SCALARS)
        self.functions.append(function)
        if all(o.domain != domain for o in self.source.opset_import):
            self.domains[domain] = None
        call = onnx.helper.make_node(name, operands, results, name=results[0], domain=domain)
        call.overload = overload
        if scalars:
            call.attribute.append(onnx.helper.make_attribute(SCALARS, scalars))
        levels = {CLASSES: [s.cls for s in region.levels], NAMES: [s.name for s in region.levels]}
        call.metadata_props.extend(onnx.StringStringEntryProto(key=k, value=repr(v)) for k, v in levels.items())
        return call

    def model(self) -> onnx.ModelProto:
        proto = onnx.ModelProto()
        proto.CopyFrom(self.source)
        proto.ir_version = max(proto.ir_version, 10)  # overloads
        del proto.graph.node[:]
        alive = [i for i, n in enumerate(self.nodes) if n.alive]
        needs = {i: [self.maker[v] for v in self.nodes[i].reads if v in self.maker] for i in alive}
        try:
            order = list(TopologicalSorter(needs).static_order())
        except CycleError:  # an invalid model, which the view rejects with the node's name
            order = alive
        proto.graph.node.extend(self.nodes[i].proto for i in order)
        proto.functions.extend(self.functions)
        proto.opset_import.extend(onnx.helper.make_opsetid(d, 1) for d in self.domains)
        return proto


def _is_setting(constant: onnx.TensorProto) -> bool:
    """A scalar, or a short list of whole numbers (axes, a shape): part of what is computed, not a weight."""
    return not constant.dims or (constant.data_type == onnx.TensorProto.INT64 and prod(constant.dims) <= SMALL)


def _scalars(node: onnx.NodeProto) -> Iterator[float]:
    """The positive reals in a node: float attributes, one-element constants, those of inner regions."""
    for a in node.attribute:
        if a.type == onnx.AttributeProto.FLOAT:
            values = [a.f]
        elif a.type == onnx.AttributeProto.FLOATS and (a.name == SCALARS or len(a.floats) == 1):
            values = list(a.floats)
        elif a.type == onnx.AttributeProto.TENSOR and a.t.data_type in REAL and prod(a.t.dims) == 1:
            values = [float(onnx.numpy_helper.to_array(a.t).reshape(()))]
        else:
            values = []
        yield from (v for v in values if 0 < v < inf)


def _join(group: dict[int, int], a: int, b: int) -> None:
    a, b = _find(group, a), _find(group, b)
    group[max(a, b)] = min(a, b)


def _find(group: dict[int, int], a: int) -> int:
    while group[a] != a:
        group[a] = group[group[a]]
        a = group[a]
    return a
