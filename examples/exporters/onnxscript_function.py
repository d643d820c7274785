"""A high-level operator written with onnxscript: its domain and name reach gap-fuse as they are.

python examples/exporters/onnxscript_function.py OUT.onnx && gap-fuse explain OUT.onnx
"""

from __future__ import annotations

import sys

import onnx
from onnxscript import FLOAT, opset20, script
from onnxscript.optimizer import optimize
from onnxscript.values import Opset

audio = Opset("com.example.audio", 1)


@script(audio, default_opset=opset20)
def HardSwish6(x):  # noqa: N802 onnxscript reads the annotations of tensors alone; operators are CamelCase
    """x * relu6(x + 3) / 6, spelled out: any runtime can run it, a backend with the kernel need not."""
    three = opset20.Constant(value_float=3.0)
    six = opset20.Constant(value_float=6.0)
    zero = opset20.Constant(value_float=0.0)
    return x * opset20.Clip(x + three, zero, six) / six


@script(default_opset=opset20)
def network(x: FLOAT[1, 16]) -> FLOAT[1, 16]:
    """Two calls of the operator around a Softmax."""
    return HardSwish6(opset20.Softmax(HardSwish6(x), axis=-1))


def main(path: str) -> None:
    """Write the model; onnxscript's optimizer keeps functions where it is told not to inline."""
    model = optimize(network.to_model_proto(), inline=False)
    onnx.checker.check_model(model)
    onnx.save(model, path)
    print(", ".join(f"{n.domain}::{n.op_type}" if n.domain else n.op_type for n in model.graph.node))


if __name__ == "__main__":
    main(sys.argv[1])
