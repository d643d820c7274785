"""Walks over Pattern and Expression trees: what is bound where, what is used twice, which operator a root can be."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from operator import is_

from fusion_engine.language.operators import MOVEMENT
from fusion_engine.language.text import RuleText
from fusion_engine.language.types import (
    Absent,
    Alternatives,
    Anything,
    Capture,
    EApply,
    EList,
    EName,
    Expression,
    Literal,
    Named,
    OpPattern,
    Pattern,
    Rearrange,
    With,
)

MAX_NODES = 20_000


class Sizes:
    """How many parts a pattern has when written out.

    Fragments share their operands, so trees can be exponentially larger than the objects they are made of.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[Pattern, int]] = {}

    def check(self, pattern: Pattern, text: RuleText, node: ast.expr) -> Pattern:
        """The pattern itself. Raises GapFuseError at `node` where it is too large."""
        if self._size(pattern) > MAX_NODES:
            raise text.error(node, f"the pattern grows beyond {MAX_NODES} parts: fragments multiply")
        return pattern

    def _size(self, pattern: Pattern) -> int:
        if id(pattern) not in self._known:
            size = 1 + sum(self._size(c) for c in children(pattern))
            self._known[id(pattern)] = (pattern, size)  # kept alive, so that its id stays its own
        return self._known[id(pattern)][1]


def rename_expression(expr: Expression, rename: Callable[[str], str]) -> Expression:
    """Every name replaced."""
    match expr:
        case EName(name=name, span=span):
            return EName(rename(name), span)
        case EList(items=items, span=span):
            return EList(tuple(rename_expression(i, rename) for i in items), span)
        case EApply(fn=fn, args=args, span=span):
            return EApply(fn, tuple(rename_expression(a, rename) for a in args), span)
    return expr


def children(pattern: Pattern) -> tuple[Pattern, ...]:
    """The patterns directly inside."""
    match pattern:
        case OpPattern(inputs=inputs):
            return inputs
        case Named(pattern=inner) | With(pattern=inner):
            return (inner,)
        case Rearrange(operand=inner):
            return (inner,)
        case Alternatives(options=options):
            return options
    return ()


def walk(pattern: Pattern) -> Iterator[Pattern]:
    """The pattern and everything inside, outermost first."""
    waiting = [pattern]  # a generator per level would cost each pattern its depth
    while waiting:
        inner = waiting.pop()
        yield inner
        waiting.extend(reversed(children(inner)))


def rebuild(pattern: Pattern, change: Callable[[Pattern], Pattern]) -> Pattern:
    """The same pattern with each direct child changed, left to right."""
    old = children(pattern)
    new = tuple([change(child) for child in old])
    if all(map(is_, old, new)):
        return pattern
    match pattern:
        case OpPattern():
            return replace(pattern, inputs=new)
        case Named() | With():
            return replace(pattern, pattern=new[0])
        case Rearrange():
            return replace(pattern, operand=new[0])
        case Alternatives():
            return replace(pattern, options=new)
    return pattern


def roots(pattern: Pattern, classes: Mapping[str, tuple[str, ...]]) -> frozenset[str] | None:
    """Operators that can make the pattern's value; None where it may be anything."""
    match pattern:
        case Named(pattern=inner) | With(pattern=inner):
            return roots(inner, classes)
        case OpPattern(op=str() as op):
            return frozenset((op,))
        case OpPattern(op_class=str() as name):
            return frozenset(classes[name])
        case OpPattern(callee=str() as callee):
            return None if set(callee) & set("*?[") else frozenset((callee.split(":" * 3)[0],))
        case Rearrange(operand=inner):
            below = roots(inner, classes)
            return frozenset(MOVEMENT) | below if below is not None else frozenset(MOVEMENT)
        case Alternatives(options=options):
            each = [roots(o, classes) for o in options]
            return None if any(r is None for r in each) else frozenset().union(*(r for r in each if r is not None))
    return None


def has_anchor(pattern: Pattern) -> bool:
    """Whether the root is an operator on every path (a globbed function counts)."""
    match pattern:
        case Named(pattern=inner) | With(pattern=inner):
            return has_anchor(inner)
        case Alternatives(options=options):
            return all(has_anchor(o) for o in options)
        case Capture() | Anything() | Absent() | Literal():
            return False
    return True
