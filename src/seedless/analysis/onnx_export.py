"""Export of a finished run as an ONNX file, written only if it gives the model's logits.

The graph takes records as the dataset has them and includes the normalization: input "x"
(batch, ...) float32, output "logits" (batch, classes).
"""

import copy
import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from seedless.core.display import escape_lines, escape_text
from seedless.core.errors import ModelError, RunError
from seedless.core.files import AnyPath, hash_file, write_atomic
from seedless.core.version import __version__
from seedless.data.normalize import Scale
from seedless.numerics.saved_flags import run_by_itself
from seedless.runs.opened_run import OpenRun, check_output_file, describe_run, open_run
from seedless.runs.user_model import UserModel

TOLERANCE = 1e-4  # largest difference of a logit at which the file is written
REQUIRED_PACKAGES = ("onnx", "onnxruntime", "onnxscript")


@dataclass(frozen=True, eq=False, repr=False)
class ExportedModel:
    """A checked file, and the largest difference of a logit over ``records`` test records."""

    opened: OpenRun
    file: Path
    digest: str
    difference: float
    records: int

    def __repr__(self) -> str:
        text = (
            f"{escape_text(self.file)}\n{self.file.stat().st_size:,} bytes\n{self.digest}\n"
            f"logits differ from the run's by at most {self.difference:.2g} on {self.records} "
            f"{self.opened.split} records ({TOLERANCE:g} allowed)"
        )
        return escape_lines(text)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            **describe_run(self.opened),
            "file": str(self.file),
            "bytes": self.file.stat().st_size,
            "digest": self.digest,
            "max_abs_difference": self.difference,
            "tolerance": TOLERANCE,
            "records": self.records,
        }


class NormalizedModel(nn.Module):
    """A model with its normalization: (x - mean) / deviation, then the logits."""

    def __init__(self, model: nn.Module, scale: Scale | None, axes: int) -> None:
        super().__init__()
        self.model = model
        self.scaled = scale is not None
        shape = (1, -1) + (1,) * (axes - 2)
        mean, deviation = ((0.0,), (1.0,)) if scale is None else (scale.mean, scale.deviation)
        self.mean = nn.Buffer(torch.tensor(mean).view(shape))
        self.deviation = nn.Buffer(torch.tensor(deviation).view(shape))

    def forward(self, x: Tensor) -> Tensor:
        """(batch, ...) as measured -> (batch, classes)."""
        if self.scaled:
            x = (x - self.mean) / self.deviation
        logits: Tensor = self.model(x)
        return logits


@run_by_itself()
def export_run(
    run: AnyPath,
    out: Path,
    *,
    records: int = 256,
    force: bool = False,
    entry: str | None = None,
    data: str | None = None,
    user: UserModel | None = None,
) -> ExportedModel:
    """Write a run's selected weights as an ONNX file and check it on real records.

    Args:
        run: the run folder.
        out: the file; it is not written if the check fails.
        records: how many records of the test split to check on, at most.
        force: replace a file that exists.
        entry: for a run of `fit`, "package.module:function" that returns its model and arrays.
        data: the path of the data, if they were moved.
        user: for a run of `fit`, its model and arrays themselves.
    """
    check_extra()
    check_output_file(Path(run), out, force)
    opened = open_run(run, entry=entry, data=data, user=user)
    raw = opened.records[:records]
    model = copy.deepcopy(opened.run.model).cpu().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.data = parameter.data.contiguous()
        expected = _compute(model, opened.normalize(raw), opened.config.train.evaluate_batch)
    inputs = raw.astype(np.float32) if raw.dtype.kind == "f" or opened.scale else raw
    content = convert(
        NormalizedModel(model, opened.scale, raw.ndim), inputs, describe_graph(opened)
    )
    difference = compare(content, inputs, expected)
    if not difference <= TOLERANCE:
        raise RunError(
            f"the exported graph is not the model: its logits differ by up to {difference:.3g} on "
            f"{len(raw)} {opened.split} records, more than {TOLERANCE:g}; no file was left"
        )
    write_atomic(out, content)
    return ExportedModel(opened, out, hash_file(out), difference, len(raw))


