"""The implementations that take a call, and the best of them under a given memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fusion_engine.diagnostics import Diagnostic, GapFuseError
from fusion_engine.expr import evaluate
from fusion_engine.graph import Call, FusedGraph
from fusion_engine.kernels.descriptor import Kernel
from tiler.binding import bind
from tiler.bound import BoundCall
from tiler.choice import Choice, Infeasible
from tiler.search import search
from tiler.space import Space
from tiler.target import Target


@dataclass(frozen=True, slots=True)
class Picked:
    """The implementation and tiling chosen for a call; `compared` choices were weighed, `notes` say what binds and
    what lost."""

    bound: BoundCall
    choice: Choice
    compared: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NoFit:
    """No tiling of any implementation fits: the least bytes that would do, and the implementation and loops that
    need them."""

    call: str
    kernel: str
    implementation: str
    l1_bytes: int
    stage_bytes: int
    loops: tuple[tuple[str, int], ...]


class CallOptions:
    """One call's bound implementations, quickest first, and why the others declined."""

    def __init__(self, call: Call, bound: Sequence[BoundCall], declined: Mapping[str, str], target: Target) -> None:
        self.call, self.declined, self.target = call, declined, target
        self.bound = sorted(bound, key=lambda b: whole_cycles(b, target))
        self._spaces: dict[str, Space] = {}
        self._memo: dict[object, Picked | NoFit] = {}

    def share(self, twin: CallOptions) -> None:
        """Use the tables and results of a call that has the same tilings."""
        self._spaces, self._memo = twin._spaces, twin._memo

    def space(self, bound: BoundCall) -> Space:
        """The tables of one implementation, made when first asked for."""
        if bound.implementation not in self._spaces:
            self._spaces[bound.implementation] = Space(bound, self.target)
        return self._spaces[bound.implementation]

    def pick(self, l1: int, staged: frozenset[str] = frozenset(), stage: int | None = None) -> Picked | NoFit:
        """The best choice within `l1`, the buffers of `staged` read tile by tile from L3 through at most `stage` L2
        bytes."""
        levels = {b.implementation: _levels(b, staged) for b in self.bound}
        key = (l1, tuple(levels.values()), stage)
        if key not in self._memo:
            self._memo[key] = self._search(l1, levels, stage)
        found = self._memo[key]
        if isinstance(found, NoFit):
            return replace(found, call=self.call.name)
        return replace(found, bound=next(b for b in self.bound if b.implementation == found.bound.implementation))

    def _search(self, l1: int, levels: Mapping[str, tuple[str, ...]], stage: int | None) -> Picked | NoFit:
        best: tuple[BoundCall, Choice] | None = None
        compared, misses, lost, thinned = 0, [], [], False
        for b in self.bound:
            least = whole_cycles(b, self.target)
            if best is not None and least >= best[1].total_cycles:
                lost.append(f"{b.implementation}: {least} cycles of computing alone")
                continue
            outcome = search(
                self.space(b), l1, levels[b.implementation], stage, None if best is None else best[1].total_cycles
            )
            compared, thinned = compared + outcome.compared, thinned or outcome.thinned
            if isinstance(outcome.best, Infeasible):
                misses.append((b, outcome.best))
                lost.append(f"{b.implementation}: {_lack(outcome.best, l1, stage)}")
            elif outcome.best is not None:
                if best is not None:
                    lost.append(f"{best[0].implementation}: {best[1].total_cycles} cycles")
                best = b, outcome.best
            else:
                lost.append(f"{b.implementation}: slower")
        if best is None:
            return self._no_fit(misses, l1)
        return Picked(*best, compared, self._notes(best[1], lost, thinned))

    def _no_fit(self, misses: list[tuple[BoundCall, Infeasible]], l1: int) -> NoFit:
        """Of those that fit L1 the least stage, else the least L1."""
        fitting = [m for m in misses if m[1].l1_bytes <= l1]
        key = (lambda m: m[1].stage_bytes) if fitting else (lambda m: m[1].l1_bytes)
        b, miss = min(fitting or misses, key=key)
        return NoFit(self.call.name, self.call.kernel, b.implementation, miss.l1_bytes, miss.stage_bytes, miss.smallest)

    def _notes(self, choice: Choice, lost: list[str], thinned: bool) -> tuple[str, ...]:
        share = 100 * choice.compute_cycles // max(choice.total_cycles, 1)
        notes = [f"computing is {share} % of its cycles"]
        notes.extend(f"not {text}" for text in lost)
        notes.extend(f"not {name}: {reason}" for name, reason in self.declined.items())
        if thinned:
            notes.append("so many tilings that only every second or fewer sizes of the longest axes were tried")
        return tuple(notes)


