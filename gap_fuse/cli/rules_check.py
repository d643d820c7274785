"""`gap-fuse rules check`: every mistake of rule files, with its place."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from gap_fuse.cli.options import KERNELS, located


@click.command(short_help="Every mistake of rule files, with its place.")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@KERNELS
@click.option("--target", metavar="T", help="Warn of rules that can never fire on this target.")
@located
def check(paths: tuple[Path, ...], kernels: tuple[Path, ...], target: str | None) -> None:
    """Check rule files or folders (the shipped ones by default): every mistake with its place.

    Mistakes in kernel folders come first; rules are checked against the kernels that are sound.
    Warnings (a variant that another one covers, a rule that can never fire) leave the exit code at 0.
    """
    from gap_fuse.authoring.checking import check as check_files
    from gap_fuse.rooms import shown

    checked = check_files(paths, kernels, target)
    for diagnostic in (*checked.errors, *checked.warnings):
        click.echo(shown(str(diagnostic)), err=True)
    click.echo(str(checked))
    sys.exit(2 if checked.errors else 0)
