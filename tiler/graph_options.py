"""The options of every call of a graph: kernels bound, constants of several readers told apart, tables shared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fusion_engine.diagnostics import Diagnostic, GapFuseError
from fusion_engine.graph import Call, FusedGraph
from fusion_engine.kernels.descriptor import Kernel
from tiler.binding import bind
from tiler.bound import BoundCall
from tiler.liveness import activation_lives, most_live
from tiler.objective import CYCLES, Objective
from tiler.options import CallOptions
from tiler.placement import ALIGNMENT
from tiler.target import Target


def call_options(
    graph: FusedGraph,
    kernels: Mapping[str, Kernel],
    target: Target,
    objective: Objective = CYCLES,
    together: bool = True,
    known: dict[object, CallOptions] | None = None,
) -> tuple[CallOptions, ...]:
    """Every call's options; with `together` constants may come with one command a tile. `known` ones, of calls of this
    graph or another, have their tables and what was searched for used again, and are added to. Raises GapFuseError
    naming each call that no implementation takes, with every reason."""
    known = {} if known is None else known
    problems: list[Diagnostic] = []
    result = []
    every = [_bound(graph, kernels, call, target) for call in graph.calls]
    readers = _readers(graph, [bound for bound, _ in every], target)
    for call, (bound, declined) in zip(graph.calls, every, strict=True):
        bound = [replace(b, own=_own(b, readers) if together else ()) for b in bound]
        if not bound:
            problems.append(_untaken(call, declined))
            continue
        options = CallOptions(call, bound, declined, target, objective)
        _use_again(options, known)
        result.append(options)
    if problems:
        raise GapFuseError(problems)
    return tuple(result)


def _use_again(options: CallOptions, known: dict[object, CallOptions]) -> None:
    """Tables of any call of the same shape under the same hops; results where L1 and the objective are the same."""
    target = options.target
    shape = _shape_key(options.bound), target.cores, target.fork, tuple(target.hops.values())
    options.share_tables(known.setdefault(shape, options))
    options.share(known.setdefault((shape, target.budget("l1"), options.objective), options))


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


def _readers(graph: FusedGraph, every: Sequence[Sequence[BoundCall]], target: Target) -> Mapping[str, int]:
    """How many calls read each packed constant; one each where L2 has room for a copy per reader, all else in it."""
    roots = [frozenset(o.root for b in bound for o in b.operands if o.role == "const") for bound in every]
    copies = sum(max((_packed_bytes(b) for b in bound), default=0) for bound in every)
    if copies + most_live(activation_lives(graph), len(graph.calls)) <= target.budget("l2"):
        return dict.fromkeys(frozenset().union(*roots), 1)
    return Counter(root for found in roots for root in found)


def _packed_bytes(bound: BoundCall) -> int:
    return sum(-(-p.bytes // ALIGNMENT) * ALIGNMENT for p in bound.packings)


def _own(bound: BoundCall, readers: Mapping[str, int]) -> tuple[int, ...]:
    """The call's operands that are constants of its own."""
    times = Counter(o.root for o in bound.operands)
    constants = [(i, o) for i, o in enumerate(bound.operands) if o.role == "const"]
    return tuple(i for i, o in constants if readers[o.root] == times[o.root] == 1)


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
            b.kernel, b.implementation, b.axes, b.cycles, b.scratch, b.accumulate, b.own,
            tuple(replace(o, buffer="", root="", far_offset=0) for o in b.operands),
        )
        for b in bound
    )  # fmt: skip
