"""`gap-fuse compile`: compile a model to a folder of C."""

from __future__ import annotations

from pathlib import Path

import click

from gap_fuse.cli.options import MODEL, located
from gap_fuse.cli.planning import Asked, planning
from gap_fuse.cli.values import OutputFolder


@click.command("compile")
@MODEL
@click.option(
    "-o",
    "--output",
    "folder",
    required=True,
    metavar="DIR",
    type=OutputFolder(),
    help="Folder for the C, report.json and what verify needs.",
)
@planning
@located
def compile_command(model: Path, folder: Path, asked: Asked) -> None:
    """Compile MODEL.onnx to a folder of C."""
    from gap_fuse.progress import stages

    with stages(f"compiling {model.name}", total=1):
        result = asked.compiled(model)
    result.write(folder)
    click.echo(result.summary)
    click.echo(f"  written   {folder}")
