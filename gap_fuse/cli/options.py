"""Arguments that several commands take, and how a command ends in exit code 2."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from gap_fuse.cli.values import Size

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
TARGET = click.option(
    "--target", default="host", show_default=True, help="A shipped target's name, or a folder with a target.yaml."
)
L1 = click.option("--l1", type=Size(), help="L1 for plan data, in place of the target's: bytes, or 32k, 1.5M.")
L2 = click.option("--l2", type=Size(), help="L2 for plan data, in place of the target's.")
L3 = click.option("--l3", type=Size(), help="L3 for weights and what spills, likewise.")
MINIMISE = click.option(
    "--minimise",
    default="cycles",
    show_default=True,
    metavar="WHAT",
    help="cycles, bytes, energy, l1, l2, or a sum such as bytes+200*tiles.",
)
LAYERS = click.option(
    "--layer-by-layer", is_flag=True, help="Every call by itself: no tensor stays in L1, none passes by rows."
)
DIMS = click.option("--dim", "dims", multiple=True, metavar="NAME=VALUE", help="Value of a symbolic dimension.")


def located(command: Callable[..., Any]) -> Callable[..., Any]:
    """Print the diagnostics of a GapFuseError, without traceback, and exit with 2."""

    @wraps(command)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        from fusion_engine.diagnostics import GapFuseError  # here: --help must not wait for numpy and onnx
        from gap_fuse.rooms import shown

        try:
            return command(*args, **kwargs)
        except GapFuseError as e:
            for diagnostic in e.diagnostics:
                click.echo(shown(str(diagnostic)), err=True)
            sys.exit(2)
        except BrokenPipeError:  # the reader had enough: click ends quietly
            raise
        except OSError as e:
            click.echo(f"error: {e.filename or ''}: {e.strerror or e}", err=True)
            sys.exit(2)

    return wrapper


def parse_dims(texts: tuple[str, ...]) -> dict[str, int]:
    """NAME=VALUE pairs. Raises GapFuseError for anything else, and for a name given twice."""
    from fusion_engine.diagnostics import Diagnostic, GapFuseError

    wrong = [f"--dim {t}: not NAME=VALUE with a positive whole number" for t in texts if not _is_dim(t)]
    counts = Counter(t.rpartition("=")[0] for t in dict.fromkeys(texts))
    wrong += [f"--dim {name} is given {n} values" for name, n in counts.items() if n > 1]
    if wrong:
        raise GapFuseError([Diagnostic(w, help="for example --dim batch=1") for w in wrong])
    return {t.rpartition("=")[0]: int(t.rpartition("=")[2]) for t in texts}


def _is_dim(text: str) -> bool:
    name, _, value = text.rpartition("=")
    return bool(name) and value.isascii() and value.isdigit() and int(value) > 0
