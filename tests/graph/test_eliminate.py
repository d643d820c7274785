"""Elimination against every combination."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from fusion_engine.ordering.eliminate import Factor, eliminate


@st.composite
def problems(draw: st.DrawFn) -> tuple[dict[int, int], list[Factor]]:
    sizes = dict(enumerate(draw(st.lists(st.integers(1, 3), min_size=1, max_size=6))))
    factors = []
    for _ in range(draw(st.integers(0, 7))):
        variables = tuple(sorted(draw(st.sets(st.sampled_from(sorted(sizes)), min_size=1, max_size=3))))
        keys = list(product(*(range(sizes[v]) for v in variables)))
        costs = draw(st.lists(st.integers(0, 9), min_size=len(keys), max_size=len(keys)))
        factors.append(Factor(variables, dict(zip(keys, map(float, costs), strict=True))))
    return sizes, factors


def total(choice: dict[int, int], factors: list[Factor]) -> float:
    return sum(f.table[tuple(choice[v] for v in f.variables)] for f in factors)


@given(problems())
def test_the_choice_costs_the_least(problem: tuple[dict[int, int], list[Factor]]) -> None:
    sizes, factors = problem
    every = [dict(enumerate(c)) for c in product(*(range(n) for n in sizes.values()))]
    choice = eliminate(sizes, factors)
    assert sorted(choice) == sorted(sizes)
    assert total(choice, factors) == min(total(c, factors) for c in every)


@given(problems())
def test_a_tight_limit_still_gives_a_choice(problem: tuple[dict[int, int], list[Factor]]) -> None:
    sizes, factors = problem
    choice = eliminate(sizes, factors, max_table=2)
    assert all(0 <= choice[v] < n for v, n in sizes.items())


def test_a_long_chain_is_exact_and_quick() -> None:
    sizes = dict.fromkeys(range(3000), 3)
    table = {(a, b): float(a != b) for a in range(3) for b in range(3)}
    factors = [Factor((i, i + 1), table) for i in range(2999)]
    factors += [Factor((0,), {(0,): 5.0, (1,): 0.0, (2,): 5.0}), Factor((2999,), {(0,): 5.0, (1,): 5.0, (2,): 0.0})]
    choice = eliminate(sizes, factors)
    assert total(choice, factors) == 1.0
