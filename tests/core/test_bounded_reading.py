"""A file that someone else wrote is refused before it can take much time or memory."""

import json
import os
import socket

import pytest

from seedless.core.bounded_reading import (
    MAX_TOML_BYTES,
    parse_json,
    parse_toml,
    read_file,
    read_lines,
    shorten,
)
from seedless.core.errors import ConfigError, RunError
from tests.peak import measure


def test_a_plain_file_is_read_whole(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"12345")
    assert read_file(path, 5) == b"12345"


def test_a_larger_file_is_refused_with_both_sizes(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"12345")
    with pytest.raises(RunError, match="has 5 bytes; at most 4 are read"):
        read_file(path, 4)
    with pytest.raises(ConfigError):
        read_file(path, 4, error=ConfigError)


def test_a_link_is_refused_unless_the_user_named_it(tmp_path):
    (tmp_path / "a").write_bytes(b"1")
    link = tmp_path / "link"
    link.symlink_to("a")
    with pytest.raises(RunError, match="is a link; expected a plain file"):
        read_file(link, 10)
    assert read_file(link, 10, follow_links=True) == b"1"


def test_what_is_not_a_plain_file_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        for name in ("pipe", "zero", "s"):
            with pytest.raises(RunError, match="expected a plain file"):
                read_file(tmp_path / name, 10, follow_links=True)
    with pytest.raises(IsADirectoryError):
        read_file(tmp_path, 10)
    with pytest.raises(FileNotFoundError):
        read_file(tmp_path / "missing", 10)


def test_lines_are_read_one_at_a_time_within_their_limits(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"one\ntwo\nrest")
    assert list(read_lines(path, 100, 10)) == [b"one\n", b"two\n", b"rest"]
    path.write_bytes(b"on\ntw\nthree\n")
    with pytest.raises(RunError, match="line 3 has more than 3 bytes"):
        list(read_lines(path, 100, 3))
    with pytest.raises(RunError, match="at most 5 are read"):
        list(read_lines(path, 5, 3))


@pytest.mark.parametrize(
    "value", [None, True, -1, 2.5, 'a"\\[{,', [], {}, [[], {"a": [1, {"b": "é\u2028"}]}]]
)
def test_json_is_read_as_python_reads_it(value):
    assert parse_json(json.dumps(value).encode(), "f") == value
    assert parse_json(json.dumps(value, ensure_ascii=False).encode(), "f") == value


def test_a_pair_of_surrogates_is_one_character():
    assert parse_json(rb'"\ud83d\ude00"', "f") == "\U0001f600"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"[" * 65 + b"]" * 65, "nested 65 deep; at most 64"),
        (b'{"a":' * 10**6, "nested 1,000,000 deep|about 1,000,001 values"),
        (b'["]]]]",' * 70, "nested 70 deep"),
        (b"[" + b"1," * 10**6 + b"1]", "about 1,000,002 values; at most 1,000,000"),
        (b'{"a": 1, "b": 2, "a": 3}', "the key 'a' occurs twice"),
        (b"[NaN]", "holds NaN"),
        (b"[-Infinity]", "holds -Infinity"),
        (b"1e999", "beyond float64"),
        (b"1" * 5000, "has 5,000 digits"),
        (b"1." + b"1" * 5000, "too long"),
        (rb'"\ud800"', "surrogates not allowed"),
        (b'"\xff"', "can't decode"),
        (b"\xef\xbb\xbf1", "BOM"),
        ('"a"'.encode("utf-16"), "can't decode"),
        (b"", "Expecting value"),
        (b'"open', "Unterminated"),
    ],
)
def test_json_outside_the_limits_is_refused(content, why):
    with pytest.raises(RunError, match=f"f (is not valid JSON: .*|is |holds )(?:{why})"):
        parse_json(content, "f")


def test_a_text_that_never_closes_takes_no_square_of_the_time():
    # 2 million quotation marks: a search that began anew at each would take hours.
    for content in (b'"' + rb"\"" * 10**6, b'"' + rb"\"" * 10**6 + b"\\"):
        with pytest.raises(RunError, match="not valid JSON"):
            parse_json(content, "f")


def test_toml_is_read_as_tomllib_reads_it():
    text = '[data]\nname = "a.b[c]"\nskip = ["x", "y"]\n[data.lead_map]\nI = "II"\n'
    assert parse_toml(text.encode(), "f") == {
        "data": {"name": "a.b[c]", "skip": ["x", "y"], "lead_map": {"I": "II"}}
    }


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"x=" + b"[" * 3000 + b"]" * 3000, "3,000 opening brackets; at most 200"),
        (b"x=" + b"{a=" * 3000, "3,000 opening brackets"),
        (b".".join([b"a"] * 50_000) + b"=1", "a line with 49,999 dots; at most 2,000"),
        (b".".join([b"a"] * 20) + b"=1", "more than 16 deep"),
        (b"x=" + b"[" * 20 + b"]" * 20, "more than 16 deep"),
        (b"#" * (MAX_TOML_BYTES + 1), "262,145 bytes; at most 262,144"),
        (b"x=" + b"1" * 5000, "not valid TOML"),
        (b"x=0x" + b"f" * 20, "an integer beyond 64 bits"),
        (b"x=[-9223372036854775809]", "an integer beyond 64 bits"),
        (b"x='\xff'", "not valid TOML"),
        (b"x", "not valid TOML"),
    ],
)
def test_toml_outside_the_limits_is_refused(content, why):
    with pytest.raises(RunError, match=why):
        parse_toml(content, "f")


def test_the_largest_toml_takes_little_time():
    line = b".".join([b"a"] * 2_000) + b".b%d=1\n"
    content = b"".join(line % number for number in range(MAX_TOML_BYTES // len(line) - 1))
    answer = measure(
        "from seedless.core.bounded_reading import parse_toml\n"
        "parse_toml(sys.stdin.buffer.read(), 'f')",
        content,
    )
    assert answer.error == "RunError: f nests its tables and lists more than 16 deep"
    assert answer.cpu_seconds < 20


def test_the_largest_json_takes_little_memory():
    content = b"[" + b"{}," * 999_990 + b"0]"
    for filler in (content, b"[" + b'{"":0},' * 499_000 + b"0]"):
        answer = measure(
            "from seedless.core.bounded_reading import parse_json\n"
            "parse_json(sys.stdin.buffer.read(), 'f')",
            filler.ljust(16 * 2**20),
        )
        assert answer.peak_bytes < 2**29, answer


def test_shorten_keeps_both_ends():
    assert shorten("abc") == "abc"
    assert shorten("start" + "x" * 500 + "end", most=13) == "start...xxend"
