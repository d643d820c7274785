"""Candidates as the cover's small integers: one `Item` each, values numbered in topological order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from fusion_engine.covering.types import Candidate
from fusion_engine.view.types import View

UNITS = 1000  # costs are compared as whole thousandths, so that sums do not depend on their order
Key = tuple[str, str, int]  # rule, variant, emit entry: the last ties


@dataclass(slots=True, eq=False)  # never changed; not frozen, since one that is takes six times as long to make
class Item:
    """A candidate: its cost in thousandths, how many calls it makes, values made and demanded (numbers, ascending)."""

    index: int
    cost: int
    calls: int
    key: Key
    produces: tuple[int, ...]
    consumes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Values:
    """Numbers of the values that nodes make, ascending in topological order."""

    number: Mapping[str, int]
    name: tuple[str, ...]


def number_values(view: View) -> Values:
    """Every node's outputs in order; graph inputs and constants have no number: nobody must make them."""
    names = tuple(o for node in view.nodes for o in node.outputs if o and view.const(o) is None)
    return Values({n: i for i, n in enumerate(names)}, names)


def items_of(
    candidates: Sequence[Candidate],
    values: Values,
    cost: Callable[[Candidate], float | None],
    calls: Callable[[Candidate], int],
) -> list[Item]:
    """Items for the candidates that have a cost (None: no implementation takes one of its calls)."""
    number = values.number
    items = []
    for index, c in enumerate(candidates):
        price = cost(c)
        produces = _numbers(number, c.produces)
        if price is None or price == inf or not produces:
            continue
        consumes = _numbers(number, c.consumes)
        if consumes and consumes[-1] >= produces[0]:
            consumes = tuple([n for n in consumes if n not in produces])
        items.append(Item(index, round(price * UNITS), calls(c), (c.rule, c.variant, c.emit), produces, consumes))
    return items


def _numbers(number: Mapping[str, int], names: Sequence[str]) -> tuple[int, ...]:
    """Ascending, each once; most candidates have one or two."""
    found = [number[v] for v in names if v in number]
    return tuple(found) if len(found) < 2 else tuple(sorted(set(found)))
