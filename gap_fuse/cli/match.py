"""`gap-fuse match`: where a pattern matches in a model."""

from __future__ import annotations

import json
from pathlib import Path

import click

from gap_fuse.cli.options import DIMS, MODEL, RULES, located, parse_dims


@click.command(short_help="Where a pattern, as rule files write it, matches.")
@MODEL
@click.argument("pattern")
@click.option("--where", multiple=True, metavar="COND", help="A condition on what the pattern binds: `rank(x) == 2`.")
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
@DIMS
@RULES
@located
def match(
    model: Path, pattern: str, where: tuple[str, ...], as_json: bool, dims: tuple[str, ...], rules: tuple[Path, ...]
) -> None:
    """Where PATTERN, as a rule file writes it, matches in MODEL: nodes, and what each name is.

    For example: gap-fuse match net.onnx 'Relu(x + b)'
    """
    from gap_fuse.authoring.querying import answer_json, answer_lines, query

    answer = query(model, pattern, where=where, dims=parse_dims(dims), rules=rules)
    click.echo(json.dumps(answer_json(answer), indent=2) if as_json else "\n".join(answer_lines(answer)))
