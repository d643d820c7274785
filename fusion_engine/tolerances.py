"""Every tolerance, in one table. They come from the number format or from one quantisation step, and are never
loosened to pass."""

from __future__ import annotations

from collections.abc import Mapping

# A float kernel against its reference or subgraph, relative to the largest magnitude of the result (summands included
# where it sums).
KERNEL: Mapping[str, float] = {"float32": 1e-5, "float16": 2e-3, "float64": 1e-12}

# A whole float network against onnxruntime, relative to the output's largest magnitude.
NETWORK: Mapping[str, float] = {"float32": 1e-4, "float16": 1e-2, "float64": 1e-11}

# An integer kernel against its subgraph on equal inputs, in output steps, for each rounding that it absorbs.
STEPS_PER_ROUNDING = 1

# End to end, steps add up. A changed top-1 is a doubt, not an error, where the model itself separates the two classes
# by no more than this.
DOUBTFUL_MARGIN_STEPS = 4

# An evaluation in float64 counts as a judge of onnxruntime's own error where the two are this near, relative to the
# largest magnitude; beyond, the evaluation itself may be wrong, and only agreement with it counts.
TRUSTED = 1e-3

# What a function with values in -1..1 may be off by however small its result is: onnxruntime's sigmoid and tanh are
# float32 rational approximations around 1/2 or 0, whose last bit is worth 2^-24 (where a sigmoid is 1.5e-8, it
# answers 0 or 6e-8).
UNIT_ROUNDING = 2.0**-23
UNIT_OPERATORS = ("Erf", "HardSigmoid", "Sigmoid", "Softmax", "Tanh")
