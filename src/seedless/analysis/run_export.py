"""Export of a finished run: its model as ONNX, or its bill of materials."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seedless.analysis.onnx_export import ExportedModel, export_run
from seedless.core.display import escape_lines, escape_text
from seedless.core.errors import ConfigError, RunError
from seedless.core.files import AnyPath, hash_file, write_atomic
from seedless.report.ml_bom import SPEC_VERSION, make_ml_bom
from seedless.runs.opened_run import check_output_file
from seedless.runs.user_model import Model, UserModel
from seedless.runs.validation import open_validated


@dataclass(frozen=True, repr=False)
class ExportedMaterials:
    """A bill of materials that was written, and its digest."""

    run: str
    file: Path
    digest: str

    def __repr__(self) -> str:
        return escape_lines(f"{escape_text(self.file)}\nCycloneDX {SPEC_VERSION}\n{self.digest}")

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "run": self.run,
            "file": str(self.file),
            "digest": self.digest,
            "cyclonedx": SPEC_VERSION,
        }


def export(
    run: AnyPath,
    *,
    onnx: AnyPath | None = None,
    cyclonedx: AnyPath | None = None,
    records: int = 256,
    force: bool = False,
    entry: str | None = None,
    data: str | None = None,
    model: Model | None = None,
    train: Any = None,
    val: Any = None,
    test: Any = None,
    classes: Sequence[str] | None = None,
) -> ExportedModel | ExportedMaterials:
    """Write a run's model as ONNX, checked on real records, or its bill of materials.

    Args:
        run: the run folder.
        onnx: the ONNX file to write; it is not written if it does not give the model's logits.
        cyclonedx: or the ML-BOM to write: what the model is, its scores, and how it was made.
        records: how many records of the test split the ONNX file is checked on, at most.
        force: replace a file that exists.
        entry: for a run of `fit`, "package.module:function" that returns its model and arrays.
        data: where the data are now, if they were moved.
        model: for a run of `fit`, the model or a function that makes it, with ``train``, ``val``,
            ``test`` and ``classes`` as `fit` had them, in place of ``entry``.

    Example:
        >>> seedless.export(run, onnx="net.onnx", model=net, train=(X, y), val=(Xv, yv))
    """
    if (onnx is None) == (cyclonedx is None):
        raise ConfigError("expected one of --onnx FILE.onnx and --cyclonedx FILE.json")
    if (model is None) != (train is None):
        raise ConfigError("expected both model and train, got one of them")
    if onnx is not None:
        user = None
        if model is not None:
            names = None if classes is None else tuple(classes)
            user = UserModel(model, train, val, test, names)
        out = Path(onnx)
        return export_run(run, out, records=records, force=force, entry=entry, data=data, user=user)
    assert cyclonedx is not None
    return _write_materials(Path(run), Path(cyclonedx), force)


def _write_materials(run: Path, out: Path, force: bool) -> ExportedMaterials:
    check_output_file(run, out, force)
    content = make_ml_bom(open_validated(run).receipt)
    try:
        write_atomic(out, content)
    except OSError as error:
        raise RunError(f"cannot write {out}: {error.strerror}") from None
    return ExportedMaterials(os.fspath(run), out, hash_file(out))
