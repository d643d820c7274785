"""The `gap-fuse` command, one file per subcommand.

Exit codes: 0 done, 1 the C answers otherwise than the model (verify), 2 bad input or request.
"""

from __future__ import annotations

import click

from gap_fuse.cli.compile import compile_command
from gap_fuse.cli.explain import explain
from gap_fuse.cli.fuse import fuse
from gap_fuse.cli.kernels import kernels
from gap_fuse.cli.lint import lint, outline_command
from gap_fuse.cli.match import match
from gap_fuse.cli.quantize import quantize
from gap_fuse.cli.rules import rules
from gap_fuse.cli.run import run
from gap_fuse.cli.stats import stats
from gap_fuse.cli.tile import tile
from gap_fuse.cli.verify import verify


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(package_name="gap-fuse")
def main() -> None:
    """Take ONNX networks onto fused kernels: match, tile, print C, and prove that it answers as the model does."""


for command in (
    compile_command,
    explain,
    fuse,
    kernels,
    lint,
    match,
    outline_command,
    quantize,
    rules,
    run,
    stats,
    tile,
    verify,
):
    main.add_command(command)
