"""gap-fuse: declarative fusion rules, an exact tiler and a C emitter for ONNX networks on small multi-core chips."""

from gap_fuse.compiling import Result, compile  # noqa: A004 the field's word
from gap_fuse.running import run
from gap_fuse.verifying import Verdict, verify

__all__ = ["Result", "Verdict", "compile", "run", "verify"]
