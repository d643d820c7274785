"""`gap-fuse run`: build the C and run it on samples."""

from __future__ import annotations

from pathlib import Path

import click

from gap_fuse.cli.options import FOLDER, located
from gap_fuse.cli.values import OutputFile


@click.command()
@FOLDER
@click.option(
    "--inputs",
    required=True,
    metavar="FILE.npz",
    type=click.Path(path_type=Path),
    help="Samples, named by graph input.",
)
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="OUT.npz",
    type=OutputFile(".npz"),
    help="Outputs, sample axis first.",
)
@located
def run(folder: Path, inputs: Path, output: Path) -> None:
    """Build the C in DIR, run it on samples and write its outputs."""
    from gap_fuse.running import run as run_folder

    results = run_folder(folder, inputs, output)
    for name, array in results.items():
        click.echo(f"{name}: {array.dtype}{list(array.shape)}")
    click.echo(f"written: {output}")
