"""What proving a rule found."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import onnx

from fusion_engine.diagnostics import Span


@dataclass(frozen=True, slots=True, eq=False)
class Failure:
    """What the proof caught: by which check, a sentence, where in the rule file, and the smallest model that shows
    it."""

    check: str  # "fires", "values", "measure", "left over", "near miss: KIND", "example", "not exercised"
    rule: str
    variant: str
    message: str
    span: Span
    model: onnx.ModelProto | None = None

    def __str__(self) -> str:
        head = f"{self.span}: {self.check}: rule {self.rule} ({self.variant}): {self.message}"
        return head if self.model is None else f"{head}\n{model_text(self.model)}"


def model_text(model: onnx.ModelProto) -> str:
    """The model as ONNX text, indented."""
    return "\n".join(f"    {line}" for line in onnx.printer.to_text(model).splitlines())


@dataclass(eq=False)
class Worst:
    """The worst errors seen: integers in steps, floats in ULP of the largest magnitude."""

    steps: float | None = None
    ulp: float | None = None

    def add(self, worst: float, unit: str) -> None:
        if unit == "steps":
            self.steps = max(self.steps or 0.0, worst)
        if unit == "ULP":
            self.ulp = max(self.ulp or 0.0, worst)

    def __str__(self) -> str:
        steps = [] if self.steps is None else [f"{self.steps:g} step{'' if self.steps == 1 else 's'}"]
        return ", ".join([*steps, *([] if self.ulp is None else [f"{self.ulp:.2g} ULP"])]) or "-"


@dataclass(eq=False)
class MissCount:
    """Mutants of one kind: `declined`, `right` (the rule fired and the whole answer is right), of these `unchanged`
    (the mutant computes the same), `illegal` (no model)."""

    declined: int = 0
    right: int = 0
    unchanged: int = 0
    illegal: int = 0
    wrong: int = 0


@dataclass(eq=False)
class VariantProof:
    """One variant's figures. `fired` is by emit entry, `declined` by reason, `misses` by kind of mutation."""

    name: str
    drawn: int = 0
    discarded: Counter[str] = field(default_factory=Counter)
    fired: Counter[str] = field(default_factory=Counter)
    declined: Counter[str] = field(default_factory=Counter)
    misses: dict[str, MissCount] = field(default_factory=dict)
    reasons: Counter[str] = field(default_factory=Counter)  # why near misses were declined
    worst: Worst = field(default_factory=Worst)
    notes: list[str] = field(default_factory=list)


@dataclass(eq=False)
class RuleProof:
    """Everything found about one rule; it passed where `failures` is empty."""

    rule: str
    span: Span
    variants: list[VariantProof] = field(default_factory=list)
    examples: int = 0
    failures: list[Failure] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return not self.failures