def check_extra() -> None:
    """Refuse to begin where the packages that write and run ONNX are not installed."""
    missing = [name for name in REQUIRED_PACKAGES if find_spec(name) is None]
    if missing:
        raise RunError(
            f"ONNX export needs {', '.join(missing)}, not installed here: "
            "pip install 'seedless[onnx]'"
        )


def describe_graph(opened: OpenRun) -> dict[str, str]:
    """Return the metadata of the file, by key."""
    scale, loss = opened.scale, opened.loss
    values: dict[str, Any] = {
        "weights": opened.run.digest,
        "md5": opened.run.md5,
        "classes": list(opened.classes),
        "input": "x: records as the dataset holds them, not normalized; float32 unless the data "
        "are whole numbers that the model takes as such",
        "output": "logits",
        "probabilities": "sigmoid" if loss.name == "bce" else "softmax",
        "normalization": "none: the model takes the input as it is"
        if scale is None
        else {
            "where": "inside this file: (x - mean) / deviation",
            "mean": list(scale.mean),
            "deviation": list(scale.deviation),
        },
        "leads": None if opened.leads is None else list(opened.leads),
        "samples_per_second": opened.fs,
        "clamp": loss.clamp,
        "version": __version__,
    }
    return {
        f"seedless.{key}": value
        if isinstance(value, str)
        else json.dumps(value, sort_keys=True, ensure_ascii=False)
        for key, value in values.items()
    }


def convert(model: nn.Module, samples: NDArray[Any], metadata: dict[str, str]) -> bytes:
    """Return a model as ONNX bytes with any batch size; samples (n, ...) give the shape.

    The exporter's notes on source lines are removed: they name folders of this machine.
    """
    # Two samples, since the exporter takes a batch size of one for a constant.
    example = torch.from_numpy(np.resize(samples[:2], (2, *samples.shape[1:])))
    try:
        with _silence_exporter():
            program = torch.onnx.export(
                model.eval(),
                (example,),
                dynamo=True,
                input_names=["x"],
                output_names=["logits"],
                dynamic_shapes={"x": {0: torch.export.Dim("batch")}},
                verbose=False,
            )
            assert program is not None
            proto: Any = program.model_proto
    except Exception as error:  # the exporter may raise anything for a model it cannot trace
        cause = error.__cause__ or error
        values = f"{type(cause).__name__}: {str(cause).strip().partition(chr(10))[0]}"
        raise ModelError(f"torch cannot export this model as ONNX: {values}") from error
    for part in (proto.graph, *proto.functions):
        _remove_source_notes(part)
    del proto.metadata_props[:]
    for key in sorted(metadata):
        entry = proto.metadata_props.add()
        entry.key, entry.value = key, metadata[key]
    content: bytes = proto.SerializeToString(deterministic=True)
    return content


def compare(content: bytes, samples: NDArray[Any], expected: NDArray[np.float32]) -> float:
    """Return the largest difference between an ONNX file's logits and those expected.

    All samples are computed at once, and then the first alone, so that two batch sizes are checked.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    logits = session.run(["logits"], {"x": samples})[0]
    alone = session.run(["logits"], {"x": samples[:1]})[0]
    if logits.shape != expected.shape:
        raise RunError(f"the exported graph gives {logits.shape}, expected {expected.shape}")
    pairs = ((logits, expected), (alone, expected[:1]))
    return max(float(np.abs(a.astype(np.float64) - b).max()) for a, b in pairs)


def _compute(model: nn.Module, samples: NDArray[Any], batch: int) -> NDArray[np.float32]:
    parts = torch.split(torch.from_numpy(samples), batch)
    logits: NDArray[np.float32] = torch.cat([model(part) for part in parts]).numpy()
    return logits


def _remove_source_notes(graph: Any) -> None:
    graph.doc_string = ""
    for part in (*graph.node, *graph.value_info, graph):
        part.doc_string = ""
        del part.metadata_props[:]
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                if inner.node:
                    _remove_source_notes(inner)


@contextmanager
def _silence_exporter() -> Iterator[None]:
    """Hide the warnings and log messages of the exporter."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
