"""Calls to try a kernel on: those that rules make of drawn models, or, where no rule knows it, from its signature."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from fusion_engine.diagnostics import GapFuseError
from fusion_engine.expr import Name
from fusion_engine.graph import CallAttr, FusedGraph
from fusion_engine.kernels import solve_sizes
from fusion_engine.kernels.descriptor import AttrType, Kernel, OperandType
from fusion_engine.language.types import EmitEntry, Rule, RuleSet, Variant
from gap_fuse.proof.applying import Bench, look, trace
from gap_fuse.proof.captures import draw_values
from gap_fuse.proof.cases import draw_case
from gap_fuse.proof.choices import Choices, Coverage
from gap_fuse.proof.draft import NotDrawable

TRIES = 60  # draws from a signature for one call that fits


@dataclass(frozen=True, slots=True, eq=False)
class KernelCall:
    """Operands and attributes of one call, the results' shapes and types where they are known, and who made it."""

    operands: Mapping[str, np.ndarray]
    attrs: Mapping[str, CallAttr]
    results: Mapping[str, tuple[int, ...]]
    dtypes: Mapping[str, str]
    source: str


def calls_of(
    wanted: Sequence[Kernel],
    library: RuleSet,
    kernels: Mapping[str, Kernel],
    most: int,
    seed: int,
    done: Callable[[], None] = lambda: None,
) -> dict[str, list[KernelCall]]:
    """Up to `most` calls of every kernel, of each form that rules give it; `done` is called once per rule."""
    names = {k.name for k in wanted}
    found = {f: list[KernelCall]() for r in library.rules for _, _, e in _entries(r) for f in _forms(e, names)}
    for rule in library.rules:
        bench = Bench(rule, library.classes, kernels)
        for variant, at, entry in _entries(rule):
            _harvest(bench, variant, at, entry, found, most, seed)
        done()
    by_name = {k.name: [c for f, calls in found.items() if f.kernel == k.name for c in calls] for k in wanted}
    return {k.name: by_name[k.name] or draw_calls(k, most, seed) for k in wanted}


@dataclass(frozen=True, slots=True)
class _Form:
    """A kernel and which of its operands are given: an optional one makes another call of it."""

    kernel: str
    operands: frozenset[str]


def _forms(entry: EmitEntry, kernels: Collection[str]) -> tuple[_Form, ...]:
    made = (_Form(c.kernel, frozenset(dict(c.args))) for c in entry.calls if c.kernel in kernels)
    return tuple(dict.fromkeys(made))


def _entries(rule: Rule) -> list[tuple[Variant, int, EmitEntry]]:
    return [(v, i, e) for v in rule.variants for i, e in enumerate(rule.emit) if not e.variants or v.name in e.variants]


def _harvest(
    bench: Bench,
    variant: Variant,
    at: int,
    entry: EmitEntry,
    found: dict[_Form, list[KernelCall]],
    most: int,
    seed: int,
) -> None:
    coverage = Coverage()
    forms = _forms(entry, {f.kernel for f in found})
    for number in range(4 * most):
        if all(len(found[f]) >= most for f in forms):
            return
        text = f"{seed}/{bench.rule.name}/{variant.name}/{at}/{number}"
        try:
            case = draw_case(bench, variant, entry, Choices(crc32(text.encode()), coverage))
            seen = look(bench, case.model, variant.name, explain=False)
            chosen = next((c for c in seen.whole if c.variant == variant.name and c.emit == at), None)
            if chosen is None:
                continue
            graph, values = trace(seen.view, chosen, case.feeds, bench.kernels)
        except (NotDrawable, GapFuseError):
            continue
        for name, call in _calls(graph, values, f"rule {bench.rule.name} ({variant.name})"):
            for form in forms:
                if form.kernel == name and len(found[form]) < 2 * most:
                    found[form].append(call)


def _calls(graph: FusedGraph, values: Mapping[str, np.ndarray], source: str) -> list[tuple[str, KernelCall]]:
    made: list[tuple[str, KernelCall]] = []
    for c in graph.calls:
        operands = {n: np.ascontiguousarray(values[b]).reshape(values[b].shape) for n, b in c.operands}
        results = {n: graph.buffer[b] for n, b in c.results}
        shapes, dtypes = {n: b.shape for n, b in results.items()}, {n: b.dtype for n, b in results.items()}
        made.append((c.kernel, KernelCall(operands, dict(c.attrs), shapes, dtypes, source)))
    return made


