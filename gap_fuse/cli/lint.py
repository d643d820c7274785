"""`gap-fuse lint` and `gap-fuse outline`: the exporters' commands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gap_fuse.cli.options import MODEL, located
from gap_fuse.cli.values import MODELS, OutputFile

if TYPE_CHECKING:
    from gap_fuse.linting import Lint, Marks


@click.command(short_help="Which marks a model has, what a tool lost, what to add.")
@MODEL
@click.option("--after", type=click.Path(path_type=Path), metavar="OUT.onnx", help="What a tool made of MODEL.")
@click.option("--json", "as_json", is_flag=True, help="The same as a JSON document.")
@located
def lint(model: Path, after: Path | None, as_json: bool) -> None:
    """Which marks MODEL has for a backend (functions, scopes, statistics, ranges), what a tool lost, what to add."""
    from gap_fuse.linting import lint as lint_model
    from gap_fuse.linting import lint_to_json

    found = lint_model(model, after)
    click.echo(json.dumps(lint_to_json(found), indent=2) if as_json else "\n".join(_lines(found)))


@click.command("outline", short_help="Write module instances as functions named by where they came from.")
@MODEL
@click.option("-o", "--output", required=True, type=OutputFile(*MODELS), metavar="OUT.onnx")
@click.option(
    "--keep",
    multiple=True,
    required=True,
    metavar="CLASSES | DOMAIN::NAME=PATH",
    help="A glob over module classes (torch.nn.modules.rnn.*), or a function's name for a glob over node-name paths.",
)
@located
def outline_command(model: Path, output: Path, keep: tuple[str, ...]) -> None:
    """Write MODEL with module instances as model-local functions, found by torch's metadata or node-name paths."""
    import onnx

    from fusion_engine.diagnostics import Diagnostic, GapFuseError, counted
    from gap_fuse.export import outline
    from gap_fuse.measuring import read_onnx

    outlined = outline(read_onnx(model), keep)
    if not outlined.calls and not outlined.declined:
        raise GapFuseError(Diagnostic(f"no instance matches {', '.join(keep)}", help="`gap-fuse lint` lists classes"))
    onnx.save(outlined.model, str(output))
    calls, functions = counted(len(outlined.calls), "call"), counted(len(outlined.model.functions), "function")
    click.echo(f"{output}: {calls} of {functions}")
    for problem in outlined.declined:
        click.echo(str(problem), err=True)


def _lines(found: Lint) -> Iterator[str]:
    yield from _marks(found.marks)
    yield from (f"lost: {text}" for text in found.lost)
    yield from (f"could add: {text}" for text in found.advice)


def _marks(m: Marks) -> Iterator[str]:
    from fusion_engine.diagnostics import counted

    yield f"{counted(m.nodes, 'node')}, opset {m.opset}; {m.shaped} of {counted(m.values, 'value')} with a shape"
    yield f"functions    {_counts(m.functions)}"
    yield f"scopes       {m.scoped} of {counted(m.nodes, 'node')}; {_counts(m.classes)}"
    yield f"node names   {m.named} of {m.nodes} with a path"
    yield f"statistics   {m.statistics} of {counted(m.values, 'value')}"
    yield f"ranges       {counted(m.ranges, 'value')} known, {counted(m.annotations, 'annotation')}"


def _counts(names: object) -> str:
    return ", ".join(f"{name} x{n}" for name, n in dict(names).items()) or "none"  # type: ignore[call-overload]
