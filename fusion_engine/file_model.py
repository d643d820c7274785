"""The shape of a YAML file as a class: its keys, which of them must be there, and the JSON schema for editors.

Values are read and checked by the loaders, which know places and give better messages; what a key is called, whether it
is required and what it means stands here once, for both.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from fusion_engine.marked_yaml import Marked, Problems, check_map

Scalar = str | int | float | bool
Expression = Scalar | list[Any]  # docs/rule-language.md, "Expressions"


class Section(BaseModel):
    """A map of a file with a closed list of keys."""

    model_config = ConfigDict(extra="forbid", defer_build=True, use_attribute_docstrings=True)

    @classmethod
    def keys(cls) -> tuple[str, ...]:
        """The keys as they are written, in the order of the class."""
        return tuple(f.alias or name for name, f in cls.model_fields.items())

    @classmethod
    def required_keys(cls) -> tuple[str, ...]:
        return tuple(f.alias or name for name, f in cls.model_fields.items() if f.is_required())

    @classmethod
    def check(cls, mark: Marked, what: str, problems: Problems) -> bool:
        """Whether the value is a map; unknown and missing keys become diagnostics."""
        return check_map(mark, what, cls.keys(), problems, cls.required_keys())


def file_schema(model: type[Section], title: str, url: str) -> dict[str, Any]:
    """The JSON schema (2020-12) of a file."""
    schema = model.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": url, **_plain(schema), "title": title}


def _plain(schema: Any) -> Any:
    """Without the titles that only repeat a key, and without defaults: a key that is absent is absent."""
    if isinstance(schema, dict):
        kept = {k: v for k, v in schema.items() if not (k == "title" and isinstance(v, str)) and k != "default"}
        return {k: _plain(v) for k, v in kept.items()}
    return [_plain(v) for v in schema] if isinstance(schema, list) else schema
