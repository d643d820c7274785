"""What `compile` and `tile` are asked beside the model: the target, its memories, the objective, dimensions, rooms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import reduce, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gap_fuse.cli.options import DIMS, KERNELS, L1, L2, L3, LAYERS, MINIMISE, RULES, TARGET, parse_dims

if TYPE_CHECKING:
    from gap_fuse.compiling import Result


@dataclass(frozen=True, slots=True)
class Asked:
    """The options as given: sizes in bytes (None: the target's), `dims` as NAME=VALUE."""

    target: str
    l1: int | None
    l2: int | None
    l3: int | None
    minimise: str
    layer_by_layer: bool
    dims: tuple[str, ...]
    rules: tuple[Path, ...]
    kernels: tuple[Path, ...]

    def compiled(self, model: Path) -> Result:
        """Raises GapFuseError for anything that cannot be compiled."""
        from gap_fuse.compiling import compile as compile_model  # here: --help must not wait for numpy and onnx

        return compile_model(
            model,
            self.target,
            l1=self.l1,
            l2=self.l2,
            l3=self.l3,
            dims=parse_dims(self.dims),
            rules=self.rules,
            kernels=self.kernels,
            minimise=self.minimise,
            fused=not self.layer_by_layer,
        )


OPTIONS = (TARGET, L1, L2, L3, MINIMISE, LAYERS, DIMS, RULES, KERNELS)


def planning(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with these options, which it gets as one value, `asked`."""

    @wraps(command)
    def wrapper(**given: Any) -> Any:
        asked = Asked(**{f.name: given.pop(f.name) for f in fields(Asked)})
        return command(asked=asked, **given)

    return reduce(lambda made, option: option(made), reversed(OPTIONS), wrapper)
