"""`gap-fuse stats`: measure, join, write, show and plot tensor statistics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gap_fuse.cli.options import MODEL, located
from gap_fuse.cli.values import PICTURES, OutputFile

if TYPE_CHECKING:
    import onnx

    from quantizer import Statistics, TensorStatistics

FILE = click.Path(path_type=Path)


class ModelOrCommand(click.Group):
    """`stats MODEL ...` is `stats model MODEL ...`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Puts the default command's name in front of a model."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["model", *args]
        return super().parse_args(ctx, args)


@click.group(cls=ModelOrCommand, short_help="Tensor statistics: measure, merge, write, show, plot.")
def stats() -> None:
    """Tensor statistics: `stats MODEL ...` measures, writes, shows; `stats merge` joins shards."""


@stats.command("model")
@MODEL
@click.argument("more", nargs=-1, type=FILE, metavar="[FILE.npz]...")
@click.option("--inputs", multiple=True, type=FILE, metavar="FILE.npz...", help="Samples, named by graph input.")
@click.option("--from", "shards", multiple=True, type=FILE, metavar="SHARD.npz...", help="Shards measured before.")
@click.option(
    "-o",
    "--output",
    type=OutputFile(".onnx", ".npz"),
    metavar="OUT",
    help="MODEL.onnx with statistics, or a SHARD.npz to merge.",
)
@click.option("--samples", type=click.IntRange(min=1), metavar="N", help="How many samples (all of the files).")
@click.option("--batch", type=click.IntRange(min=1), default=8, show_default=True, help="Samples held at a time.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Processes.")
@click.option("--show", is_flag=True, help="Print the statistics (the default without -o and --plot).")
@click.option("--tensor", "tensors", multiple=True, metavar="NAME", help="Only this tensor, in full; constants too.")
@click.option(
    "--plot",
    type=OutputFile(*PICTURES),
    metavar="FILE.png",
    help="Draw distributions with their fences (needs matplotlib).",
)
@located
def stats_model(
    model: Path,
    more: tuple[Path, ...],
    inputs: tuple[Path, ...],
    shards: tuple[Path, ...],
    output: Path | None,
    samples: int | None,
    batch: int,
    jobs: int,
    show: bool,
    tensors: tuple[str, ...],
    plot: Path | None,
) -> None:
    """Statistics of every non-constant tensor of MODEL.onnx over recorded samples, or those that it carries."""
    from fusion_engine.diagnostics import counted
    from gap_fuse import measuring

    files = _sources(inputs, shards, more)
    proto = measuring.read_onnx(model)
    seen = _seen(proto, *files, samples, batch, jobs)
    values = measuring.carried(proto) if seen is None else seen.published()
    if output is not None:
        _write(output, proto, seen, values)
    if show or tensors or (output is None and plot is None):
        _print(proto, values, tensors)
    if plot is not None:
        from gap_fuse.plotting import plot_statistics

        plot_statistics({n: v for n, v in values.items() if not tensors or n in tensors}, plot)
    if hidden := measuring.unobservable(proto):
        unseen = counted(len(hidden), "value")
        click.echo(f"note: not observed: {unseen} inside functions, If, Loop or Scan bodies", err=True)


@stats.command("merge")
@click.argument("shards", nargs=-1, required=True, type=FILE, metavar="SHARD.npz...")
@click.option("-o", "--output", required=True, type=OutputFile(".npz"), metavar="OUT.npz")
@located
def stats_merge(shards: tuple[Path, ...], output: Path) -> None:
    """Join shards measured apart, without loss, into one."""
    from fusion_engine.diagnostics import counted
    from quantizer import write_shard

    total = _merged(shards)
    write_shard(total, output)
    click.echo(f"{output}: {counted(len(total.tensors), 'tensor')} of {counted(len(shards), 'shard')}")


def _sources(
    inputs: Sequence[Path], shards: Sequence[Path], more: Sequence[Path]
) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """`--inputs a b` gives click one value and a stray argument; strays belong to the option in use."""
    from fusion_engine.diagnostics import Diagnostic, GapFuseError

    if more and not inputs and not shards:
        raise GapFuseError(Diagnostic(f"{more[0]}: samples or shards?", help="name them with --inputs or --from"))
    if inputs and shards:
        raise GapFuseError(Diagnostic("--inputs and --from together: measure to a shard first, then merge"))
    return ((*inputs, *more), ()) if inputs else ((), (*shards, *more))


def _seen(
    proto: onnx.ModelProto,
    inputs: Sequence[Path],
    shards: Sequence[Path],
    samples: int | None,
    batch: int,
    jobs: int,
) -> Statistics | None:
    from concurrent.futures import ProcessPoolExecutor

    from gap_fuse.measuring import measure

    if shards:
        return _merged(shards)
    if not inputs:
        return None
    if jobs == 1:
        return measure(proto, inputs, samples=samples, batch=batch)
    with ProcessPoolExecutor(jobs) as executor:
        return measure(proto, inputs, samples=samples, batch=batch, executor=executor, shards=jobs)


def _merged(shards: Sequence[Path]) -> Statistics:
    from quantizer import Statistics, join, read_shard

    total = Statistics()
    for path in shards:
        total = join(total, read_shard(path))
    return total


def _write(output: Path, proto: onnx.ModelProto, seen: Statistics | None, values: dict[str, TensorStatistics]) -> None:
    import onnx

    from fusion_engine.diagnostics import Diagnostic, GapFuseError, counted
    from quantizer import annotate, write_shard

    if output.suffix == ".npz" and seen is not None:
        write_shard(seen, output)
    elif output.suffix == ".onnx":
        onnx.save(annotate(proto, values), str(output))
    else:
        raise GapFuseError(
            Diagnostic(f"{output}: neither MODEL.onnx nor SHARD.npz", help="a shard needs --inputs or --from")
        )
    click.echo(f"{output}: statistics of {counted(len(values), 'tensor')}")


def _print(proto: onnx.ModelProto, values: dict[str, TensorStatistics], tensors: Sequence[str]) -> None:
    from gap_fuse.measuring import of_constant

    if not values and not tensors:
        click.echo("the model carries no statistics; measure some with --inputs")
    for name in tensors or values:
        value = values.get(name) or of_constant(proto, name)
        click.echo(f"{name}: {value}")
        for line in _details(value.model_dump(exclude_none=True)) if tensors else ():
            click.echo(line)


def _details(fields: dict[str, Any]) -> list[str]:
    channels = fields.pop("channels", None)
    fields.pop("histogram", None)
    lines = [f"  {key}: {value}" for key, value in fields.items()]
    return lines + [f"  channels.{key}: {_short(value)}" for key, value in (channels or {}).items()]


def _short(values: Sequence[object], most: int = 16) -> str:
    texts = [f"{v:.6g}" if isinstance(v, float) else str(v) for v in values[:most]]
    return ", ".join(texts) + (f", ... ({len(values)})" if len(values) > most else "")