# ---- from the signature alone ----


def draw_calls(kernel: Kernel, most: int, seed: int) -> list[KernelCall]:
    """Calls with small sizes and attributes drawn at random, as far as they fit the signature."""
    rng = np.random.default_rng([seed, crc32(kernel.name.encode())])
    found: list[KernelCall] = []
    for _ in range(TRIES * most):
        if len(found) >= most:
            break
        call = _drawn(kernel, rng)
        if call is not None:
            found.append(call)
    return found


def _drawn(kernel: Kernel, rng: np.random.Generator) -> KernelCall | None:
    sizes: dict[str, tuple[int, ...]] = {}
    variables = {name: str(rng.choice(types)) for name, types in kernel.dtypes.items()}
    attrs: dict[str, CallAttr] = {}
    shapes = {e.name for size, e in kernel.sizes if size.startswith("*") and isinstance(e, Name)}
    for a in kernel.attrs:
        value = _shape(rng) if a.name in shapes else _attribute(a, rng)
        if value is None and a.required:
            return None
        attrs |= {} if value is None else {a.name: value}
    _order_bounds(attrs)
    operands: dict[str, np.ndarray] = {}
    for o in kernel.inputs:
        if o.optional and rng.random() < 0.5:
            continue
        for n in [f"{o.name}{i}" for i in range(2)] if o.variadic else [o.name]:
            operands[n] = _operand(o, sizes, variables, rng)
    solved = solve_sizes(
        kernel, {n: v.shape for n, v in operands.items()}, {n: str(v.dtype) for n, v in operands.items()}, attrs
    )
    if isinstance(solved, str) or any(d < 1 for s in solved.shapes.values() for d in s):
        return None
    return KernelCall(operands, attrs, {}, dict(solved.dtypes), "its signature")


def _operand(
    o: OperandType, sizes: dict[str, tuple[int, ...]], variables: Mapping[str, str], rng: np.random.Generator
) -> np.ndarray:
    shape: list[int] = []
    for dim in o.dims:
        if dim.isdigit():
            shape.append(int(dim))
            continue
        if dim not in sizes:
            rank = int(rng.integers(1, 4)) if dim.startswith("*") else 1
            sizes[dim] = tuple(int(d) for d in rng.integers(1, 8, rank))
        shape.extend(sizes[dim])
    return draw_values(rng, np.dtype(variables.get(o.dtype, o.dtype)), shape)


def _shape(rng: np.random.Generator) -> tuple[int, ...]:
    """Of an attribute that is the size of a group."""
    return tuple(int(n) for n in rng.integers(1, 8, int(rng.integers(1, 5))))


def _attribute(a: AttrType, rng: np.random.Generator) -> CallAttr | None:
    """A legal value, or None to leave the default. The names of requantisation mean what they mean everywhere."""
    if a.dtype == "str" or (not a.required and rng.random() < 0.5):
        return None
    count = 1 if a.length is None else max(a.length, 1)
    if a.name.startswith("mul"):
        drawn = [int(v) for v in rng.integers(2**30, 2**31, count)]
    elif a.name.startswith("shift"):
        drawn = [int(v) for v in rng.integers(31, 40, count)]
    elif a.dtype == "float":
        return float(rng.uniform(-2, 2)) if a.length is None else tuple(float(v) for v in rng.uniform(-2, 2, count))
    elif a.dtype in ("int", "bool"):
        drawn = [
            int(v)
            for v in rng.integers(0 if "pad" in a.name or a.dtype == "bool" else 1, 2 + (a.dtype == "int"), count)
        ]
    else:
        info = np.iinfo(a.dtype)
        drawn = [int(v) for v in rng.integers(max(info.min, -128), min(int(info.max), 127) + 1, count)]
    return drawn[0] if a.length is None else tuple(drawn)


def _order_bounds(attrs: dict[str, CallAttr]) -> None:
    low, high = attrs.get("lo"), attrs.get("hi")
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and low > high:
        attrs["lo"], attrs["hi"] = high, low
