"""Emit entries of a match into kernel calls: operands and attributes evaluated, and checked against the signature."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from fusion_engine.covering.types import Cause, Constant, EmittedCall, Operand, Temporary, ValueRef
from fusion_engine.graph import Alias, CallAttr
from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.kernels.fitting import attributes_read, why_not
from fusion_engine.kernels.sizes import MisfitError, Sizes, fill_attrs, solve_sizes
from fusion_engine.language.types import Emit, EmitEntry
from fusion_engine.language.vocabulary import Binding, Unknown, as_attribute, evaluate_expression
from fusion_engine.matching.environment import NOWHERE, Environment
from fusion_engine.matching.operands import DeclinedError, attributes_of, cast_to_operand, dtype_name, operands_of
from fusion_engine.matching.storage import Made
from fusion_engine.view.types import View

Cost = Callable[[Kernel, Sizes], float]


@dataclass(frozen=True, slots=True)
class Emission:
    """The calls of one entry, the temporaries between them, and what they cost together."""

    calls: tuple[EmittedCall, ...]
    temporaries: tuple[Temporary, ...]
    cost: float


@dataclass(frozen=True, eq=False)
class Emitter:
    """Kernels, and signatures already solved and priced: the equal shapes of repeated blocks are fitted once."""

    view: View
    kernels: Mapping[str, Kernel]
    cost: Cost
    solved: dict[Hashable, tuple[Sizes, float] | str] = field(default_factory=dict)
    read: dict[str, frozenset[str]] = field(default_factory=dict)  # attributes that sizes and prices depend on

    def chief(self, entry: EmitEntry) -> str:
        """The kernel that an entry is about: the last that is no view."""
        names = [c.kernel for c in entry.calls]
        return next((n for n in reversed(names) if n in self.kernels and self.kernels[n].view is None), names[-1])

    def emit(self, entry: EmitEntry, env: Environment, made: tuple[Made, ...]) -> Emission:
        """All calls of an entry. Raises DeclinedError."""
        names = {m.name: m.produced for m in made}
        temporaries: dict[str, Temporary] = {}
        calls, cost = [], 0.0
        for call in entry.calls:
            try:
                emitted = self._call(call, env, names, made[0], temporaries)
            except DeclinedError as e:
                e.kernel = call.kernel
                raise
            if emitted is not None:
                calls.append(emitted[0])
                cost += emitted[1]
        missing = [m.name for m in made if not any(m.produced in dict(c.results).values() for c in calls)]
        if missing:
            raise DeclinedError(f"no call makes {missing[0]}")
        return Emission(tuple(calls), tuple(temporaries.values()), cost)

    def _call(
        self, call: Emit, env: Environment, names: Mapping[str, str], root: Made, temporaries: dict[str, Temporary]
    ) -> tuple[EmittedCall, float] | None:
        """One call and its price; None where it only re-sees a constant, which is done at once."""
        kernel = self.kernels.get(call.kernel)
        if kernel is None:
            raise DeclinedError(f"there is no kernel {call.kernel}")
        operands = operands_of(kernel, call, env)
        attrs = attributes_of(call, env)
        shapes, dtypes = self._types(operands, temporaries)
        results = self._results(kernel, call, names, root, shapes, dtypes)
        _written_types(call, env, shapes, dtypes)
        operands = tuple((n, cast_to_operand(kernel, n, o, dtypes)) for n, o in operands)
        dtypes.update((n, dtype_name(o.data.dtype)) for n, o in operands if isinstance(o, Constant))
        sizes, price = self._sizes(kernel, shapes, dtypes, attrs)
        if _seen_at_once(kernel, operands, results, names, sizes, env):
            return None
        self._name_temporaries(results, names, sizes, temporaries, env)
        alias = _alias(kernel, operands, sizes.attrs)
        emitted = EmittedCall(kernel.name, operands, results, tuple(sizes.attrs.items()), alias)
        return emitted, price

    # ---- shapes and element types ----

    def _types(
        self, operands: tuple[tuple[str, Operand], ...], temporaries: Mapping[str, Temporary]
    ) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
        """Shapes and dtypes by operand; constants' dtypes wait until they are cast."""
        shapes: dict[str, tuple[int, ...]] = {}
        dtypes: dict[str, str] = {}
        made = {t.name: t for t in temporaries.values()}
        for name, operand in operands:
            if isinstance(operand, Constant):
                shapes[name] = operand.data.shape
            elif operand.name in made:
                shapes[name], dtypes[name] = made[operand.name].shape, made[operand.name].dtype
            else:
                shapes[name], dtypes[name] = self._value_type(operand.name, name)
        return shapes, dtypes

    def _value_type(self, value: str, what: str) -> tuple[tuple[int, ...], str]:
        if value.startswith(NOWHERE):
            raise DeclinedError(f"{what} exists only as the integers `{value[len(NOWHERE) :]}`")
        known = self.view.values[value]
        shape = known.static_shape
        if shape is None or known.dtype is None:
            change = "bind symbolic dimensions: --dim NAME=VALUE" if shape is None else ""
            lacking = "shape" if shape is None else "type"
            raise DeclinedError(Cause(f"{lacking} of {what} unknown", value, f"a known {lacking}", change))
        return shape, known.dtype

    def _results(
        self,
        kernel: Kernel,
        call: Emit,
        names: Mapping[str, str],
        root: Made,
        shapes: dict[str, tuple[int, ...]],
        dtypes: dict[str, str],
    ) -> tuple[tuple[str, str], ...]:
        """Kernel outputs to value names; the view's shapes join those that the signature must fit."""
        mapped = call.results or ((kernel.outputs[0].name, root.name),)
        results = []
        for output, name in mapped:
            value = names.get(name)
            results.append((output, value if value is not None else f"{root.produced}/{name}"))
            if value is not None:
                shapes[output], dtypes[output] = self._value_type(value, name)
        return tuple(results)

    def _sizes(
        self, kernel: Kernel, shapes: dict[str, tuple[int, ...]], dtypes: dict[str, str], attrs: dict[str, CallAttr]
    ) -> tuple[Sizes, float]:
        if kernel.name not in self.read:
            self.read[kernel.name] = attributes_read(kernel)
        read = tuple((n, a) for n, a in attrs.items() if n in self.read[kernel.name])
        key = (kernel.name, tuple(shapes.items()), tuple(dtypes.items()), read)
        if key not in self.solved:
            fitted = solve_sizes(kernel, shapes, dtypes, attrs)
            self.solved[key] = fitted if isinstance(fitted, str) else self._priced(kernel, fitted)
        solved = self.solved[key]
        if isinstance(solved, str):
            raise DeclinedError(solved)
        try:
            return replace(solved[0], attrs=fill_attrs(kernel, attrs)), solved[1]
        except MisfitError as e:
            raise DeclinedError(str(e)) from e

    def _priced(self, kernel: Kernel, sizes: Sizes) -> tuple[Sizes, float] | str:
        price = self.cost(kernel, sizes)
        if price < inf:
            return sizes, price
        reasons = (why_not(i, sizes, i.isa) for i in kernel.implementations)
        return f"no implementation of {kernel.name} takes it: {next((r for r in reasons if r), 'none for this target')}"

    def _name_temporaries(
        self,
        results: tuple[tuple[str, str], ...],
        names: Mapping[str, str],
        sizes: Sizes,
        temporaries: dict[str, Temporary],
        env: Environment,
    ) -> None:
        final = set(names.values())
        for output, value in results:
            if value in final:
                continue
            name = value.rpartition("/")[2]
            shape, dtype = sizes.shapes[output], sizes.dtypes[output]
            temporaries[name] = Temporary(value, dtype, shape)
            env[name] = Binding(name, value, dtype, shape)


