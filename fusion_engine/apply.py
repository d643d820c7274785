"""apply(): a plan becomes a FusedGraph of buffers and kernel calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from fusion_engine.aliases import look_through, reachable, renamed, view_alias
from fusion_engine.covering.calls import Solved, call_sizes
from fusion_engine.covering.types import Candidate, Constant, EmittedCall, Operand, Plan
from fusion_engine.diagnostics import GapFuseError
from fusion_engine.graph import Alias, Buffer, Call, FusedGraph, Provenance, ViewError, resolve_storage
from fusion_engine.joins import Join, fewer_parts, turned
from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.kernels.sizes import Sizes
from fusion_engine.view.types import View

COPY = "copy"


def apply(view: View, plan: Plan, kernels: Mapping[str, Kernel]) -> FusedGraph:
    """The plan as buffers and calls in execution order.

    View kernels become aliases, constants are kept once, graph inputs and outputs have ONNX's names; a `copy` stands
    where an output would not own its bytes, or where a part of a concatenation cannot be made in place. Raises
    GapFuseError where a call does not fit its kernel.
    """
    build = _Builder(view, kernels)
    for name in view.inputs:
        build.value(name)
    for candidate in plan.chosen:
        build.candidate(candidate)
    build.join_parts()
    for name in view.outputs:
        build.output(name)
    return build.graph()


@dataclass(slots=True)
class _Builder:
    view: View
    kernels: Mapping[str, Kernel]
    buffers: dict[str, Buffer] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    joins: list[Join] = field(default_factory=list)
    constants: dict[tuple[str, tuple[int, ...], bytes], str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    solved: Solved = field(default_factory=dict)

    # ---- buffers ----

    def fresh(self, name: str) -> str:
        """`name`, or with the least number that makes it new among the buffers and the view's values."""
        number, unused = 1, name
        while unused in self.buffers or unused in self.view.values:
            number += 1
            unused = f"{name}_{number}"
        return unused

    def value(self, name: str) -> str:
        """The buffer of a view value that is a graph input or a constant, or was made before."""
        if name in self.buffers:
            return name
        known = self.view.values[name]
        if known.const is not None and name not in self.view.inputs:
            return self.constant(np.asarray(known.const), name, known.quantisation)
        self.make(name, str(known.dtype), known.static_shape)
        return name

    def make(self, name: str, dtype: str, shape: tuple[int, ...] | None, provenance: Provenance | None = None) -> None:
        if shape is None:
            raise GapFuseError(f"the shape of {name} is not known: give its dimensions")
        known = self.view.values.get(name)
        quantisation = known.quantisation if known else None
        self.buffers[name] = Buffer(name, dtype, shape, quantisation, provenance=provenance)

    def constant(self, data: np.ndarray, name: str, quantisation: object = None) -> str:
        """The buffer that holds `data`; equal constants share one."""
        known = self.view.values.get(name)
        key = (data.dtype.name, tuple(data.shape), data.tobytes())
        if key not in self.constants:
            unused = name if name not in self.buffers else self.fresh(name)
            q = known.quantisation if known is not None and quantisation is not None else None
            self.buffers[unused] = Buffer(
                unused, data.dtype.name, tuple(data.shape), q, data=np.ascontiguousarray(data).reshape(data.shape)
            )
            self.constants[key] = unused
        return self.constants[key]

    # ---- candidates ----

    def candidate(self, c: Candidate) -> None:
        nodes = [self.view.nodes[n] for n in sorted(c.nodes)]
        origins = tuple(dict.fromkeys(o for n in nodes for o in n.origins))
        provenance = Provenance(c.rule, c.variant, c.evidence, origins)
        local = {t.name: self.fresh(f"{c.produces[0]}.{t.name.rpartition('/')[2]}") for t in c.temporaries}
        for call in c.calls:
            solved = call_sizes(self.view, self.kernels, c, call, self.solved)
            if isinstance(solved, str):
                raise GapFuseError(f"rule {c.rule} ({c.variant}) calls {call.kernel} for {c.produces[0]}: {solved}")
            self.call(self.kernels[call.kernel], call, solved[0], local, provenance)

    def call(
        self, kernel: Kernel, call: EmittedCall, sizes: Sizes, local: Mapping[str, str], provenance: Provenance
    ) -> None:
        results = [(name, local.get(value, value)) for name, value in call.results]
        if kernel.view is not None:
            self.see(kernel, call, sizes, local, provenance)
            return
        name = self.call_name(kernel.name)
        operands = [(o, self.operand(what, local, f"{name}.{o}")) for o, what in call.operands]
        for result, buffer in results:
            self.make(buffer, sizes.dtypes[result], sizes.shapes[result], provenance)
        attrs = tuple(sizes.attrs.items())
        self.calls.append(Call(name, kernel.name, tuple(operands), tuple(results), attrs, provenance))

    def call_name(self, kernel: str) -> str:
        number = self.counts[kernel]
        self.counts[kernel] += 1
        return f"{kernel}_{number}"

    def operand(self, what: Operand, local: Mapping[str, str], name: str) -> str:
        if isinstance(what, Constant):
            return self.constant(what.data, name)
        return local[what.name] if what.name in local else self.value(what.name)

    # ---- views ----

    def see(
        self, kernel: Kernel, call: EmittedCall, sizes: Sizes, local: Mapping[str, str], provenance: Provenance
    ) -> None:
        """The result of a view kernel: an alias, or of a constant another constant."""
        (result, value), *_ = call.results
        name = local.get(value, value)
        parts = tuple(self.operand(what, local, f"{name}.{o}") for o, what in call.operands)
        self.make(name, sizes.dtypes[result], sizes.shapes[result], provenance)
        if kernel.view == "concat":
            axis = int(sizes.attrs["axis"]) % max(1, len(sizes.shapes[result]))  # type: ignore[arg-type]
            self.joins.append(Join(axis, parts, name, len(self.calls), provenance))
            return
        source = self.buffers[parts[0]]
        alias = view_alias(kernel, source.name, dict(sizes.attrs))
        made = replace(self.buffers[name], alias=alias)
        if source.data is not None:
            made = replace(made, alias=None, data=np.ascontiguousarray(look_through(alias, source.data, made.shape)))
        self.buffers[name] = made

    def join_parts(self) -> None:
        """Let each part of a concatenation be made in its place where it can; else copy it there."""
        self.joins = fewer_parts(self.joins, self.buffers, self.may_live_inside)
        places = [(join, number, alias) for join in self.joins for number, alias in enumerate(self.places(join))]
        left = [(join, n, alias) for join, n, alias in places if not self.put(join.parts[n], alias)]
        copied = [(join, n, alias) for join, n, alias in left if not self.turn(join.parts[n], alias)]
        inserted = [(join.position, self.copy_part(join, n, alias)) for join, n, alias in copied]
        for position, call in reversed(inserted):
            self.calls.insert(position, call)

    def places(self, join: Join) -> Iterator[Alias]:
        """Where each part lies in the whole."""
        offset = 0
        for part in join.parts:
            shape = self.buffers[part].shape
            yield Alias(join.result, start=tuple(offset if a == join.axis else 0 for a in range(len(shape))))
            offset += shape[join.axis]

    def copy_part(self, join: Join, number: int, place: Alias) -> Call:
        source = self.buffers[join.parts[number]]
        target = self.fresh(f"{join.result}.part{number}")
        self.buffers[target] = replace(source, name=target, data=None, alias=place, provenance=join.provenance)
        return self.copy_call(source.name, target, join.provenance)

    def put(self, part: str, place: Alias) -> bool:
        """Let a part live inside the whole, if it may."""
        if not self.may_live_inside(part):
            return False
        self.buffers[part] = replace(self.buffers[part], alias=place)
        return True

    def turn(self, name: str, place: Alias | None) -> bool:
        """Let a view own its bytes, at a place inside another buffer if one is given, and what it is a view of see
        them; where strides can say it."""
        uses = self.uses()
        found = turned(self.buffers, name, lambda b: uses[b], self.may_live_inside)
        if found is None or uses[name] != 1:
            return False
        changed = {**self.buffers, **found, name: replace(found[name], alias=place)}
        try:
            for b in (*found, *self.placed()):
                resolve_storage(changed, b)
        except ViewError:
            return False
        self.buffers.update({n: changed[n] for n in found})
        return True

    def placed(self) -> set[str]:
        """Parts that live inside their whole: they write it."""
        owners = [(p, self.buffers[p].alias, j.result) for j in self.joins for p in j.parts]
        return {part for part, alias, whole in owners if alias is not None and alias.of == whole}

    def uses(self) -> Counter[str]:
        """How many calls, views, concatenations and callers read each buffer."""
        read = [b for c in self.calls for _, b in c.operands]
        parts = self.placed()
        seen = [b.alias.of for b in self.buffers.values() if b.alias is not None and b.name not in parts]
        return Counter([*read, *seen, *(p for j in self.joins for p in j.parts), *self.view.outputs])

    def may_live_inside(self, part: str) -> bool:
        """A part that a call (or another concatenation) makes, and that nobody outside expects to own its bytes."""
        buffer = self.buffers[part]
        outside = part in self.view.inputs or part in self.view.outputs
        return not outside and buffer.data is None and buffer.alias is None

    def copy_call(self, source: str, target: str, provenance: Provenance) -> Call:
        if COPY not in self.kernels:
            raise GapFuseError(f"{target} needs the kernel `{COPY}`, which is not there")
        return Call(self.call_name(COPY), COPY, (("x", source),), (("y", target),), (), provenance)

    # ---- the end ----

    def output(self, name: str) -> None:
        """Make sure that the graph output `name` owns row-major bytes."""
        known = self.view.values[name]
        if name not in self.buffers and known.const is None:
            raise GapFuseError(f"nothing makes the graph output {name}")
        if name in self.buffers and self.buffers[name].alias is None and self.buffers[name].data is None:
            return
        if name in self.buffers and self.turn(name, None):
            return
        provenance = Provenance("output", "copy", "a graph output owns its bytes", ())
        if name not in self.buffers:
            source = self.constant(np.asarray(known.const), f"{name}.value")
        else:
            source = self.rename(name, f"{name}.view")
        seen = self.buffers[source]
        self.buffers[name] = replace(seen, name=name, alias=None, data=None, provenance=provenance)
        self.calls.append(self.copy_call(source, name, seen.provenance or provenance))

    def rename(self, old: str, wish: str) -> str:
        """Move a buffer's name aside, everywhere."""
        new = self.fresh(wish)
        self.buffers = {(new if n == old else n): renamed(b, old, new) for n, b in self.buffers.items()}
        self.calls = [
            replace(
                c,
                operands=tuple((k, new if v == old else v) for k, v in c.operands),
                results=tuple((k, new if v == old else v) for k, v in c.results),
            )
            for c in self.calls
        ]
        self.constants = {k: (new if v == old else v) for k, v in self.constants.items()}
        return new

    def graph(self) -> FusedGraph:
        kept = reachable(self.buffers, self.calls, (*self.view.inputs, *self.view.outputs))
        buffers = tuple(b for n, b in self.buffers.items() if n in kept)
        return FusedGraph(self.view.name, buffers, tuple(self.calls), self.view.inputs, self.view.outputs)
