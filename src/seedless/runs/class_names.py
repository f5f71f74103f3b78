"""The names of the classes, taken from a receipt where a user does not repeat them."""

from collections.abc import Sequence
from dataclasses import replace

from seedless.core.digests import to_numpy
from seedless.runs.user_model import UserModel


def take_class_names(user: UserModel, names: Sequence[str]) -> UserModel:
    """Return the user's model with these names, if it has none and the labels fit them.

    Names change no weight. Where the labels do not fit the names of the receipt, nothing is
    changed, so that the comparison with the receipt can say what differs.
    """
    if user.classes is not None or user.functions.loss is not None:
        return user
    labels = to_numpy(user.train[1], "labels")
    if labels.ndim == 1:
        fits = int(labels.max(initial=0)) < len(names)
    else:
        fits = labels.ndim == 2 and labels.shape[1] == len(names)
    return replace(user, classes=tuple(names)) if fits else user
