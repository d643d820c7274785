"""`gap-fuse kernels test`: kernels' C against their references, at any tiling."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from gap_fuse.cli.options import KERNELS, RULES, located


@click.command("test")
@click.argument("which", nargs=-1, metavar="[KERNEL|PATH]...")
@click.option("--cases", type=click.IntRange(min=1), default=6, show_default=True, help="Calls of each kernel.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of everything drawn.")
@click.option("--json", "as_json", is_flag=True, help="Everything found, as JSON.")
@RULES
@KERNELS
@located
def kernels_test(
    which: tuple[str, ...], cases: int, seed: int, as_json: bool, rules: tuple[Path, ...], kernels: tuple[Path, ...]
) -> None:
    """Build the C of kernels (all of them by default) with ASan and UBSan, run it at random legal tilings against the
    reference, and check `cycles`. Exit code 1 where one fails."""
    from gap_fuse.library import load_library
    from gap_fuse.progress import progress
    from gap_fuse.proof import calls_of, kernel_json, kernel_lines, prove_kernels, select_kernels

    chosen = select_kernels(which, kernels)
    library = load_library(rules, chosen.folders)
    with progress("drawing calls", len(library.rules.rules)) as tick:
        calls = calls_of(chosen.kernels, library.rules, library.kernels, cases, seed, lambda: tick(1))
    with progress("proving kernels", sum(len(k.implementations) for k in chosen.kernels)) as tick:
        proofs = prove_kernels(chosen.kernels, chosen.every, calls, seed, lambda: tick(1))
    if as_json:
        click.echo(json.dumps(kernel_json(proofs), indent=2))
    else:
        for line in kernel_lines(proofs):
            click.echo(line)
    sys.exit(1 if any(p.failures for p in proofs) else 0)
