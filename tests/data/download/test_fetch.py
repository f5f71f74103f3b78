"""Fetching, against a real server on localhost that drops, lies, stalls and changes its mind."""

import errno
import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import threading
import time
from dataclasses import replace

import pytest

from seedless.core import progress as progress_module
from seedless.core.errors import DataError, UnknownNameError
from seedless.data.catalog import File, find_entry
from seedless.data.download import transfer as download_module
from seedless.data.download.fetch import fetch, read_sums
from seedless.data.download.transfer import RetryPolicy
from tests.data.download.server import serve

BODY = b"".join(hashlib.sha256(b"%d" % n).digest() for n in range(32_000))  # 1,024,000 bytes
QUICK = RetryPolicy(tries=3, pause=0.01, connect=2, read=2)
PROJECT = {
    "LICENSE.txt": b"ODC-By",
    "bw.hea": b"bw 2 360 10",
    "bw.dat": BODY[:30_000],
    "em.hea": b"em 2 360 10",
    "em.dat": BODY[5:30_005],
    "ma.hea": b"ma 2 360 10",
    "ma.dat": BODY[9:30_009],
    "118e06.dat": b"not wanted",
}
WANTED = {name: data for name, data in PROJECT.items() if name != "118e06.dat"}


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # nobody listens there


@pytest.fixture
def site():
    with serve() as site:
        yield site


def one_file(site, data=BODY, path="breastmnist.npz", md5=None):
    """An entry of one file, served by the site."""
    site.files[f"/{path}"] = data
    known = f"md5:{md5 or hashlib.md5(data).hexdigest()}"
    entry = find_entry("breastmnist")
    return replace(entry, files=(replace(entry.files[0], path=path, hash=known),), root=path)


def get(entry, folder, site, **options):
    options = {"progress": False, "retry": QUICK, **options}
    return fetch(entry, folder, base_url=site.url, **options)


def names(folder):
    """Every file below, but locks."""
    return sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith(".lock")
    )


def cifar(site, **changes):
    """CIFAR-100 in small: an archive, with the hashes of what is in it."""
    parts = {"train": b"train" * 999, "test": b"test" * 99, "meta": b"meta"}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, data in parts.items():
            info = tarfile.TarInfo(f"cifar-100-python/{name}")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    data = packed.getvalue()
    site.files["/cifar-100-python.tar.gz"] = data
    entry = find_entry("cifar-100")
    file = replace(
        entry.files[0],
        hash=f"md5:{hashlib.md5(data).hexdigest()}",
        contents={name: f"md5:{hashlib.md5(part).hexdigest()}" for name, part in parts.items()},
        **changes,
    )
    return replace(entry, files=(file,)), parts


def test_a_file_arrives_with_the_right_bytes(site, tmp_path):
    path = get(one_file(site), tmp_path / "new" / "folder", site)
    assert path == tmp_path / "new" / "folder" / "breastmnist.npz"
    assert path.read_bytes() == BODY
    assert names(tmp_path) == ["new/folder/breastmnist.npz"]
    (asked,) = site.asked("/breastmnist.npz")
    assert "Range" not in asked
    assert asked["Accept-Encoding"] == "identity"
    assert "Authorization" not in asked


def test_larger_images_are_another_file_with_another_sum(site, tmp_path):
    """They lie beside the small ones; a file without the published sum is refused."""
    site.files["/breastmnist_64.npz"] = BODY
    entry = find_entry("breastmnist", 64)
    with pytest.raises(DataError, match=r"breastmnist_64\.npz"):
        get(entry, tmp_path, site)
    known = replace(entry.files[0], hash=f"md5:{hashlib.md5(BODY).hexdigest()}")
    path = get(replace(entry, files=(known,)), tmp_path, site)
    assert path == tmp_path / "breastmnist_64.npz"
    assert not site.asked("/breastmnist.npz")


def test_what_is_there_is_not_downloaded_again(site, tmp_path):
    entry = one_file(site)
    get(entry, tmp_path, site)
    get(entry, tmp_path, site)
    assert len(site.requests) == 1


