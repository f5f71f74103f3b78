"""Choose which segments of a run to execute again, and say how likely a forged one is missed.

The choice is a function of a token and the receipt's digest, so that anyone can repeat it. It is a
test only if whoever made the run did not know the token before the receipt was fixed: the verifier
draws the token, and draws it after receiving the receipt.
"""

import hashlib
import math
import re
import secrets
from collections.abc import Iterator

from seedless.core.errors import ConfigError

TOKEN_BYTES = 16
_TOKEN = re.compile(f"[0-9a-f]{{{2 * TOKEN_BYTES}}}")
_DOMAIN = b"seedless.sample/1\n"  # no other hash of this project begins so
_WORD_VALUES = 1 << 64


def draw_token() -> str:
    """Return a new token from the operating system's randomness: 32 hex digits."""
    return secrets.token_hex(TOKEN_BYTES)


def check_token(token: str) -> str:
    """Return a token in lower case; refuse what `draw_token` cannot have returned."""
    if not _TOKEN.fullmatch(token.lower()):
        raise ConfigError(
            f"expected --sample-token as {2 * TOKEN_BYTES} hex digits, as --sample prints it; got "
            f"{token!r}"
        )
    return token.lower()


def choose_segments(token: str, receipt: str, segments: int, count: int) -> tuple[int, ...]:
    """Return the numbers of ``count`` segments out of 1 to ``segments``, in ascending order.

    Every set of that size is equally likely over all tokens.

    Args:
        token: as `draw_token` returns it.
        receipt: the digest of the receipt.
        segments: how many the run has.
        count: how many to choose.

    Example:
        >>> choose_segments("00" * 16, "sha256:" + "0" * 64, 8, 3)
        (1, 6, 7)
    """
    words = read_words(_DOMAIN + bytes.fromhex(token) + receipt.encode())
    left = list(range(1, segments + 1))
    chosen = [left.pop(draw_below(words, len(left))) for _ in range(count)]
    return tuple(sorted(chosen))


def read_words(key: bytes) -> Iterator[int]:
    """Yield 64-bit words without end: those of SHA-256 over the key and a counter."""
    counter = 0
    while True:
        block = hashlib.sha256(key + counter.to_bytes(8, "little")).digest()
        for place in range(0, len(block), 8):
            yield int.from_bytes(block[place : place + 8], "little")
        counter += 1


def draw_below(words: Iterator[int], bound: int) -> int:
    """Return a number below ``bound``, each equally likely.

    Words from the last multiple of the bound on are skipped: with them, the remainders of small
    numbers would be more likely than others.
    """
    limit = _WORD_VALUES - _WORD_VALUES % bound
    return next(word for word in words if word < limit) % bound


def miss_probability(segments: int, count: int, forged: int) -> float:
    """Return how likely a sample has none of the forged segments: C(M-K, N) / C(M, N).

    Args:
        segments: M, how many the run has.
        count: N, how many are executed.
        forged: K, how many are forged.

    Example:
        >>> miss_probability(8, 3, 1)
        0.625
    """
    return math.comb(segments - forged, count) / math.comb(segments, count)


def describe_chances(segments: int, count: int) -> list[str]:
    """Return in sentences how likely 1, 2, 4, 8, ... forged segments are missed."""
    numbers = [1 << power for power in range(segments.bit_length())]
    rows = [(k, miss_probability(segments, count, k)) for k in numbers if k <= segments]
    shown = [f"{k} forged: {chance:.3g}" for k, chance in rows if chance or k == 1]
    return [
        f"probability that this sample misses every forged segment: {', '.join(shown)}",
        "one false segment is enough to forge a run: only executing all of it excludes that",
    ]
