"""Rewriting ends because a measure falls: the operators that every rewrite takes away weigh more than those it adds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from fusion_engine.diagnostics import Diagnostic, Span
from fusion_engine.language.trees import children
from fusion_engine.language.types import Alternatives, Named, OpPattern, Pattern, Rewrite, Rule, RuleSet, Variant

At = Callable[[Rule, Span, str, str | None], Diagnostic]


def weights_of(rules: Iterable[Rule]) -> dict[str, int]:
    """What operators weigh, by all rules together; an operator that is not there weighs 1."""
    return {op: weight for rule in rules for op, weight in rule.weights.items()}


def check_measure(rules: RuleSet, at: Callable[[Rule, Span, str, str | None], Diagnostic]) -> Iterator[Diagnostic]:
    """Every rewrite whose measure does not fall, and every weight that two rules see differently."""
    weights: dict[str, int] = {}
    for rule in rules.rules:
        for op, weight in rule.weights.items():
            if weights.setdefault(op, weight) != weight:
                yield at(rule, rule.span, f"`{op}` weighs {weight} here, {weights[op]} by another rule", None)
    for rule in rules.rules:
        for rewrite in rule.rewrite:
            for variant in rule.variants:
                if not rewrite.variants or variant.name in rewrite.variants:
                    yield from _falls(rule, variant, rewrite, weights, rules.classes, at)


def _falls(
    rule: Rule,
    variant: Variant,
    rewrite: Rewrite,
    weights: Mapping[str, int],
    classes: Mapping[str, tuple[str, ...]],
    at: At,
) -> Iterator[Diagnostic]:
    kept = frozenset(variant.shared) if isinstance(variant.shared, tuple) else frozenset(variant.inner)
    patterns = (variant.pattern, *variant.extra)
    before = sum(_least(p, kept, weights, classes) for p in patterns)
    after = sum(weights.get(node.op, 1) for node in rewrite.nodes)
    if after >= before:
        message = f"the measure does not fall: variant `{variant.name}` takes away {before} and adds {after}"
        heavier = f"measure: {{OPERATOR: {after + 1}}}"
        help_ = f"operators weigh 1 unless a rule says more of one that goes and does not come: {heavier}"
        yield at(rule, rewrite.span, message, help_)


def _least(p: Pattern, kept: frozenset[str], weights: Mapping[str, int], classes: Mapping[str, tuple[str, ...]]) -> int:
    """The least weight of the nodes that are certain to go: on the lightest path, shared values left standing."""
    if isinstance(p, Named) and p.name in kept:
        return 0
    below = [_least(c, kept, weights, classes) for c in children(p)]
    if isinstance(p, Alternatives):
        return min(below)
    own = min((weights.get(op, 1) for op in _operators(p, classes)), default=1) if isinstance(p, OpPattern) else 0
    return own + sum(below)


def _operators(p: OpPattern, classes: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    if p.op_class is not None:
        return classes[p.op_class]
    return tuple(n for n in (p.op, p.callee) if n is not None)
