"""Sums of C terms with integer factors: where tiles begin and end, kept short enough to be read in the emitted code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fusion_engine.diagnostics import GapFuseError
from fusion_engine.expr import Apply, Expr, Name, Num


@dataclass(frozen=True, slots=True)
class Affine:
    """`sum(factor * text) + const` over C texts of int32_t; without terms it is a number."""

    terms: tuple[tuple[str, int], ...] = ()
    const: int = 0

    def __add__(self, other: Affine | int) -> Affine:
        other = number(other) if isinstance(other, int) else other
        factors = dict(self.terms)
        for text, factor in other.terms:
            factors[text] = factors.get(text, 0) + factor
        return Affine(tuple((t, f) for t, f in factors.items() if f), self.const + other.const)

    def __mul__(self, factor: int) -> Affine:
        return Affine(tuple((t, f * factor) for t, f in self.terms if factor), self.const * factor)

    def __sub__(self, other: Affine | int) -> Affine:
        return self + (number(other) if isinstance(other, int) else other) * -1

    @property
    def is_number(self) -> bool:
        return not self.terms

    def __str__(self) -> str:
        """C text, positive terms first."""
        signed = sorted(((_term(t, f), f < 0) for t, f in self.terms), key=lambda x: x[1])
        if self.const or not signed:
            at = 0 if self.const > 0 and signed and signed[0][1] else len(signed)
            signed.insert(at, (str(abs(self.const)), self.const < 0))
        head, *rest = signed
        return f"{'-' if head[1] else ''}{head[0]}" + "".join(f" {'-' if neg else '+'} {t}" for t, neg in rest)


def _term(text: str, factor: int) -> str:
    return text if abs(factor) == 1 else f"{abs(factor)} * {text}"


def number(value: int) -> Affine:
    return Affine(const=int(value))


def term(text: str) -> Affine:
    """A C name or call as one term."""
    return Affine(((text, 1),))


def least(a: Affine, b: Affine) -> Affine:
    """GF_MIN, folded where the difference is known."""
    if (a - b).is_number:
        return a if (a - b).const <= 0 else b
    return term(f"GF_MIN({a}, {b})")


def greatest(a: Affine, b: Affine) -> Affine:
    """GF_MAX, folded where the difference is known."""
    if (a - b).is_number:
        return a if (a - b).const >= 0 else b
    return term(f"GF_MAX({a}, {b})")


def interval(expr: Expr, ranges: Mapping[str, tuple[Affine, Affine]]) -> tuple[Affine, Affine]:
    """Least and greatest value of a map that is monotone in each axis, for axes within `ranges`; all inclusive.

    Raises GapFuseError for a form that has no place in an index map.
    """
    match expr:
        case Num(value):
            return number(int(value)), number(int(value))
        case Name(name):
            return ranges[name]
        case Apply("+", (a, b)):
            (al, ah), (bl, bh) = interval(a, ranges), interval(b, ranges)
            return al + bl, ah + bh
        case Apply("-", (a, b)):
            (al, ah), (bl, bh) = interval(a, ranges), interval(b, ranges)
            return al - bh, ah - bl
        case Apply("*", (a, b)):
            return _product(interval(a, ranges), interval(b, ranges), expr)
        case Apply("//", (a, Num(by))) if by > 0:
            low, high = interval(a, ranges)
            return _quotient(low, int(by)), _quotient(high, int(by))
        case Apply("%", (a, Num(by))) if by > 0:
            return _remainder(interval(a, ranges), int(by))
        case Apply("min", args):
            return _fold(least, args, ranges)
        case Apply("max", args):
            return _fold(greatest, args, ranges)
        case Apply("clamp", (v, lo, hi)):
            return interval(Apply("min", (Apply("max", (v, lo)), hi)), ranges)
    raise GapFuseError(f"no emitted form for the index map {expr}")


def _product(a: tuple[Affine, Affine], b: tuple[Affine, Affine], expr: Expr) -> tuple[Affine, Affine]:
    if a[0] == a[1] and a[0].is_number:
        a, b = b, a
    if not (b[0] == b[1] and b[0].is_number):
        raise GapFuseError(f"an index map multiplies axes: {expr}")
    factor = b[0].const
    low, high = a[0] * factor, a[1] * factor
    return (low, high) if factor >= 0 else (high, low)


def _quotient(a: Affine, by: int) -> Affine:
    """Exact where every factor divides: (by*q + r) // by = q + r // by."""
    if all(f % by == 0 for _, f in a.terms):
        return Affine(tuple((t, f // by) for t, f in a.terms), a.const // by)
    return term(f"gf_floordiv({a}, {by})")


def _remainder(a: tuple[Affine, Affine], by: int) -> tuple[Affine, Affine]:
    """Exact for a known range within one period; else everything."""
    low, high = a
    if low.is_number and high.is_number and low.const // by == high.const // by:
        return number(low.const % by), number(high.const % by)
    return number(0), number(by - 1)


def _fold(pick, args: tuple[Expr, ...], ranges: Mapping[str, tuple[Affine, Affine]]) -> tuple[Affine, Affine]:  # type: ignore[no-untyped-def]
    low, high = interval(args[0], ranges)
    for a in args[1:]:
        other = interval(a, ranges)
        low, high = pick(low, other[0]), pick(high, other[1])
    return low, high


def times(a: Affine, b: Affine) -> Affine:
    """The product; of two sums that are not numbers, one C term."""
    if b.is_number:
        return a * b.const
    if a.is_number:
        return b * a.const
    return term(" * ".join(f"({x})" if len(x.terms) + bool(x.const) > 1 else str(x) for x in (a, b)))
