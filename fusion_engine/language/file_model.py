"""What the files of rules/ may hold. docs/rule-language.md explains; the schemas in rules/ are made from here."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from fusion_engine.file_model import Expression, Scalar, Section, file_schema


class RegionSection(Section):
    ops: str
    """A class of classes.yaml: the operators that the region may hold."""


class VariantSection(Section):
    """One pattern, with what belongs to it alone."""

    variant: str | bool = "any"
    """Its name; `any` if left out."""
    pattern: str
    """Lines `name = pattern`; names that no other line uses are results."""
    let: dict[str, Expression] | None = None
    """Constants computed when compiling, by name."""
    where: list[Scalar] | Scalar | None = None
    """Conditions, one a line; each is a reason of its own to decline."""
    shared: list[str] | str | None = None
    """Inner values that may have users outside the match, or `all`."""
    scope: str | None = None
    """Only nodes that an exporter attributes to one instance of this module class."""
    region: RegionSection | None = None
    """The maximal private region of a class of operators around the root."""


class CallSection(Section):
    """One kernel call of a sequence."""

    kernel: str
    """The kernel's name."""
    args: dict[str, Expression] | None = None
    """Operands, by the kernel's names."""
    attrs: dict[str, Expression] | None = None
    """Attributes, by the kernel's names."""
    results: dict[str, Scalar] | None = None
    """Outputs to results of the pattern or temporaries: `t`, `int32 t`, `float32[N, K] t`."""


class EntrySection(Section):
    """What every emit entry may say."""

    for_: list[str | bool] | str | bool | None = Field(default=None, alias="for")
    """The variants that the entry takes; all if left out."""
    stored: dict[str, str] | None = None
    """Which integers stand for a real: `int8 symmetric axis 0`; of an inner value: rounded to them inside."""
    inner: dict[str, str] | None = None
    """Quantisations inside the match that are allowed: `same_as(y)`."""
    when: list[Scalar] | Scalar | None = None
    """Conditions of this entry alone."""
    within: Scalar | None = None
    """Not supported yet."""


class OneCallSection(CallSection, EntrySection):
    """An entry that is one call."""


class CallsSection(EntrySection):
    """An entry that is a sequence of calls with temporaries between them."""

    calls: list[CallSection]
    """The calls in order; every one but the last names its results."""


class RewriteSection(Section):
    for_: list[str | bool] | str | bool | None = Field(default=None, alias="for")
    """The variants that are rewritten so; all if left out."""
    nodes: str
    """Lines `name = Op(...)`: what stands in the place of the match."""


class TestSection(Section):
    """An example: a small model on which a variant fires, or the rule declines for a stated reason."""

    fires: str | bool | None = None
    """The variant that must fire."""
    rejects: str | None = None
    """The reason that must be given."""
    model: str | None = None
    """A model as ONNX text."""
    onnx: str | None = None
    """A file beside the rule."""
    constants: list[str] | str | None = None
    """Graph inputs to make initializers of."""


class RuleFile(Section):
    """A fusion rule: what to match, and which kernel takes it."""

    rule: str | bool
    """A unique name; a rule of a later --rules folder replaces one of the same name."""
    summary: str | None = None
    """One sentence."""
    given: dict[str, str | None] | None = None
    """Types of the captures: `const real[K] | none in 0.01..10`; `a, b: T` types several."""
    draw: dict[str, Any] | None = None
    """What the generated tests draw sizes and attributes from: `1..8`, `[1, C]`."""
    match: list[VariantSection] | VariantSection
    """The variants, tried in order."""
    let: dict[str, Expression] | None = None
    """Constants of every variant."""
    where: list[Scalar] | Scalar | None = None
    """Conditions of every variant."""
    emit: list[OneCallSection | CallsSection] | OneCallSection | CallsSection | None = None
    """Kernel calls, alternatives by storage; the cheapest cover wins."""
    rewrite: str | list[RewriteSection] | RewriteSection | None = None
    """In place of emit: ONNX nodes that stand for the match."""
    measure: dict[str, int] | None = None
    """What operators weigh in every rewrite, at least 1."""
    tests: list[TestSection] | TestSection | None = None
    """Examples, run with the rule."""
    priority: int | None = None
    """Not supported yet: the cheapest cover is chosen."""


class FragmentsFile(Section):
    """Named alternatives that patterns call in lower case."""

    fragments: dict[str, list[str] | str]
    """`name(params) -> results:` and its alternatives; what an alternative means stands behind `with`."""


class ClassesFile(Section):
    """Named sets of operators: `unary[op](x)` in a pattern, or what a region may hold."""

    classes: dict[str, list[str] | str]
    """Operators by name, `domain::Name`, or an earlier class."""


def rule_schema() -> dict[str, Any]:
    """The JSON schema of a rule file."""
    return file_schema(RuleFile, "gap-fuse rule", "rule.schema.json")


def fragments_schema() -> dict[str, Any]:
    """The JSON schema of fragments.yaml."""
    return file_schema(FragmentsFile, "gap-fuse fragments", "fragments.schema.json")


def classes_schema() -> dict[str, Any]:
    """The JSON schema of classes.yaml."""
    return file_schema(ClassesFile, "gap-fuse operator classes", "classes.schema.json")
