"""What must hold across the parts of one rule: names bound, types there, kernels and signatures right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from fusion_engine.diagnostics import Diagnostic, Span, did_you_mean
from fusion_engine.kernels import KernelSet
from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.language.call_checks import check_broken, check_call
from fusion_engine.language.captures import dim_names
from fusion_engine.language.element_types import At, check_element_types
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
                yield from check_call(rule, call, kernels, at)
                if call.kernel in kernels:
                    yield from check_element_types(rule, entry, call, kernels[call.kernel], at)
    yield from check_broken(rule, kernels or {}, broken, at)
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
