"""The names that settings can have, read from source text: they are those of the registries."""

import pytest

from seedless.core.config import Config, flatten, override
from seedless.core.config_files import list_presets, open_config
from seedless.core.errors import UnknownNameError
from seedless.core.marks import HEADS
from seedless.core.setting_choices import check_choices, list_choices, read_names
from seedless.core.setting_texts import SETTING_TEXTS
from seedless.data.leads import LEAD_SETS
from seedless.data.normalize import METHODS
from seedless.data.resample import SHORT_RECORD_TREATMENTS
from seedless.data.simulators.population import PRESETS
from seedless.init.starts import INITIALIZATIONS
from seedless.models import MODELS
from seedless.ordering import ORDERS
from seedless.runs.prepare import STORAGE
from seedless.studies.catalog import STUDIES
from seedless.train.arithmetic import ARITHMETICS, PRECISIONS
from seedless.train.learning_rate import DECAYS
from seedless.train.loss import CLASS_WEIGHTS
from seedless.train.optimizer import OPTIMIZERS
from seedless.train.step_modes import STEP_MODES

REGISTRIES = {
    "data.leads": LEAD_SETS,
    "data.normalize": METHODS,
    "data.preset": PRESETS,
    "data.short": SHORT_RECORD_TREATMENTS,
    "execution.arithmetic": ARITHMETICS,
    "execution.mode": ("auto", *STEP_MODES),
    "execution.precision": PRECISIONS,
    "execution.storage": STORAGE,
    "init.basis": INITIALIZATIONS,
    "init.heads": HEADS,
    "loss.class_weights": CLASS_WEIGHTS,
    "model.name": MODELS,
    "order.name": ORDERS,
    "train.decay": DECAYS,
    "train.optimizer": OPTIMIZERS,
}
SETTINGS = sorted(flatten(Config().model_dump()))


@pytest.mark.parametrize("setting", REGISTRIES)
def test_names_in_the_text_are_those_of_the_registry(setting):
    assert list_choices(setting) == tuple(REGISTRIES[setting])


def test_studies_are_read_too_and_a_missing_registry_is_a_defect():
    assert read_names("studies/catalog.py", "STUDIES") == STUDIES
    with pytest.raises(LookupError, match="assigns nothing to NOTHING"):
        read_names("studies/catalog.py", "NOTHING")


def test_every_preset_and_the_defaults_pass():
    check_choices(Config())
    for name in list_presets():
        check_choices(open_config(name))


@pytest.mark.parametrize("setting", [name for name in SETTINGS if list_choices(name)])
def test_an_unknown_name_is_refused_with_the_nearest(setting):
    known = list_choices(setting)[0]
    with pytest.raises(UnknownNameError, match=f"unknown {setting} .*known: .*{known}"):
        check_choices(override(Config(), [f'{setting}="{known}x"']))


def test_every_setting_is_explained_in_one_sentence():
    assert sorted(SETTING_TEXTS) == SETTINGS
    for setting, text in SETTING_TEXTS.items():
        assert text.endswith("."), setting
        assert len(text) <= 80, setting
