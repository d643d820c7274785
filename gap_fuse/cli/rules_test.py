"""`gap-fuse rules test`: prove rules on models drawn from themselves."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from gap_fuse.cli.options import KERNELS, RULES, located


@click.command("test", short_help="Prove rules: drawn cases, near misses, their own tests.")
@click.argument("which", nargs=-1, metavar="[RULE|PATH]...")
@click.option(
    "--cases",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    help="Fired cases of each variant and emit entry.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of everything drawn.")
@click.option(
    "--mutants",
    type=click.IntRange(min=0),
    default=4,
    show_default=True,
    help="Near misses of each kind, per case mutated; 0: all of them.",
)
@click.option("-v", "--verbose", is_flag=True, help="A table per rule, however many rules.")
@click.option("--json", "as_json", is_flag=True, help="Everything found, as JSON.")
@RULES
@KERNELS
@located
def rules_test(
    which: tuple[str, ...],
    cases: int,
    seed: int,
    mutants: int,
    verbose: bool,
    as_json: bool,
    rules: tuple[Path, ...],
    kernels: tuple[Path, ...],
) -> None:
    """Prove rules (all of them by default): drawn cases fire and compute what the model does, near misses are declined
    or right, the rule's own tests hold. Exit code 1 where one fails."""
    from gap_fuse.progress import progress
    from gap_fuse.proof import Effort, proof_json, proof_lines, prove_rules, select_rules

    chosen = select_rules(which, rules, kernels)
    effort = Effort(cases=cases, seed=seed, mutants=mutants or None)
    with progress("proving rules", len(chosen.rules)) as tick:
        proofs = prove_rules(chosen.rules, chosen.library, chosen.kernels, effort, lambda _: tick(1))
    if as_json:
        click.echo(json.dumps(proof_json(proofs), indent=2))
    else:
        for line in proof_lines(proofs, True if verbose else None):
            click.echo(line)
    sys.exit(0 if all(p.passed for p in proofs) else 1)
