"""`rearrange(p, text)`: the values below a chain of movement operators that does what an einops text says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fusion_engine.covering.types import Cause
from fusion_engine.language.axes import AxesText, parse_axes, solve_axes
from fusion_engine.language.types import Rearrange
from fusion_engine.matching.facts import Known, Virtual
from fusion_engine.matching.rearrange import chains, expected_map
from fusion_engine.matching.state import State
from fusion_engine.matching.words import describe, makers

Matcher = Callable[[State, Any], None]


def rearranging(p: Rearrange, operand: Matcher, slots: Mapping[str, int]) -> Matcher:
    """`operand` is matched below every chain of movement operators whose index map is the text's."""
    text = parse_axes(p.text)
    assert isinstance(text, AxesText), text  # the loader has read it

    def rearranged(st: State, value: Any) -> None:
        if not isinstance(value, (str, Virtual)):
            return
        tried = 0
        for chain in chains(st.facts, value):
            st.step()
            source = st.facts.shape(chain.source)
            known = {**_known_extents(st, slots), **dict(st.extents)}
            solved = solve_axes(text, tuple(d for d in source or () if isinstance(d, int)), chain.map.shape, known)
            if isinstance(solved, str) or expected_map(text, solved) != chain.map:
                continue
            tried += 1
            before = len(st.extents)
            st.extents.extend(solved.items())
            st.inside.extend(chain.nodes)
            st.low = min(st.low, *chain.nodes) if chain.nodes else st.low
            operand(st, chain.source)
            del st.inside[len(st.inside) - len(chain.nodes) :]
            del st.extents[before:]
        if not tried and st.explain:
            had = describe(st, value)
            st.fail(Cause(f"no movement before {had} is `{p.text}`", had, p.text, "", p.span), *makers(st, value))

    return rearranged


def _known_extents(st: State, slots: Mapping[str, int]) -> dict[str, int]:
    found = {}
    for name, slot in slots.items():
        bound = st.values[slot]
        if isinstance(bound, Known) and isinstance(bound.value, int):
            found[name] = bound.value
    return found
