"""Digests of what happened between two steps, in order."""

from __future__ import annotations

from typing import Any

from .tensor_digest import PendingDigest, digest_text

MAX_EVENTS = 64  # of one kind between two steps, before they are folded into one digest

Digest = Any  # str | PendingDigest


def fold(digests: list[Digest]) -> Digest:
    """Return one digest of many, in order."""
    texts = [each.text if isinstance(each, PendingDigest) else each for each in digests]
    parts = [part for each in digests if isinstance(each, PendingDigest) for part in each.parts]
    text = digest_text(" ".join(texts))
    return PendingDigest(text, parts) if parts else text


class Events:
    """The digests since the last step by name: "batch", "loss", ..."""

    def __init__(self) -> None:
        self._lists: dict[str, list[Digest]] = {}
        self._folded: set[str] = set()

    def add(self, name: str, digest: Digest) -> None:
        """Add one digest."""
        digests = self._lists.setdefault(name, [])
        digests.append(digest)
        if len(digests) > MAX_EVENTS:
            self._lists[name] = [fold(digests)]
            self._folded.add(name)

    def take(self) -> dict[str, Any]:
        """Return the digests by name, a list or one where there were many, and forget them."""
        lists, self._lists = self._lists, {}
        folded, self._folded = self._folded, set()
        return {name: fold(each) if name in folded else each for name, each in lists.items()}
