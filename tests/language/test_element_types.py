"""Types in `given` and `stored` that no kernel call can have: said when the rule is checked, not never at run time."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusion_engine.kernels.descriptor import Kernel, OperandType
from fusion_engine.language import check_rules
from tests.language.files import simple, write


def kernel(x: str, w: str, y: str, **variables: tuple[str, ...]) -> dict[str, Kernel]:
    operands = (OperandType("x", x, ("*S",)), OperandType("w", w, ("*S",), optional=True))
    results = (OperandType("y", y, ("*S",)),)
    return {"k": Kernel("k", "", Path("."), operands, results, (), (), (), dict(variables), None, (), (), {}, ())}


FLOAT, GENERIC = kernel("float32", "float32", "float32"), kernel("T", "T", "U", T=("int8", "float32"), U=("int8",))
NEVER = [
    (FLOAT, "{x: int8}", "", "{x: x}", "int8", "float32 as `x`"),
    (FLOAT, "{x: int}", "", "{x: x}", "int", "float32 as `x`"),
    (FLOAT, "{x: bool}", "", "{x: x}", "bool", "float32 as `x`"),
    (FLOAT, "{x: 'float64[N, C]'}", "", "{x: x}", "float64[N, C]", "float32 as `x`"),
    (FLOAT, "{x: real, y: int8}", "", "{x: x}", "int8", "float32 as `y`"),
    (FLOAT, "{x: real}", "stored: {x: int8}, ", "{x: stored(x)}", "int8", "float32 as `x`"),
    (GENERIC, "{x: int16}", "", "{x: x}", "int16", "float32 or int8 as `x`"),
    (GENERIC, "{x: int8, v: float32}", "", "{x: x, w: v}", "float32", "int8 as `w`, as `x` is"),
]
MAY = [
    (FLOAT, "{x: real}", "", "{x: x}"),
    (FLOAT, "{x: any}", "", "{x: x}"),
    (FLOAT, "{x: float32, v: const int64}", "", "{x: x, w: v}"),  # a constant is cast when compiling
    (FLOAT, "{x: real}", "stored: {x: float}, ", "{x: stored(x)}"),
    (FLOAT, "{x: int8}", "", "{x: x * 0.5}"),
    (GENERIC, "{x: real}", "", "{x: x}"),
    (GENERIC, "{x: int8, v: int}", "", "{x: x, w: v}"),
]


def rule(given: str, stored: str, args: str) -> str:
    pattern = "y = Add(x, v)" if "v:" in given else "y = Exp(x)"
    return simple(pattern, given, f"{{kernel: k, {stored}args: {args}}}")


@pytest.mark.parametrize(("kernels", "given", "stored", "args", "has", "wants"), NEVER)
def test_a_type_that_the_kernel_never_takes(
    tmp_path: Path, kernels: dict[str, Kernel], given: str, stored: str, args: str, has: str, wants: str
) -> None:
    (found,) = check_rules([write(tmp_path, rule(given, stored, args))], kernels)
    assert f" {has} " in found.message
    assert f"kernel `k` takes {wants}" in found.message
    assert "this can never fire" in found.message
    assert found.span is not None
    assert found.source is not None
    assert "kernel: k" in found.source


@pytest.mark.parametrize(("kernels", "given", "stored", "args"), MAY)
def test_a_type_that_the_kernel_may_take(
    tmp_path: Path, kernels: dict[str, Kernel], given: str, stored: str, args: str
) -> None:
    assert check_rules([write(tmp_path, rule(given, stored, args))], kernels) == ()


@pytest.mark.parametrize(("written", "help_"), [("float", "did you mean"), ("i8", "int8"), ("object", "one of: ")])
def test_names_of_types_that_no_value_has(tmp_path: Path, written: str, help_: str) -> None:
    """numpy knows these words, and no graph does: such a rule was read, and never fired."""
    (found,) = check_rules([write(tmp_path, simple("y = Exp(x)", f"{{x: {written}}}"))], None)
    assert found.message == f"unknown element type `{written}`"
    assert help_ in (found.help or "")
