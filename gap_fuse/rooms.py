"""Where the shipped data rooms (rules, kernels, targets) lie: in the installed package, or in the source tree."""

from __future__ import annotations

from pathlib import Path


def room(name: str) -> Path:
    """The folder of one data room: "rules", "kernels" or "targets". Raises FileNotFoundError if the installation
    lacks it."""
    here = Path(__file__).resolve().parent
    for folder in (here / "_rooms" / name, here.parent / name):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"the data room `{name}` is missing from this installation of gap-fuse")
