"""The networks that the benchmarks measure: one that ships with the project, and four from ../shared where that is."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIGITS = ROOT / "examples" / "digits"
SHARED = ROOT.parent / "shared" / "bench"
MODELS = SHARED / "models"
NAMES = ("resnet8", "dscnn", "mobilenetv1_025", "autoencoder")


@dataclass(frozen=True, slots=True)
class Network:
    name: str
    kind: str  # "fp32" or "int8"
    path: Path

    @property
    def title(self) -> str:
        return f"{self.name} {self.kind}"


def networks() -> tuple[Network, ...]:
    """Every network that is there; a line on stderr says which are not."""
    wanted = [
        Network("digits", "fp32", DIGITS / "digits_fp32.onnx"),
        Network("digits", "int8", DIGITS / "digits_int8.onnx"),
        *(Network(name, "fp32", MODELS / f"{name}.onnx") for name in NAMES),
        *(Network(name, "int8", MODELS / f"{name}_int8_qdq.onnx") for name in NAMES),
    ]
    missing = [n.title for n in wanted if not n.path.is_file()]
    if missing:
        print(f"skipped, not in {MODELS}: {', '.join(missing)}", file=sys.stderr)
    return tuple(n for n in wanted if n.path.is_file())


def selected(pattern: str) -> tuple[Network, ...]:
    """The networks whose title contains `pattern`. Ends the program where there is none."""
    found = tuple(n for n in networks() if pattern in n.title)
    if not found:
        sys.exit(f"no network's name contains `{pattern}`")
    return found
