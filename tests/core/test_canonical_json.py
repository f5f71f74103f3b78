"""Canonical JSON: one value, one sequence of bytes."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedless.core.digests import canonical_json, digest_value
from seedless.core.errors import SeedlessError

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES)
def test_it_reads_back(value):
    assert json.loads(canonical_json(value)) == value


@given(st.dictionaries(st.text(), st.integers(), min_size=2))
def test_the_order_of_keys_does_not_matter(value):
    backwards = dict(reversed(value.items()))
    assert canonical_json(backwards) == canonical_json(value)


def test_the_bytes_are_as_specified():
    value = {"b": [1, 2.5, True, None], "a": "é"}
    assert canonical_json(value) == '{"a":"é","b":[1,2.5,true,null]}'.encode()
    assert digest_value({}) == (
        "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    )


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ({"a": [math.nan]}, r"\$\.a\[0\]"),
        ({"a": math.inf}, r"\$\.a"),
        ({1: 2}, "string keys"),
        ({"a": {1, 2}}, "set"),
        ([b"x"], "bytes"),
    ],
)
def test_what_json_would_bend_is_refused(value, where):
    with pytest.raises(SeedlessError, match=where):
        canonical_json(value)
