"""Rules ready to be searched: compiled variants by the operators that their root can be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fusion_engine.language.trees import children, walk
from fusion_engine.language.types import (
    Alternatives,
    Expression,
    Named,
    OpPattern,
    Pattern,
    Rearrange,
    Rule,
    RuleSet,
    Variant,
    With,
)
from fusion_engine.matching.anchors import compile_extras
from fusion_engine.matching.compile import Layout, Matcher, compile_pattern
from fusion_engine.matching.environment import free_names
from fusion_engine.matching.facts import Facts
from fusion_engine.matching.given import Dims, compile_check, compile_dims
from fusion_engine.matching.operators import callee_matches
from fusion_engine.matching.rearrange import MOVEMENT
from fusion_engine.matching.state import State
from fusion_engine.view.types import View


@dataclass(frozen=True, slots=True, eq=False)
class Compiled:
    """One variant: its matcher from the root, where names lie in the state, and what is checked afterwards."""

    rule: Rule
    variant: Variant
    start: Matcher
    slots: Mapping[str, int]
    operators: int
    needed: int  # operators of the shortest alternative
    dims: tuple[Dims, ...]
    late_let: frozenset[str]  # `let` names that read a result's storage
    position: int
    deferred: tuple[Expression, ...]  # what `with` binds
    region: frozenset[str] = frozenset()  # operators that a region variant's region may hold


@dataclass(frozen=True, eq=False)
class Index:
    """`by_root[op]` in order of rule name and variant; `anywhere` are variants whose root may be any operator."""

    by_root: Mapping[str, tuple[Compiled, ...]]
    anywhere: tuple[Compiled, ...]

    @property
    def all(self) -> tuple[Compiled, ...]:
        """Every variant once, in order."""
        found = {c.position: c for several in (*self.by_root.values(), self.anywhere) for c in several}
        return tuple(c for _, c in sorted(found.items()))

    def of(self, regions: bool) -> Index:
        """The region variants alone, or the others alone."""
        kept = {op: tuple(c for c in found if bool(c.region) == regions) for op, found in self.by_root.items()}
        return Index(kept, tuple(c for c in self.anywhere if bool(c.region) == regions))

    def at(self, op: str) -> tuple[Compiled, ...]:
        found = self.by_root.get(op, ())
        if not self.anywhere:
            return found
        return tuple(sorted((*found, *self.anywhere), key=lambda c: c.position))


def build_index(
    facts: Facts, rules: RuleSet, explain: bool, only: Iterable[str] | None = None, rewriting: bool = False
) -> Index:
    """Compile the variants that the model's operators allow; `only` keeps those that mention one of these operators.

    Without `explain`, variants that could match but never emit are left out too. `rewriting`: the rules that rewrite,
    and no others; else the rules that emit, and with `explain` both.
    """
    wanted = None if only is None else frozenset(only)
    by_root: dict[str, list[Compiled]] = {}
    anywhere: list[Compiled] = []
    position = 0
    for rule in sorted((r for r in rules.rules if explain or bool(r.rewrite) == rewriting), key=lambda r: r.name):
        for variant in rule.variants:
            position += 1
            if not _possible(facts, variant, rules.classes, wanted):
                continue
            if not explain and not rewriting and not _storable(facts, rule, variant):
                continue
            compiled = compile_variant(facts, rule, variant, rules.classes, position)
            roots = _roots(facts, variant, rules.classes)
            if roots is None:
                anywhere.append(compiled)
            for op in sorted(roots or ()):
                by_root.setdefault(op, []).append(compiled)
    return Index({op: tuple(found) for op, found in by_root.items()}, tuple(anywhere))


def compile_variant(
    facts: Facts, rule: Rule, variant: Variant, classes: Mapping[str, tuple[str, ...]], position: int
) -> Compiled:
    """Closures and checks of one variant for one view."""
    checks = {name: compile_check(name, given) for name, given in rule.given.items()}
    layout = Layout(facts, classes, rule.given, checks, frozenset((*variant.inner, *variant.results)))
    finish = compile_extras(variant, layout, _found)
    start = compile_pattern(_named_root(variant), finish, layout, variant.results[0])
    for name in (*variant.captures, *variant.attr_captures, *variant.inner, *variant.results):
        layout.slot(name)
    dims = tuple(compile_dims(name, g.dims) for name, g in rule.given.items() if g.dims is not None)
    late = _late(variant)
    region = frozenset(classes[variant.region]) if variant.region is not None else frozenset[str]()
    needed = sum(_least_operators(p) for p in (variant.pattern, *variant.extra))
    return Compiled(
        rule, variant, start, layout.slots, layout.operators, needed, dims, late, position, _with(variant), region
    )


def _least_operators(pattern: Pattern) -> int:
    """How many operators the shortest way through the pattern has."""
    inner = [_least_operators(c) for c in children(pattern)]
    if isinstance(pattern, Alternatives):
        return min(inner, default=0)
    return sum(inner) + isinstance(pattern, OpPattern)


def _found(st: State) -> None:
    st.found(st)


def _named_root(variant: Variant) -> Pattern:
    p, name = variant.pattern, variant.results[0]
    return p if isinstance(p, Named) and p.name == name else Named(name, p, p.span)


def _with(variant: Variant) -> tuple[Expression, ...]:
    return tuple(
        e
        for root in (variant.pattern, *variant.extra)
        for p in walk(root)
        if isinstance(p, With)
        for _, e in p.bindings
    )


def _late(variant: Variant) -> frozenset[str]:
    late: set[str] = set()
    tainted = set(variant.results)
    for _ in variant.let:
        for name, expression in variant.let:
            if name not in late and tainted.intersection(free_names(expression)):
                late.add(name)
                tainted.add(name)
    return frozenset(late)


# ---- which variants can match at all ----


def _roots(facts: Facts, variant: Variant, classes: Mapping[str, tuple[str, ...]]) -> frozenset[str] | None:
    """The model's operators that the root can be; None where it can be any."""
    named = _root_operators(variant.pattern, classes, facts)
    if named is not None:
        return named
    return variant.roots or None


