"""Names of a model's values as names of a pattern, of kernel operands, of Python and of C."""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection

from fusion_engine.language.expressions import CONSTANTS

LONGEST = 20  # characters; of `/model/layers.0/norm/Mul_output_0` the last parts say most
KEPT = re.compile(
    "i[0-9]+|auto|bool|break|case|char|const|continue|cores|default|do|double|else|enum|extern|first|float|for|goto|if|"
    "inline|int|last|long|main|np|rearrange|register|restrict|return|short|signed|sizeof|static|struct|switch|typedef|"
    "union|unsigned|void|volatile|while"
)  # words of C, and names that kernels and patterns have for themselves
_OUTPUT = re.compile(r"_output_0$")  # what torch's exporter puts behind the name of a node


def short_name(value: str, letter: str, taken: Collection[str]) -> str:
    """The last words of a value's name, in lower case and unlike `taken`; `letter` stands in front of a number, and for
    what has no word at all."""
    words = [w for w in re.split(r"[^a-z0-9]+", _OUTPUT.sub("", value).lower()) if w]
    kept = words[-1:]
    while len(kept) < len(words) and len("_".join(words[-len(kept) - 1 :])) <= LONGEST:
        kept = words[-len(kept) - 1 :]
    name = "_".join(kept)[:LONGEST].strip("_")
    if not name or name[0].isdigit():
        name = f"{letter}{name}"
    options = [name, *(f"{name}_{i}" for i in range(2, len(taken) + 3))]
    return next(n for n in options if n not in taken and not _reserved(n))


def _reserved(name: str) -> bool:
    return name in CONSTANTS or keyword.iskeyword(name) or KEPT.fullmatch(name) is not None
