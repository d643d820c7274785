"""What verify found, and how it says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fusion_engine.diagnostics import counted
from gap_fuse.code_size import CodeSize
from gap_fuse.comparing import Agreement, Difference, TopOne
from gap_fuse.proving import CallProof


@dataclass(frozen=True)
class OutputVerdict:
    """One graph output over all samples: C against the model, run `by` what. `step` is a quantisation step (0: a float
    network)."""

    name: str
    found: Agreement
    step: float
    decisions: TopOne | None
    accuracy: tuple[float, float] | None  # model, C
    by: str = "onnxruntime"

    @property
    def model(self) -> Difference:
        """C against the model."""
        return self.found.model

    @property
    def passed(self) -> bool:
        if self.decisions is not None and self.decisions.errors:
            return False
        return self.step > 0 or self.found.passed


@dataclass(frozen=True)
class Verdict:
    """What verify found. `passed` is the exit code's word."""

    network: str
    samples: int
    compared: int  # samples, the first ones, of which every buffer was compared with the references
    buffers: Mapping[str, Difference]  # C against references, worst over these samples and all timings
    unequal: tuple[str, ...]  # buffers where C and reference differ beyond the tolerance
    calls: Sequence[CallProof]
    outputs: tuple[OutputVerdict, ...]  # none where nothing runs the model
    counters: tuple[str, ...]  # sentences where the C's counters are not the plan's
    refused: str = ""  # why onnxruntime does not run the file
    size: CodeSize | None = None  # None where it was not looked at

    @property
    def passed(self) -> bool:
        return (
            not self.unequal
            and not self.counters
            and (self.size is None or self.size.passed)
            and all(o.passed for o in self.outputs)
            and all(c.passed for c in self.calls)
        )

    def __str__(self) -> str:
        return "\n".join(
            [
                *self._reference_lines(),
                *self._call_lines(),
                *([] if self.size is None else [f"  size        {self.size}"]),
                *self._refusal(),
                *(line for o in self.outputs for line in _output_lines(o)),
                self._last_line(),
            ]
        )

    def _refusal(self) -> list[str]:
        if not self.refused:
            return []
        return [f"  {self.refused}", *([] if self.outputs else ["    nothing else does: not compared with the model"])]

    def _reference_lines(self) -> list[str]:
        worst = max(self.buffers.values(), key=lambda d: d.relative, default=Difference(0, 0, 0.0, 0.0))
        values = sum(d.values for d in self.buffers.values())
        head = (
            f"  references  {counted(len(self.buffers), 'buffer')} of {self._compared()}, {counted(values, 'value')}: "
        )
        if self.unequal:
            return [
                head + "C and reference differ",
                *(f"    {name}: {_words(self.buffers[name])}" for name in self.unequal),
            ]
        exact = all(d.differing == 0 for d in self.buffers.values())
        return [
            head
            + (
                "equal bit for bit"
                if exact
                else f"equal for integers, floats within {worst.relative:.1e} of the largest magnitude"
            )
        ]

    def _compared(self) -> str:
        some = f"the first {self.compared} of {self.samples:,} samples"
        return some if self.compared < self.samples else counted(self.samples, "sample")

    def _call_lines(self) -> list[str]:
        bad = [c for c in self.calls if not c.passed]
        unrun = [c for c in self.calls if c.found is None]
        ran = len(self.calls) - len(unrun)
        results = counted(ran, "result")
        some = ", the first sample" if self.samples > 1 else ""
        head = f"  calls       {results} of calls and views against their ONNX nodes on equal inputs{some}: "
        steps = max((c.steps for c in self.calls if c.steps is not None), default=None)
        good = "within tolerance" if steps is None else f"within {steps:g} step{'' if steps == 1 else 's'}"
        lines = [head + (f"{len(bad)} differ" if bad else good)] if ran else []
        return [*lines, *(f"    {c}" for c in (*bad, *unrun)), *(f"  counters    {s}" for s in self.counters)]

    def _last_line(self) -> str:
        word = "verified" if self.passed else "FAILED"
        word += "" if self.outputs else " against the kernels' references only"
        return f"{self.network}: {word} on {counted(self.samples, 'sample')}"


def _words(d: Difference) -> str:
    return f"{d.differing:,} of {d.values:,} values, by up to {d.worst:.6g} (largest magnitude {d.scale:.6g})"


def _output_lines(o: OutputVerdict) -> list[str]:
    lines = [f"  {o.by} {o.name}: {_against_model(o)}"]
    if o.decisions is not None:
        lines.append(f"    top-1 agrees on {o.decisions.agreeing} of {o.decisions.samples}")
        lines += [
            f"    sample {i}: model says {b}, C says {a}, margin {m:.1f} steps (doubtful)"
            for i, b, a, m in o.decisions.doubts
        ]
        lines += [
            f"    sample {i}: model says {b}, C says {a}, margin {m:.1f} steps: WRONG"
            for i, b, a, m in o.decisions.errors
        ]
    if o.accuracy is not None:
        lines.append(f"    accuracy: model {o.accuracy[0]:.2%}, C {o.accuracy[1]:.2%}")
    return lines


def _against_model(o: OutputVerdict) -> str:
    if o.step and o.model.differing:
        return f"{o.model.differing:,} of {o.model.values:,} values differ, by up to {o.model.worst / o.step:.4g} steps"
    return str(o.found)
