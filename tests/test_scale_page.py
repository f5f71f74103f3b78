"""The page on several processes agrees with what is recorded, and its estimate with its formula."""

import pytest

from benchmarks.world import page


def test_the_page_is_the_one_the_records_give():
    assert page.make_page() == page.PAGE.read_text(), "run python -m benchmarks.world page"


def test_all_recorded_worlds_have_one_digest():
    digests = page.read_records()["world-devices"]["results"]["digests"]
    for name in digests["one CPU"]:
        assert len({digest for found in digests.values() for digest in found[name]}) == 1


def test_the_estimate_counts_bytes_and_hops():
    bandwidth, latency = page.NETWORKS["NVLink"]
    bytes_alone = page.estimate_seconds(int(bandwidth), 0, 8, "NVLink")
    assert bytes_alone == pytest.approx(2 * 7 / 8)
    assert page.estimate_seconds(0, 1, 64, "NVLink") == pytest.approx(12 * latency)
