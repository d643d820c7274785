"""The catalogue of rules is what the rule files say."""

from __future__ import annotations

from pathlib import Path

from gap_fuse.authoring.catalogue import catalogue
from gap_fuse.library import load_library


def test_the_catalogue_is_fresh(root: Path) -> None:
    """`gap-fuse rules docs` writes it anew."""
    folder = root / "docs" / "rules"
    written = {p.name: p.read_text() for p in folder.glob("*.md")}
    made = catalogue(load_library())
    stale = sorted(name for name in {*written, *made} if written.get(name) != made.get(name))
    assert stale == [], "run `gap-fuse rules docs`"


def test_every_rule_has_an_entry(root: Path) -> None:
    index = (root / "docs" / "rules" / "README.md").read_text()
    assert all(f"[{r.name}](" in index for r in load_library().rules.rules)
