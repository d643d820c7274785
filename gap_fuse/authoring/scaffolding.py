"""new_rule(): the files that a new rule and its kernel start from: a sound rule with a test that fails until the kernel
is written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fusion_engine import GapFuseError, load_kernels, match, read_model, view
from fusion_engine.diagnostics import Diagnostic, Span
from fusion_engine.kernels.file_model import kernel_schema
from fusion_engine.language import load_library, load_rules
from fusion_engine.language.file_model import rule_schema
from fusion_engine.view import View
from fusion_engine.view.write import view_to_model
from gap_fuse.authoring import templates
from gap_fuse.authoring.extracting import Extract, extract
from gap_fuse.authoring.selecting import select
from gap_fuse.rooms import room


@dataclass(frozen=True, slots=True)
class Scaffold:
    """What was written, and for a rule out of a model how often it matches there."""

    files: tuple[Path, ...]
    matches: int | None = None


def new_rule(name: str, folder: Path) -> Scaffold:
    """FOLDER/rules/NAME.yaml and FOLDER/kernels/NAME/. Raises GapFuseError: a bad name, or files that are there."""
    return Scaffold(_write(name, folder, templates.elementwise(name)))


def rule_from(name: str, folder: Path, model: Path, nodes: str, dims: Mapping[str, int]) -> Scaffold:
    """The same with the pattern of the nodes `A..B` of a model, which it is checked to match. Raises GapFuseError."""
    seen = view(read_model(model, dims))
    shipped = load_library([room("rules")])
    chosen = extract(seen, select(seen, nodes), {name, *shipped.fragments, *shipped.classes})
    files = _write(name, folder, {**templates.extracted(name, chosen), f"rules/{name}.onnx": _example(chosen)})
    return Scaffold(files, _matches(seen, chosen, folder, name))


def _example(chosen: Extract) -> bytes:
    return bytes(view_to_model(chosen.view).SerializeToString(deterministic=True))


def _write(name: str, folder: Path, files: Mapping[str, str | bytes]) -> tuple[Path, ...]:
    if not name.isidentifier() or not name.islower() or not name.isascii():
        raise GapFuseError(Diagnostic(f"`{name}` cannot name a rule", help="lower-case letters, digits and _"))
    there = [folder / f for f in files if (folder / f).exists()]
    if there:
        raise GapFuseError(
            [Diagnostic("is there already", Span(str(f)), "choose another name or --dir") for f in there]
        )
    for path, content in {**_schemas(folder), **files}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content.encode() if isinstance(content, str) else content)
    return tuple(folder / f for f in files)


def _schemas(folder: Path) -> dict[str, str]:
    """What an editor needs for completion; one for all rules of the folder."""
    made = {"rules/rule.schema.json": rule_schema, "kernels/kernel.schema.json": kernel_schema}
    return {f: json.dumps(schema(), indent=2) + "\n" for f, schema in made.items() if not (folder / f).exists()}


def _matches(seen: View, chosen: Extract, folder: Path, name: str) -> int:
    """How often the written rule matches; the selected nodes are among these, or it is an error of ours."""
    kernels = load_kernels([folder / "kernels"])
    rules = load_rules([folder / "rules" / f"{name}.yaml"], kernels)
    result = match(seen, rules, kernels, explain=True)
    wanted = {n.index for n in chosen.nodes}
    if not any(wanted <= c.nodes for c in result.candidates):
        reasons = tuple(dict.fromkeys(d.reason for d in result.declines))[:3]
        raise GapFuseError(Diagnostic("the rule was written, but does not match the nodes selected", notes=reasons))
    return len(result.candidates)
