"""outline(): module instances of an exported model as model-local functions that say where they came from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from math import prod

import onnx
from onnx import helper

from fusion_engine.diagnostics import Diagnostic
from fusion_engine.view.subgraphs import reads
from gap_fuse.export.functions import SMALL, Attribute, Region, body_of, call_of, function_of
from gap_fuse.export.keep import Kept, Rule, rules_of
from gap_fuse.export.regions import Wiring, closed, free_in, free_values, in_order, pieces, results
from gap_fuse.export.scopes import Instance, instances, relabel
from gap_fuse.export.sharing import own_shapes, symbols, unshare

FUNCTION_IR = 10
"""The first IR version with metadata on nodes."""

Arguments = Mapping[str, Mapping[str, Attribute]]
"""Constructor arguments by instance path."""


@dataclass(frozen=True, slots=True)
class Outlined:
    """The model, the calls made (instance path, DOMAIN::NAME), and what was not outlined with the reason."""

    model: onnx.ModelProto
    calls: tuple[tuple[str, str], ...] = ()
    declined: tuple[Diagnostic, ...] = ()


def outline(model: onnx.ModelProto, keep: Sequence[Kept], arguments: Arguments | None = None) -> Outlined:
    """Instances of the kept classes, found by the exporter's metadata or by node names, become function calls.

    keep: classes, globs over class paths, or `DOMAIN::NAME=GLOB` over instance paths. Domain = Python module path, name
    = class name; constructor arguments are typed attributes, weights inputs; equal bodies are shared, others of the
    same name get a numeric suffix (`Conv2d.1`, as torch's own exporter writes: onnxruntime 1.32 mistakes overloads
    inside functions). An instance whose nodes do not close (something foreign lies between) stays as it is and is said
    to. Raises GapFuseError for a malformed `keep`.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    draft = _Draft(copy, rules_of(keep), arguments or {})
    for instance in draft.innermost_first():
        draft.outline(instance)
    return Outlined(draft.assembled(), tuple(draft.calls), tuple(draft.declined))


