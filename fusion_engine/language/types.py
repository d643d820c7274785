"""A rule as data: what a rule file says after loading. Grammar: docs/rule-language.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fusion_engine.diagnostics import Span

# ---- value-level expressions (`let`, `where`, emit arguments), over numpy; see language/vocabulary.py ----


@dataclass(frozen=True, slots=True)
class ELiteral:
    value: float | int | str | bool | None
    span: Span


@dataclass(frozen=True, slots=True)
class EName:
    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class EList:
    items: tuple[Expression, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class EApply:
    """A function of the vocabulary, an operator (`+`, `<`, `and`, `[]`, ...) or a chained comparison."""

    fn: str
    args: tuple[Expression, ...]
    span: Span


Expression = ELiteral | EName | EList | EApply

# ---- patterns ----


@dataclass(frozen=True, slots=True)
class Capture:
    """A lower-case name: any value; the same name twice is the same value. `_` is `Anything`."""

    name: str
    span: Span


ANY = "_"  # what need not have a name


@dataclass(frozen=True, slots=True)
class Anything:
    span: Span


@dataclass(frozen=True, slots=True)
class Absent:
    """`None`: the optional input is not there."""

    span: Span


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant by value (`0.5`, `[-1]`), rank 0 or 1 alike.

    Equal means within 4 ulp of the literal rounded to the constant's dtype.
    """

    value: float | int | bool | tuple[float, ...] | tuple[int, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class AttrPattern:
    """`attr=literal` (equal, the schema's default if absent) or `attr=name` (captured; each `_` under a name that
    nothing else has)."""

    name: str
    literal: int | float | str | tuple[int, ...] | tuple[float, ...] | None
    capture: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class OpPattern:
    """A node. Exactly one of `op` (ONNX), `callee` (glob of `domain::name[:overload]`), `op_class` (of classes.yaml).

    `op_capture` binds the operator's name for a class. `inputs` are positional; a pair (i, value) of `defaults` is what
    an absent optional input i stands for (`Clip(v, lo = -inf)`). `rest` captures variadic inputs (`*xs`).
    `commutative` lets the first two inputs match both ways.
    """

    op: str | None
    callee: str | None
    op_class: str | None
    op_capture: str | None
    inputs: tuple[Pattern, ...]
    defaults: tuple[tuple[int, float], ...]
    rest: str | None
    attrs: tuple[AttrPattern, ...]
    commutative: bool
    span: Span
    output: int = 0  # which output of the node the surrounding pattern value is


@dataclass(frozen=True, slots=True)
class Named:
    """`c = pattern`: a pattern whose value gets a name, an inner value unless it is the root."""

    name: str
    pattern: Pattern
    span: Span


@dataclass(frozen=True, slots=True)
class Alternatives:
    """`a | b | None`, with real backtracking.

    Every alternative binds the same names. Where an optional capture is missing the loader wraps the alternative in
    `With(..., ((name, ELiteral(None)),))`: the name is an absent capture. Only a plain `b | None` stays as it is.
    """

    options: tuple[Pattern, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class With:
    """A fragment alternative that also binds `name = expression` (`Relu(v) with lo = 0.0, hi = inf`)."""

    pattern: Pattern
    bindings: tuple[tuple[str, Expression], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Rearrange:
    """`rearrange(p, "s b (h d) -> b h s d")`: any chain of movement operators with that index map."""

    operand: Pattern
    text: str
    span: Span


Pattern = Capture | Anything | Absent | Literal | OpPattern | Named | Alternatives | With | Rearrange

# ---- rules ----


@dataclass(frozen=True, slots=True)
class CaptureType:
    """`const real[K] | none in 0.01..10`.

    `dtype` is `real`, `any`, `int`, `bool`, or a numpy name; dims are expression texts, "*S" is a group.
    """

    dtype: str
    dims: tuple[str, ...] | None  # None: any shape
    const: bool
    optional: bool
    low: float | None
    high: float | None
    span: Span


@dataclass(frozen=True, slots=True)
class StoredType:
    """`int8 symmetric axis 0`: the storage an emit entry takes; dtype `float` is the real value itself."""

    dtype: str
    symmetric: bool
    axis: int | None
    span: Span


@dataclass(frozen=True, slots=True)
class TemporaryType:
    """What `int32[N, K] t` says of a temporary, where the kernel's operands alone do not tell (None: they do)."""

    dtype: str | None
    dims: Expression | None


@dataclass(frozen=True, slots=True)
class Emit:
    """One kernel call of an emit entry. `args`/`attrs` map the kernel's names to expressions.

    `results` maps its outputs to the pattern's names or to temporaries; empty: the single output is the pattern's root.
    `types` has the outputs whose type is written out.
    """

    kernel: str
    args: tuple[tuple[str, Expression], ...]
    attrs: tuple[tuple[str, Expression], ...]
    results: tuple[tuple[str, str], ...]
    span: Span
    types: tuple[tuple[str, TemporaryType], ...] = ()


@dataclass(frozen=True, slots=True)
class EmitEntry:
    """An alternative: a sequence of calls under storages; `variants` empty = all.

    `inner` says which inner requantisations are allowed: ("c", "y") for `c: same_as(y)`.
    `when` are extra conditions of this entry alone.
    """

    calls: tuple[Emit, ...]
    variants: tuple[str, ...]
    stored: Mapping[str, StoredType]
    inner: tuple[tuple[str, str], ...]
    when: tuple[tuple[str, Expression], ...]
    within: int | None
    span: Span


@dataclass(frozen=True, slots=True)
class NodeTemplate:
    """A node that a rewrite makes. Names that end in `'` are values of the rewrite itself; None: an absent input."""

    op: str
    inputs: tuple[Expression | None, ...]
    outputs: tuple[str, ...]
    attrs: tuple[tuple[str, Expression], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What stands in the place of a match: nodes in the order in which they are made.

    `names` maps what the lines define, the variant's results among them, to values; `variants` empty = all.
    """

    nodes: tuple[NodeTemplate, ...]
    names: tuple[tuple[str, Expression], ...]
    variants: tuple[str, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Variant:
    """One pattern. `results` are the names of the values that the match gives to the graph (the root first)."""

    name: str
    pattern: Pattern  # of results[0]
    results: tuple[str, ...]
    extra: tuple[Pattern, ...]  # further outputs' patterns, anchored on values shared with the first
    captures: tuple[str, ...]  # value captures in order of appearance
    attr_captures: tuple[str, ...]
    inner: tuple[str, ...]  # named inner values
    let: tuple[tuple[str, Expression], ...]
    where: tuple[tuple[str, Expression], ...]  # (text, condition), the rule's own first
    shared: tuple[str, ...] | str  # names, or "all"
    scope: str | None
    region: str | None  # class name of a region variant
    roots: frozenset[str]  # operators the root can be (for the index); empty = any
    span: Span
    axes: tuple[str, ...] = ()  # axis names of `rearrange` that every path binds


@dataclass(frozen=True, slots=True)
class RuleTest:
    kind: str  # "fires" | "rejects"
    expect: str  # variant or reason
    model: str | None  # ONNX text
    onnx: str | None  # path of a file beside the rule
    constants: tuple[str, ...]
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """One rule file."""

    name: str
    summary: str
    given: Mapping[str, CaptureType]
    draw: Mapping[str, object]
    variants: tuple[Variant, ...]
    emit: tuple[EmitEntry, ...]
    tests: tuple[RuleTest, ...]
    span: Span
    version: str = ""  # hash of the file's text
    priority: int = 0
    rewrite: tuple[Rewrite, ...] = ()  # in place of emit
    weights: Mapping[str, int] = field(default_factory=dict)  # `measure`: what operators weigh in every rewrite


@dataclass(frozen=True, slots=True, eq=False)
class RuleSet:
    """Every rule of the given directories, name-sorted, with the operator classes they use."""

    rules: tuple[Rule, ...]
    classes: Mapping[str, tuple[str, ...]]
    notes: tuple[str, ...] = field(default=())  # e.g. "rule conv2d of DIR overrides the shipped one"
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # lines by file, for messages

    def __repr__(self) -> str:
        return f"RuleSet({', '.join(r.name for r in self.rules)})"