def test_the_real_file_placed_by_hand_needs_no_network(real_data, tmp_path):
    (tmp_path / "breastmnist.npz").symlink_to(real_data / "medmnist" / "breastmnist.npz")
    before = sorted(tmp_path.iterdir())
    path = fetch("breastmnist", tmp_path, base_url="http://127.0.0.1:9", progress=False)
    assert path == tmp_path / "breastmnist.npz"
    assert sorted(tmp_path.iterdir()) == before  # not even a lock


def test_the_real_file_is_fetched_and_checked_by_its_published_hash(real_data, site, tmp_path):
    site.files["/breastmnist.npz"] = (real_data / "medmnist" / "breastmnist.npz").read_bytes()
    path = get("breastmnist", tmp_path, site)
    assert path.read_bytes() == site.files["/breastmnist.npz"]


def test_a_wrong_file_in_place_is_replaced(site, tmp_path):
    (tmp_path / "breastmnist.npz").write_bytes(b"half a file")
    assert get(one_file(site), tmp_path, site).read_bytes() == BODY


def test_a_dropped_connection_is_resumed_where_it_stopped(site, tmp_path):
    entry = one_file(site)
    site.cut["/breastmnist.npz"] = [500_000, 300_000]
    assert get(entry, tmp_path, site).read_bytes() == BODY
    first, second, third = site.asked("/breastmnist.npz")
    assert "Range" not in first
    assert second["Range"] == "bytes=500000-"
    assert third["Range"] == "bytes=800000-"
    assert second["If-Range"] == f'"{hashlib.md5(BODY).hexdigest()}"'
    assert names(tmp_path) == ["breastmnist.npz"]


def test_a_download_that_failed_is_resumed_by_the_next_one(site, tmp_path):
    entry = one_file(site)
    site.cut["/breastmnist.npz"] = [500_000, 0, 0]
    with pytest.raises(DataError, match="dropped"):
        get(entry, tmp_path, site)
    assert names(tmp_path) == ["breastmnist.npz.part", "breastmnist.npz.part.json"]
    assert get(entry, tmp_path, site).read_bytes() == BODY
    assert site.asked("/breastmnist.npz")[-1]["Range"] == "bytes=500000-"
    assert names(tmp_path) == ["breastmnist.npz"]


def test_a_complete_part_only_gets_its_name(site, tmp_path):
    entry = one_file(site)
    url = f"{site.url}/breastmnist.npz"
    (tmp_path / "breastmnist.npz.part").write_bytes(BODY)
    note = {"url": url, "mark": None, "length": len(BODY)}
    (tmp_path / "breastmnist.npz.part.json").write_text(json.dumps(note))
    assert get(entry, tmp_path, site).read_bytes() == BODY
    assert site.requests == []
    assert names(tmp_path) == ["breastmnist.npz"]


@pytest.mark.parametrize("note", ["", "{", "[]", '{"url": "elsewhere", "mark": "x", "length": 9}'])
def test_a_part_of_unknown_origin_is_begun_anew(site, tmp_path, note):
    entry = one_file(site)
    (tmp_path / "breastmnist.npz.part").write_bytes(b"x" * 1000)
    (tmp_path / "breastmnist.npz.part.json").write_text(note)
    assert get(entry, tmp_path, site).read_bytes() == BODY
    assert "Range" not in site.asked("/breastmnist.npz")[0]


def test_a_server_that_ignores_ranges_is_begun_anew(site, tmp_path):
    entry = one_file(site)
    site.ranges = False
    site.cut["/breastmnist.npz"] = [500_000]
    assert get(entry, tmp_path, site).read_bytes() == BODY
    assert site.asked("/breastmnist.npz")[1]["Range"] == "bytes=500000-"


def test_a_server_that_ignores_ranges_and_always_drops_is_given_up(site, tmp_path):
    entry = one_file(site)
    site.ranges = False
    site.cut["/breastmnist.npz"] = [500_000] * 50
    with pytest.raises(DataError, match="dropped"):
        get(entry, tmp_path, site)
    assert len(site.requests) <= 5


