"""`gap-fuse rules list`: what rules there are."""

from __future__ import annotations

import json
from pathlib import Path

import click

from gap_fuse.cli.options import KERNELS, RULES, located


@click.command("list", short_help="Every rule: storages, summary, variants and kernels.")
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
@RULES
@KERNELS
@located
def list_(as_json: bool, rules: tuple[Path, ...], kernels: tuple[Path, ...]) -> None:
    """Every rule: name, storages it serves, summary; variants -> kernels."""
    from gap_fuse.authoring.listing import list_rules, listing_json, listing_lines
    from gap_fuse.library import load_library

    library = load_library(rules, kernels)
    listed = list_rules(library)
    click.echo(json.dumps(listing_json(listed), indent=2) if as_json else "\n".join(listing_lines(listed)))
    for note in () if as_json else library.notes:
        click.echo(f"note: {note}")
