"""`gap-fuse explain`: who took which node, and why others declined."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from gap_fuse.cli.options import DIMS, KERNELS, MODEL, RULES, located, parse_dims


@click.command(short_help="Who took which node on what evidence; why rules declined.")
@MODEL
@click.option("--node", metavar="N", help="Only this node: its name, a result's name, or an operator.")
@click.option("--rule", metavar="R", help="Only this rule: where it fired, and why it declined elsewhere.")
@click.option("--json", "as_json", is_flag=True, help="The same as a JSON document (docs/explain.md).")
@DIMS
@RULES
@KERNELS
@located
def explain(
    model: Path,
    node: str | None,
    rule: str | None,
    as_json: bool,
    dims: tuple[str, ...],
    rules: tuple[Path, ...],
    kernels: tuple[Path, ...],
) -> None:
    """Which rule took which node on what evidence, and why a rule declined."""
    from fusion_engine import explanation_to_json
    from gap_fuse.explaining import explain as explain_model
    from gap_fuse.explaining import explanation_lines

    told = explain_model(model, node=node, rule=rule, dims=parse_dims(dims), rules=rules, kernels=kernels)
    if as_json:
        click.echo(json.dumps(explanation_to_json(told.explanation), indent=2, allow_nan=False))
    else:
        click.echo("\n".join(explanation_lines(told.explanation)))
    for problem in told.problems:
        click.echo(str(problem), err=True)
    sys.exit(2 if told.problems else 0)
