"""The `gap-fuse` command. Exit codes: 0 done, 1 the C answers otherwise than the model (verify), 2 bad input or
request."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from fusion_engine.diagnostics import Diagnostic, GapFuseError

MODEL = click.argument("model", type=click.Path(path_type=Path))
FOLDER = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
RULES = click.option(
    "--rules",
    "rules",
    multiple=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Further rule files; a rule of the same name replaces the shipped one.",
)
KERNELS = click.option(
    "--kernels",
    "kernels",
    multiple=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Further kernel folders.",
)
DIMS = click.option("--dim", "dims", multiple=True, metavar="NAME=VALUE", help="Value of a symbolic dimension.")


def located(command: Callable[..., Any]) -> Callable[..., Any]:
    """Print the diagnostics of a GapFuseError, without traceback, and exit with 2."""

    @wraps(command)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except GapFuseError as e:
            for diagnostic in e.diagnostics:
                click.echo(str(diagnostic), err=True)
            sys.exit(2)
        except OSError as e:
            click.echo(f"error: {e.filename or ''}: {e.strerror or e}", err=True)
            sys.exit(2)

    return wrapper


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(package_name="gap-fuse")
def main() -> None:
    """Take ONNX networks onto fused kernels: match, tile, print C, and prove that it answers as the model does."""


@main.command("compile")
@MODEL
@click.option(
    "-o",
    "--output",
    "folder",
    required=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Folder for the C, report.json and what verify needs.",
)
@click.option(
    "--target", default="host", show_default=True, help="A shipped target's name, or a folder with a target.yaml."
)
@click.option("--l1", type=click.IntRange(min=1), metavar="BYTES", help="L1 bytes for tiles, in place of the target's.")
@click.option(
    "--l2", type=click.IntRange(min=1), metavar="BYTES", help="L2 bytes for plan data, in place of the target's."
)
@DIMS
@RULES
@KERNELS
@located
def compile_command(
    model: Path,
    folder: Path,
    target: str,
    l1: int | None,
    l2: int | None,
    dims: tuple[str, ...],
    rules: tuple[Path, ...],
    kernels: tuple[Path, ...],
) -> None:
    """Compile MODEL.onnx to a folder of C."""
    from gap_fuse.compiling import compile as compile_model

    result = compile_model(model, target, l1=l1, l2=l2, dims=parse_dims(dims), rules=rules, kernels=kernels)
    result.write(folder)
    click.echo(result.summary)
    click.echo(f"  written   {folder}")


@main.command()
@FOLDER
@click.option(
    "--inputs",
    metavar="FILE.npz",
    type=click.Path(path_type=Path),
    help="Samples; without it, seeded random ones are drawn.",
)
@click.option(
    "--samples", type=click.IntRange(min=1), metavar="N", help="How many samples (all of the file, or 4 drawn)."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of drawn samples.")
@click.option("--sanitize", is_flag=True, help="Build with ASan and UBSan.")
@located
def verify(folder: Path, inputs: Path | None, samples: int | None, seed: int, sanitize: bool) -> None:
    """Build the C in DIR, run it, and compare with the kernels' references and with onnxruntime."""
    from gap_fuse.verifying import verify as verify_folder

    verdict = verify_folder(folder, inputs, samples=samples, seed=seed, sanitize=sanitize)
    click.echo(str(verdict))
    sys.exit(0 if verdict.passed else 1)


@main.command()
@FOLDER
@click.option(
    "--inputs",
    required=True,
    metavar="FILE.npz",
    type=click.Path(path_type=Path),
    help="Samples, named by graph input.",
)
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="OUT.npz",
    type=click.Path(path_type=Path),
    help="Outputs, sample axis first.",
)
@located
def run(folder: Path, inputs: Path, output: Path) -> None:
    """Build the C in DIR, run it on samples and write its outputs."""
    from gap_fuse.running import run as run_folder

    results = run_folder(folder, inputs, output)
    for name, array in results.items():
        click.echo(f"{name}: {array.dtype}{list(array.shape)}")


@main.command()
@MODEL
@click.option("-o", "--output", required=True, metavar="FUSED.onnx", type=click.Path(path_type=Path))
@DIMS
@RULES
@KERNELS
@located
def fuse(model: Path, output: Path, dims: tuple[str, ...], rules: tuple[Path, ...], kernels: tuple[Path, ...]) -> None:
    """Write MODEL with each kernel call as a model-local function: still valid ONNX."""
    from gap_fuse.fusing import fuse as fuse_model

    click.echo(fuse_model(model, output, dims=parse_dims(dims), rules=rules, kernels=kernels))


@main.command()
@MODEL
@click.option("--inputs", required=True, metavar="FILE.npz", type=click.Path(path_type=Path), help="To calibrate on.")
@click.option("-o", "--output", required=True, metavar="INT8.onnx", type=click.Path(path_type=Path))
@click.option("--samples", type=click.IntRange(min=1), metavar="N", help="How many samples (all of the file).")
@located
def quantize(model: Path, inputs: Path, output: Path, samples: int | None) -> None:
    """Write MODEL quantised to int8 (QDQ), calibrated on samples."""
    from gap_fuse.quantising import quantize as quantize_model

    statistics = quantize_model(model, inputs, output, samples)
    click.echo(f"{output}: {len(statistics.tensors)} activations int8")


@main.command()
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


@main.group()
def rules() -> None:
    """Work on rule files."""


@rules.command("check")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@KERNELS
@located
def rules_check(paths: tuple[Path, ...], kernels: tuple[Path, ...]) -> None:
    """Check rule files or folders (the shipped ones by default): every mistake with its place."""
    from gap_fuse.fusing import check

    count, diagnostics = check(paths, kernels)
    for diagnostic in diagnostics:
        click.echo(str(diagnostic), err=True)
    click.echo(f"{count} rules, {len(diagnostics)} {'error' if len(diagnostics) == 1 else 'errors'}")
    sys.exit(2 if diagnostics else 0)


def parse_dims(texts: tuple[str, ...]) -> dict[str, int]:
    """NAME=VALUE pairs. Raises GapFuseError for anything else."""
    bad = [t for t in texts if not _is_dim(t)]
    if bad:
        raise GapFuseError(
            [
                Diagnostic(f"--dim {t}: not NAME=VALUE with a positive whole number", help="for example --dim batch=1")
                for t in bad
            ]
        )
    return {t.rpartition("=")[0]: int(t.rpartition("=")[2]) for t in texts}


def _is_dim(text: str) -> bool:
    name, _, value = text.rpartition("=")
    return bool(name) and value.isascii() and value.isdigit() and int(value) > 0


if __name__ == "__main__":
    main()
