"""A user's model, data and loss as a training problem whose batches are read one by one."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from seedless.core.config import Config
from seedless.core.dataset import OWN_LOSS
from seedless.core.digests import digest_value, keys_from_digests
from seedless.core.errors import ConfigError, DataError, SeedlessError
from seedless.core.sample_digests import count_samples, digest_keys
from seedless.data.batch_reader import BatchReader
from seedless.data.splits import Contents, count_repeated, digest_facts, name_repeated
from seedless.ordering.order import make_digest_order
from seedless.ordering.samples import sort_bytes
from seedless.runs.model_preparation import initialize_model, move_model
from seedless.runs.prepare import USER_MODEL, Prepared
from seedless.runs.shared_digests import digest_together
from seedless.runs.user_data import read_dataset
from seedless.runs.user_functions import UserFunctions, make_any_optimizer
from seedless.train.arithmetic import compute_in
from seedless.train.draw_check import check_evaluation_draws
from seedless.train.loop import check_settings
from seedless.train.process_group import TrainingGroup
from seedless.train.streamed_evaluation import Metrics, compute_metric
from seedless.train.training_problem import StreamedSplit, TrainingProblem
from seedless.train.user_loss import UserLoss, call_model, check_loss, show, spread_loss

TASK = OWN_LOSS  # the `task` of the data of such a run


def prepare_streamed(
    config: Config,
    model: nn.Module,
    data: Mapping[str, Any],
    functions: UserFunctions,
    *,
    workers: int = 0,
    cache: Path | None = None,
    shown: bool = False,
    group: TrainingGroup | None = None,
) -> Prepared:
    """Return a training problem with the user's loss; the settings are resolved.

    Args:
        data: "train", and where there are "val" and "test": arrays or datasets.
        workers: processes that read samples.
        cache: a folder that keeps the digests of the samples.
        shown: whether progress is shown while the samples are hashed.
        group: the processes that hash them together.
    """
    assert functions.loss is not None
    check_streamed_settings(config)
    # [Step 1] The digest of each sample, or of its key, which decides order and dropout.
    datasets = {split: read_dataset(split, part) for split, part in data.items()}
    digests: dict[str, NDArray[np.uint8]] = {}
    for split, dataset in datasets.items():
        if split == "train" and functions.key is not None:
            digests[split] = read_keys(dataset, functions)
        else:
            file = None if cache is None else cache / f"{split}.npy"
            digests[split] = digest_together(
                dataset, group, cache=file, workers=workers, shown=shown
            )
    # [Step 2] The first weights, and what the receipt says the run began with.
    facts = {
        "data": describe_data(digests),
        **initialize_model(config, model),
        "callables": functions.describe(),
    }
    # [Step 3] Readers, order, optimizer: everything on the device.
    device = torch.device(config.execution.device)
    move_model(model, device, images=False)
    splits = {
        split: StreamedSplit(
            BatchReader(
                dataset,
                keys=keys_from_digests(digests[split]),
                content=None if split == "train" and functions.key else digests[split],
                collate=functions.collate,
                workers=workers,
                split=split,
            ),
            sort_bytes(digests[split]),
            device,
        )
        for split, dataset in datasets.items()
    }
    optimizer, rates = make_any_optimizer(config.train, functions, model, device)
    settings = config.order.model_dump(exclude={"keep_unlabelled"})
    problem = TrainingProblem(
        config=config,
        model=model,
        optimizer=optimizer,
        order=make_digest_order(digests=digests["train"], **settings),
        loss=UserLoss(functions.loss),
        score=None,
        train=splits["train"],
        keys=torch.from_numpy(keys_from_digests(digests["train"])).to(device),
        val=splits.get("val"),
        rates=rates,
    )
    # [Step 4] Refuse now what would fail in the first step.
    check_settings(problem)
    check_evaluation_draws(problem, partial(check_first_samples, problem, functions.metrics or {}))
    rows = {
        split: [f"{split}[{row}]" for row in range(len(part))] for split, part in splits.items()
    }
    repeated = name_repeated(digests, rows)
    return Prepared(
        problem, splits.get("test"), (), "fit", facts, repeated, metrics=functions.metrics
    )


def check_streamed_settings(config: Config) -> None:
    """Refuse settings that belong to runs with the configuration's own loss and samples."""
    if config.augment.padding or config.augment.flip:
        raise ConfigError(
            "augment belongs to images of the configuration's own loss: augment in dataset[index], "
            "inside `with seedless.augment(index):`"
        )
    if config.execution.mode != "eager":
        raise ConfigError(
            f"execution.mode is {config.execution.mode}, whose steps read samples from memory; a "
            "loss of your own needs eager"
        )
    if config.is_portable and config.train.microbatch is not None:
        raise ConfigError(
            "train.microbatch in portable arithmetic belongs to the configuration's own loss: "
            "leave one of them out"
        )
    for name in ("class_weights", "clamp", "spare_penalty"):
        if getattr(config.loss, name) not in (None, "none"):
            raise ConfigError(f"loss.{name} has no effect with a loss of your own: leave it out")


def read_keys(dataset: Any, functions: UserFunctions) -> NDArray[np.uint8]:
    """Return the digests of the user's keys (n, 32); two samples with one key are refused."""
    assert functions.key is not None
    digests = digest_keys(count_samples(dataset), functions.key)
    order = sort_bytes(digests)
    same = np.flatnonzero((digests[order][1:] == digests[order][:-1]).all(axis=1))
    if len(same):
        one, two = sorted(order[same[0] : same[0] + 2].tolist())
        raise DataError(
            f"key({one}) and key({two}) are equal, and the order of such samples would depend on "
            "where they are stored: return another key for each sample"
        )
    return digests


def describe_data(digests: Contents) -> dict[str, Any]:
    """Return what a receipt states of data whose samples have these digests."""
    splits = {
        split: digest_value(part[sort_bytes(part)].tobytes().hex())
        for split, part in digests.items()
    }
    facts: dict[str, Any] = {
        "name": USER_MODEL,
        "content": digest_value(splits),
        "protocol": None,  # the splits were given one by one
        "splits": splits,
        "records": {split: len(part) for split, part in digests.items()},
        "repeated": count_repeated(digests),
        "task": TASK,
        "classes": [],
        "scale": None,
    }
    return {**facts, "digest": digest_facts(facts)}


@torch.no_grad()
def check_first_samples(problem: TrainingProblem, metrics: Metrics) -> None:
    """Refuse a model, a loss or a metric that rejects the first two samples of a split."""
    was_training = problem.model.training
    problem.model.eval()
    assert isinstance(problem.loss, UserLoss)
    for split in (problem.train, problem.val):
        if split is None:
            continue
        assert isinstance(split, StreamedSplit)
        rows = split.canonical[:2]
        inputs, targets = split.read(torch.from_numpy(np.ascontiguousarray(rows)), 0)
        what = f"the model cannot process the {split.reader.split} inputs, {show(inputs)}"
        try:
            with compute_in(problem.config.execution.arithmetic):
                outputs = call_model(problem.model, inputs)
                what = f"loss(outputs, targets) failed for {show(outputs)} and {show(targets)}"
                spread_loss(check_loss(problem.loss.function(outputs, targets)), len(rows))
            for name, metric in metrics.items():
                compute_metric(name, metric, outputs, targets, len(rows))
        except (SeedlessError, torch.OutOfMemoryError, MemoryError):
            raise
        except Exception as error:  # the code is not ours: whatever it raises is the message
            if "allocate memory" in str(error):
                raise
            raise ConfigError(f"{what}: {type(error).__name__}: {error}") from error
    problem.model.train(was_training)