def _root_operators(p: Pattern, classes: Mapping[str, tuple[str, ...]], facts: Facts) -> frozenset[str] | None:
    """Functions by glob are looked up in the model; movement chains are left to `Variant.roots`."""
    match p:
        case Named(pattern=inner) | With(pattern=inner):
            return _root_operators(inner, classes, facts)
        case OpPattern():
            return frozenset(_operators_of(p, classes, facts))
        case Alternatives(options=options):
            each = [_root_operators(o, classes, facts) for o in options]
            return None if None in each else frozenset().union(*(e for e in each if e is not None))
    return None


def _operators_of(p: OpPattern, classes: Mapping[str, tuple[str, ...]], facts: Facts) -> list[str]:
    if p.op is not None:
        return [p.op]
    if p.op_class is not None:
        return list(classes[p.op_class])
    return sorted({op for op, overload in facts.functions if callee_matches(p.callee or "", op, overload)})


def _possible(
    facts: Facts, variant: Variant, classes: Mapping[str, tuple[str, ...]], wanted: frozenset[str] | None
) -> bool:
    if _absent(facts, variant, classes):
        return False
    if wanted is None:
        return True
    return any(
        wanted & mentioned for p in (variant.pattern, *variant.extra) for mentioned in _mentioned(p, classes, facts)
    )


def _storable(facts: Facts, rule: Rule, variant: Variant) -> bool:
    """Whether some emit entry stores its results in element types that the model has."""
    entries = [e for e in rule.emit if not e.variants or variant.name in e.variants]
    stored = [[s.dtype for name in variant.results if (s := e.stored.get(name)) is not None] for e in entries]
    return any(all(dtype == "float" or dtype in facts.dtypes for dtype in dtypes) for dtypes in stored)


def lacking_operators(view: View, rule: Rule, classes: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Operators without which no variant of the rule can begin to match and of which the view has none; () where some
    variant has all that it needs. Several that would do are one text, `Relu or Clip`."""
    facts = Facts(view)
    lacking = [_absent(facts, variant, classes) for variant in rule.variants]
    fewest = min(lacking, key=len, default=[])
    return tuple(dict.fromkeys(" or ".join(sorted(need)[:3]) or "function that it names" for need in fewest))


def _absent(facts: Facts, variant: Variant, classes: Mapping[str, tuple[str, ...]]) -> list[frozenset[str]]:
    needs = [n for p in (variant.pattern, *variant.extra) for n in _required(p, classes, facts)]
    return [need for need in needs if not need & facts.operators]


def _required(p: Pattern, classes: Mapping[str, tuple[str, ...]], facts: Facts) -> list[frozenset[str]]:
    """Sets of operators of which the model must have one each."""
    match p:
        case Named(pattern=inner) | With(pattern=inner) | Rearrange(operand=inner):
            return _required(inner, classes, facts)
        case OpPattern(inputs=inputs):
            own = frozenset(_operators_of(p, classes, facts))
            return [own, *(need for i in inputs for need in _required(i, classes, facts))]
        case Alternatives(options=options):
            each = [set(_required(o, classes, facts)) for o in options]
            return sorted(set.intersection(*each), key=sorted)
    return []


def _mentioned(p: Pattern, classes: Mapping[str, tuple[str, ...]], facts: Facts) -> list[frozenset[str]]:
    match p:
        case Named(pattern=inner) | With(pattern=inner):
            return _mentioned(inner, classes, facts)
        case Rearrange(operand=inner):
            return [MOVEMENT, *_mentioned(inner, classes, facts)]
        case OpPattern(inputs=inputs):
            own = frozenset(_operators_of(p, classes, facts))
            return [own, *(m for i in inputs for m in _mentioned(i, classes, facts))]
        case Alternatives(options=options):
            return [m for o in options for m in _mentioned(o, classes, facts)]
    return []
