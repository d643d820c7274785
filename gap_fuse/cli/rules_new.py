"""`gap-fuse rules new`: the files that a rule and its kernel start from."""

from __future__ import annotations

from pathlib import Path

import click

from gap_fuse.cli.options import DIMS, located, parse_dims
from gap_fuse.cli.values import OutputFolder


@click.command(short_help="Start a rule and its kernel folder, or write one from nodes.")
@click.argument("name")
@click.option(
    "--dir",
    "folder",
    default=".",
    show_default=True,
    metavar="DIR",
    type=OutputFolder(),
    help="Where rules/ and kernels/ lie or are made.",
)
@click.option("--from", "model", metavar="MODEL", type=click.Path(path_type=Path), help="The pattern is in MODEL.")
@click.option("--nodes", metavar="A..B", help="Which nodes of it: all on a way from A to B; several with commas.")
@DIMS
@located
def new(name: str, folder: Path, model: Path | None, nodes: str | None, dims: tuple[str, ...]) -> None:
    """Start a rule NAME: the rule file, and a kernel folder with kernel.yaml, reference.py and C.

    The rule is sound (`rules check`); its test fails (`rules test`) until reference and C are written.
    """
    from fusion_engine.diagnostics import GapFuseError, counted
    from gap_fuse.authoring.scaffolding import new_rule, rule_from

    if (model is None) != (nodes is None):
        raise GapFuseError("--from MODEL and --nodes A..B belong together")
    made = (
        new_rule(name, folder)
        if model is None or nodes is None
        else rule_from(name, folder, model, nodes, parse_dims(dims))
    )
    for file in made.files:
        click.echo(f"written   {file}")
    if made.matches is not None:
        click.echo(f"it matches the nodes selected, and {counted(made.matches - 1, 'other place')} of the model")
    own = f"--rules {folder / 'rules'} --kernels {folder / 'kernels'}"
    click.echo(f"next: write the reference and the C, then gap-fuse rules test {name} {own}")
