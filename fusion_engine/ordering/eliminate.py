"""Least-cost choice of one option per variable, by eliminating variables one after the other.

Exact where the factors form a tree or are narrow; where a table would grow beyond `max_table`, one variable is settled
at its best guess first, and the answer is only as good as that guess.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

Combination = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Factor:
    """A cost for each combination of options of `variables`."""

    variables: tuple[int, ...]
    table: Mapping[Combination, float]


def eliminate(sizes: Mapping[int, int], factors: Sequence[Factor], max_table: int = 20_000) -> dict[int, int]:
    """The option of each variable in `sizes` (its number of options); ties go to the earlier option."""
    settled = {v: 0 for v, size in sizes.items() if size == 1}
    work = _Elimination({v: s for v, s in sizes.items() if s > 1}, [_without(f, settled) for f in factors])
    while work.heap:
        width, variable = heapq.heappop(work.heap)
        if variable not in work.left or width != work.width(variable):
            continue  # an entry that later steps made stale
        if width > max_table:
            work.settle(max(work.left, key=lambda v: (work.width(v), -v)))
            heapq.heappush(work.heap, (work.width(variable), variable))
        else:
            work.sum_out(variable)
    return settled | work.answer()


class _Elimination:
    def __init__(self, sizes: Mapping[int, int], factors: Sequence[Factor]) -> None:
        self.sizes = sizes
        self.left = set(sizes)
        self.factors: dict[int, Factor] = {}
        self.touching: dict[int, set[int]] = {v: set() for v in sizes}
        self.steps: list[tuple[int, tuple[int, ...], dict[Combination, int]]] = []
        self.next = 0
        for factor in factors:
            self.add(factor)
        self.heap = [(self.width(v), v) for v in sorted(sizes)]
        heapq.heapify(self.heap)

    def add(self, factor: Factor) -> None:
        if not factor.variables:
            return
        self.factors[self.next] = factor
        for v in factor.variables:
            self.touching[v].add(self.next)
        self.next += 1

    def take(self, variable: int) -> list[Factor]:
        """Remove and return the factors of a variable, which is then done."""
        numbers = sorted(self.touching[variable])
        taken = [self.factors.pop(n) for n in numbers]
        for n, factor in zip(numbers, taken, strict=True):
            for v in factor.variables:
                self.touching[v].discard(n)
        self.left.discard(variable)
        return taken

    def others(self, variable: int) -> tuple[int, ...]:
        return tuple(sorted({v for n in self.touching[variable] for v in self.factors[n].variables} - {variable}))

    def width(self, variable: int) -> int:
        return self.sizes[variable] * prod(self.sizes[o] for o in self.others(variable))

    def sum_out(self, variable: int) -> None:
        others = self.others(variable)
        mine = self.take(variable)
        best: dict[Combination, int] = {}
        table: dict[Combination, float] = {}
        for combination in product(*(range(self.sizes[o]) for o in others)):
            chosen = dict(zip(others, combination, strict=True))
            costs = [_cost(mine, {**chosen, variable: option}) for option in range(self.sizes[variable])]
            table[combination] = min(costs)
            best[combination] = costs.index(table[combination])
        self.steps.append((variable, others, best))
        self.add(Factor(others, table))
        self.requeue(others)

    def settle(self, variable: int) -> None:
        """Fix a variable at the option whose factors, each at its own best, cost the least."""
        others = self.others(variable)
        mine = self.take(variable)
        guesses = [
            sum(min(c for k, c in f.table.items() if k[f.variables.index(variable)] == option) for f in mine)
            for option in range(self.sizes[variable])
        ]
        option = guesses.index(min(guesses))
        self.steps.append((variable, (), {(): option}))
        for factor in mine:
            self.add(_fixed(factor, variable, option))
        self.requeue(others)

    def requeue(self, variables: Sequence[int]) -> None:
        for v in variables:
            heapq.heappush(self.heap, (self.width(v), v))

    def answer(self) -> dict[int, int]:
        answer: dict[int, int] = {}
        for variable, others, best in reversed(self.steps):
            answer[variable] = best[tuple(answer[o] for o in others)]
        return answer


def _without(factor: Factor, settled: Mapping[int, int]) -> Factor:
    """The factor without variables of a single option, which is number 0."""
    kept = [i for i, v in enumerate(factor.variables) if v not in settled]
    if len(kept) == len(factor.variables):
        return factor
    table = {tuple(k[i] for i in kept): c for k, c in factor.table.items()}
    return Factor(tuple(factor.variables[i] for i in kept), table)


def _fixed(factor: Factor, variable: int, option: int) -> Factor:
    at = factor.variables.index(variable)
    kept = {(*k[:at], *k[at + 1 :]): c for k, c in factor.table.items() if k[at] == option}
    return Factor((*factor.variables[:at], *factor.variables[at + 1 :]), kept)


def _cost(factors: Sequence[Factor], chosen: Mapping[int, int]) -> float:
    return sum(f.table[tuple(chosen[v] for v in f.variables)] for f in factors)
