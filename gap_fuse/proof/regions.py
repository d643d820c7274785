"""Random trees of a class of operators, for rules over regions."""

from __future__ import annotations

import numpy as np

from fusion_engine.language.operators import operators
from fusion_engine.language.types import Variant
from gap_fuse.proof.draft import Draft
from gap_fuse.proof.sizes import broadcastable

MOST = 5  # operators of a tree


def draw_region(draft: Draft, variant: Variant) -> str:
    """The root of a tree of 2 to MOST operators, whose leaves are inputs that broadcast and scalar constants."""
    members = draft.classes[variant.region or ""]
    left = draft.choices.between(2, MOST)
    value = _leaf(draft, whole=True)
    for _ in range(left):
        at = draft.choices.below(len(members), variant.span)
        draft.used.append((variant.span, at))
        value = _applied(draft, members[at], value)
    return value


def _applied(draft: Draft, op: str, value: str) -> str:
    schema = operators()[op]
    if op == "Clip":
        low, high = (draft.constant(np.asarray(v, np.float32)) for v in (-1.0, 1.5))
        return draft.node(op, [value, low, high])
    if schema.max_input == 1:
        return draft.node(op, [value])
    other = value if draft.choices.below(4) == 3 else _leaf(draft)
    inputs = [value, other] if op == "PRelu" or draft.choices.chance() else [other, value]
    return draft.node(op, list(inputs))


def _leaf(draft: Draft, whole: bool = False) -> str:
    if not whole and draft.choices.chance():
        return draft.constant(np.asarray(draft.choices.pick((0.5, 2.0, 1.5)), np.float32))
    name = draft.fresh("leaf")
    draft.inputs[name] = ("float32", draft.base if whole else broadcastable(draft))
    return name