def _written_types(call: Emit, env: Environment, shapes: dict[str, tuple[int, ...]], dtypes: dict[str, str]) -> None:
    """Types that the rule writes out join those that the signature must fit."""
    for output, type_ in call.types:
        if type_.dtype is not None:
            dtypes[output] = type_.dtype
        if type_.dims is not None:
            extents = as_attribute(evaluate_expression(type_.dims, env))
            if not isinstance(extents, tuple) or not all(isinstance(e, int) for e in extents):
                raise DeclinedError(f"the shape of {dict(call.results)[output]} is not known: {_reason(extents)}")
            shapes[output] = tuple(int(e) for e in extents)


def _reason(value: Any) -> str:
    return value.reason if isinstance(value, Unknown) else f"{value} is no list of whole numbers"


# ---- views ----


def _seen_at_once(
    kernel: Kernel,
    operands: tuple[tuple[str, Operand], ...],
    results: tuple[tuple[str, str], ...],
    names: Mapping[str, str],
    sizes: Sizes,
    env: Environment,
) -> bool:
    """Whether the call is a view of a constant into a temporary, which then is a constant itself."""
    x = dict(operands).get("x")
    output, value = results[0]
    if not isinstance(x, Constant) or value in names.values() or kernel.view in (None, "concat"):
        return False
    attrs: Mapping[str, Any] = sizes.attrs
    match kernel.view:
        case "transpose":
            data = x.data.transpose(attrs["perm"])
        case "slice":
            data = x.data[
                tuple(slice(*part) for part in zip(attrs["starts"], attrs["ends"], attrs["steps"], strict=True))
            ]
        case _:
            data = x.data.reshape(sizes.shapes[output])
    env[value.rpartition("/")[2]] = data
    return True


def _alias(kernel: Kernel, operands: tuple[tuple[str, Operand], ...], attrs: Mapping[str, Any]) -> Alias | None:
    """What a view kernel's result is of its operand `x`; concat is the other way round, and left to apply()."""
    if kernel.view is None or kernel.view == "concat":
        return None
    x = dict(operands).get("x")
    if not isinstance(x, ValueRef):
        raise DeclinedError("x is constant")
    match kernel.view:
        case "reshape":
            return Alias(x.name, reshape=True)
        case "transpose":
            return Alias(x.name, perm=_ints(attrs["perm"]))
        case "slice":
            starts = _ints(attrs["starts"])
            return Alias(x.name, start=starts, step=_ints(attrs.get("steps", (1,) * len(starts))))


def _ints(value: Any) -> tuple[int, ...]:
    return tuple(int(v) for v in value)
