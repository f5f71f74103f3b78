"""Fields in which two records differ."""

import copy

from hypothesis import given
from hypothesis import strategies as st

from seedless.core.digests import canonical_json
from seedless.core.mismatch import Mismatch, compare_values

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(PLAIN, PLAIN)
def test_two_values_agree_exactly_if_their_json_does(one, other):
    assert compare_values(one, copy.deepcopy(one)) == []
    found = compare_values(one, other)
    # A field that is null and one that is not there say the same of a run: nothing.
    if canonical_json(drop_nulls(one)) != canonical_json(drop_nulls(other)):
        assert found
    if canonical_json(one) == canonical_json(other):
        assert not found
    mirrored = compare_values(other, one)
    assert mirrored == [Mismatch(m.field, m.here, m.recorded) for m in found]


def drop_nulls(value):
    if isinstance(value, dict):
        kept = {key: drop_nulls(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item is not None and item != {}}
    return [drop_nulls(item) for item in value] if isinstance(value, list) else value


def test_each_leaf_that_differs_is_named_by_its_path():
    one = {"a": {"b": [1, 2], "c": 1}, "d": "x", "e": [1]}
    other = {"a": {"b": [1, 3], "c": 1.0}, "d": "x", "e": [1, 2], "f": None}
    assert compare_values(one, other) == [
        Mismatch("a.b.1", 2, 3),
        Mismatch("a.c", 1, 1.0),
        Mismatch("e", [1], [1, 2]),
    ]
    assert str(Mismatch("a.c", None, "2.0")) == "a.c: nothing there, 2.0 here"
