"""What --vary accepts."""

import pytest

from seedless.audit.doctor.variation import parse_variation
from seedless.core.errors import RunError


def test_the_three_forms():
    assert parse_variation("seed-env") == {"PYTHONHASHSEED": ("1", "2")}
    assert parse_variation("threads=1,4") == {
        "OMP_NUM_THREADS": ("1", "4"),
        "MKL_NUM_THREADS": ("1", "4"),
    }
    assert parse_variation("AMP_DTYPE=bfloat16,float16") == {"AMP_DTYPE": ("bfloat16", "float16")}


@pytest.mark.parametrize(
    "text", ["", "threads", "threads=1", "threads=1,1", "threads=0,1", "A=1,2,3", "A B=1,2", "=1,2"]
)
def test_other_forms_are_refused(text):
    with pytest.raises(RunError, match="expected"):
        parse_variation(text)
