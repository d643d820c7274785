"""The cover against every subset of candidates, and its cuts, ties and speed."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fusion_engine.covering import Candidate, UncoveredError, cover
from fusion_engine.covering.cpsat import solve_by_cpsat
from fusion_engine.covering.exact import solve_piece
from fusion_engine.covering.items import items_of, number_values
from fusion_engine.covering.pieces import Piece, needed_values, split, viable
from fusion_engine.diagnostics import GapFuseError
from fusion_engine.view.types import View, ViewNode, ViewValue

Spec = tuple[tuple[int, ...], tuple[int, ...], int]  # produces, consumes, cost


def view_of(count: int, outputs: tuple[int, ...]) -> View:
    """`count` nodes in a row, node i making v{i}; who reads what does not matter to the cover."""
    nodes = tuple(ViewNode(i, "Op", (), (f"v{i}",), {}, (f"n{i}",)) for i in range(count))
    values = {f"v{i}": ViewValue(f"v{i}", "float32", (1,)) for i in range(count)}
    producer = {f"v{i}": i for i in range(count)}
    return View("test", 20, nodes, values, producer, {}, ("x",), tuple(f"v{o}" for o in outputs))


def candidate(spec: Spec, rule: str = "r") -> Candidate:
    produces, consumes, cost = spec
    names = tuple(f"v{c}" for c in consumes) or ("x",)
    return Candidate(rule, "v", 0, (), frozenset(produces), names, tuple(f"v{p}" for p in produces), "", cost)


def solutions(specs: list[Spec], outputs: tuple[int, ...]) -> list[tuple[int, tuple[int, ...]]]:
    """Every legal choice, by definition: each value asked for has one maker, none is made twice, no circles."""
    found = []
    for size in range(len(specs) + 1):
        for picks in combinations(range(len(specs)), size):
            chosen = [specs[p] for p in picks]
            made = [v for produces, _, _ in chosen for v in produces]
            asked = {*outputs, *(c for _, consumes, _ in chosen for c in consumes)}
            if len(made) == len(set(made)) and asked <= set(made) and acyclic(chosen):
                found.append((sum(cost for _, _, cost in chosen), picks))
    return found


def acyclic(chosen: list[Spec]) -> bool:
    left, made = list(chosen), set()
    while left:
        ready = [s for s in left if set(s[1]) <= made]
        if not ready:
            return False
        made |= {v for s in ready for v in s[0]}
        left = [s for s in left if s not in ready]
    return True


@st.composite
def problems(draw: st.DrawFn) -> tuple[int, list[Spec], tuple[int, ...]]:
    count = draw(st.integers(1, 6))
    specs: list[Spec] = []
    for _ in range(draw(st.integers(1, 11))):
        root = draw(st.integers(0, count - 1))
        consumes = tuple(sorted(draw(st.sets(st.integers(0, root - 1), max_size=3)))) if root else ()
        produces = {root} | draw(st.sets(st.integers(0, count - 1), max_size=1)) - set(consumes)
        spec = (tuple(sorted(produces)), consumes, draw(st.integers(0, 9)))
        if spec not in specs:
            specs.append(spec)
    outputs = tuple(sorted(draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=2))))
    return count, specs, outputs


@given(problems())
@example((3, [((0,), (), 2), ((1,), (0,), 2), ((2,), (0, 1), 2), ((2,), (), 7)], (2,)))  # 0 is shared, not paid twice
@example((4, [((0, 3), (1,), 1), ((1,), (0,), 1), ((0,), (), 9), ((3,), (1,), 9)], (3,)))  # the cheap pair is a circle
def test_the_cover_is_the_cheapest_choice(problem: tuple[int, list[Spec], tuple[int, ...]]) -> None:
    count, specs, outputs = problem
    every = solutions(specs, outputs)
    candidates = [candidate(s) for s in specs]
    if not every:
        with pytest.raises(GapFuseError):
            cover(view_of(count, outputs), candidates)
        return
    plan = cover(view_of(count, outputs), candidates)
    assert plan.gap == 0
    assert plan.cost == min(every)[0]
    picks = tuple(sorted(next(i for i, c in enumerate(candidates) if c is p) for p in plan.chosen))
    assert (plan.cost, picks) in every
    made: set[str] = set()
    for chosen in plan.chosen:
        assert {c for c in chosen.consumes if c != "x"} <= made
        made |= set(chosen.produces)


@given(problems())
def test_the_integer_programme_agrees_with_the_dynamic_one(problem: tuple[int, list[Spec], tuple[int, ...]]) -> None:
    count, specs, outputs = problem
    single = [candidate((s[0][-1:], s[1], s[2])) for s in specs if s[0][-1] > max(s[1], default=-1)]
    view = view_of(count, outputs)
    values = number_values(view)
    items = viable(items_of(single, values, lambda c: c.cost, lambda _: 1))
    roots = [values.number[o] for o in view.outputs]
    if not set(roots) <= {v for i in items for v in i.produces}:
        return
    piece = Piece(tuple(items), tuple(sorted(roots)))
    fast, slow = solve_piece(piece), solve_by_cpsat(piece)
    assert fast is not None
    assert slow is not None
    assert sum(i.cost for i in fast) == sum(i.cost for i in slow[0])
    assert sum(i.calls for i in fast) == sum(i.calls for i in slow[0])


def chain(length: int, rules: tuple[str, ...] = ("one", "two")) -> list[Candidate]:
    """Per position a single candidate of cost 3 and, at odd ones, a pair of cost 4."""
    singles = [candidate(((i,), (i - 1,) if i else (), 3), rules[0]) for i in range(length)]
    pairs = [candidate(((i,), (i - 2,) if i > 1 else (), 4), rules[1]) for i in range(1, length, 2)]
    return [c for i in range(length) for c in (*singles[i : i + 1], *(pairs[i // 2 : i // 2 + 1] if i % 2 else ()))]


def test_a_chain_is_cut_where_every_solution_passes() -> None:
    view = view_of(8, (7,))
    values = number_values(view)
    items = items_of(chain(8), values, lambda c: c.cost, lambda _: 1)
    needed = needed_values(items, [7])
    assert needed == {1, 3, 5, 7}
    assert [len(p.items) for p in split(items, needed)] == [3, 3, 3, 3]


def test_thousands_of_nodes_are_covered_by_parts() -> None:
    plan = cover(view_of(20_000, (19_999,)), chain(20_000))
    assert plan.cost == 40_000
    assert {c.rule for c in plan.chosen} == {"two"}


def test_ties_go_to_fewer_calls_then_to_the_name() -> None:
    view = view_of(2, (1,))
    two = [candidate(((0,), (), 2), "a"), candidate(((1,), (0,), 2), "a")]
    one = [candidate(((1,), (), 4), "z")]
    same = [candidate(((1,), (), 4), "y")]
    plan = cover(view, two + one + same, calls=lambda _: 1)
    assert [c.rule for c in plan.chosen] == ["y"]
    assert [c.rule for c in cover(view, same + one + two, calls=lambda _: 1).chosen] == ["y"]


def test_what_nothing_makes_is_named() -> None:
    with pytest.raises(UncoveredError, match="no kernel takes Op") as caught:
        cover(view_of(3, (2,)), [candidate(((2,), (1,), 1)), candidate(((1,), (0,), 1))])
    assert caught.value.nodes == (0,)
