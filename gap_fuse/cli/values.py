"""What an option's text may be: sizes of memories, and places to write to, looked at before any work is done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

MODELS = (".onnx", ".onnxtxt")
PICTURES = (".png", ".svg", ".pdf")
FILES = {".c", ".h", ".json", ".npz", ".onnx", ".onnxtxt", ".png", ".yaml", ".zip"}  # endings that no folder has


class Size(click.ParamType[int]):
    """Bytes: see tiler.byte_size."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number of bytes; a usage error otherwise."""
        from tiler.byte_sizes import byte_size  # here: --help must not wait for numpy

        try:
            return byte_size(str(value))
        except ValueError as e:
            self.fail(str(e), param, ctx)


class OutputFile(click.ParamType[Path]):
    """A file to write: its folder is there, and it is no folder itself. `endings`: what it may be called."""

    name = "file"

    def __init__(self, *endings: str) -> None:
        self.endings = endings

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path; a usage error where no file can be written there."""
        path = Path(value)
        if path.is_dir():
            self.fail(f"{path} is a folder: name a file, such as {path / 'out'}{self._ending()}", param, ctx)
        if not path.parent.exists():
            self.fail(f"{path}: there is no folder {path.parent}", param, ctx)
        if not path.parent.is_dir():
            self.fail(f"{path}: {path.parent} is a file, not a folder", param, ctx)
        if self.endings and path.suffix.lower() not in self.endings:
            self.fail(f"{path} must end in {' or '.join(self.endings)}", param, ctx)
        return path

    def _ending(self) -> str:
        return self.endings[0] if self.endings else ""


class OutputFolder(click.ParamType[Path]):
    """A folder to write into, made where it is not there: nothing on the way to it is a file."""

    name = "dir"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path; a usage error where no folder can be, or where a file seems to be meant."""
        path = Path(value)
        for place in (path, *path.parents):
            if place.is_file():
                what = "is a file: a folder is written" if place == path else "is a file, not a folder"
                self.fail(f"{'' if place == path else f'{path}: '}{place} {what}", param, ctx)
        if path.suffix.lower() in FILES and not path.exists():
            self.fail(f"{path} is named like a file: a folder is written, such as {path.with_suffix('')}", param, ctx)
        return path
