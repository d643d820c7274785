"""What expressions of a rule see of one match: bindings, sizes, attributes, and `let` evaluated when first read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fusion_engine.graph import Quantisation
from fusion_engine.language.types import EApply, EList, EName, Expression
from fusion_engine.language.vocabulary import Binding, Unknown, evaluate_expression
from fusion_engine.matching.facts import Facts, Known, Tensor, Virtual
from fusion_engine.matching.state import Bound, Deferred

NOWHERE = "\0"  # a real that no value of the view holds: what is emitted must not refer to it


class Environment(dict[str, Any]):
    """Names to values; `lazy` expressions are evaluated in it when first asked for, and kept; those of `base` there,
    once for all that stand on it."""

    __slots__ = ("base", "lazy")

    def __init__(
        self, values: Mapping[str, Any], lazy: Mapping[str, Expression], base: Environment | None = None
    ) -> None:
        super().__init__(values)
        self.lazy = dict(lazy)
        self.base = base

    def __contains__(self, name: object) -> bool:
        return dict.__contains__(self, name) or name in self.lazy or (self.base is not None and name in self.base)

    def definition(self, name: str) -> Expression | None:
        """The expression behind a name that is evaluated when asked for."""
        return self.lazy.get(name) or (None if self.base is None else self.base.definition(name))

    def __missing__(self, name: str) -> Any:
        if name not in self.lazy:
            if self.base is None:
                raise KeyError(name)
            return self.base[name]
        self[name] = Unknown(f"`{name}` depends on itself")
        value = evaluate_expression(self.lazy[name], self)
        self[name] = value
        return value


def bind(facts: Facts, name: str, bound: Bound) -> Any:
    """The value of one captured name for expressions: a Binding, a tuple of them, a number, or None for absent."""
    if isinstance(bound, (str, Virtual)):
        return bind_tensor(facts, name, bound)
    if isinstance(bound, tuple):
        return tuple(bind_tensor(facts, f"{name}[{i}]", v) for i, v in enumerate(bound))
    return bound.value if isinstance(bound, Known) else None


def bind_tensor(facts: Facts, name: str, value: Tensor) -> Binding:
    stored = facts.stored(value) if facts.has_lens or isinstance(value, Virtual) else None
    real = value if isinstance(value, str) else NOWHERE + value.stored
    if stored is None:
        own = facts.view.values[real]
        return Binding(name, real, own.dtype, own.shape, own.const, None, None, own.quantisation)
    const, shape = facts.const(value), facts.shape(value)
    return Binding(name, real, facts.dtype(value), shape, const, stored.name, stored.const, stored.quantisation)


def bind_result(facts: Facts, name: str, value: str, stored: str | None, quantisation: Quantisation | None) -> Binding:
    """A result: its real value, and the integers that a stored emission makes of it."""
    own = facts.view.values[value]
    return Binding(name, value, own.dtype, own.shape, None, stored, None, quantisation)


def deferred(values: Mapping[str, Bound]) -> dict[str, Expression]:
    return {name: b.expression for name, b in values.items() if isinstance(b, Deferred)}


def free_names(expr: Expression) -> Iterator[str]:
    """Every name that an expression reads."""
    match expr:
        case EName(name=name):
            yield name
        case EList(items=parts) | EApply(args=parts):
            for part in parts:
                yield from free_names(part)
