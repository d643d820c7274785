"""Every guide does what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.docs.guides import play

GUIDES = sorted((ROOT / "docs").glob("*.md"))


@pytest.mark.parametrize("guide", GUIDES, ids=lambda g: g.stem)
def test_the_guide_does_what_it_says(guide: Path, tmp_path: Path) -> None:
    asked = len(re.findall(r"^\$ ", guide.read_text(), re.M))
    assert play(guide, tmp_path) == asked


@pytest.mark.parametrize("page", [*GUIDES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=lambda g: g.stem)
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"^```.*?^```$|`[^`\n]*`", "", page.read_text(), flags=re.M | re.S)
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", prose)
    gone = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert gone == []


def test_the_index_names_every_guide() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    assert [g.name for g in GUIDES if g.name != "README.md" and f"({g.name})" not in index] == []