def _levels(bound: BoundCall, staged: frozenset[str]) -> tuple[str, ...]:
    return tuple("l3" if o.buffer in staged or o.root in staged else "l2" for o in bound.operands)


def _lack(miss: Infeasible, l1: int, stage: int | None) -> str:
    if miss.l1_bytes > l1:
        return f"needs {miss.l1_bytes} bytes of L1"
    return f"needs {miss.stage_bytes} bytes of L2 for its tiles, {stage} are free"


def whole_cycles(bound: BoundCall, target: Target) -> int:
    """Cycles of computing the call as one tile: what no tiling gets below."""
    extents: dict[str, int] = dict(bound.extents)
    for o in bound.operands:
        for dim, extent in zip(o.dims, o.extent, strict=True):
            if "%" not in dim:
                factor = int(dim.split("/")[1]) if "/" in dim else 1
                extents.setdefault(f"{o.name}_{dim.split('/')[0]}", extent * factor)
    return int(-(-evaluate(bound.cycles, {**extents, "cores": target.cores}) // 1)) + target.fork


def call_options(graph: FusedGraph, kernels: Mapping[str, Kernel], target: Target) -> tuple[CallOptions, ...]:
    """Every call's options. Raises GapFuseError naming each call that no implementation takes, with every reason."""
    shared: dict[object, CallOptions] = {}
    problems: list[Diagnostic] = []
    result = []
    for call in graph.calls:
        bound, declined = _bound(graph, kernels, call, target)
        if not bound:
            problems.append(_untaken(call, declined))
            continue
        options = CallOptions(call, bound, declined, target)
        twin = shared.setdefault(_shape_key(options.bound), options)
        options.share(twin)
        result.append(options)
    if problems:
        raise GapFuseError(problems)
    return tuple(result)


def _bound(
    graph: FusedGraph, kernels: Mapping[str, Kernel], call: Call, target: Target
) -> tuple[list[BoundCall], dict[str, str]]:
    kernel = kernels.get(call.kernel)
    if kernel is None:
        raise GapFuseError(f"call {call.name}: there is no kernel `{call.kernel}`")
    bound, declined = [], {}
    for implementation in kernel.implementations:
        result = bind(kernel, implementation, graph, call, target.isa)
        if isinstance(result, str):
            declined[implementation.name] = result
        else:
            bound.append(result)
    return bound, declined


def _untaken(call: Call, declined: Mapping[str, str]) -> Diagnostic:
    nodes = ", ".join(call.provenance.nodes)
    return Diagnostic(
        f"no implementation of kernel `{call.kernel}` takes the call {call.name}"
        + (f" (nodes {nodes})" if nodes else ""),
        notes=tuple(f"{name}: {reason}" for name, reason in declined.items()),
    )


def _shape_key(bound: Sequence[BoundCall]) -> object:
    """Equal for calls that have the same tilings: names of buffers aside."""
    return tuple(
        (
            b.kernel, b.implementation, b.axes, b.cycles, b.scratch, b.accumulate,
            tuple(replace(o, buffer="", root="", far_offset=0) for o in b.operands),
        )
        for b in bound
    )  # fmt: skip
