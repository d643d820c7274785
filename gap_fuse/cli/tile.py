"""`gap-fuse tile`: how a network is cut into tiles, beside its lower bounds."""

from __future__ import annotations

from pathlib import Path

import click

from gap_fuse.cli.options import DIMS, KERNELS, L1, L2, L3, LAYERS, MINIMISE, MODEL, RULES, TARGET, located, parse_dims
from gap_fuse.cli.values import PICTURES, OutputFile


@click.command(short_help="Bytes, tiles, cycles and memory, beside the bounds.")
@MODEL
@TARGET
@L1
@L2
@L3
@MINIMISE
@LAYERS
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
@DIMS
@RULES
@KERNELS
@located
def tile(
    model: Path,
    target: str,
    l1: int | None,
    l2: int | None,
    l3: int | None,
    minimise: str,
    layer_by_layer: bool,
    show: str | None,
    as_json: bool,
    plot: Path | None,
    dims: tuple[str, ...],
    rules: tuple[Path, ...],
    kernels: tuple[Path, ...],
) -> None:
    """Plan MODEL.onnx and print bytes, transfers, tiles, cycles and memory per call and group, beside the bounds."""
    import json

    from gap_fuse.compiling import compile as compile_model
    from gap_fuse.tiling import tiling
    from gap_fuse.tiling_plot import draw
    from gap_fuse.tiling_text import tiling_text

    result = compile_model(
        model,
        target,
        l1=l1,
        l2=l2,
        l3=l3,
        dims=parse_dims(dims),
        rules=rules,
        kernels=kernels,
        minimise=minimise,
        fused=not layer_by_layer,
    )
    document = tiling(result, l1, l2, minimise, show, not layer_by_layer)
    click.echo(json.dumps(document, indent=2) if as_json else tiling_text(document))
    if plot is not None:
        draw(document, result, plot)
        click.echo(f"  drawn     {plot}", err=as_json)
