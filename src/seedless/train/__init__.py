"""The one training loop and its parts: loss, optimizer, learning rate, checkpoints, observers."""

from typing import TYPE_CHECKING

from seedless.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from seedless.train.bit_flip import flip_bit
    from seedless.train.learning_rate import learning_rate_at
    from seedless.train.log import LogWriter
    from seedless.train.loop import TrainingOutcome, train
    from seedless.train.loss import Loss, make_loss
    from seedless.train.optimizer import make_optimizer
    from seedless.train.prediction import predict
    from seedless.train.progress_state import Observer, Position, ProgressState
    from seedless.train.training_problem import DataSplit, TrainingProblem

__all__ = [
    "DataSplit",
    "LogWriter",
    "Loss",
    "Observer",
    "Position",
    "ProgressState",
    "TrainingOutcome",
    "TrainingProblem",
    "flip_bit",
    "learning_rate_at",
    "make_loss",
    "make_optimizer",
    "predict",
    "train",
]

__getattr__, __dir__ = lazy_names(__name__)
