"""Fields of kernel.yaml that hold expressions."""

from __future__ import annotations

from fusion_engine.expr import Expr, ExprError, parse_expr
from fusion_engine.marked_yaml import Marked, Problems, as_list, as_text


def read_expression(m: Marked | None, what: str, problems: Problems) -> Expr | None:
    """A scalar as an expression; None (and a diagnostic at the guilty columns) where it is none."""
    text = as_text(m, what, problems)
    if m is None or text is None:
        return None
    try:
        return parse_expr(text)
    except ExprError as e:
        problems.append(m.error_at(0, e.col, e.end, e.message))
        return None


def read_conditions(m: Marked | None, what: str, problems: Problems) -> tuple[tuple[str, Expr], ...]:
    """A list of conditions with their text."""
    items = [(i.text.strip(), read_expression(i, what, problems)) for i in as_list(m, what, problems)]
    return tuple((text, e) for text, e in items if e is not None)
