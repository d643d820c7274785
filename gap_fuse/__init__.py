"""gap-fuse: declarative fusion rules, an exact tiler and a C emitter for ONNX networks on small multi-core chips."""

from gap_fuse.compiling import Result, compile
from gap_fuse.quantising import quantize
from gap_fuse.running import run
from gap_fuse.verdict import Verdict
from gap_fuse.verifying import verify

__all__ = ["Result", "Verdict", "compile", "quantize", "run", "verify"]
