"""An emit entry's calls beside the signatures of the kernels that they name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from fusion_engine.diagnostics import Diagnostic, Span, counted, did_you_mean
from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.language.element_types import At
from fusion_engine.language.types import (
    Emit,
    Rule,
)


def _check_temporaries(rule: Rule, call: Emit, kernel: Kernel, at: At) -> Iterator[Diagnostic]:
    """A temporary whose element type the operands do not tell must be written with it."""
    known = {n for v in rule.variants for n in (*v.results, *v.inner)}
    told = {o.dtype for o in kernel.inputs}
    written = {n for n, t in call.types if t.dtype is not None}
    for output, name in call.results:
        o = next((o for o in kernel.outputs if o.name == output), None)
        if o is None or name in known or output in written or o.dtype not in kernel.dtypes or o.dtype in told:
            continue
        message = f"the element type of `{name}` does not follow from what `{kernel.name}` is given"
        yield at(call.span, message, f"write it: results: {{{output}: {kernel.dtypes[o.dtype][0]} {name}}}")


def check_call(rule: Rule, call: Emit, kernels: Mapping[str, Kernel], at: At) -> Iterator[Diagnostic]:
    kernel = kernels.get(call.kernel)
    if kernel is None:
        yield at(call.span, f"unknown kernel `{call.kernel}`", did_you_mean(call.kernel, kernels))
        return
    inputs = {o.name: o for o in kernel.inputs}
    attrs = {a.name: a for a in kernel.attrs}
    outputs = [o.name for o in kernel.outputs]
    yield from _unknown("operand", call.kernel, [(n, e.span) for n, e in call.args], inputs, at)
    yield from _unknown("attribute", call.kernel, [(n, e.span) for n, e in call.attrs], attrs, at)
    yield from _unknown("result", call.kernel, [(n, call.span) for n, _ in call.results], outputs, at)
    given = {n for n, _ in call.args} | {n for n, _ in call.attrs}
    for name in [o.name for o in kernel.inputs if not o.optional] + [a.name for a in kernel.attrs if a.required]:
        if name not in given:
            yield at(call.span, f"kernel `{call.kernel}` needs `{name}`", f"it takes {_signature(kernel)}")
    yield from _check_temporaries(rule, call, kernel, at)
    if not call.results and len(outputs) != 1:
        example = ", ".join(f"{name}: NAME" for name in outputs)
        help_ = f"results: {{{example}}}, a NAME being a result of the pattern"
        yield at(call.span, f"kernel `{call.kernel}` has {counted(len(outputs), 'result')}: name them", help_)


def check_broken(rule: Rule, kernels: Mapping[str, Kernel], broken: Mapping[str, Span], at: At) -> Iterator[Diagnostic]:
    """Kernels with mistakes of their own that the rule calls: each once, at its first call."""
    first = {call.kernel: call.span for entry in reversed(rule.emit) for call in reversed(entry.calls)}
    for name, span in sorted(first.items(), key=lambda kv: kv[1]):
        place = broken.get(name) or broken.get("")
        if name not in kernels and place is not None:
            said = f"calls of `{name}` are not checked: "
            said += "the kernel has mistakes" if name in broken else "it may be in what was not read"
            yield replace(at(span, said, f"see {place}"), severity="warning")


def _signature(kernel: Kernel) -> str:
    return ", ".join([*(o.name for o in kernel.inputs), *(a.name for a in kernel.attrs)])


def _unknown(
    what: str, kernel: str, words: Iterable[tuple[str, Span]], known: Iterable[str], at: At
) -> Iterator[Diagnostic]:
    names = tuple(known)
    for word, span in words:
        if word not in names:
            hint = did_you_mean(word, names) or f"it has: {', '.join(names) or 'none'}"
            yield at(span, f"kernel `{kernel}` has no {what} `{word}`", hint)
