"""What must hold across the parts of one rule: names bound, types there, kernels and signatures right."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from fusion_engine.diagnostics import Diagnostic, Span, counted, did_you_mean
from fusion_engine.kernels import KernelSet
from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.language.captures import dim_names
from fusion_engine.language.element_types import check_element_types
from fusion_engine.language.expressions import expression_names
from fusion_engine.language.rewrites import rewrite_expressions
from fusion_engine.language.trees import children, walk
from fusion_engine.language.types import (
    Alternatives,
    Capture,
    Emit,
    EmitEntry,
    EName,
    Expression,
    Named,
    OpPattern,
    Pattern,
    Rewrite,
    Rule,
    Variant,
)

At = Callable[[Span, str, str | None], Diagnostic]


def check_rule(rule: Rule, kernels: Mapping[str, Kernel] | None, at: At) -> Iterator[Diagnostic]:
    """Every cross-check of a rule; `at` makes a diagnostic at a span. `kernels` None leaves signatures unchecked; those
    of broken kernels of a KernelSet are a warning."""
    broken = kernels.broken if isinstance(kernels, KernelSet) else {}
    yield from _check_given(rule, at)
    for variant in rule.variants:
        yield from _check_variant(rule, variant, at)
    for rewrite in rule.rewrite:
        yield from _check_rewrite(rule, rewrite, at)
    for entry in rule.emit:
        yield from _check_entry(rule, entry, at)
        if kernels is not None:
            for call in entry.calls:
                if call.kernel not in kernels and (call.kernel in broken or "" in broken):
                    continue
                yield from _check_call(rule, call, kernels, at)
                if call.kernel in kernels:
                    yield from check_element_types(rule, entry, call, kernels[call.kernel], at)
    yield from _unchecked(rule, kernels or {}, broken, at)
    for test in rule.tests:
        if test.kind == "fires" and test.expect not in {v.name for v in rule.variants}:
            hint = did_you_mean(test.expect, [v.name for v in rule.variants])
            yield at(test.span, f"no variant is named `{test.expect}`", hint)


# ---- given ----


def _check_given(rule: Rule, at: At) -> Iterator[Diagnostic]:
    known = {n for v in rule.variants for n in (*v.captures, *v.results, *v.inner)}
    for name, type_ in rule.given.items():
        if name not in known:
            yield at(type_.span, f"no pattern captures `{name}`", did_you_mean(name, sorted(known)))
    plain = {d.lstrip("*") for t in rule.given.values() for d in t.dims or ()}
    attrs = {n for v in rule.variants for n in (*v.attr_captures, *v.axes)}
    for type_ in rule.given.values():
        for dim in type_.dims or ():
            for symbol in sorted(dim_names(dim) - plain - attrs):
                yield at(type_.span, f"the size `{symbol}` of `{dim}` cannot be solved", "give it a dim of its own")


def sizes(rule: Rule) -> frozenset[str]:
    """The size symbols that the captures' types introduce."""
    return frozenset(n for t in rule.given.values() for d in t.dims or () for n in dim_names(d) if n[:1].isupper())


# ---- variants ----


def bound_names(rule: Rule, variant: Variant) -> frozenset[str]:
    """What expressions of the variant may read, `let` aside."""
    own = (*variant.captures, *variant.attr_captures, *variant.inner, *variant.results, *variant.axes)
    return frozenset(own) | sizes(rule)


def _check_variant(rule: Rule, variant: Variant, at: At) -> Iterator[Diagnostic]:
    names = set(bound_names(rule, variant))
    for name, expr in variant.let:
        yield from _unbound(expr, names, f"in variant `{variant.name}`", at)
        if name in names:
            yield at(expr.span, f"`{name}` is already bound in variant `{variant.name}`", None)
        names.add(name)
    for _, condition in variant.where:
        yield from _unbound(condition, names, f"in variant `{variant.name}`", at)
    if isinstance(variant.shared, tuple):
        for name in variant.shared:
            if name not in variant.inner:
                yield at(variant.span, f"`{name}` of `shared` is no inner value", did_you_mean(name, variant.inner))
    takers: tuple[EmitEntry | Rewrite, ...] = (*rule.emit, *rule.rewrite)
    if not any(_applies(e, variant) for e in takers):
        what = "rewrite" if rule.rewrite else "emit entry"
        yield at(variant.span, f"no {what} takes the variant `{variant.name}`", "its name is missing from `for`")
    if rule.rewrite and variant.region is not None:
        yield at(variant.span, "a region cannot be rewritten", None)
    yield from _unused(rule, variant, at)


def _unbound(expr: Expression, names: Iterable[str], where: str, at: At) -> Iterator[Diagnostic]:
    known = sorted(names)
    for name in expression_names(expr):
        if name.name not in known:
            yield at(name.span, f"`{name.name}` is not bound {where}", did_you_mean(name.name, known))


def _unused(rule: Rule, variant: Variant, at: At) -> Iterator[Diagnostic]:
    """Captures that nothing reads: a value that the match would drop."""
    expressions: list[Expression] = [e for _, e in (*variant.let, *variant.where)]
    for entry in rule.emit:
        if _applies(entry, variant):
            expressions += [e for c in entry.calls for _, e in (*c.args, *c.attrs)] + [e for _, e in entry.when]
    expressions += [e for r in rule.rewrite if _applies(r, variant) for e in rewrite_expressions(r)]
    read = {n.name for e in expressions for n in expression_names(e)} | sizes(rule)
    read |= {n.name for p in _patterns(variant) for n in _with_names(p)}
    for name, span in _capture_spans(variant).items():
        shown = name.split(".")[-1]
        if name not in read and not shown.startswith("_") and _occurrences(variant, name) < 2:
            own = span if span.file == variant.span.file else variant.span  # a fragment's result is named by the rule
            yield at(own, f"`{shown}` is captured and never used", "write `_` where the value does not matter")


