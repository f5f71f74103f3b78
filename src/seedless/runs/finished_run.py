"""A finished run as Python code and notebooks use it: its model, tables, predictions and page."""

from __future__ import annotations

import html
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import nn

from seedless.core.config import Config, parse_config
from seedless.core.display import escape_text

if TYPE_CHECKING:
    import pandas as pd

_SPLITS = ("validation", "test", "train")
_SHORT_DIGEST = len("sha256:") + 12


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """A finished run: its folder, its receipt, and the model with the selected weights.

    Every function that takes the folder of a run takes the run itself too. The tables are pandas
    DataFrames, made when they are asked for from the files that the receipt covers.

    Example:
        >>> run = seedless.fit(net, train=(X, y), val=(Xv, yv), epochs=20)
        >>> run
        Run('runs/fit-001', validation macro_auc 0.9312, epoch 18 of 20, sha256:3f0c92ab71d4)
        >>> run.history["loss"].plot()
        >>> run.metrics["validation"]["macro_auc"]
        >>> run.predict(Xv[:8])
        >>> run.report()
    """

    path: Path
    receipt: Mapping[str, Any] = field(repr=False)
    model: nn.Module = field(repr=False)

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        facts = [repr(str(self.path))]
        for split, name, value in self._list_main_scores():
            facts.append(f"{split} {name} {_show(value)}")
        selected, epochs = self.claims["metrics"]["selected"]["epoch"], self.config.train.epochs
        facts += [f"epoch {selected} of {epochs}"]
        if self.claims["metrics"]["converged"] is False:
            facts.append("NOT CONVERGED")
        facts.append(self.digest[:_SHORT_DIGEST])
        return escape_text(f"Run({', '.join(facts)})")

    def _repr_html_(self) -> str:
        """Return a small table, which notebooks show for a run."""
        claims = self.claims
        selected = claims["metrics"]["selected"]["epoch"]
        records = ", ".join(
            f"{count:,} {name}" for name, count in claims["data"]["records"].items()
        )
        rows = [("run", str(self.path))]
        rows += [
            (f"{split} {name}", _show(value)) for split, name, value in self._list_main_scores()
        ]
        rows += [
            ("selected epoch", f"{selected} of {self.config.train.epochs}"),
            ("records", records),
            ("model", f"{claims['model']['type']}, {claims['model']['parameters']:,} parameters"),
            ("weights", self.digest),
        ]
        if claims["metrics"]["converged"] is False:
            rows.insert(1, ("NOT CONVERGED", "the score is not above train.converged_above"))
        cells = "".join(
            f"<tr><th style='text-align:left'>{html.escape(escape_text(name))}</th>"
            f"<td style='text-align:left'>{html.escape(escape_text(value))}</td></tr>"
            for name, value in rows
        )
        return f"<table>{cells}</table>"

    def _list_main_scores(self) -> Iterator[tuple[str, str, float | None]]:
        """Yield (split, name, value): the macro AUC of each split, or the user-defined loss."""
        for split in _SPLITS:
            scores = self.claims["metrics"].get(split)
            if scores is not None:
                name = "macro_auc" if "macro_auc" in scores else "loss"
                yield split, name, scores[name]

    @property
    def claims(self) -> Mapping[str, Any]:
        """What the receipt says of the run."""
        predicate: Mapping[str, Any] = self.receipt["predicate"]
        return predicate

    @property
    def digest(self) -> str:
        """SHA-256 over every parameter and buffer of the selected weights."""
        return str(self.claims["weights"]["digest"])

    @property
    def md5(self) -> str:
        """MD5 over the bytes of the selected parameters: the hash that was published."""
        return str(self.claims["weights"]["md5"])

    @property
    def config(self) -> Config:
        """Every setting of the run, such as ``run.config.train.epochs``."""
        return parse_config(self.claims["config"]["values"], source=str(self.path))

    @property
    def metrics(self) -> pd.DataFrame:
        """Scores (rows) by split (columns); "auc:AFIB" is the AUC of one class.

        ``run.claims["metrics"]`` has all of them as plain values, with intervals, and says which
        epoch was selected and whether the run converged.
        """
        from seedless.runs.run_tables import tabulate_metrics

        return tabulate_metrics(self.claims["metrics"])

    @property
    def history(self) -> pd.DataFrame:
        """Step, loss, learning rate, validation score and seconds of each epoch, from 1."""
        from seedless.runs.run_tables import tabulate_log
        from seedless.runs.validation import open_validated  # it imports what makes a Run

        return tabulate_log(open_validated(self.path).log)

    @property
    def predictions(self) -> pd.DataFrame:
        """Probabilities and labels of each record, by split and id, as the run wrote them.

        ``run.predictions.loc["test"]["probability"]`` is a table of records by classes.
        """
        from seedless.runs.run_tables import tabulate_predictions
        from seedless.runs.validation import open_validated

        return tabulate_predictions(open_validated(self.path).read_predictions())

    def predict(self, samples: ArrayLike) -> NDArray[np.float64]:
        """Return probabilities (n, K), float64, of samples (n, ...).

        Pass samples as the run's data had them: a run of `fit` uses them unchanged, any other
        normalizes them as its training data. For all records of a split, in the order of
        ``run.predictions``, the result has the bits of the run's own predictions, on the kind of
        machine it ran on.
        """
        from seedless.runs.run_prediction import predict_samples

        return predict_samples(self.claims, self.config, self.model, samples)

    def report(self, **options: Any) -> Path:
        """Write the HTML page of the run and return its path; options as in `seedless.report`."""
        # A page is made by rooms above this one, so it is looked up by its public name.
        page: Path = sys.modules["seedless"].report(self, **options)
        return page


def _show(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4f}"
