"""The comparison that chooses the default start: its data, trainings, resumption and rule."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

import seedless
from benchmarks.starts import analysis, compare, images, page, plan, training, variants


def make_images(count=96, classes=1):
    """Return images whose first class is whether their upper half is brighter."""
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(count, 1, 8, 8))).float()
    y = torch.zeros(count, classes)
    y[::2, 0] = 1
    x[::2, :, :4] += 0.7
    half = count // 2
    return images.Images("made", (x[:half], y[:half]), (x[half:], y[half:]))


def make_model():
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Conv2d(4, 4, 3, padding=1, groups=4),
        nn.Flatten(),
        nn.Linear(256, 1),
    )
    seedless.initialize(model, "canonical_kaiming")
    return model


def test_a_training_learns_repeats_and_varies_with_the_replicate(monkeypatch):
    monkeypatch.setattr(training, "BATCH", 16)
    data = make_images()
    found = [training.train(make_model(), data, replicate, 8, "cpu") for replicate in (0, 0, 1)]
    assert found[0] == found[1] != found[2]
    assert found[0].auc > 0.7
    assert found[0].gradient > 0


def test_a_training_without_finite_outputs_has_learned_nothing():
    model = make_model()
    nn.init.constant_(model[-1].bias, math.nan)
    assert training.score(model, make_images(), "cpu") == 0.5
    assert training.Score(math.inf, 0.5, math.nan).as_dict() == {
        "gradient": None,
        "auc": 0.5,
        "loss": None,
    }


def test_classes_with_few_positives_are_not_scored():
    labels = torch.zeros(40, 2)
    labels[:20, 0] = 1
    labels[:4, 1] = 1
    outputs = np.stack([np.arange(40.0), -np.arange(40.0)], axis=1)
    assert training.mean_area(outputs, labels) == 0.0
    labels[:5, 1] = 1
    assert training.mean_area(outputs, labels) == 0.5


def test_a_tone_is_at_its_frequency_in_every_window_of_a_spectrogram():
    tone = np.sin(2 * np.pi * 12.5 * np.arange(1000) / 100)  # 100 samples a second
    found = images.compute_spectrograms(tone[None, None])
    assert found.shape == (1, 1, 64, 64)
    assert (found[0, 0].argmax(axis=0) == 16).all()  # 16 x 100 / 128 Hz


def test_the_plan_has_every_cell_once_and_first_replicates_first():
    trainings = plan.list_trainings()
    assert len(trainings) == len(set(trainings)) == 12 * 2 * 5 * 4
    assert [one.replicate for one in trainings] == sorted(one.replicate for one in trainings)


def score_by_name(one, folder, device):
    if one.start == "dct" and one.network == "repvgg_a0":
        return {**one.as_dict(), "error": "RuntimeError: made to fail", "seconds": 0.0}
    return {**one.as_dict(), "auc": 0.8, "seconds": 0.0, "device": device}


def test_trainings_are_continued_and_failures_made_again(tmp_path):
    trainings = plan.list_trainings(("resnet18", "repvgg_a0"), replicates=1)
    settings = {"processes": 1, "device": "cpu", "work": score_by_name}
    nothing = compare.run(trainings, {}, tmp_path, tmp_path / "a", seconds=-1.0, **settings)
    assert nothing == len(trainings) == 16
    left = compare.run(trainings, {}, tmp_path, tmp_path / "b", seconds=60.0, **settings)
    assert left == 2
    known = compare.read_rows([tmp_path / "b" / compare.RECORD])
    assert len(known) == 14
    assert compare.run(trainings, known, tmp_path, tmp_path / "c", seconds=60.0, **settings) == 2
    lines = (tmp_path / "c" / compare.RECORD).read_text().splitlines()
    assert {compare.identify(json.loads(line)) for line in lines} == set(trainings)


def make_rows(shift, noise=0.004, replicates=5):
    """Return rows of all trainings, where starts differ by ``shift`` and networks by more."""
    spread = np.random.default_rng(1).normal(size=(12, 4, 2, 5)) * noise
    return [
        {**one.as_dict(), "auc": 0.8 + 0.01 * i + shift.get(one.start, 0.0) + spread[i, j, k, r]}
        for one in plan.list_trainings(replicates=replicates)
        for i, j, k, r in [
            (
                plan.NETWORKS.index(one.network),
                plan.STARTS.index(one.start),
                list(plan.EPOCHS).index(one.data),
                one.replicate,
            )
        ]
    ]


def test_the_rule_chooses_the_simplest_start_that_costs_nothing():
    choose = analysis.choose_default
    equal = choose(analysis.average(make_rows({"dct": -0.04}), 5))
    assert equal.start == "canonical_kaiming"
    assert equal.adjusted["dct"] > 0.9
    assert choose(analysis.average(make_rows({"scrambled": 0.02}), 5)).start == "scrambled"
    worse = dict.fromkeys(plan.CANDIDATES, -0.03)
    assert choose(analysis.average(make_rows(worse), 5)).start is None
    alone = {**worse, "dct": 0.0}
    assert choose(analysis.average(make_rows(alone), 5)).start == "dct"


def test_the_paired_comparison_is_scipys():
    scores = analysis.average(make_rows({"dct": -0.01}), 5)
    found = analysis.compare(scores, "dct", "own")
    a, b = (list(scores[start].values()) for start in ("dct", "own"))
    assert found.two_sided == pytest.approx(stats.ttest_rel(a, b).pvalue)
    shifted = [value + plan.MARGIN for value in a]
    assert found.lower == pytest.approx(stats.ttest_rel(shifted, b, alternative="greater").pvalue)
    interval = stats.ttest_rel(a, b).confidence_interval(0.9)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))


def test_only_replicates_that_all_cells_have_are_counted():
    rows = make_rows({})
    assert analysis.count_replicates(rows) == 5
    without = [row for row in rows if (row["network"], row["replicate"]) != ("pvt_v2_b0", 3)]
    assert analysis.count_replicates(without) == 3
    fewer = analysis.average(without, 3)
    assert fewer == analysis.average([row for row in rows if row["replicate"] < 3], 3)


def test_a_network_that_failed_is_left_out_for_all_starts():
    rows = make_rows({})
    rows[0] = {**plan.list_trainings()[0].as_dict(), "error": "RuntimeError: made to fail"}
    networks = analysis.list_networks(rows)
    assert networks == [name for name in plan.NETWORKS if name != rows[0]["network"]]
    assert analysis.count_replicates(rows, networks) == 5
    scores = analysis.average(rows, 5, networks=networks)
    assert analysis.compare(scores, "dct", "own").n == 11


def test_power_is_that_of_simulated_networks():
    draw = np.random.default_rng(2).normal(size=(4000, 12)) * 0.02
    p = stats.ttest_1samp(draw, -plan.MARGIN, axis=1, alternative="greater").pvalue
    assert analysis.find_power(0.02, 12) == pytest.approx((p < 0.05).mean(), abs=0.03)


@pytest.mark.parametrize(
    ("variant", "changed"),
    [
        ("dct", ()),
        ("rows of all frequencies", (0, 3)),
        ("columns signed", (0, 3)),
        ("depthwise kernels apart", (3,)),
        ("no repeated filters", (0,)),
    ],
)
def test_a_variant_changes_what_it_says_and_keeps_the_scale(variant, changed):
    def make(channels=1):
        return nn.Sequential(
            nn.Conv2d(channels, 12, 3),
            nn.BatchNorm2d(12),
            nn.ReLU(),
            nn.Conv2d(12, 12, 3, groups=12),
        )

    channels = 4 if variant == "rows of all frequencies" else 1
    plain, other = make(channels), make(channels)
    seedless.initialize(plain, "dct")
    count = variants.start_variant(other, variant)
    expected = [0] if channels == 4 else list(changed)  # 9 products are all used by 12 kernels
    assert count == len(expected)
    for place in (0, 3):
        ours, theirs = other[place].weight.detach(), plain[place].weight.detach()
        assert torch.equal(ours, theirs) == (place not in expected)
        assert float(ours.std(correction=0)) == pytest.approx(float(theirs.std(correction=0)))


def test_residual_exits_are_scaled_where_there_is_a_skip():
    class InvertedResidual(nn.Module):
        def __init__(self, has_skip):
            super().__init__()
            self.has_skip, self.bn3 = has_skip, nn.BatchNorm2d(3)

    blocks = nn.ModuleList([InvertedResidual(True), InvertedResidual(False)])
    assert variants.scale_exits(blocks) == 1
    assert [float(block.bn3.weight.detach()[0]) for block in blocks] == [pytest.approx(0.01), 1.0]


def test_a_training_is_known_by_all_of_its_settings():
    one = plan.list_trainings()[0]
    assert compare.identify({**one.as_dict(), "auc": 0.5}) == one
    assert replace(one, epochs=1) != one


def test_the_page_of_causes_is_its_records():
    assert page.CAUSES_PAGE.read_text(encoding="utf-8") == page.make_causes_page()


def test_causes_are_averaged_over_networks_and_replicates_that_all_variants_have():
    rows = [
        {"network": network, "variant": variant, "replicate": r, "auc": 0.5 + 0.1 * r + 0.01 * i}
        for network in ("a", "b")
        for i, variant in enumerate(variants.NAMES)
        for r in (0, 1)
    ]
    whole = page.summarize_causes(rows)
    assert (whole["networks"], whole["replicates"]) == (["a", "b"], 2)
    assert whole["table"]["dct"] == pytest.approx([0.55, 0.55])
    less = page.summarize_causes(rows[:-1])
    assert less["replicates"] == 1
    assert less["table"]["dct"] == pytest.approx([0.5, 0.5])
    alone = page.summarize_causes(rows[:-2])
    assert alone["networks"] == ["a"]


def test_the_page_of_the_default_says_what_the_rule_chose_and_what_is_missing():
    rows = [
        {**row, "device": "made", "torch": "2"} for row in make_rows({"dct": -0.04}, replicates=3)
    ]
    text = page.make_default_page(rows)
    assert "**`canonical_kaiming`**" in text
    assert "3 of 5 replicates, 288 trainings on made, torch 2" in text
    assert "The time ended" in text
    worse = dict.fromkeys(plan.CANDIDATES, -0.03)
    rows = [{**row, "device": "made", "torch": "2"} for row in make_rows(worse)]
    rows[0] = {**plan.list_trainings()[0].as_dict(), "error": "RuntimeError"}
    text = page.make_default_page(rows)
    assert "none of the candidates" in text
    assert f"ended in an error: {rows[0]['network']}" in text
    with pytest.raises(SystemExit, match="first replicate"):
        page.make_default_page(rows[1:3])
