"""Where the shipped data rooms (rules, kernels, targets) lie: in the installed package, or in the source tree."""

from __future__ import annotations

import os
from pathlib import Path


def room(name: str) -> Path:
    """The folder of one data room: "rules", "kernels" or "targets". Raises FileNotFoundError if the installation
    lacks it."""
    here = Path(__file__).resolve().parent
    for folder in (here / "_rooms" / name, here.parent / name):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"the data room `{name}` is missing from this installation of gap-fuse")


def shown(text: str) -> str:
    """A text for people: paths below the working directory from there on, those of shipped rules, kernels and targets
    as `<gap-fuse>/rules/...`."""
    here = Path.cwd()
    for name in ("rules", "kernels", "targets"):
        folder = room(name)
        if not folder.is_relative_to(here):
            text = text.replace(f"{folder}{os.sep}", f"<gap-fuse>/{name}/")
    return text.replace(f"{here}{os.sep}", "") if here != Path(here.anchor) else text
