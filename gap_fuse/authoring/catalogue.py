"""catalogue(): docs/rules/, one page per family, made from the rule files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from fusion_engine import Rule, RuleSet
from fusion_engine.language.printing import capture_type_text, rewrite_lines, stored_type_text
from fusion_engine.language.types import Variant
from gap_fuse.authoring.listing import Listed, list_rules
from gap_fuse.authoring.showing import operators_text, pattern_lines
from gap_fuse.library import Library

HEAD = "<!-- made by `gap-fuse rules docs`: change the rule files, not this page -->\n"


def catalogue(library: Library) -> Mapping[str, str]:
    """Pages by file name: README.md, and FAMILY.md for each family."""
    listed = list_rules(library)
    rules = {r.name: r for r in library.rules.rules}
    families = {f: tuple(rs) for f, rs in groupby(listed, key=lambda r: r.family)}
    pages = {"README.md": _index(families)}
    for family, members in families.items():
        pages[f"{family}.md"] = _page(family, [(m, rules[m.name]) for m in members], library.rules)
    return pages


def write_catalogue(library: Library, folder: Path) -> tuple[Path, ...]:
    """Write every page; pages of families that are gone are removed, and no other file."""
    pages = catalogue(library)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.md"):
        if old.name not in pages and old.read_text(errors="replace").startswith(HEAD):
            old.unlink()
    for name, text in pages.items():
        (folder / name).write_text(text)
    return tuple(folder / name for name in pages)


# ---- pages ----


def _index(families: Mapping[str, Sequence[Listed]]) -> str:
    lines = [HEAD, "# The rules\n", "| family | rule | storages | what it takes |", "| --- | --- | --- | --- |"]
    for family, members in families.items():
        for r in members:
            link = f"[{r.name}]({family}.md#{r.name})"
            lines.append(f"| {family} | {link} | {' '.join(r.storages)} | {_cell(r.summary)} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _page(family: str, members: Sequence[tuple[Listed, Rule]], rules: RuleSet) -> str:
    lines = [HEAD, f"# {family}\n"]
    for listed, rule in members:
        lines += _rule(listed, rule, rules)
    return "\n".join(lines).rstrip("\n") + "\n"


def _rule(listed: Listed, rule: Rule, rules: RuleSet) -> Iterator[str]:
    yield f"## {rule.name}\n"
    yield f"{rule.summary}\n"
    file = f"rules/{listed.family}/{Path(listed.file).name}"
    yield f"File: [{file}](../../{file})\n"
    if rule.given:
        yield "| capture | type |"
        yield "| --- | --- |"
        yield from (f"| `{name}` | `{_cell(capture_type_text(t))}` |" for name, t in rule.given.items())
        yield ""
    for variant in rule.variants:
        yield from _variant(variant, rules)
    yield from _emits(rule)


def _variant(v: Variant, rules: RuleSet) -> Iterator[str]:
    yield f"**{v.name}**, found at {operators_text(v.roots) or 'any operator'}\n"
    yield "```text"
    for name, pattern in zip(v.results, (v.pattern, *v.extra), strict=True):
        yield from pattern_lines(pattern, name, rules)
    yield from (f"where {text}" for text, _ in v.where)
    yield "```\n"


def _emits(rule: Rule) -> Iterator[str]:
    for rewrite in rule.rewrite:
        variants = f" ({', '.join(rewrite.variants)})" if rewrite.variants else ""
        yield f"Rewrites ONNX into ONNX{variants}:\n"
        yield "```text"
        yield from rewrite_lines(rewrite)
        yield "```\n"
    for entry in rule.emit:
        kernels = " + ".join(f"`{c.kernel}`" for c in entry.calls)
        stored = ", ".join(f"{n}: {stored_type_text(t)}" for n, t in entry.stored.items())
        variants = f" ({', '.join(entry.variants)})" if entry.variants else ""
        yield f"* {kernels}{variants}" + (f" with {stored}" if stored else "")
    if rule.emit:
        yield ""
