"""`gap-fuse explain`: who took which node, and why others declined."""

from __future__ import annotations

from pathlib import Path

import click

from gap_fuse.cli.options import DIMS, KERNELS, MODEL, RULES, located, parse_dims


@click.command()
@MODEL
@click.option("--node", metavar="N", help="Only this node (name, or OpType#index).")
@click.option("--rule", metavar="R", help="Only this rule: where it fired, and why it declined elsewhere.")
@DIMS
@RULES
@KERNELS
@located
def explain(
    model: Path,
    node: str | None,
    rule: str | None,
    dims: tuple[str, ...],
    rules: tuple[Path, ...],
    kernels: tuple[Path, ...],
) -> None:
    """Which rule took which node on what evidence, and why a rule declined."""
    from gap_fuse.fusing import explain as explain_model

    for line in explain_model(model, node=node, rule=rule, dims=parse_dims(dims), rules=rules, kernels=kernels):
        click.echo(line)
