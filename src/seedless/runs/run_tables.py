"""The tables of a finished run as pandas DataFrames, which are imported only when asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from seedless.evaluate.predictions import Predictions

if TYPE_CHECKING:
    import pandas as pd


def tabulate_log(log: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return the lines of a log as a table with a row for each epoch.

    >>> log = [{"epoch": 1, "step": 4, "loss": 0.5, "rate": 0.1, "score": None, "seconds": 2.0}]
    >>> list(tabulate_log(log).columns)
    ['step', 'loss', 'rate', 'score', 'seconds']
    """
    import pandas as pd

    columns = ["epoch", "step", "loss", "rate", "score", "seconds"]
    table = pd.DataFrame([{name: line[name] for name in columns} for line in log], columns=columns)
    table["score"] = table["score"].astype(float)  # an epoch without validation has NaN
    return table.set_index("epoch")


def tabulate_metrics(metrics: Mapping[str, Any]) -> pd.DataFrame:
    """Return scores (rows) by split (columns), with the AUC of each class as "auc:CLASS".

    >>> tabulate_metrics({"test": {"n": 8, "loss": 0.5}, "converged": None})["test"]["loss"]
    0.5
    """
    import pandas as pd

    columns = {}
    for split in ("train", "validation", "test"):
        if split not in metrics:
            continue
        scores = metrics[split]
        column = {name: value for name, value in scores.items() if _is_number(value)}
        for name, row in scores.get("classes", {}).items():
            column[f"auc:{name}"] = row["auc"]
        columns[split] = pd.Series(column, dtype=float)
    return pd.DataFrame(columns).reindex(list(dict.fromkeys(_list_rows(columns))))


def tabulate_predictions(predictions: Predictions) -> pd.DataFrame:
    """Return probabilities and labels by class, with a row for each (split, id).

    Columns are ("probability", class) and ("label", class); labels are 0 or 1.
    """
    import pandas as pd

    index = [
        (split, name)
        for split, scored in predictions.splits.items()
        for name in scored.ids.tolist()
    ]
    columns = [(kind, name) for kind in ("probability", "label") for name in predictions.classes]
    values = {
        (kind, name): np.concatenate(
            [
                (scored.probabilities if kind == "probability" else scored.labels)[:, k]
                for scored in predictions.splits.values()
            ]
        )
        for kind in ("probability", "label")
        for k, name in enumerate(predictions.classes)
    }
    return pd.DataFrame(
        values,
        index=pd.MultiIndex.from_tuples(index, names=["split", "id"]),
        columns=pd.MultiIndex.from_tuples(columns, names=[None, "class"]),
    )


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _list_rows(columns: Mapping[str, pd.Series[float]]) -> list[str]:
    return [str(name) for column in columns.values() for name in column.index]
