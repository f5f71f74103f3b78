"""Download one file over http(s): resumed where it stopped, checked before it gets its name.

The bytes arrive in NAME.part. NAME.part.json holds the server's tag of the version (its ETag or
Last-Modified header), so that a later request continues the same version and never mixes two.
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
_TEMPORARY_STATUSES = (408, 425, 429, 500, 502, 503, 504)  # the next request may succeed


@dataclass(frozen=True)
class RetryPolicy:
    """How often a request is repeated, and how long a server may take; times are in seconds."""

    tries: int = 4  # in a row without a new byte
    pause: float = 1.0  # before the second try; doubled each time
    connect: float = 10.0  # longest wait for a connection
    read: float = 30.0  # longest wait between two pieces of an answer


@dataclass(frozen=True)
class FileDownload:
    """One file to download, and how. ``hash`` is "md5:...", "sha256:..." or None."""

    url: str
    target: Path
    hash: str | None
    session: requests.Session
    progress: DownloadProgress
    retry: RetryPolicy
    stop: threading.Event  # set to end the download early

    @property
    def part(self) -> Path:
        """The file that the bytes arrive in."""
        return self.target.with_name(f"{self.target.name}.part")

    @property
    def resume_info(self) -> Path:
        """The file that says which version the bytes belong to."""
        return self.target.with_name(f"{self.target.name}.part.json")


class DownloadError(DataError):
    """A server that does not deliver the file."""


class _TemporaryError(Exception):
    """A failure that may not happen again at the next try, ``wait`` seconds later or more."""

    def __init__(self, reason: str, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.wait = wait


def open_session(connections: int) -> requests.Session:
    """Return a session that keeps connections open, and neither cookies nor credentials."""
    from http.cookiejar import DefaultCookiePolicy

    try:
        import requests
        from requests.adapters import HTTPAdapter
    except ModuleNotFoundError as error:
        raise DataError(
            "downloads need the package requests, which is not installed: "
            "pip install 'seedless[data]'"
        ) from error
    session = requests.Session()
    session.auth = _no_auth  # without one, requests looks for passwords in ~/.netrc
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    session.headers["Accept-Encoding"] = "identity"  # ranges and lengths are of the file itself
    for scheme in ("http://", "https://"):
        session.mount(scheme, HTTPAdapter(pool_maxsize=connections))
    return session


def download(job: FileDownload) -> None:
    """Download a file and check its hash; a file with another hash is deleted and refused.

    A file that was put together from several answers may mix two versions, so if its hash is wrong
    it is downloaded once more before it is refused.
    """
    check_url(job.url)
    job.target.parent.mkdir(parents=True, exist_ok=True)
    for last in (False, True):
        # [Step 1] Receive every byte, with as many requests as it takes.
        in_one_answer = _receive_all(job)
        job.resume_info.unlink(missing_ok=True)
        # [Step 2] The file gets its name only if its hash is right.
        if has_hash(job.part, job.hash):
            os.replace(job.part, job.target)
            return
        # [Step 3] Otherwise try once more, but only if it was put together from pieces.
        found = hash_file(job.part, str(job.hash).partition(":")[0])
        job.part.unlink()
        if in_one_answer or last:
            raise DownloadError(
                f"{job.url}: not the file that was published: expected {job.hash}, got {found}."
            )


def check_url(url: str) -> None:
    """Refuse an address that is not http(s), or that contains a password."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise DataError(f"expected an http:// or https:// address, got {url!r}")
    if parts.username is not None or parts.password is not None:
        raise DataError(f"{parts.hostname}: expected an address without a password")


def _receive_all(job: FileDownload) -> bool:
    """Repeat requests until the file is complete; return whether one answer held all of it."""
    from requests import RequestException
    from urllib3.exceptions import HTTPError

    failures, furthest = 0, 0
    while True:
        try:
            return _request_rest(job)
        except (RequestException, HTTPError) as error:
            reason = _TemporaryError(_explain(error))
        except _TemporaryError as error:
            reason = error
        reached = job.part.stat().st_size if job.part.exists() else 0
        failures = 1 if reached >= furthest + _CHUNK else failures + 1
        furthest = max(furthest, reached)
        if failures >= job.retry.tries or job.stop.is_set():
            raise DownloadError(f"{job.url}: {reason} ({failures} tries in a row).")
        pause = max(job.retry.pause * 2 ** (failures - 1), reason.wait)
        job.stop.wait(min(pause, _LONGEST_PAUSE))


