"""Which captures' numbers a variant's expressions read, and which only pass through to a kernel as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.language.types import EApply, EList, Emit, EmitEntry, EName, Expression
from fusion_engine.matching.index import Compiled

# What these make has a type that follows from the types of their operands; of MOVED, only the first is moved.
COMPUTED = frozenset(("given", "+", "-", "*", "/", "sqrt"))
MOVED = frozenset(("transpose", "reshape", "repeat", "along"))
SHAPES = frozenset(("dim", "rank", "shape", "size", "broadcasts", "present", "dtype", "constant"))


def contents_read(compiled: Compiled, kernels: Mapping[str, Kernel]) -> frozenset[str]:
    """Names whose constants' numbers decide what is emitted; those of other constants only become operands.

    Entries that store a result as integers are left out: without a QuantizeLinear they never emit.
    """
    lets = dict(compiled.variant.let)
    entries = [e for e in compiled.rule.emit if _emits_reals(compiled, e)]
    found: set[str] = set()
    for expression in compiled.deferred:
        found.update(_read(expression))
    for _, condition in (*compiled.variant.where, *(w for e in entries for w in e.when)):
        found.update(_read(condition))
    for call in (c for e in entries for c in e.calls):
        found.update(_read_by_call(call, kernels, lets))
    return frozenset(_through_lets(found, lets))


def _emits_reals(compiled: Compiled, entry: EmitEntry) -> bool:
    results = (entry.stored.get(name) for name in compiled.variant.results)
    mine = not entry.variants or compiled.variant.name in entry.variants
    return mine and all(stored is None or stored.dtype == "float" for stored in results)


def _read_by_call(call: Emit, kernels: Mapping[str, Kernel], lets: Mapping[str, Expression]) -> Iterator[str]:
    kernel = kernels.get(call.kernel)
    seen = kernel is not None and kernel.view is not None  # a view of a constant is made at once
    several = {o.name for o in kernel.inputs if o.variadic} if kernel is not None else set()
    for _, expression in call.attrs:
        yield from _read(expression)
    for name, expression in call.args:
        captured = isinstance(expression, EName) and expression.name not in lets
        whole = seen or (name in several and not captured)
        yield from _read(expression) if whole else _not_passed(expression)


def _read(expression: Expression) -> Iterator[str]:
    """Names whose numbers the expression needs."""
    match expression:
        case EName(name=name):
            yield name
        case EApply(fn=fn, args=args) if fn in SHAPES:
            for arg in args:
                yield from _read_for_shape(arg)
        case EApply(args=parts) | EList(items=parts):
            for part in parts:
                yield from _read(part)


def _read_for_shape(expression: Expression) -> Iterator[str]:
    """Names whose numbers the type of the expression's value needs."""
    match expression:
        case EName():
            return
        case EApply(fn=fn, args=parts) if fn in COMPUTED:
            for part in parts:
                yield from _read_for_shape(part)
        case _:
            yield from _read(expression)


def _not_passed(expression: Expression) -> Iterator[str]:
    """As `_read`, for an expression whose value becomes an operand: what passes, moved or computed with, is not read.

    Names of `let` are marked, so that their own expressions are looked into the same way.
    """
    match expression:
        case EName(name=name):
            yield PASSED + name
        case EApply(fn=fn, args=parts) if fn in COMPUTED:
            for part in parts:
                yield from _not_passed(part)
        case EApply(fn=fn, args=(value, *how)) if fn in MOVED:
            yield from _not_passed(value)
            for part in how:
                yield from _read(part)
        case EList(items=parts):
            for part in parts:
                yield from _not_passed(part)
        case _:
            yield from _read(expression)


PASSED = ">"


def _through_lets(names: set[str], lets: Mapping[str, Expression]) -> set[str]:
    waiting, seen = sorted(names), set(names)
    while waiting:
        name = waiting.pop()
        expression = lets.get(name.removeprefix(PASSED))
        if expression is None:
            continue
        more = _not_passed(expression) if name.startswith(PASSED) else _read(expression)
        for other in more:
            if other not in seen:
                seen.add(other)
                waiting.append(other)
    return {n for n in seen if not n.startswith(PASSED)}