class _Draft:
    """The model under way: its wiring, and which nodes each kept instance holds."""

    def __init__(self, model: onnx.ModelProto, rules: Sequence[Rule], arguments: Arguments) -> None:
        self.model, self.arguments = model, arguments
        unshare(model.graph, lambda node: frozenset(i for i in instances(node) if any(r.takes(i) for r in rules)))
        self.wiring = Wiring(model.graph)
        self.symbols = symbols(model.graph)
        self.opsets = {o.domain: o.version for o in model.opset_import}
        self.constants = {t.name: t for t in model.graph.initializer}
        self.functions = {(f.domain, f.name): f for f in model.functions}
        self.named = Counter(n.name for n in model.graph.node)
        self.calls: list[tuple[str, str]] = []
        self.declined: list[Diagnostic] = []
        self.members: dict[Instance, set[int]] = {}
        self.rules: dict[Instance, Rule] = {}
        self.depth: dict[Instance, int] = {}
        for k, node in enumerate(model.graph.node):
            for depth, instance in enumerate(instances(node)):
                rule = self.rules.get(instance) or next((r for r in rules if r.takes(instance)), None)
                if rule:
                    self.rules[instance], self.depth[instance] = rule, depth
                    self.members.setdefault(instance, set()).add(k)

    def innermost_first(self) -> list[Instance]:
        """Fewest nodes first; of equals, the deeper."""
        return sorted(self.members, key=lambda i: (len(self.members[i]), -self.depth[i], min(self.members[i])))

    def outline(self, instance: Instance) -> None:
        """Turn the instance's region into a call, or each of its connected parts where it runs more than once."""
        whole = closed(self.wiring, frozenset(self.members[instance]))
        if not self._foreign(instance, whole):
            return self._call(instance, whole)
        for part in pieces(self.wiring, frozenset(self.members[instance])):
            region = closed(self.wiring, part)
            if foreign := self._foreign(instance, region):
                self._decline(instance, foreign)
            else:
                self._call(instance, region)
        return None

    def _foreign(self, instance: Instance, region: frozenset[int]) -> list[int]:
        """Nodes that the region needs between its own and that belong to someone else."""
        extra = region - self.members[instance]
        straddling = [
            m for i, m in self.members.items() if i != instance and m & region and not self._nested(m, region)
        ]
        return sorted(k for k in extra if instances(self.wiring[k])) or sorted(
            k for m in straddling for k in m & region
        )

    def _nested(self, members: set[int], region: frozenset[int]) -> bool:
        return members >= region or members <= region

    def _decline(self, instance: Instance, foreign: Sequence[int]) -> None:
        node = self.wiring[foreign[0]]
        where = " of ".join(i.path or "the model" for i in reversed(instances(node)[-1:]))
        self.declined.append(
            Diagnostic(
                f"`{instance.path}` ({instance.class_path or 'by name'}) is not outlined: "
                f"{node.op_type} `{node.name or node.output[0]}` of `{where}` lies between its nodes",
                help="keep the module around both",
            )
        )

    def _call(self, instance: Instance, nodes: frozenset[int]) -> None:
        region = self._region(instance, nodes)
        attributes = dict(self.arguments.get(instance.path, {}))
        domain, name = self.rules[instance].function(instance)
        self.opsets.setdefault(domain, 1)
        function = self._shared(function_of(region, domain, name, self.opsets, attributes))
        call = call_of(function, region, attributes)
        relabel(call, self.wiring[max(self.members[instance] & nodes)], instance)
        self._name(call)
        self.calls.append((instance.path, f"{domain}::{name}"))
        at = self.wiring.replace(nodes, call)
        for members in self.members.values():
            if members & nodes:
                members -= nodes
                members.add(at)

    def _region(self, instance: Instance, nodes: frozenset[int]) -> Region:
        outputs = results(self.wiring, nodes)
        inside = [self.wiring[k] for k in sorted(nodes)]
        data = tuple(v for v in free_values(self.wiring, nodes) if v not in self.constants)
        body = in_order(own_shapes(inside, data, self.symbols), outputs)
        free = free_in(body)
        embedded = [v for v in free if v in self.constants and self._embeds(instance, self.constants[v])]
        weights = [v for v in free if v in self.constants and v not in embedded]
        data = tuple(v for v in free if v not in self.constants)
        return Region(tuple(body), (*data, *weights), outputs, tuple(self.constants[v] for v in embedded))

    def _embeds(self, instance: Instance, tensor: onnx.TensorProto) -> bool:
        """Shapes, axes and scalars that are no parameter of the module."""
        own = tensor.name.startswith(f"{instance.path}.") if instance.path else "." in tensor.name
        most = SMALL if tensor.data_type in (onnx.TensorProto.INT64, onnx.TensorProto.BOOL) else 1
        return not own and prod(tensor.dims) <= most and not tensor.external_data

    def _shared(self, function: onnx.FunctionProto) -> onnx.FunctionProto:
        """The same function if it is there already; another body of its name gets the next suffix."""
        plain, body = function.name, body_of(function)
        for k in count():
            function.name = f"{plain}.{k}" if k else plain
            there: onnx.FunctionProto = self.functions.setdefault((function.domain, function.name), function)
            if there is function or body_of(there) == body:
                return there
        raise AssertionError("count() never ends")

    def _name(self, call: onnx.NodeProto) -> None:
        """A node name of its own: an instance that runs twice has two calls."""
        self.named[call.name] += 1
        if self.named[call.name] > 1:
            call.name = f"{call.name}@{self.named[call.name] - 1}"

    def assembled(self) -> onnx.ModelProto:
        """The model of the calls made."""
        model = self.model
        nodes = in_order(n for n in self.wiring.nodes if n is not None)
        del model.graph.node[:]
        model.graph.node.extend(nodes)
        del model.functions[:]
        model.functions.extend(self.functions.values())
        known = {o.domain for o in model.opset_import}
        model.opset_import.extend(helper.make_opsetid(d, v) for d, v in self.opsets.items() if d not in known)
        model.ir_version = max(model.ir_version, FUNCTION_IR) if self.calls else model.ir_version
        _drop_unused(model.graph)
        return model


def _drop_unused(graph: onnx.GraphProto) -> None:
    """Initializers and value infos of values that went into functions."""
    made = {o for n in graph.node for o in n.output}
    used = {v for n in graph.node for v in reads(n)} | {o.name for o in graph.output}
    _keep(graph.initializer, used)
    _keep(graph.value_info, used | made)


def _keep(entries: object, names: Iterable[str]) -> None:
    kept = [e for e in entries if e.name in names]  # type: ignore[attr-defined]
    del entries[:]  # type: ignore[attr-defined]
    entries.extend(kept)  # type: ignore[attr-defined]
