"""The list of causes and the page that describes it."""

import re

import pytest

from seedless.audit.doctor.causes import CAUSES

WORDS = {"line", "op", "generator", "call", "name", "advice"}


@pytest.mark.parametrize("code", CAUSES)
def test_a_remedy_uses_known_words(code):
    cause = CAUSES[code]
    assert set(re.findall(r"\{(\w+)\}", cause.title + cause.remedy)) <= WORDS
    assert not cause.remedy.endswith(".")
    assert cause.title[0].islower() or cause.title.startswith(("{op}", "cuDNN"))
