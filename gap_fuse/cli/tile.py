"""`gap-fuse tile`: how a network is cut into tiles, beside its lower bounds."""

from __future__ import annotations

from pathlib import Path

import click

from gap_fuse.cli.options import MODEL, located
from gap_fuse.cli.planning import Asked, planning
from gap_fuse.cli.values import PICTURES, OutputFile


@click.command(short_help="Bytes, tiles, cycles and memory, beside the bounds.")
@MODEL
@click.option(
    "--show",
    metavar="NODE",
    help="Also this call, or the calls of this node, result or kernel: tiles, the Pareto set with the choice marked.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON: report.json with the key `tiling`.")
@click.option(
    "--plot",
    metavar="FILE.png",
    type=OutputFile(*PICTURES),
    help="Draw the engines and the memories over time (needs matplotlib: the extra `plot`).",
)
@planning
@located
def tile(model: Path, asked: Asked, show: str | None, as_json: bool, plot: Path | None) -> None:
    """Plan MODEL.onnx and print bytes, transfers, tiles, cycles and memory per call and group, beside the bounds."""
    import json

    from gap_fuse.progress import stages
    from gap_fuse.tiling import STAGES, tiling
    from gap_fuse.tiling_plot import draw
    from gap_fuse.tiling_text import tiling_text

    with stages(f"planning {model.name}", total=1 + STAGES) as say:
        result = asked.compiled(model)
        document = tiling(result, asked.l1, asked.l2, asked.minimise, show, not asked.layer_by_layer, say)
    click.echo(json.dumps(document, indent=2) if as_json else tiling_text(document))
    if plot is not None:
        draw(document, result, plot)
        click.echo(f"  drawn     {plot}", err=as_json)
