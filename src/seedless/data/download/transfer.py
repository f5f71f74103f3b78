"""Download one file over http(s): resumed where it stopped, checked before it gets its name.

The bytes arrive in NAME.part; NAME.part.json keeps the server's mark of the version (ETag, or
Last-Modified), so that a later request continues the same file and never mixes two.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from seedless.core.errors import DataError
from seedless.core.files import has_hash, hash_file

if TYPE_CHECKING:
    import requests

    from seedless.data.download.progress import DownloadProgress

_CHUNK = 2**16
_LONGEST_PAUSE = 60.0
_PASSING = (408, 425, 429, 500, 502, 503, 504)  # statuses that may be gone a moment later


@dataclass(frozen=True)
class Patience:
    """How often, and for how long in seconds, a server is tried."""

    tries: int = 4  # in a row that bring nothing new
    pause: float = 1.0  # before the second try; doubled each time
    connect: float = 10.0
    read: float = 30.0  # between two pieces of an answer


@dataclass(frozen=True)
class Job:
    """One file to download, and by what means. ``hash`` is "md5:..." or "sha256:..." or None."""

    url: str
    target: Path
    hash: str | None
    session: requests.Session
    progress: DownloadProgress
    patience: Patience
    stop: threading.Event  # set by whoever waits for no more

    @property
    def part(self) -> Path:
        """Where the bytes arrive."""
        return self.target.with_name(f"{self.target.name}.part")

    @property
    def note(self) -> Path:
        """Where it is written down which file they belong to."""
        return self.target.with_name(f"{self.target.name}.part.json")


class DownloadError(DataError):
    """A server that does not give the file."""


class _PassingError(Exception):
    """A trouble that may be gone at the next try, after ``wait`` seconds or more."""

    def __init__(self, reason: str, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.wait = wait


def open_session(connections: int) -> requests.Session:
    """Return a session that keeps connections open, and neither cookies nor credentials."""
    from http.cookiejar import DefaultCookiePolicy

    import requests
    from requests.adapters import HTTPAdapter

    session = requests.Session()
    session.auth = _no_auth  # without one, requests looks for passwords in ~/.netrc
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    session.headers["Accept-Encoding"] = "identity"  # ranges and lengths are of the file itself
    for scheme in ("http://", "https://"):
        session.mount(scheme, HTTPAdapter(pool_maxsize=connections))
    return session


def download(job: Job) -> None:
    """Download a file. One with another hash is deleted and refused.

    Where such a file was put together from several answers, it is fetched once more before the
    server is blamed.
    """
    check_url(job.url)
    job.target.parent.mkdir(parents=True, exist_ok=True)
    for last in (False, True):
        whole = _receive(job)
        job.note.unlink(missing_ok=True)
        if has_hash(job.part, job.hash):
            os.replace(job.part, job.target)
            return
        found = hash_file(job.part, str(job.hash).partition(":")[0])
        job.part.unlink()
        if whole or last:
            raise DownloadError(
                f"{job.url}: not the file that was published: expected {job.hash}, got {found}."
            )


def check_url(url: str) -> None:
    """Refuse what is not plain http(s), or carries a password."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise DataError(f"expected an http:// or https:// address, got {url!r}")
    if parts.username is not None or parts.password is not None:
        raise DataError(f"{parts.hostname}: an address with a password in it is not taken")


def _receive(job: Job) -> bool:
    """Receive the file to its end; return whether it came in one answer."""
    from requests import RequestException
    from urllib3.exceptions import HTTPError

    failures, furthest = 0, 0
    while True:
        try:
            return _transfer(job)
        except (RequestException, HTTPError) as error:
            trouble = _PassingError(_explain(error))
        except _PassingError as error:
            trouble = error
        reached = job.part.stat().st_size if job.part.exists() else 0
        failures = 1 if reached >= furthest + _CHUNK else failures + 1
        furthest = max(furthest, reached)
        if failures >= job.patience.tries or job.stop.is_set():
            raise DownloadError(f"{job.url}: {trouble} ({failures} tries in a row).")
        pause = max(job.patience.pause * 2 ** (failures - 1), trouble.wait)
        job.stop.wait(min(pause, _LONGEST_PAUSE))


