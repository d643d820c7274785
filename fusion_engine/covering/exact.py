"""The least cost of one piece by dynamic programming over what is still asked for.

Values are decided from the last to the first, so that when a value's turn comes everything that might ask for it is
decided. What remains depends only on the set of values still asked for (and, where items make several values, on those
already made): that set is the state. Narrow graphs have few states, however many items they have.
"""

from __future__ import annotations

from collections.abc import Sequence

from fusion_engine.covering.items import Item, Key
from fusion_engine.covering.pieces import Piece, makers_of

MAX_STATES = 20_000

Answer = tuple[int, int, tuple[tuple[Key, int], ...]]  # cost, calls, choices (key, item index) in order of decision
State = tuple[frozenset[int], frozenset[int]]  # asked for, already made


def solve_piece(piece: Piece, max_states: int = MAX_STATES) -> list[Item] | None:
    """The cheapest items that make what the piece needs; None: too many states, or no solution."""
    makers = makers_of(piece.items)
    several = any(len(item.produces) > 1 for item in piece.items)
    inside = frozenset(makers) - frozenset(piece.needed)
    best: dict[State, Answer | None] = {}
    start: State = (frozenset(piece.needed), frozenset())
    stack = [start]
    while stack:
        state = stack[-1]
        moves = [] if not state[0] else _moves(state, makers, inside, several)
        unsolved = [s for _, s in moves if s not in best]
        if unsolved:
            stack.extend(unsolved)
            continue
        stack.pop()
        best[state] = (0, 0, ()) if not state[0] else _least(moves, best)
        if len(best) > max_states or len(stack) > 8 * max_states:
            return None
    answer = best[start]
    if answer is None:
        return None
    chosen = {index for _, index in answer[2]}
    return [item for item in piece.items if item.index in chosen]


def _moves(
    state: State, makers: dict[int, list[Item]], inside: frozenset[int], several: bool
) -> list[tuple[Item, State]]:
    asked, made = state
    last = max(asked)
    moves = []
    for item in makers[last]:
        if several and not made.isdisjoint(item.produces):
            continue
        now_made = made.union(item.produces) if several else made
        more = [c for c in item.consumes if c in inside and c not in now_made]
        moves.append((item, (asked.difference(item.produces).union(more), now_made)))
    return moves


def _least(moves: Sequence[tuple[Item, State]], best: dict[State, Answer | None]) -> Answer | None:
    least: Answer | None = None
    for item, state in moves:
        rest = best[state]
        if rest is None:
            continue
        answer = (item.cost + rest[0], item.calls + rest[1], ((item.key, item.index), *rest[2]))
        if least is None or answer < least:
            least = answer
    return least
