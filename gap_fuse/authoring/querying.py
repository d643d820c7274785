"""query(): where a pattern matches in a model, and where it came closest if nowhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fusion_engine import match, read_model, view
from fusion_engine.covering.types import Decline
from fusion_engine.diagnostics import excerpt
from fusion_engine.language import load_library
from fusion_engine.language.query import read_query
from fusion_engine.language.types import RuleSet
from fusion_engine.matching import lacking_operators
from fusion_engine.matching.query import Found, find
from fusion_engine.view import View
from gap_fuse.explaining import short
from gap_fuse.rooms import room


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """Matches by view node; where there is none, the nearest miss, or operators of which the model has none. `cut`:
    nodes at which the search was cut off."""

    view: View
    query: RuleSet
    found: tuple[Found, ...]
    nearest: Decline | None
    lacking: tuple[str, ...] = ()
    cut: tuple[int, ...] = ()


def query(
    model: Path, pattern: str, *, where: Sequence[str] = (), dims: Mapping[str, int], rules: Sequence[Path] = ()
) -> Answer:
    """Match a pattern against the view of a model. Raises GapFuseError for a bad model or pattern, with its place."""
    asked = read_query(pattern, where, load_library([room("rules"), *rules]))
    seen = view(read_model(model, dims))
    matches = find(seen, asked)
    found = matches.found
    declines = () if found else match(seen, asked, {}, explain=True).declines
    nearest = max(declines, key=lambda d: (d.depth, d.matched, -d.root), default=None)
    lacking = () if found or nearest else lacking_operators(seen, asked.rules[0], asked.classes)
    return Answer(seen, asked, found, nearest, lacking, matches.cut)


def answer_lines(a: Answer) -> Iterator[str]:
    """Each match with its nodes and names; else the nearest miss, with a caret in the pattern."""
    yield f"{len(a.found)} {'match' if len(a.found) == 1 else 'matches'}"
    for i, found in enumerate(a.found, 1):
        yield f"{i}: {', '.join(_node(a.view, n) for n in found.nodes)}"
        yield from (f"   {name} = {what}" for name, what in found.names)
        if found.objection is not None:
            yield f"   a rule declines: {found.objection.reason}; {found.objection.help}"
    if a.cut:
        more = f" and {len(a.cut) - 1} other nodes" if len(a.cut) > 1 else ""
        yield f"the search was cut off at {_node(a.view, a.cut[0])}{more}: there may be more matches"
    if a.lacking:
        yield f"the model has no {', no '.join(a.lacking)}"
    if a.nearest is not None:
        yield from _nearest(a, a.nearest)


def _nearest(a: Answer, d: Decline) -> Iterator[str]:
    yield f"nearest at {_node(a.view, d.root)}: {d.cause.reason}"
    lines = a.query.sources.get(d.cause.span.file, ()) if d.cause.span else ()
    source = lines[d.cause.span.line - 1] if d.cause.span and 0 < d.cause.span.line <= len(lines) else None
    yield from excerpt(d.cause.span, source)


def _node(view: View, index: int) -> str:
    node = view.nodes[index]
    return f"{node.op} `{short(' '.join(o for o in node.origins if o) or node.outputs[0])}`"


def answer_json(a: Answer) -> dict[str, Any]:
    """Plain values for json.dumps."""
    return {
        "matches": [
            {
                "nodes": [{"op": a.view.nodes[n].op, "names": list(a.view.nodes[n].origins)} for n in f.nodes],
                "names": dict(f.names),
                "objection": None if f.objection is None else f.objection.reason,
            }
            for f in a.found
        ],
        "cut": [_node(a.view, n) for n in a.cut],
        "nearest": None if a.nearest is None else {"node": _node(a.view, a.nearest.root), "reason": a.nearest.reason},
    }
