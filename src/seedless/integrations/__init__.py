"""Recorders for training loops that a framework runs: Lightning, Transformers, Accelerate, Ignite.

Each writes the trail of `seedless.record`, one line for each optimizer step. A framework is
imported when its recorder is first used: `pip install 'seedless[integrations]'` installs them all.
"""

from typing import TYPE_CHECKING

from seedless.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from seedless.integrations.accelerate_recorder import record_accelerator
    from seedless.integrations.ignite_recorder import IgniteRecorder
    from seedless.integrations.lightning_recorder import LightningRecorder
    from seedless.integrations.transformers_recorder import TransformersRecorder

__all__ = ["IgniteRecorder", "LightningRecorder", "TransformersRecorder", "record_accelerator"]

__getattr__, __dir__ = lazy_names(__name__)
