"""The HTML page of attribution maps: every record with its map, and the digests of the maps."""

from collections.abc import Sequence
from dataclasses import dataclass

from seedless.core.digests import get_hex
from seedless.report.contents import add_contents
from seedless.report.example_pictures import Example, show_example
from seedless.report.page import Headline
from seedless.report.render import render

METHODS = {"gradcam": "Grad-CAM", "attention": "Attention"}  # as people write them


@dataclass(frozen=True)
class MapsView:
    """The maps of one layer: their digest, and the pictures of the records."""

    layer: str
    digest: str
    pictures: Sequence[Example]


def render_maps(label: str, method: str, weights: str, layers: Sequence[MapsView]) -> str:
    """Return the page of a run's maps as text.

    Args:
        label: the name of the run.
        method: "gradcam" or "attention".
        weights: the digest of the weights.
        layers: the maps of each layer.
    """
    count = len(layers[0].pictures)
    records = f"{count} record{'' if count == 1 else 's'}"
    texts = {
        "gradcam": f"Where the evidence is, in {records}",
        "attention": f"Where the attention is, in {records}",
    }
    page = render(
        "attribution.html",
        title=f"seedless attribute: {label}",
        headline=Headline("plain", "", texts[method]),
        method=method,
        method_name=METHODS[method],
        weights=get_hex(weights),
        layers=[
            {
                "name": one.layer,
                "digest": get_hex(one.digest),
                "pictures": [show_example(picture) for picture in one.pictures],
            }
            for one in layers
        ],
    )
    return add_contents(page)
