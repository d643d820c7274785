"""The one-input elementwise operators in float64: what the int8 tables of `table_i8` are computed from."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Array = Any  # float64 arrays; numpy's own annotations of these functions vary from release to release

_erf = np.vectorize(math.erf, otypes=[np.float64])


def _sigmoid(x: Array) -> Array:
    return np.where(x >= 0, 1.0 / (1.0 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1.0 + np.exp(-np.abs(x))))


def _softplus(x: Array) -> Array:
    return np.logaddexp(0.0, x)


def _gelu(x: Array, approximate: str = "none") -> Array:
    if approximate == "tanh":
        return 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))
    return np.asarray(0.5 * x * (1.0 + _erf(x / math.sqrt(2.0))))


def _hard_sigmoid(x: Array, alpha: float = 0.2, beta: float = 0.5) -> Array:
    return np.clip(alpha * x + beta, 0.0, 1.0)


def _celu(x: Array, alpha: float = 1.0) -> Array:
    return np.maximum(x, 0.0) + np.minimum(0.0, alpha * np.expm1(np.minimum(x, 0.0) / alpha))


def _selu(x: Array, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875) -> Array:
    return gamma * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0.0)))


UNARY: Mapping[str, Callable[..., Any]] = {
    "Abs": np.abs,
    "Acos": np.arccos,
    "Acosh": np.arccosh,
    "Asin": np.arcsin,
    "Asinh": np.arcsinh,
    "Atan": np.arctan,
    "Atanh": np.arctanh,
    "Ceil": np.ceil,
    "Celu": _celu,
    "Clip": lambda x, lo=-np.inf, hi=np.inf: np.minimum(np.maximum(x, lo), hi),
    "Cos": np.cos,
    "Cosh": np.cosh,
    "Elu": lambda x, alpha=1.0: np.where(x >= 0, x, alpha * np.expm1(np.minimum(x, 0.0))),
    "Erf": _erf,
    "Exp": np.exp,
    "Floor": np.floor,
    "Gelu": _gelu,
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": lambda x: x * _hard_sigmoid(x, 1.0 / 6.0, 0.5),
    "LeakyRelu": lambda x, alpha=0.01: np.where(x >= 0, x, alpha * x),
    "Log": np.log,
    "Mish": lambda x: x * np.tanh(_softplus(x)),
    "Neg": np.negative,
    "Reciprocal": lambda x: 1.0 / x,
    "Relu": lambda x: np.maximum(x, 0.0),
    "Round": np.rint,
    "Selu": _selu,
    "Sigmoid": _sigmoid,
    "Sign": np.sign,
    "Sin": np.sin,
    "Sinh": np.sinh,
    "Softplus": _softplus,
    "Softsign": lambda x: x / (1.0 + np.abs(x)),
    "Sqrt": np.sqrt,
    "Swish": lambda x, alpha=1.0: x * _sigmoid(alpha * x),
    "Tan": np.tan,
    "Tanh": np.tanh,
    "ThresholdedRelu": lambda x, alpha=1.0: np.where(x > alpha, x, 0.0),
}
