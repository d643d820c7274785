"""`gap-fuse compile`: compile a model to a folder of C."""

from __future__ import annotations

from pathlib import Path

import click

from gap_fuse.cli.options import DIMS, KERNELS, L1, L2, L3, LAYERS, MINIMISE, MODEL, RULES, TARGET, located, parse_dims
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
@TARGET
@L1
@L2
@L3
@MINIMISE
@LAYERS
@DIMS
@RULES
@KERNELS
@located
def compile_command(
    model: Path,
    folder: Path,
    target: str,
    l1: int | None,
    l2: int | None,
    l3: int | None,
    minimise: str,
    layer_by_layer: bool,
    dims: tuple[str, ...],
    rules: tuple[Path, ...],
    kernels: tuple[Path, ...],
) -> None:
    """Compile MODEL.onnx to a folder of C."""
    from gap_fuse.compiling import compile as compile_model

    result = compile_model(
        model,
        target,
        l1=l1,
        l2=l2,
        l3=l3,
        dims=parse_dims(dims),
        rules=rules,
        kernels=kernels,
        minimise=minimise,
        fused=not layer_by_layer,
    )
    result.write(folder)
    click.echo(result.summary)
    click.echo(f"  written   {folder}")
