"""`gap-fuse rules`: the commands that work on rule files, one file each."""

from __future__ import annotations

import click

from gap_fuse.cli.rules_check import check
from gap_fuse.cli.rules_docs import docs
from gap_fuse.cli.rules_list import list_
from gap_fuse.cli.rules_new import new
from gap_fuse.cli.rules_schema import schema
from gap_fuse.cli.rules_show import show
from gap_fuse.cli.rules_test import rules_test


@click.group()
def rules() -> None:
    """Work on rule files."""


for command in (check, docs, list_, new, schema, show, rules_test):
    rules.add_command(command)
