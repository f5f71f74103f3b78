"""The four published networks by name, and any model's draws made seed-free."""

from typing import TYPE_CHECKING

from seedless.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from seedless.models.conversion import ConversionReport, convert
    from seedless.models.layers import Classifier
    from seedless.models.registry import MODELS, build

__all__ = ["MODELS", "Classifier", "ConversionReport", "build", "convert"]

__getattr__, __dir__ = lazy_names(__name__)
