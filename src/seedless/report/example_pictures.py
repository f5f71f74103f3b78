"""Pictures of records on a page: a wide one, and for a phone a narrow one with letters of its own.

A picture that is made smaller has letters that cannot be read. So pictures keep the size that they
were drawn for: two of their pixels are one of the page's.
"""

import base64
import struct
from dataclasses import dataclass
from typing import Any

from seedless.report.render import data_uri

_PNG = b"\x89PNG\r\n\x1a\n"
_PIXELS = 2  # of a picture, for one of the page


@dataclass(frozen=True)
class Example:
    """A record with its caption.

    Attributes:
        caption: the text below the picture.
        picture: a PNG in base64, or the text of an SVG.
        narrow: the same for the width of a phone, if it differs.
        seen: what the picture shows, for those who do not see it; the caption if there is nothing
            to add.
    """

    caption: str
    picture: str
    narrow: str | None = None
    seen: str = ""


def show_example(example: Example) -> dict[str, Any]:
    """Return the values of an example for the templates."""
    return {
        "caption": example.caption,
        "seen": example.seen or example.caption,
        "wide": _show_picture(example.picture),
        "narrow": None if example.narrow is None else _show_picture(example.narrow),
    }


def _show_picture(picture: str) -> dict[str, Any]:
    return {"source": data_uri(picture), "size": _find_size(picture)}


def _find_size(picture: str) -> tuple[int, int] | None:
    """Return width and height of a PNG in pixels of the page; None for an SVG, which says itself.

    A PNG begins with 8 bytes of its own and the header chunk: length, "IHDR", width, height.
    """
    head = b"" if picture.lstrip().startswith("<") else base64.b64decode(picture[:32])
    if len(head) < 24 or head[:8] != _PNG:
        return None
    width, height = struct.unpack(">II", head[16:24])
    return width // _PIXELS, height // _PIXELS
