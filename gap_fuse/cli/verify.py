"""`gap-fuse verify`: build the C, run it, compare."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from gap_fuse.cli.options import FOLDER, located


@click.command(short_help="Build the C, run it, compare with the references and onnxruntime.")
@FOLDER
@click.option(
    "--inputs",
    metavar="FILE.npz",
    type=click.Path(path_type=Path),
    help="Samples; without it, seeded random ones are drawn.",
)
@click.option(
    "--samples", type=click.IntRange(min=1), metavar="N", help="How many samples (all of the file, or 4 drawn)."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of drawn samples.")
@click.option("--sanitize", is_flag=True, help="Build with ASan and UBSan.")
@located
def verify(folder: Path, inputs: Path | None, samples: int | None, seed: int, sanitize: bool) -> None:
    """Build the C in DIR, run it, and compare with the kernels' references and with onnxruntime."""
    from gap_fuse.verifying import verify as verify_folder

    verdict = verify_folder(folder, inputs, samples=samples, seed=seed, sanitize=sanitize)
    click.echo(str(verdict))
    sys.exit(0 if verdict.passed else 1)
