"""`gap-fuse quantize`: quantise a float model on samples."""

from __future__ import annotations

from pathlib import Path

import click

from gap_fuse.cli.options import MODEL, located
from gap_fuse.cli.values import MODELS, OutputFile


@click.command()
@MODEL
@click.option(
    "--inputs",
    metavar="FILE.npz",
    type=click.Path(path_type=Path),
    help="To calibrate on; without it, the ranges and statistics that MODEL carries serve.",
)
@click.option("-o", "--output", required=True, metavar="INT8.onnx", type=OutputFile(*MODELS))
@click.option("--samples", type=click.IntRange(min=1), metavar="N", help="How many samples (all of the file).")
@located
def quantize(model: Path, inputs: Path | None, output: Path, samples: int | None) -> None:
    """Write MODEL quantised to int8 (QDQ), calibrated on samples."""
    from fusion_engine.diagnostics import counted
    from gap_fuse.quantising import quantize as quantize_model

    statistics = quantize_model(model, inputs, output, samples)
    click.echo(f"{output}: {counted(len(statistics), 'activation')} int8")
    for name, found in statistics.items():
        if found.nan or found.positive_infinity or found.negative_infinity:
            click.echo(f"note: of {name} only finite values count: {found}")
