"""`gap-fuse kernels`: the commands that work on kernel folders, one file each."""

from __future__ import annotations

import click

from gap_fuse.cli.kernels_schema import schema
from gap_fuse.cli.kernels_test import kernels_test


@click.group()
def kernels() -> None:
    """Work on kernel folders."""


for command in (kernels_test, schema):
    kernels.add_command(command)
