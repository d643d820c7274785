"""list_rules(): one line per rule: its family, variants, kernels, and the storages it serves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fusion_engine import Rule
from fusion_engine.language.printing import stored_type_text
from gap_fuse.library import Library

WHOLE = ("int", "uint", "bool")


@dataclass(frozen=True, slots=True)
class Listed:
    """`family` is the folder of the rule's file; `storages` are "float" and the integer types that results have."""

    name: str
    family: str
    summary: str
    variants: tuple[str, ...]
    kernels: tuple[str, ...]
    storages: tuple[str, ...]
    file: str
    makes: tuple[str, ...] = ()  # the operators that a rule with `rewrite` puts in place


def list_rules(library: Library) -> tuple[Listed, ...]:
    """Every rule of the library, by family and name."""
    return tuple(sorted((_listed(r) for r in library.rules.rules), key=lambda r: (r.family, r.name)))


def _listed(rule: Rule) -> Listed:
    calls = [c.kernel for e in rule.emit for c in e.calls]
    return Listed(
        rule.name,
        Path(rule.span.file).parent.name,
        rule.summary,
        tuple(v.name for v in rule.variants),
        tuple(dict.fromkeys(calls)),
        storages(rule),
        rule.span.file,
        tuple(dict.fromkeys(n.op for r in rule.rewrite for n in r.nodes)),
    )


def storages(rule: Rule) -> tuple[str, ...]:
    """What the rule makes: "rewrite" (ONNX in place of ONNX), or by its emit entries "float" (values as they are;
    "integer" where no capture can be a float) and the integers that stand for reals."""
    if rule.rewrite:
        return ("rewrite",)
    results = {n for v in rule.variants for n in v.results}
    found = [stored_type_text(t).split()[0] for e in rule.emit for n, t in e.stored.items() if n in results]
    whole = bool(rule.given) and all(t.dtype.startswith(WHOLE) for t in rule.given.values())
    plain = ["integer" if whole else "float"] if any(not set(e.stored) & results for e in rule.emit) else []
    return tuple(dict.fromkeys([*plain, *found]))


def listing_lines(rules: Sequence[Listed]) -> Iterator[str]:
    """One block per family; names, storages and summaries in columns."""
    width = max((len(r.name) for r in rules), default=0)
    stored = max((len("/".join(r.storages)) for r in rules), default=0)
    family = None
    for r in rules:
        if r.family != family:
            yield f"{r.family}/"
            family = r.family
        yield f"  {r.name:{width}}  {'/'.join(r.storages):{stored}}  {r.summary}"
        variants = f"{', '.join(r.variants)} -> " if len(r.variants) > 1 else ""
        yield f"  {'':{width}}  {'':{stored}}  {variants}{', '.join(r.kernels or r.makes or ['an operand'])}"


def listing_json(rules: Sequence[Listed]) -> list[dict[str, Any]]:
    """Plain values for json.dumps."""
    return [asdict(r) for r in rules]
