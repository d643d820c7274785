"""explain(): the explanation of a model as text for people, or as a JSON document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fusion_engine import Explanation, NotCoveredError, plan, read_model
from fusion_engine import explain as explain_plan
from fusion_engine.diagnostics import Diagnostic, counted, excerpt
from fusion_engine.explanation import Attempt, NodeReport, Rewriting, RuleReport, Taker
from gap_fuse.library import Library, load_library
from gap_fuse.oracle import answers
from gap_fuse.rooms import shown

NEAR = 0.5  # share of a pattern that fitted, from which on an attempt is shown in full
SHOWN = 10  # attempts shown in full
LISTED = 8  # places of one rule
LONG = 60  # characters of a name


@dataclass(frozen=True, slots=True)
class Explained:
    """An explanation; `problems` says which nodes no rule takes (no plan then, so no takers)."""

    explanation: Explanation
    problems: tuple[Diagnostic, ...] = ()


def explain(
    model: Path,
    *,
    node: str | None = None,
    rule: str | None = None,
    dims: Mapping[str, int] | None = None,
    rules: Sequence[Path] = (),
    kernels: Sequence[Path] = (),
) -> Explained:
    """Which rule took which node of the model, and why others did not. Raises GapFuseError for bad input."""
    library = load_library(rules, kernels)
    read = read_model(model, dims or {})
    try:
        planned = plan(read, library.rules, library.kernels, check=answers)
    except NotCoveredError as e:
        return Explained(_noted(explain_plan(e.attempt, node=node, rule=rule), library), e.diagnostics)
    return Explained(_noted(explain_plan(planned, node=node, rule=rule), library))


def _noted(explanation: Explanation, library: Library) -> Explanation:
    return replace(explanation, notes=(*library.kernels.notes, *explanation.notes))


# ---- text ----


def explanation_lines(e: Explanation) -> Iterator[str]:
    """The text of an explanation: nodes, then rules; an excerpt of the rule file where an attempt came close."""
    asked = len(e.rules) == 1 or not (e.nodes and e.rules)
    for n in e.nodes:
        yield from _node_closely(n) if asked else (_node_line(n, _width(e.nodes)),)
    if e.rules:
        yield from [] if not e.nodes else [""]
        yield from _rule_closely(e.rules[0]) if asked else _rule_summary(e.rules)
    yield from (f"note: {note}" for note in e.notes)


def _rewriting(r: Rewriting) -> str:
    return f"rewritten by rule {r.rule} ({r.variant}): {', '.join(map(short, r.nodes))}"


def _width(nodes: Sequence[NodeReport]) -> int:
    return min(LONG, max((len(short(n.name)) for n in nodes), default=0))


def _node_line(n: NodeReport, width: int) -> str:
    if n.gone:
        return f"{short(n.name):{width}}  {n.op}: {n.gone}"
    takers = "; ".join(map(_taken, n.takers))
    nothing = "no plan" if n.wanted else "not needed: nothing asks for its result"
    made = f"; rewritten by {', '.join(n.rewritten)}" if n.rewritten else ""
    return f"{short(n.name):{width}}  {n.op}: {takers or nothing}{made}"


def _taken(t: Taker) -> str:
    return f"{' + '.join(t.kernels)} by rule {t.rule} ({t.variant}), {t.evidence}"


def _node_closely(n: NodeReport) -> Iterator[str]:
    yield _node_line(n, 0)
    yield f"  {n.op}({', '.join(n.inputs)}) -> {', '.join(n.outputs)}"
    for t in n.takers:
        for kernel, operands in zip(t.kernels, t.operands, strict=True):
            yield f"  taken by {kernel}: {', '.join(f'{name}={what}' for name, what in operands)}"
        yield f"  evidence: {t.evidence}; cost {t.cost:,.0f}; together with {_places(t, without=n.name)}"
    for t in n.others:
        yield f"  also possible: {_taken(t)}, cost {t.cost:,.0f} for {', '.join(t.produces)}"
    for a in n.attempts:
        yield from _attempt(a)
    yield ""


def _places(t: Taker, without: str = "") -> str:
    return ", ".join(short(name) for name in t.nodes if name != without) or "no other node"


def _rule_closely(r: RuleReport) -> Iterator[str]:
    more = f"; {_times(r.able)} more it matched, and the cover found cheaper" if r.able else ""
    count = "rewrote" if r.rewrote else "fired"
    yield f"rule {r.name} ({shown(r.span.file)}): {count} {_times(r.rewrote or r.fired)}{more}"
    yield from (f"  {_rewriting(w)}" for w in r.rewrote[:LISTED])
    if len(r.rewrote) > LISTED:
        yield f"  and {len(r.rewrote) - LISTED} more"
    yield from (f"  fired: {_taken(t)} at {_places(t)}" for t in r.fired[:LISTED])
    if len(r.fired) > LISTED:
        yield f"  and {len(r.fired) - LISTED} more"
    yield from (f"  not chosen: {_taken(t)} at {_places(t)}, cost {t.cost:,.0f}" for t in r.able[:LISTED])
    for a in r.attempts:
        yield from _attempt(a)
    if r.lacking:
        yield f"  no attempt: the model has no {', no '.join(r.lacking)}"
    elif not (r.fired or r.rewrote or r.able or r.attempts):
        yield "  no node of the model comes near its patterns"


def _times(takers: Sequence[object]) -> str:
    return "once" if len(takers) == 1 else f"{len(takers)} times"


def _rule_summary(rules: Sequence[RuleReport]) -> Iterator[str]:
    """Rules that did not fire, the nearest attempts in full, all others in a line each kind."""
    idle = [r for r in rules if not (r.fired or r.rewrote)]
    yield f"{counted(len(rules) - len(idle), 'rule')} fired; of the {len(idle)} others:"
    tried = sorted((r.attempts[0] for r in idle if r.attempts and not r.able), key=lambda a: (-a.depth, a.rule))
    near = [a for a in tried if a.depth >= NEAR][:SHOWN]
    for a in near:
        yield ""
        yield from _attempt(a)
    yield ""
    able = [f"{r.name} ({len(r.able)})" for r in idle if r.able]
    yield from _listed("matched, but the cover found cheaper", able)
    yield from _listed("stopped early (--rule NAME shows where)", [a.rule for a in tried if a not in near])
    yield from _listed("the model lacks an operator of theirs", [r.name for r in idle if r.lacking])
    spent = {a.rule for a in tried}
    rest = [r.name for r in idle if not (r.able or r.lacking or r.name in spent)]
    yield from _listed("no node comes near", rest)


def _listed(what: str, names: Sequence[str]) -> Iterator[str]:
    if names:
        yield f"{what}: {', '.join(names)}"


def _attempt(a: Attempt) -> Iterator[str]:
    """As a compiler reports: place, sentence, the line with a caret, what was there, what would do."""
    c = a.cause
    place = f"{shown(str(c.span))}: " if c.span is not None else ""
    operators = counted(max(a.needed, a.matched), "operator")
    far = "matched, then declined" if a.depth >= 1 else f"{a.matched} of {operators} matched"
    yield f"{place}rule {a.rule} ({a.variant}) declined: {c.reason}"
    yield from excerpt(c.span, a.source)
    others = "1 other node" if a.alike == 2 else f"{a.alike - 1} other nodes"
    more = f", and at {others} alike" if a.alike > 1 else ""
    yield f"  at:   {a.op} `{short(a.node)}`, {far}{more}"
    for word, text in (("had", c.had), ("want", c.want), ("help", c.help)):
        if text and text not in c.reason.split(": ")[-1:]:
            yield f"  {word + ':':5} {text}"


def short(name: str) -> str:
    """A name with its middle left out where an exporter wrote a novel."""
    return name if len(name) <= LONG else f"{name[: LONG // 3]}...{name[-LONG * 2 // 3 + 3 :]}"
