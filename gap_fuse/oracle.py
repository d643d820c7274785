"""onnxruntime as the oracle: optimisation off, outputs by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx

from fusion_engine.diagnostics import Diagnostic, GapFuseError
from gap_fuse.arrays import Samples
from gap_fuse.progress import Tick, no_progress

_CODE = re.compile(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ")
_RUNNING = re.compile(
    r"Non-zero status code returned while running (?P<op>\S+) node\. Name:'(?P<name>.*?)' Status Message: (?P<said>.*)"
)
_CHECKING = re.compile(r"Node \((?P<name>.*?)\) Op \((?P<op>\S+?)\) \[\w+\] (?P<said>.*)")
_STARTING = re.compile(r"^Exception during initialization: ")
_RANGE = re.compile(r"\b(index|indices|indexes|out of (data )?(bounds?|range))\b", re.IGNORECASE)
_PLACE = re.compile(r"^\S+\.(h|cc):\d+ \w+ ")


class Refused(GapFuseError):  # noqa: N818 -- not an error: what the model is
    """onnxruntime does not load the model, whatever the inputs."""


def session(model: onnx.ModelProto, optimised: bool = False) -> object:
    """An onnxruntime session on one thread. Raises Refused, with onnxruntime's own sentence."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    level = ort.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimised else level.ORT_DISABLE_ALL
    try:
        return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as e:  # onnxruntime raises a family of its own without a common public base
        raise Refused(Diagnostic(f"onnxruntime does not run this model: {words_of(e)}")) from e


def words_of(error: Exception) -> str:
    """onnxruntime's own sentence and the node it is about, without codes and places of onnxruntime's source."""
    text = _CODE.sub("", str(error).partition("\n")[0])
    found = _RUNNING.match(text) or _CHECKING.match(text)
    said = _PLACE.sub("", (found["said"] if found else _STARTING.sub("", text)).rpartition(" was false. ")[2])
    said = said.strip() or "it does not say why, as of tensors without an element"
    if found is None:
        return said
    return f"{found['op']} `{found['name']}`: {said}" if found["name"] else f"{found['op']}: {said}"


def prepared(model: onnx.ModelProto) -> Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]:
    """A function from the model's inputs to all its outputs by name."""
    live = session(model)
    names = [o.name for o in model.graph.output]
    return lambda feeds: dict(zip(names, _answers(live, names, feeds), strict=True))


def answers(model: onnx.ModelProto, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """All outputs by name: the `check` of `fusion_engine.plan`."""
    return prepared(model)(inputs)


def run_oracle(
    model: onnx.ModelProto, outputs: Sequence[str], samples: Samples, tick: Tick = no_progress
) -> Mapping[str, np.ndarray]:
    """The model's outputs for every sample, sample axis first."""
    live, rows = session(model), []
    for i in range(samples.count):
        rows.append(_answers(live, outputs, samples.sample(i)))
        tick(1)
    return {name: np.stack([row[k] for row in rows]) for k, name in enumerate(outputs)}


def _answers(live: object, outputs: Sequence[str], sample: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    feeds = {name: np.asarray(value) for name, value in sample.items()}  # a scalar's sample is no array yet
    try:
        return list(live.run(list(outputs), feeds))  # type: ignore[attr-defined]
    except Exception as e:  # as in `session`
        words = words_of(e)
        ranges = "drawn inputs may be out of range: give real ones with --inputs" if _RANGE.search(words) else None
        raise GapFuseError(
            Diagnostic(f"onnxruntime does not run the model on these inputs: {words}", help=ranges)
        ) from e