def _transfer(job: Job) -> bool:
    """Make one request for what is missing and write the answer; return whether it was all."""
    have, known = _resume_point(job)
    if have and have == known["length"]:
        return False  # complete: only its name was missing
    headers = {"Range": f"bytes={have}-"} if have else {}
    if have and known["mark"]:
        headers["If-Range"] = known["mark"]
    timeout = (job.patience.connect, job.patience.read)
    with job.session.get(job.url, headers=headers, stream=True, timeout=timeout) as answer:
        _check_answer(job.url, answer)
        if answer.status_code == 200:
            have = 0  # the server knows no ranges, or has another file by now
        elif not have or not _continues(answer, have, known["length"]):
            job.part.unlink(missing_ok=True)
            raise _PassingError("the server sent another part than the one asked for")
        rest = answer.headers.get("Content-Length", "")
        length = have + int(rest) if rest.isdigit() else None
        if have == 0:
            known = {"url": job.url, "mark": _mark(answer), "length": length}
        _check_space(job, length, have)
        job.progress.expect(length)
        size = _write(job, answer, have, known)
    if length is not None and size != length:
        job.progress.add(-size)
        raise _PassingError(f"the connection was dropped at {size:,} of {length:,} bytes")
    return have == 0


def _write(job: Job, answer: requests.Response, have: int, known: dict[str, Any]) -> int:
    """Append the answer to the first ``have`` bytes; return how many there are then."""
    size = have
    job.progress.add(have)
    try:
        if not have:
            job.part.unlink(missing_ok=True)  # before its note is written over
        job.note.write_text(json.dumps(known))
        with open(job.part, "ab" if have else "wb") as file:
            for chunk in answer.raw.stream(_CHUNK, decode_content=False):
                if job.stop.is_set():
                    raise DataError(f"{job.url}: stopped")
                file.write(chunk)
                size += len(chunk)
                job.progress.add(len(chunk))
    except BaseException as error:
        job.progress.add(-size)
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            job.part.unlink(missing_ok=True)
            job.note.unlink(missing_ok=True)
            raise DataError(
                f"the disk is full: {job.target.name} stopped at {size:,} bytes and was deleted; "
                f"make room in {job.target.parent} and fetch again"
            ) from None
        raise
    return size


def _resume_point(job: Job) -> tuple[int, dict[str, Any]]:
    """Return how many bytes can be kept, and what is known of the file they belong to.

    Without the server's mark they can be kept only where a hash will tell two versions apart.
    """
    try:
        known = json.loads(job.note.read_text())
        url, mark, length = known["url"], known["mark"], known["length"]
        if url == job.url and (mark or job.hash):
            return job.part.stat().st_size, {"url": url, "mark": mark, "length": length}
    except (OSError, ValueError, KeyError, TypeError):
        pass  # no part, or a note that was cut short: begin anew
    return 0, {}


def _check_answer(url: str, answer: requests.Response) -> None:
    """Refuse a redirection to plain http, and statuses that bring no file."""
    for step in (*answer.history[1:], answer):
        check_url(step.url)
        if url.startswith("https:") and not step.url.startswith("https:"):
            raise DownloadError(f"{url}: the server redirects to {step.url}, which is not https.")
    status = answer.status_code
    if status in _PASSING:
        wait = answer.headers.get("Retry-After", "")
        raise _PassingError(
            f"the server answers {status} {answer.reason}", float(wait) if wait.isdigit() else 0.0
        )
    if status not in (200, 206, 416):
        raise DownloadError(f"{url}: the server answers {status} {answer.reason}.")


def _continues(answer: requests.Response, have: int, length: int | None) -> bool:
    """Whether the answer is the rest of the same file."""
    found = re.fullmatch(
        r"bytes (\d+)-\d+/(\d+|\*)", answer.headers.get("Content-Range", "").strip()
    )
    if answer.status_code != 206 or found is None or int(found[1]) != have:
        return False
    return length is None or found[2] == "*" or int(found[2]) == length


def _mark(answer: requests.Response) -> str | None:
    """Return the server's mark of this version; a weak ETag does not vouch for the bytes."""
    tag: str = answer.headers.get("ETag", "")
    return tag if tag.startswith('"') else answer.headers.get("Last-Modified")


def _check_space(job: Job, length: int | None, have: int) -> None:
    """Refuse to begin what cannot be finished."""
    free = shutil.disk_usage(job.target.parent).free
    if length is not None and length - have > free:
        raise DataError(
            f"the disk is too full: {job.target.name} needs {length - have:,} bytes and "
            f"{job.target.parent} has {free:,}; make room and fetch again"
        )


def _explain(error: Exception) -> str:
    """Return a library's error without the library's names for things."""
    text = str(error)
    for words, meaning in (
        ("timed out", "the server did not answer in time"),
        ("NameResolution", "the server's name is not known (is there a network?)"),
        ("getaddrinfo", "the server's name is not known (is there a network?)"),
        ("refused", "the server refused the connection"),
        ("CERTIFICATE", "the server's certificate is not trusted"),
        ("IncompleteRead", "the connection was dropped"),
        ("reset", "the connection was dropped"),
        ("without response", "the connection was dropped"),
    ):
        if words in text:
            return meaning
    return text or type(error).__name__


def _no_auth(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request
