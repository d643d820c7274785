"""The JSON schemas that editors use: made from the loader's classes, fresh, and true of every shipped file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from fusion_engine.kernels.file_model import kernel_schema
from fusion_engine.language.file_model import classes_schema, fragments_schema, rule_schema

SCHEMAS = {
    "rules/rule.schema.json": rule_schema,
    "rules/fragments.schema.json": fragments_schema,
    "rules/classes.schema.json": classes_schema,
    "kernels/kernel.schema.json": kernel_schema,
}


@pytest.mark.parametrize("path", SCHEMAS)
def test_the_committed_schema_is_fresh(root: Path, path: str) -> None:
    """Print it anew with `gap-fuse rules schema rule > rules/rule.schema.json`; fragments, classes, kernels alike."""
    assert json.loads((root / path).read_text()) == SCHEMAS[path]()


@pytest.mark.parametrize("path", SCHEMAS)
def test_it_is_a_schema(path: str) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[path]())


def documents(folder: Path, skipped: tuple[str, ...] = ()) -> list[tuple[Path, Any]]:
    files = [f for f in sorted(folder.rglob("*.yaml")) if f.name not in skipped]
    return [(f, d) for f in files for d in yaml.safe_load_all(f.read_text()) if d is not None]


def test_every_shipped_rule_is_valid(root: Path) -> None:
    validator = jsonschema.Draft202012Validator(rule_schema())
    found = documents(root / "rules", ("classes.yaml", "fragments.yaml"))
    assert len(found) > 50
    assert [f"{f}: {e.json_path} {e.message}" for f, d in found for e in validator.iter_errors(d)] == []


@pytest.mark.parametrize(("name", "schema"), [("fragments", fragments_schema), ("classes", classes_schema)])
def test_the_files_beside_the_rules_are_valid(root: Path, name: str, schema: Callable[[], dict[str, Any]]) -> None:
    validator = jsonschema.Draft202012Validator(schema())
    document = yaml.safe_load((root / "rules" / f"{name}.yaml").read_text())
    assert list(validator.iter_errors(document)) == []
    assert list(validator.iter_errors({name: {"a": {"b": 1}}})) != []
    assert list(validator.iter_errors({f"{name}s": {}})) != []


def test_every_shipped_kernel_is_valid(root: Path) -> None:
    validator = jsonschema.Draft202012Validator(kernel_schema())
    found = documents(root / "kernels")
    assert len(found) > 50
    assert [f"{f}: {e.json_path} {e.message}" for f, d in found for e in validator.iter_errors(d)] == []


@pytest.mark.parametrize(
    ("wrong", "place"),
    [
        ({"match": []}, "$"),
        ({"rule": "r", "match": [], "sumary": "x"}, "$"),
        ({"rule": "r", "match": [{"variant": "a"}]}, "$.match"),
        ({"rule": "r", "match": [], "emit": [{"kernel": "k", "stord": {}}]}, "$.emit"),
        ({"rule": "r", "match": [], "tests": [{"fire": "a"}]}, "$.tests"),
    ],
)
def test_an_editor_sees_mistakes_where_they_are(wrong: dict[str, Any], place: str) -> None:
    errors = list(jsonschema.Draft202012Validator(rule_schema()).iter_errors(wrong))
    assert [e.json_path for e in errors] == [place]


def test_keys_have_descriptions() -> None:
    for schema in (make() for make in SCHEMAS.values()):
        sections = [schema, *schema.get("$defs", {}).values()]
        bare = [
            (s.get("description"), k) for s in sections for k, v in s["properties"].items() if "description" not in v
        ]
        assert all(key in ("name", "type", "index") for _, key in bare), bare
