"""`gap-fuse rules show`: how a rule was read."""

from __future__ import annotations

from pathlib import Path

import click

from gap_fuse.cli.options import KERNELS, RULES, located


@click.command(short_help="How a rule was read, variant by variant.")
@click.argument("name")
@RULES
@KERNELS
@located
def show(name: str, rules: tuple[Path, ...], kernels: tuple[Path, ...]) -> None:
    """How the rule NAME was read: each variant and where it is looked for, types, conditions, what it emits."""
    from gap_fuse.authoring.showing import find_rule, rule_lines
    from gap_fuse.library import load_library

    known = load_library(rules, kernels).rules
    click.echo("\n".join(rule_lines(find_rule(known, name), known)))