def _patterns(variant: Variant) -> list[Pattern]:
    return [p for root in (variant.pattern, *variant.extra) for p in walk(root)]


def _with_names(pattern: object) -> Iterator[EName]:
    for _, expr in getattr(pattern, "bindings", ()):
        yield from expression_names(expr)


def _capture_spans(variant: Variant) -> dict[str, Span]:
    spans: dict[str, Span] = {}
    patterns = _patterns(variant)
    named = {p.name for p in patterns if isinstance(p, Named)}
    for p in patterns:
        if isinstance(p, Capture) and p.name not in (*variant.inner, *variant.results):
            spans.setdefault(p.name, p.span)
        if isinstance(p, OpPattern):
            for name in [a.capture for a in p.attrs if a.capture] + [n for n in (p.rest, p.op_capture) if n]:
                spans.setdefault(name, p.span)
    return {n: s for n, s in spans.items() if n not in named}


def _occurrences(variant: Variant, name: str) -> int:
    """How often a capture stands in one path; alternatives count once, by their fullest option."""

    def count(p: Pattern) -> int:
        own = int(isinstance(p, Capture) and p.name == name)
        if isinstance(p, OpPattern):
            own += sum(a.capture == name for a in p.attrs)
        inner = [count(c) for c in children(p)]
        return own + (max(inner, default=0) if isinstance(p, Alternatives) else sum(inner))

    return sum(count(p) for p in (variant.pattern, *variant.extra))


# ---- emit ----


def _applies(entry: EmitEntry | Rewrite, variant: Variant) -> bool:
    return not entry.variants or variant.name in entry.variants


def _check_entry(rule: Rule, entry: EmitEntry, at: At) -> Iterator[Diagnostic]:
    names = [v.name for v in rule.variants]
    for name in entry.variants:
        if name not in names:
            yield at(entry.span, f"no variant is named `{name}`", did_you_mean(name, names))
    for variant in rule.variants:
        if _applies(entry, variant):
            yield from _check_bound(rule, entry, variant, at)


def _check_rewrite(rule: Rule, rewrite: Rewrite, at: At) -> Iterator[Diagnostic]:
    """Results are made, names are bound, in every variant."""
    names = [v.name for v in rule.variants]
    for name in rewrite.variants:
        if name not in names:
            yield at(rewrite.span, f"no variant is named `{name}`", did_you_mean(name, names))
    for variant in rule.variants:
        if not _applies(rewrite, variant):
            continue
        known = (bound_names(rule, variant) | {n for n, _ in variant.let}) - {*variant.results, *_gone(variant)}
        for expr in rewrite_expressions(rewrite):
            yield from _unbound(expr, known, f"in variant `{variant.name}`", at)
        for result in variant.results:
            if result not in dict(rewrite.names):
                yield at(rewrite.span, f"the rewrite does not make `{result}`", f"write a line `{result} = ...`")


def _gone(variant: Variant) -> frozenset[str]:
    """Inner values that a rewrite takes away."""
    kept = variant.inner if variant.shared == "all" else variant.shared
    return frozenset(variant.inner) - frozenset(kept)


def _check_bound(rule: Rule, entry: EmitEntry, variant: Variant, at: At) -> Iterator[Diagnostic]:
    names = set(bound_names(rule, variant)) | {n for n, _ in variant.let}
    where = f"in variant `{variant.name}`"
    for _, condition in entry.when:
        yield from _unbound(condition, names, where, at)
    for name, type_ in entry.stored.items():
        if name not in (*variant.captures, *variant.results, *variant.inner):
            yield at(type_.span, f"`{name}` is not captured {where}", did_you_mean(name, sorted(names)))
    for name, like in entry.inner:
        for n, known in ((name, variant.inner), (like, (*variant.results, *variant.captures, *variant.inner))):
            if n not in known:
                yield at(entry.span, f"`{n}` is no inner value {where}", did_you_mean(n, known))
    for i, call in enumerate(entry.calls):
        for _, expr in (*call.args, *call.attrs):
            yield from _unbound(expr, names, where, at)
        yield from _check_types(rule, variant, call, at)
        for output, written in call.types:
            if written.dims is not None:
                yield from _unbound(written.dims, names, where, at)
            if dict(call.results)[output] in (*variant.results, *variant.inner):
                yield at(call.span, f"`{dict(call.results)[output]}` has its type from the graph", "leave it out")
        yield from _check_results(variant, call, i == len(entry.calls) - 1, names, at)
        names |= {target for _, target in call.results}


def _check_types(rule: Rule, variant: Variant, call: Emit, at: At) -> Iterator[Diagnostic]:
    """A captured tensor that a kernel takes has a type in `given`."""
    for _, expr in call.args:
        for name in expression_names(expr):
            if name.name in variant.captures and name.name not in rule.given:
                yield at(name.span, f"`{name.name}` has no type in `given`", None)


def _check_results(variant: Variant, call: Emit, last: bool, names: set[str], at: At) -> Iterator[Diagnostic]:
    if not call.results and not last:
        yield at(call.span, "a call before the last must name its results", "results: {y: temporary}")
    for _, target in call.results:
        if target in names and target not in (*variant.results, *variant.inner):
            yield at(call.span, f"`{target}` is already bound", "a temporary needs a name of its own")


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


def _check_call(rule: Rule, call: Emit, kernels: Mapping[str, Kernel], at: At) -> Iterator[Diagnostic]:
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


def _unchecked(rule: Rule, kernels: Mapping[str, Kernel], broken: Mapping[str, Span], at: At) -> Iterator[Diagnostic]:
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
