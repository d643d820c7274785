"""`gap-fuse rules docs`: the catalogue of rules, made from the rule files."""

from __future__ import annotations

from pathlib import Path

import click

from gap_fuse.cli.options import KERNELS, RULES, located
from gap_fuse.cli.values import OutputFolder


@click.command()
@click.option("-o", "--output", "folder", default="docs/rules", show_default=True, type=OutputFolder())
@RULES
@KERNELS
@located
def docs(folder: Path, rules: tuple[Path, ...], kernels: tuple[Path, ...]) -> None:
    """Write one page per family of rules, and an index of all."""
    from fusion_engine.diagnostics import counted
    from gap_fuse.authoring.catalogue import write_catalogue
    from gap_fuse.library import load_library

    pages = write_catalogue(load_library(rules, kernels), folder)
    click.echo(f"{counted(len(pages), 'page')} in {folder}")
