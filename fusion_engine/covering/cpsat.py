"""The pieces that are too wide for the dynamic programme: an integer programme, one worker, fixed seed."""

from __future__ import annotations

from collections.abc import Sequence

from fusion_engine.covering.items import Item
from fusion_engine.covering.pieces import Piece, makers_of

DETERMINISTIC_SECONDS = 20.0  # the solver's own deterministic time, not the clock


def solve_by_cpsat(piece: Piece, cuts: Sequence[Sequence[Item]] = ()) -> tuple[list[Item], int] | None:
    """Items that make what the piece needs, and how far (in thousandths) they may be from the least; None: impossible.

    `cuts` are sets of items that must not all be chosen (they ask for each other in a circle).
    """
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    take = {item.index: model.new_bool_var(f"t{item.index}") for item in piece.items}
    made = {v: sum(take[i.index] for i in makers) for v, makers in sorted(makers_of(piece.items).items())}
    for v, count in made.items():
        if v in piece.needed:
            model.add(count == 1)
        else:
            model.add(count <= 1)
    for item in piece.items:
        for c in item.consumes:
            if c in made and c not in piece.needed:
                model.add(made[c] >= take[item.index])
    for cut in cuts:
        model.add(sum(take[i.index] for i in cut) <= len(cut) - 1)
    order = sorted(piece.items, key=lambda i: (i.key, i.index))
    small = sum(i.calls for i in piece.items) + 1
    model.minimize(sum((i.cost * small + i.calls) * take[i.index] for i in order))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 7
    solver.parameters.max_deterministic_time = DETERMINISTIC_SECONDS
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    chosen = [i for i in piece.items if solver.value(take[i.index])]
    gap = 0 if status == cp_model.OPTIMAL else int((solver.objective_value - solver.best_objective_bound) / small) + 1
    return _asked_for(chosen, piece), gap


def _asked_for(chosen: list[Item], piece: Piece) -> list[Item]:
    """Without items that nothing asks for, which a free one may be."""
    maker = {v: item for item in chosen for v in item.produces}
    keep: set[int] = set()
    todo = list(piece.needed)
    while todo:
        item = maker.get(todo.pop())
        if item is not None and item.index not in keep:
            keep.add(item.index)
            todo.extend(item.consumes)
    return [i for i in chosen if i.index in keep]
