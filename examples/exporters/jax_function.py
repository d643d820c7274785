"""A jax function kept as an ONNX function by jax2onnx.

    python examples/exporters/jax_function.py OUT.onnx && gap-fuse lint OUT.onnx

Needs jax and jax2onnx.
"""

from __future__ import annotations

import sys

import jax
import jax.numpy as jnp
import onnx
from jax2onnx import onnx_function, to_onnx


@onnx_function(namespace="com.example.vision")
def gated(x: jax.Array) -> jax.Array:
    """x * sigmoid(x), kept as one operator."""
    return x * jax.nn.sigmoid(x)


def network(x: jax.Array) -> jax.Array:
    """The operator around a scaling."""
    return gated(jnp.tanh(gated(x)))


def main(path: str) -> None:
    """Write the model."""
    model = to_onnx(network, inputs=[(1, 16)])
    onnx.save(model, path)
    print(", ".join(f"{f.domain}::{f.name}" for f in model.functions))


if __name__ == "__main__":
    main(sys.argv[1])