def test_a_file_that_changed_meanwhile_is_begun_anew(site, tmp_path):
    entry = one_file(site, b"old" * 100_000)
    site.cut["/breastmnist.npz"] = [100_000, 0, 0]
    with pytest.raises(DataError):
        get(entry, tmp_path, site)
    entry = one_file(site)  # If-Range no longer fits: the server answers with the whole new file
    assert get(entry, tmp_path, site).read_bytes() == BODY


@pytest.mark.parametrize("old", [b"old" * 100_000, b"o" * len(BODY)])
def test_a_change_that_no_mark_shows_is_found_by_the_hash(site, tmp_path, old):
    site.tags = False
    entry = one_file(site, old)
    site.cut["/breastmnist.npz"] = [100_000, 0, 0]
    with pytest.raises(DataError):
        get(entry, tmp_path, site)
    entry = one_file(site)
    assert get(entry, tmp_path, site).read_bytes() == BODY
    assert "Range" not in site.asked("/breastmnist.npz")[-1]


def test_a_part_longer_than_the_file_is_begun_anew(site, tmp_path):
    site.tags = False
    entry = one_file(site, BODY * 2)
    site.cut["/breastmnist.npz"] = [1_500_000, 0, 0]
    with pytest.raises(DataError):
        get(entry, tmp_path, site)
    entry = one_file(site)  # answers 416 to a range past its end
    assert get(entry, tmp_path, site).read_bytes() == BODY


def test_last_modified_marks_a_version_too(site, tmp_path):
    site.tags = False
    site.headers["Last-Modified"] = "Wed, 21 Oct 2015 07:28:00 GMT"
    entry = one_file(site)
    site.cut["/breastmnist.npz"] = [500_000]
    get(entry, tmp_path, site)
    assert site.asked("/breastmnist.npz")[1]["If-Range"] == "Wed, 21 Oct 2015 07:28:00 GMT"


def test_a_wrong_hash_is_refused_and_deleted(site, tmp_path):
    entry = one_file(site, md5="0" * 32)
    with pytest.raises(DataError, match="not the file that was published") as refusal:
        get(entry, tmp_path, site)
    text = str(refusal.value)
    assert f"{site.url}/breastmnist.npz" in text
    assert "0" * 32 in text
    assert hashlib.md5(BODY).hexdigest() in text
    assert names(tmp_path) == []
    assert len(site.requests) == 1


def test_a_wrong_hash_in_pieces_is_fetched_once_more_before_it_is_refused(site, tmp_path):
    entry = one_file(site, md5="0" * 32)
    site.cut["/breastmnist.npz"] = [500_000]
    with pytest.raises(DataError, match="not the file that was published"):
        get(entry, tmp_path, site)
    assert len(site.requests) == 3
    assert names(tmp_path) == []


def test_a_file_not_found_says_what_to_do_by_hand(site, tmp_path):
    entry = one_file(site)
    site.files.clear()
    with pytest.raises(DataError, match="404") as refusal:
        get(entry, tmp_path, site)
    text = str(refusal.value)
    assert f"download {site.url}/breastmnist.npz" in text
    assert str(tmp_path / "breastmnist.npz") in text
    assert len(site.requests) == 1  # no use asking again
    assert names(tmp_path) == []


def test_a_server_error_is_tried_again_and_then_reported(site, tmp_path):
    entry = one_file(site)
    site.status["/breastmnist.npz"] = [500, 503]
    assert get(entry, tmp_path, site).read_bytes() == BODY
    site.status["/breastmnist.npz"] = [500] * 9
    with pytest.raises(DataError, match=r"answers 500.*3 tries"):
        get(entry, tmp_path / "other", site)
    assert names(tmp_path / "other") == []


def test_a_server_that_stalls_is_given_up(site, tmp_path):
    entry = one_file(site)
    site.stall.add("/breastmnist.npz")
    started = time.monotonic()
    with pytest.raises(DataError, match="did not answer in time"):
        get(entry, tmp_path, site, retry=RetryPolicy(tries=2, pause=0.01, read=0.2))
    assert time.monotonic() - started < 3


