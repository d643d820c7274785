"""The rules of the house that a machine can check: import directions, data rooms, nothing private in the tree."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ALLOWED = {
    "fusion_engine": {"fusion_engine"},
    "tiler": {"tiler", "fusion_engine"},
    "quantizer": {"quantizer", "fusion_engine"},
    "gap_fuse": {"gap_fuse", "tiler", "quantizer", "fusion_engine"},
}
OURS = set(ALLOWED)


def sources(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def imported(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    plain = {a.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    return plain | {
        n.module.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module and not n.level
    }


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_imports_go_downwards_only(package: str) -> None:
    wrong = {str(p.relative_to(ROOT)): imported(p) & OURS - ALLOWED[package] for p in sources(package)}
    assert {p: w for p, w in wrong.items() if w} == {}


def test_the_oracle_is_imported_by_the_door_alone() -> None:
    users = [
        str(p.relative_to(ROOT))
        for package in ("fusion_engine", "tiler", "quantizer")
        for p in sources(package)
        if "onnxruntime" in imported(p)
    ]
    assert users == []


@pytest.mark.parametrize("room", ["rules", "kernels", "targets"])
def test_data_rooms_are_not_packages(room: str) -> None:
    assert list((ROOT / room).rglob("__init__.py")) == []


@pytest.mark.parametrize("package", sorted(OURS))
def test_public_functions_have_docstrings(package: str) -> None:
    exported = _exported(ROOT / package / "__init__.py")
    assert exported
    bare = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in sources(package)
        for node in ast.parse(path.read_text()).body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef))
        and node.name in exported
        and ast.get_docstring(node) is None
    ]
    assert bare == []


def _exported(init: Path) -> set[str]:
    for node in ast.parse(init.read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return set(ast.literal_eval(node.value))
    return set()
