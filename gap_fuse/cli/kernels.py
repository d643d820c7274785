"""`gap-fuse kernels`: the commands that work on kernel folders, one file each."""

from __future__ import annotations

import click

from gap_fuse.cli.kernels_schema import schema


@click.group()
def kernels() -> None:
    """Work on kernel folders."""


for command in (schema,):
    kernels.add_command(command)