def test_no_server_is_reported_with_the_way_by_hand(tmp_path):
    with pytest.raises(DataError, match="refused the connection") as refusal:
        fetch("ptb-xl", tmp_path, base_url="http://127.0.0.1:9", progress=False, retry=QUICK)
    text = str(refusal.value)
    assert "http://127.0.0.1:9/SHA256SUMS.txt" in text
    assert "https://physionet.org/content/ptb-xl/1.0.3/" in text
    assert names(tmp_path) == []


def test_a_length_is_not_needed(site, tmp_path):
    site.lengths = False
    assert get(one_file(site), tmp_path, site).read_bytes() == BODY


def test_packed_transport_is_not_unpacked(site, tmp_path):
    data = gzip.compress(BODY)
    site.headers["Content-Encoding"] = "gzip"  # some servers say so of any .gz file
    assert get(one_file(site, data), tmp_path, site).read_bytes() == data


def test_redirections_are_followed(site, tmp_path):
    entry = one_file(site)
    site.files["/elsewhere"] = site.files.pop("/breastmnist.npz")
    site.redirect["/breastmnist.npz"] = "/elsewhere"
    assert get(entry, tmp_path, site).read_bytes() == BODY


def test_passwords_of_the_machine_are_not_sent(site, tmp_path, monkeypatch):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    get(one_file(site), tmp_path / "data", site)
    assert "Authorization" not in site.asked("/breastmnist.npz")[0]


@pytest.mark.parametrize(
    "url", ["ftp://example.org/x", "file:///etc/passwd", "example.org", "http://me:pw@127.0.0.1/"]
)
def test_other_addresses_are_refused(tmp_path, url):
    with pytest.raises(DataError, match="address"):
        fetch("breastmnist", tmp_path, base_url=url, progress=False)
    assert list(tmp_path.iterdir()) == []


def test_https_is_not_left_for_http():
    class Answer:
        history, url, status_code, headers = (), "http://example.org/x", 200, {}

    with pytest.raises(DataError, match="not https"):
        download_module._check_answer("https://example.org/x", Answer())


def test_a_project_arrives_by_its_list(site, tmp_path):
    site.release(PROJECT)
    path = get("nstdb", tmp_path, site)
    assert path == tmp_path
    assert {name: (path / name).read_bytes() for name in WANTED} == WANTED
    assert names(tmp_path) == sorted([*WANTED, "SHA256SUMS.txt"])
    assert site.requests[0][0] == "/SHA256SUMS.txt"
    asked = len(site.requests)
    assert get("nstdb", tmp_path, site) == tmp_path
    assert len(site.requests) == asked


def test_of_a_project_only_what_is_missing_or_differs_is_fetched(site, tmp_path):
    site.release(PROJECT)
    get("nstdb", tmp_path, site)
    (tmp_path / "em.hea").unlink()
    (tmp_path / "ma.dat").write_bytes(b"damaged")
    site.requests.clear()
    get("nstdb", tmp_path, site)
    assert sorted(path for path, _ in site.requests) == ["/em.hea", "/ma.dat"]
    assert (tmp_path / "ma.dat").read_bytes() == PROJECT["ma.dat"]


def test_one_failure_ends_a_project_and_the_rest_is_kept(site, tmp_path):
    site.release(PROJECT)
    del site.files["/em.dat"]
    with pytest.raises(DataError, match=r"em\.dat: the server answers 404"):
        get("nstdb", tmp_path, site)
    assert "em.dat" not in names(tmp_path)
    site.release(PROJECT)
    get("nstdb", tmp_path, site)
    assert {name: (tmp_path / name).read_bytes() for name in WANTED} == WANTED


