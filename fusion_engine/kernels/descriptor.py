"""A kernel as data: what kernel.yaml says, checked and parsed. Contract: ARCHITECTURE.md, "Kernels"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fusion_engine.expr import Expr
from fusion_engine.graph import CallAttr

Group = str  # a dimension group of any rank is written "*S"


@dataclass(frozen=True, slots=True)
class OperandType:
    """An operand of the signature: `const int8[K, CG, R, S]`, `T[*S]`, with `...` variadic, with `| none` optional."""

    name: str
    dtype: str  # a numpy name, or a variable of `dtypes`
    dims: tuple[str, ...]  # a size symbol, an int literal, or a group "*S"
    const: bool = False
    optional: bool = False
    variadic: bool = False


@dataclass(frozen=True, slots=True)
class AttrType:
    """An attribute: `int8 = 0`, `int[2] = [1, 1]`, `str`. `length`: None for scalars, -1: any; required: no default."""

    name: str
    dtype: str
    length: int | None
    default: CallAttr | None
    required: bool


@dataclass(frozen=True, slots=True)
class Access:
    """One integer index map: operand[index, ...]. A None index is the whole extent (`0:6`)."""

    operand: str
    index: tuple[Expr | None, ...]


@dataclass(frozen=True, slots=True)
class Outside:
    """What an index outside the operand means: `border` (a value), `skip` (takes no part), `never` (cannot happen)."""

    do: Literal["border", "skip", "never"]
    value: str | None = None


@dataclass(frozen=True, slots=True)
class Frame:
    """The result is operand `of` and around it, `pads` wide (the attribute: [begin, end] of every axis), `value` (the
    attribute). Where `of` may be made inside the result, calls of the kernel `fill`, which takes `shape` and `value`,
    make the rest."""

    of: str
    fill: str


@dataclass(frozen=True, slots=True)
class Scratch:
    name: str
    bytes: Expr
    per: Literal["core", "call"] = "core"


@dataclass(frozen=True, slots=True)
class Accumulate:
    """What stays in L1 from tile to tile over split axes; the call gets `first` and `last`.

    `accumulate`: partial sums over reduction axes. `carry` (`ordered`): a recurrence's state; its axes are walked in
    the sequence of `over`, outermost first, each ascending, and results may run along them.
    """

    name: str
    dtype: str
    index: tuple[Expr, ...]
    over: tuple[str, ...]
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class TileRule:
    """Every tile but the last is a multiple of `step`; none exceeds `max`."""

    step: Expr | None = None
    max: Expr | None = None


@dataclass(frozen=True, slots=True)
class Implementation:
    """One C function. `orders` maps an operand to its dims, outermost first, or "any" (the call gets strides),
    or "same:x" (any, but as x). Unnamed operands are row-major (constants) or follow `default_order`."""

    name: str
    source: str | None
    symbol: str
    cycles: Expr
    orders: Mapping[str, tuple[str, ...] | str]
    whole: tuple[str, ...] = ()
    team: str | None = None
    tile: Mapping[str, TileRule] | None = None
    align: Mapping[str, int] | None = None
    scratch: tuple[Scratch, ...] = ()
    when: tuple[tuple[str, Expr], ...] = ()  # (text, condition)
    accumulate: Accumulate | None = None
    reads_at: Mapping[str, Literal["first", "last"]] | None = None
    reuse: Mapping[str, tuple[str, ...]] | None = None
    gather: tuple[str, ...] = ()
    pitch: tuple[str, ...] = ()  # operands whose rows (innermost dims) may lie apart: the call gets the distance
    lines: tuple[str, ...] = ()  # those of them whose lines of rows (of the next dim) may lie apart, too: the same
    origin: tuple[str, ...] = ()
    rank: int | None = None  # any-rank groups are flattened to exactly this many axes
    isa: tuple[str, ...] = ()
    generate: tuple[str, str] | None = None  # (file, function): the C text comes from the attributes
    stack: int = 0


@dataclass(frozen=True)
class Kernel:
    """One folder of kernels/."""

    name: str
    summary: str
    folder: Path
    inputs: tuple[OperandType, ...]
    outputs: tuple[OperandType, ...]
    attrs: tuple[AttrType, ...]
    sizes: tuple[tuple[str, Expr], ...]
    where: tuple[tuple[str, Expr], ...]
    dtypes: Mapping[str, tuple[str, ...]]
    semantics: tuple[str, str] | None  # (file, function)
    axes: tuple[tuple[str, str], ...]  # (axis, extent symbol or expression text or group)
    access: tuple[Access, ...]
    outside: Mapping[str, Outside]
    implementations: tuple[Implementation, ...]
    view: Literal["reshape", "transpose", "slice", "concat"] | None = None  # no C: the result is the same bytes
    frame: Frame | None = None
    origin: str = ""  # the directory it was loaded from, for messages

    @property
    def operands(self) -> tuple[OperandType, ...]:
        return self.inputs + self.outputs
