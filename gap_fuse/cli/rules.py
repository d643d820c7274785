"""`gap-fuse rules`: the commands that work on rule files."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from gap_fuse.cli.options import KERNELS, located


@click.group()
def rules() -> None:
    """Work on rule files."""


@rules.command("check")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@KERNELS
@located
def rules_check(paths: tuple[Path, ...], kernels: tuple[Path, ...]) -> None:
    """Check rule files or folders (the shipped ones by default): every mistake with its place."""
    from gap_fuse.fusing import check

    count, diagnostics = check(paths, kernels)
    for diagnostic in diagnostics:
        click.echo(str(diagnostic), err=True)
    click.echo(f"{count} rules, {len(diagnostics)} {'error' if len(diagnostics) == 1 else 'errors'}")
    sys.exit(2 if diagnostics else 0)