def _request_rest(job: FileDownload) -> bool:
    """Request the bytes that are missing and write them; return whether that was the whole file."""
    # [Step 1] Request the bytes after those received so far, of the same version only.
    have, known = _find_resume_point(job)
    if have and have == known["length"]:
        return False  # complete: only its name was missing
    headers = {"Range": f"bytes={have}-"} if have else {}
    if have and known["mark"]:
        headers["If-Range"] = known["mark"]
    timeout = (job.retry.connect, job.retry.read)
    with job.session.get(job.url, headers=headers, stream=True, timeout=timeout) as answer:
        # [Step 2] 200 sends the whole file, 206 must send exactly what was requested.
        _check_answer(job.url, answer)
        if answer.status_code == 200:
            have = 0  # the server has no ranges, or a new version of the file
        elif not have or not _is_continuation(answer, have, known["length"]):
            job.part.unlink(missing_ok=True)
            raise _TemporaryError("the server sent other bytes than those asked for")
        # [Step 3] Write the answer; a connection that drops early is tried again from there.
        rest = answer.headers.get("Content-Length", "")
        length = have + int(rest) if rest.isdigit() else None
        if have == 0:
            known = {"url": job.url, "mark": _read_version_tag(answer), "length": length}
        _check_space(job, length, have)
        job.progress.expect(length)
        size = _append(job, answer, have, known)
    if length is not None and size != length:
        job.progress.add(-size)
        raise _TemporaryError(f"the connection was dropped at {size:,} of {length:,} bytes")
    return have == 0


def _append(job: FileDownload, answer: requests.Response, have: int, known: dict[str, Any]) -> int:
    """Append the answer to the ``have`` bytes received before; return how many there are now."""
    size = have
    job.progress.add(have)
    try:
        if not have:
            job.part.unlink(missing_ok=True)  # before the next line says that it is another version
        job.resume_info.write_text(json.dumps(known))
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
            job.resume_info.unlink(missing_ok=True)
            raise DataError(
                f"the disk is full: {job.target.name} stopped at {size:,} bytes and was deleted; "
                f"make room in {job.target.parent} and fetch again"
            ) from None
        raise
    return size


def _find_resume_point(job: FileDownload) -> tuple[int, dict[str, Any]]:
    """Return how many bytes are there to continue from, and which version they belong to.

    Without the server's version tag, only a known hash can distinguish two versions; without
    either, the download starts again.
    """
    try:
        known = json.loads(job.resume_info.read_text())
        url, mark, length = known["url"], known["mark"], known["length"]
        if url == job.url and (mark or job.hash):
            return job.part.stat().st_size, {"url": url, "mark": mark, "length": length}
    except (OSError, ValueError, KeyError, TypeError):
        pass  # nothing was received, or it is not known of what: start again
    return 0, {}


def _check_answer(url: str, answer: requests.Response) -> None:
    """Refuse a redirection from https to http, and every status without a file."""
    for step in (*answer.history[1:], answer):
        check_url(step.url)
        if url.startswith("https:") and not step.url.startswith("https:"):
            raise DownloadError(f"{url}: the server redirects to {step.url}, which is not https.")
    status = answer.status_code
    if status in _TEMPORARY_STATUSES:
        wait = answer.headers.get("Retry-After", "")
        raise _TemporaryError(
            f"the server answers {status} {answer.reason}", float(wait) if wait.isdigit() else 0.0
        )
    if status not in (200, 206, 416):
        raise DownloadError(f"{url}: the server answers {status} {answer.reason}.")


def _is_continuation(answer: requests.Response, have: int, length: int | None) -> bool:
    """Whether the answer continues the same file after ``have`` bytes."""
    match = re.fullmatch(
        r"bytes (\d+)-\d+/(\d+|\*)", answer.headers.get("Content-Range", "").strip()
    )
    if answer.status_code != 206 or match is None or int(match[1]) != have:
        return False
    return length is None or match[2] == "*" or int(match[2]) == length


def _read_version_tag(answer: requests.Response) -> str | None:
    """Return the server's tag of this version; a weak ETag (W/"...") does not identify bytes."""
    tag: str = answer.headers.get("ETag", "")
    return tag if tag.startswith('"') else answer.headers.get("Last-Modified")


def _check_space(job: FileDownload, length: int | None, have: int) -> None:
    """Refuse a download that does not fit on the disk."""
    free = shutil.disk_usage(job.target.parent).free
    if length is not None and length - have > free:
        raise DataError(
            f"the disk is too full: {job.target.name} needs {length - have:,} bytes and "
            f"{job.target.parent} has {free:,}; make room and fetch again"
        )


def _explain(error: Exception) -> str:
    """Return an error of requests or urllib3 in plain words."""
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