def test_folders_below_and_extras(site, tmp_path):
    project = {
        "ptbxl_database.csv": b"ecg_id",
        "scp_statements.csv": b"code",
        "records100/00000/00001_lr.dat": b"low",
        "records500/00000/00001_hr.dat": b"high",
    }
    site.release(project)
    entry = replace(find_entry("ptb-xl"), holds=("*_lr.dat", 1))
    get(entry, tmp_path, site)
    assert "records500/00000/00001_hr.dat" not in names(tmp_path)
    get(entry, tmp_path, site, extras=["500"])
    assert (tmp_path / "records500/00000/00001_hr.dat").read_bytes() == b"high"
    with pytest.raises(UnknownNameError, match="extra of ptb-xl"):
        get("ptb-xl", tmp_path, site, extras=["1000"])


def test_a_list_that_was_cut_short_is_no_success(site, tmp_path):
    site.release({name: PROJECT[name] for name in ("bw.hea", "bw.dat")})
    with pytest.raises(DataError, match=r"expected 3 files \*\.dat of nstdb, found 1"):
        get("nstdb", tmp_path, site)


def test_the_part_of_a_project_that_is_read_is_returned(site, tmp_path):
    site.release({"training/cpsc_2018/g1/A0001.mat": b"x", "training/ptb/g1/S0001.mat": b"y"})
    entry = replace(find_entry("cpsc2018"), holds=("A0001.mat", 1))
    assert get(entry, tmp_path, site) == tmp_path / "training/cpsc_2018"
    assert names(tmp_path / "training") == ["cpsc_2018/g1/A0001.mat"]


@pytest.mark.parametrize("place", ["", "nstdb-1.0.0", "physionet.org/files/nstdb/1.0.0"])
def test_a_project_placed_by_hand_is_found_and_checked(site, tmp_path, place):
    site.release(PROJECT)
    root = tmp_path / place
    root.mkdir(parents=True, exist_ok=True)
    for name, data in {**WANTED, "SHA256SUMS.txt": site.files["/SHA256SUMS.txt"]}.items():
        (root / name).write_bytes(data)
    offline = {"base_url": "http://127.0.0.1:9", "progress": False, "retry": QUICK}
    assert fetch("nstdb", tmp_path, **offline) == root
    (root / "em.dat").write_bytes(b"not this")
    with pytest.raises(DataError, match=r"em\.dat"):
        fetch("nstdb", tmp_path, **offline)


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ("0" * 64 + "  ../evil", "lead out of the folder"),
        ("0" * 64 + "  /etc/passwd", "lead out of the folder"),
        ("0" * 64 + "  a\\..\\evil", "lead out of the folder"),
        ("0" * 64 + "  bw\x1b.dat", "lead out of the folder"),
        ("<html>Sign in</html>", "line 1: expected a SHA-256"),
        ("0" * 64 + "  bw.dat\n" + "1" * 64 + "  bw.dat", "line 2: a second"),
        ("0" * 64 + "  other.dat", "lists no file of nstdb"),
    ],
)
def test_a_hostile_or_broken_list_is_refused(site, tmp_path, line, match):
    site.files["/SHA256SUMS.txt"] = f"{line}\n".encode()
    with pytest.raises(DataError, match=match):
        get("nstdb", tmp_path / "data", site)
    assert names(tmp_path) == ["data/SHA256SUMS.txt"]


@pytest.mark.parametrize("gap", [" ", "  ", " *", "\t"])
def test_every_spelling_of_a_list_is_read(tmp_path, gap):
    path = tmp_path / "SHA256SUMS.txt"
    path.write_text(f"{'AB' * 32}{gap}a/b c.dat\n\n{'0' * 64}{gap}./d\r\n")
    assert read_sums(path) == [("a/b c.dat", "ab" * 32), ("d", "0" * 64)]


