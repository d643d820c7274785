"""`gap-fuse fuse`: write a model with its kernel calls as functions."""

from __future__ import annotations

from pathlib import Path

import click

from gap_fuse.cli.options import DIMS, KERNELS, MODEL, RULES, located, parse_dims
from gap_fuse.cli.values import MODELS, OutputFile


@click.command(short_help="Write the plan as ONNX: each kernel call a function.")
@MODEL
@click.option("-o", "--output", required=True, metavar="FUSED.onnx", type=OutputFile(*MODELS))
@DIMS
@RULES
@KERNELS
@located
def fuse(model: Path, output: Path, dims: tuple[str, ...], rules: tuple[Path, ...], kernels: tuple[Path, ...]) -> None:
    """Write MODEL with each kernel call as a model-local function: still valid ONNX."""
    from gap_fuse.fusing import fuse as fuse_model

    click.echo(fuse_model(model, output, dims=parse_dims(dims), rules=rules, kernels=kernels))
