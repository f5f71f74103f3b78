"""Lines whose result depends on the order of a set or on hash()."""

import pytest

from seedless.audit.doctor.set_order import find_ordered_lines, find_ordered_uses


@pytest.mark.parametrize(
    "source",
    [
        "for name in {'a', 'b'}: pass",
        "for name in set(names): pass",
        "x = list(set(words))",
        "x = [n for n in set(words)]",
        "words = set(text)\nfor word in words: pass",
        "words = set(text)\nother = words | {1}\nx = list(other)",
        "class A:\n  def f(self):\n    self.names = {n for n in x}\n    return list(self.names)",
        "x = dict(enumerate(set(words)))",
        "x = ' '.join(set(words))",
        "x = (*set(words),)",
        "x = frozenset(words)\ny = tuple(x)",
        "x = set(a).intersection(b)\nfor i in x: pass",
        "x = set(a)\nfirst = x.pop()",
        "names.extend({1, 2})",
    ],
)
def test_the_order_of_a_set_is_found(source):
    uses = find_ordered_uses(source)
    assert [use.kind for use in uses] == ["set"]
    assert uses[0].line == source.count("\n") + 1


@pytest.mark.parametrize(
    "source",
    [
        "for name in sorted(set(names)): pass",
        "x = len(set(words))",
        "known = set(words)\nx = [w for w in text if w in known]",
        "known = set(words)\nx = known.issuperset(text)",
        "for name in ['a']: pass",
        "x = list(words)",
        "this is no Python",
        "\0",
        "(" * 10_000,
    ],
)
def test_what_does_not_depend_on_it_is_not(source):
    assert find_ordered_uses(source) == []


def test_hash_is_found():
    (use,) = find_ordered_uses("x = [n for n in names if hash(n) % 5]")
    assert (use.kind, use.text) == ("hash", "hash(n)")


def test_files_are_searched_and_missing_ones_left_out(tmp_path):
    (tmp_path / "a.py").write_text("x = 1\nfor i in {1}: pass\n")
    (tmp_path / "pipe").mkdir()
    found = find_ordered_lines(["a.py", "missing.py", "pipe"], tmp_path)
    assert [line for line, _ in found] == ["a.py:2"]


def test_the_line_that_makes_the_set_is_known():
    (use,) = find_ordered_uses("words = set(text)\nother = words\nx = list(other)")
    assert (use.line, use.made) == (3, 1)