def test_a_list_that_is_not_text_is_refused(tmp_path):
    (tmp_path / "SHA256SUMS.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="not a list of SHA-256 sums"):
        read_sums(tmp_path / "SHA256SUMS.txt")


def test_an_archive_is_unpacked_once_and_checked(site, tmp_path):
    entry, parts = cifar(site)
    path = get(entry, tmp_path, site)
    assert path == tmp_path / "cifar-100-python"
    assert {name: (path / name).read_bytes() for name in parts} == parts
    (tmp_path / "cifar-100-python.tar.gz").unlink()  # no longer needed
    assert get(entry, tmp_path, site) == path
    assert len(site.requests) == 1


def test_an_archive_placed_by_hand_is_unpacked(site, tmp_path):
    entry, parts = cifar(site)
    (tmp_path / "cifar-100-python.tar.gz").write_bytes(site.files["/cifar-100-python.tar.gz"])
    assert (get(entry, tmp_path, site) / "train").read_bytes() == parts["train"]
    assert site.requests == []


def test_an_unpacked_folder_placed_by_hand_is_checked(site, tmp_path):
    entry, parts = cifar(site)
    folder = tmp_path / "cifar-100-python"
    folder.mkdir()
    for name, data in parts.items():
        (folder / name).write_bytes(data)
    assert get(entry, tmp_path, site) == folder
    assert site.requests == []
    (folder / "test").write_bytes(b"other")
    with pytest.raises(DataError, match="not the published file"):
        get(entry, tmp_path, site)
    (folder / "test").unlink()
    with pytest.raises(DataError, match="missing"):
        get(entry, tmp_path, site)


def test_a_malicious_archive_is_refused_and_writes_nothing(site, tmp_path):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        info = tarfile.TarInfo("../../evil")
        info.size = 4
        tar.addfile(info, io.BytesIO(b"evil"))
    entry, _ = cifar(site)
    site.files["/cifar-100-python.tar.gz"] = packed.getvalue()
    known = f"md5:{hashlib.md5(packed.getvalue()).hexdigest()}"
    entry = replace(entry, files=(replace(entry.files[0], hash=known),))
    with pytest.raises(DataError, match="could lead out of its folder"):
        get(entry, tmp_path / "a" / "b", site)
    assert names(tmp_path) == ["a/b/cifar-100-python.tar.gz"]


def test_files_without_a_hash_are_counted(site, tmp_path):
    import zipfile

    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        for number in range(3):
            file.writestr(f"TrainingSet1/A000{number}.mat", "x")
    site.files.update({"/TrainingSet1.zip": packed.getvalue(), "/REFERENCE.csv": b"Recording"})
    entry = find_entry("cpsc2018-original")
    small = replace(entry, files=(entry.files[0], entry.files[3]), holds=(entry.holds[0], 3))
    assert get(small, tmp_path, site) == tmp_path
    assert "TrainingSet1/A0002.mat" in names(tmp_path)
    with pytest.raises(DataError, match=r"expected 6,877 files .* found 3"):
        get(replace(small, holds=entry.holds), tmp_path, site)


def test_what_is_computed_is_not_fetched(tmp_path):
    with pytest.raises(DataError, match="simulated is computed"):
        fetch("simulated", tmp_path)


def test_lines_without_control_characters_where_there_is_no_terminal(
    site, tmp_path, capfd, monkeypatch
):
    monkeypatch.setattr(progress_module, "SECONDS_BETWEEN_LINES", 0.0)
    site.release(PROJECT)
    get("nstdb", tmp_path, site, progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert all(character.isprintable() or character == "\n" for character in err)
    assert "nstdb: 7 of 7 files, 0.1 MB in" in err
    assert len(err.splitlines()) >= 8


def test_lines_are_seconds_apart_and_absent_on_request(site, tmp_path, capfd):
    site.release(PROJECT)
    get("nstdb", tmp_path / "a", site, progress=True)
    assert len(capfd.readouterr().err.splitlines()) == 2  # the list, the files
    get("nstdb", tmp_path / "b", site, progress=False)
    assert capfd.readouterr() == ("", "")


def test_a_bar_on_a_terminal(site, tmp_path, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    get(one_file(site), tmp_path / "a", site, progress=True)
    assert "100%" in terminal.getvalue()
    site.release(PROJECT)
    get("nstdb", tmp_path / "b", site, progress=True)
    assert "7 of 7 files" in terminal.getvalue()


def test_two_processes_fetch_once(site, tmp_path):
    one_file(site)
    site.cut["/breastmnist.npz"] = [100_000]
    script = tmp_path / "both.py"
    script.write_text(
        "import sys\n"
        "from dataclasses import replace\n"
        "from seedless.data.catalog import find_entry\n"
        "from seedless.data.download.fetch import fetch\n"
        "entry = find_entry('breastmnist')\n"
        "file = replace(entry.files[0], hash=sys.argv[3])\n"
        "print(fetch(replace(entry, files=(file,)), sys.argv[1], base_url=sys.argv[2]))\n"
    )
    known = f"md5:{hashlib.md5(BODY).hexdigest()}"
    command = [sys.executable, str(script), str(tmp_path / "data"), site.url, known]
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for process in both:
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
        assert out.strip() == str(tmp_path / "data" / "breastmnist.npz")
    assert (tmp_path / "data" / "breastmnist.npz").read_bytes() == BODY
    assert len(site.requests) == 2  # one download, dropped once
    assert names(tmp_path / "data") == ["breastmnist.npz"]


def test_a_process_that_waits_says_so(site, tmp_path, capfd):
    from filelock import FileLock

    held = threading.Event()

    def hold():
        with FileLock(tmp_path / ".breastmnist.lock"):
            held.set()
            time.sleep(1.3)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    assert get(one_file(site), tmp_path, site, progress=True).read_bytes() == BODY
    thread.join()
    assert "another process is fetching it" in capfd.readouterr().err


def test_a_folder_that_cannot_be_written(site, tmp_path):
    entry = one_file(site)
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(DataError, match="is a file"):
        get(entry, tmp_path / "file", site)
    with pytest.raises(DataError, match="cannot write in"):
        get(entry, tmp_path / "file" / "below", site)
    if os.geteuid() != 0:
        (tmp_path / "locked").mkdir(mode=0o555)
        with pytest.raises(DataError, match="cannot write in"):
            get(entry, tmp_path / "locked", site)
    assert site.requests == []


def test_a_disk_too_full_is_noticed_before_the_download(site, tmp_path, monkeypatch):
    entry = one_file(site)
    monkeypatch.setattr(
        download_module.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 1000})
    )
    with pytest.raises(DataError, match=r"needs 1,024,000 bytes .* has 1,000"):
        get(entry, tmp_path, site)
    assert names(tmp_path) == []


def test_a_disk_that_fills_up_leaves_nothing(site, tmp_path, monkeypatch):
    entry = one_file(site)

    class Full(io.FileIO):
        def write(self, data):
            if self.tell() > 200_000:
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().write(data)

    monkeypatch.setattr(download_module, "open", lambda path, mode: Full(path, mode), raising=False)
    with pytest.raises(DataError, match=r"the disk is full: breastmnist\.npz") as refusal:
        get(entry, tmp_path, site)
    assert "By hand" not in str(refusal.value)
    assert names(tmp_path) == []


def test_an_interruption_keeps_the_part(site, tmp_path, monkeypatch):
    entry = one_file(site)

    class Interrupted(io.FileIO):
        def write(self, data):
            if self.tell() > 200_000:
                raise KeyboardInterrupt
            return super().write(data)

    with monkeypatch.context() as patch:
        patch.setattr(
            download_module, "open", lambda path, mode: Interrupted(path, mode), raising=False
        )
        with pytest.raises(KeyboardInterrupt):
            get(entry, tmp_path, site)
    assert names(tmp_path) == ["breastmnist.npz.part", "breastmnist.npz.part.json"]
    assert get(entry, tmp_path, site).read_bytes() == BODY
    assert "Range" in site.asked("/breastmnist.npz")[-1]


def test_nothing_half_received_is_taken_for_a_file(site, tmp_path):
    """A control: with no hash and no mark, a dropped download never becomes a file."""
    site.tags = False
    entry = one_file(site)
    bare = replace(entry, files=(File(path="breastmnist.npz", url="http://x/", check="none"),))
    site.cut["/breastmnist.npz"] = [500_000]
    assert get(bare, tmp_path, site).read_bytes() == BODY
    assert "Range" not in site.asked("/breastmnist.npz")[1]
