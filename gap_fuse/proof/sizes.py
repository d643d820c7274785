"""Sizes of a drawn case, from a rule's `given` and `draw`."""

from __future__ import annotations

from fusion_engine.expr import ExprError, evaluate, parse_expr
from fusion_engine.language.types import CaptureType
from gap_fuse.proof.draft import Draft, NotDrawable

PLAIN = (1, 5)  # a size that `draw` does not mention


def draw_sizes(draft: Draft) -> None:
    """Symbols in the order of `draw`, so that a choice may name an earlier one; then those of `given` alone."""
    draft.base = tuple(draft.choices.between(*PLAIN) for _ in range(draft.choices.between(1, 4)))
    for name, what in draft.rule.draw.items():
        if isinstance(what, tuple):
            draft.sizes[name] = one(draft, draft.choices.pick([str(w) for w in what], ("draw", name)))
        elif isinstance(what, str) and "dims of" in what:
            dims, extents = what.split(" dims of ")
            draft.sizes[name] = tuple(one(draft, extents) for _ in range(one(draft, dims)))
        elif isinstance(what, str) and not what.startswith(("shape ", "like ")):
            draft.sizes[name] = _coinciding(draft, one(draft, what), what)
    for type_ in draft.rule.given.values():
        for dim in type_.dims or ():
            symbol = dim.lstrip("*")
            if symbol.isidentifier() and symbol not in draft.sizes:
                group = dim.startswith("*")
                draft.sizes[symbol] = (
                    tuple(draft.choices.between(*PLAIN) for _ in range(draft.choices.between(0, 3)))
                    if group
                    else draft.choices.between(*PLAIN)
                )


def _coinciding(draft: Draft, drawn: int, text: str) -> int:
    """Now and then an earlier size of the same range: square matrices broadcast where others do not."""
    low, dots, high = text.partition("..")
    fitting = [
        v
        for v in draft.sizes.values()
        if dots and isinstance(v, int) and _value(draft, low) <= v <= _value(draft, high)
    ]
    return draft.choices.pick(fitting) if fitting and draft.choices.below(3) == 2 else drawn


def one(draft: Draft, text: str) -> int:
    """A range `1..8`, or a number or expression over earlier sizes. Raises NotDrawable for anything else."""
    low, dots, high = text.partition("..")
    try:
        if dots:
            return draft.choices.between(_value(draft, low), _value(draft, high))
        return _value(draft, text)
    except (ExprError, KeyError, TypeError, ValueError) as e:
        raise NotDrawable(f"`draw` does not say a whole number: `{text}` ({e})", always=True) from e


def _value(draft: Draft, text: str) -> int:
    return int(evaluate(parse_expr(text.strip().replace(" / ", " // ")), draft.sizes))


def capture_shape(draft: Draft, name: str, given: CaptureType | None) -> tuple[int, ...]:
    """The extents of a captured tensor: as `draw` wishes, as `given` says, or one that broadcasts."""
    wish = draft.rule.draw.get(name)
    if isinstance(wish, str) and wish.startswith("like "):
        return _shape_like(draft, wish.removeprefix("like ").strip())
    if isinstance(wish, str) and wish.startswith("shape "):
        choice = draft.choices.pick(wish.removeprefix("shape ").split(" | "), ("draw", name))
        return tuple(one(draft, d.strip()) for d in choice.strip("[] ").split(",") if d.strip())
    if given is None or given.dims is None:
        return () if name in draft.scalars else broadcastable(draft)
    shape: list[int] = []
    for dim in given.dims:
        shape.extend(draft.sizes[dim[1:]] if dim.startswith("*") else (one(draft, dim),))
    return tuple(shape)


def _shape_like(draft: Draft, name: str) -> tuple[int, ...]:
    """That of a value of the pattern which stands before it."""
    made = draft.names.get(name)
    if made is None:
        raise NotDrawable(f"`draw` says `like {name}`, which nothing has made yet", always=True)
    return draft.shape(made)


def broadcastable(draft: Draft) -> tuple[int, ...]:
    """The first such capture has the whole shape, so that the result keeps it; the others may lack axes or have 1."""
    if not any(shape == draft.base for _, shape in draft.inputs.values()):
        return draft.base
    kept = draft.base[draft.choices.between(0, len(draft.base)) :]
    return tuple(d if draft.choices.chance() else 1 for d in kept)
