"""Each rhythm beats as a cardiologist would have it: rates, variability, patterns."""

import numpy as np
import pytest

from seedless.data.simulators.exact_math import cosine
from seedless.data.simulators.population import CLASSES, describe_records
from seedless.data.simulators.rhythm import EARLY, NODAL, NORMAL, PACED, WIDE, simulate_beats

POOL = np.arange(5 * 21_799)  # five rounds, so that rare label sets have some records
LABELS = describe_records(POOL).labels
MOST = 200


def simulate_rhythm(records):
    return simulate_beats(records, describe_records(records))


class Strips:
    """The beats of up to 200 records that carry exactly these labels."""

    def __init__(self, *names):
        wanted = np.array([name in names for name in CLASSES])
        self.records = POOL[(wanted == LABELS).all(axis=1)][:MOST]
        self.rhythm = simulate_rhythm(self.records)
        seen = (self.rhythm.time >= 0) & (self.rhythm.time < 10_000)
        of = [np.flatnonzero(seen & (self.rhythm.row == row)) for row in range(len(self.records))]
        self.times = [self.rhythm.time[beats] for beats in of]
        self.kinds = [self.rhythm.kind[beats] for beats in of]
        self.intervals = [np.diff(times) for times in self.times]
        self.has_p = [self.rhythm.has_p[beats] for beats in of]

    def rates(self):
        """Beats a minute, from the median interval."""
        return np.array([60_000 / np.median(rr) for rr in self.intervals])

    def variation(self):
        """Coefficient of variation of the intervals."""
        return np.array([rr.std() / rr.mean() for rr in self.intervals])


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("SR", 60, 100),
        ("STACH", 100, 150),
        ("SBRAD", 38, 60),
        ("SARRH", 50, 105),
        ("PACE", 59, 85),
        ("SVARR", 55, 110),
        ("SVTAC", 150, 220),
        ("AFLT", 55, 175),
    ],
)
def test_rates_are_in_their_range(name, low, high):
    rates = Strips(name).rates()
    assert len(rates) >= 50
    assert rates.min() > low
    assert rates.max() < high
    assert np.ptp(rates) > 15  # and fill it


def test_fibrillation_is_irregular_and_has_no_p_waves():
    strips = Strips("AFIB")
    assert strips.variation().min() > 0.1
    assert np.median(strips.variation()) > 0.18
    assert strips.rhythm.fibrillates.all()
    assert not strips.rhythm.has_p.any()
    successive = [np.corrcoef(rr[:-1], rr[1:])[0, 1] for rr in strips.intervals]
    assert abs(np.median(successive)) < 0.25  # no pattern from beat to beat


def test_sinus_rhythm_is_regular_but_not_a_metronome():
    for name in ("SR", "STACH", "SBRAD"):
        strips = Strips(name)
        assert np.median(strips.variation()) < 0.05
        assert strips.variation().min() > 0.002
        normal = [kinds == NORMAL for kinds in strips.kinds]
        assert np.concatenate(normal).mean() > 0.97
        assert all(p[n].all() for p, n in zip(strips.has_p, normal, strict=True))


def test_sinus_arrhythmia_follows_the_breath():
    strips = Strips("SARRH")
    assert np.quantile(strips.variation(), 0.02) > 0.06
    agreement = []
    for row, times in enumerate(strips.times):
        phase = strips.rhythm.breath_start[row] + strips.rhythm.breath[row] * times[:-1]
        agreement.append(np.corrcoef(cosine(phase), np.diff(times))[0, 1])
    assert np.median(agreement) > 0.9
    assert np.median(strips.variation()) > 4 * np.median(Strips("SR").variation())


def test_pacing_is_steady_and_all_beats_are_paced():
    strips = Strips("PACE")
    assert strips.variation().max() < 0.02
    assert all((kinds == PACED).all() for kinds in strips.kinds)


@pytest.mark.parametrize(("name", "every"), [("BIGU", 2), ("TRIGU", 3)])
@pytest.mark.parametrize("base", [(), ("SR",), ("STACH",)])
def test_early_wide_beats_come_every_second_or_third(name, every, base):
    strips = Strips(*base, name)
    assert len(strips.records) >= 20
    for kinds, intervals in zip(strips.kinds, strips.intervals, strict=True):
        wide = np.flatnonzero(kinds == WIDE)
        assert (np.diff(wide) == every).all()
        assert len(wide) >= len(kinds) // every
        for beat in wide:
            if 0 < beat < len(intervals):  # short before, long after
                assert intervals[beat - 1] < 0.75 * intervals[beat]


def test_supraventricular_arrhythmia_has_early_narrow_beats():
    strips = Strips("SVARR")
    for kinds, intervals in zip(strips.kinds, strips.intervals, strict=True):
        early = np.flatnonzero(kinds[1:] == EARLY)
        assert len(early) >= 1
        assert not (kinds == WIDE).any()
        usual = np.median(intervals[kinds[1:] == NORMAL])
        assert (intervals[early] < 0.85 * usual).all()
    assert np.mean([(kinds == EARLY).sum() for kinds in strips.kinds]) > 2


def test_flutter_conducts_every_nth_wave():
    strips = Strips("AFLT")
    conducted = set()
    for row, intervals in enumerate(strips.intervals):
        waves = intervals / strips.rhythm.flutter_period[row]
        np.testing.assert_allclose(waves, np.rint(waves), atol=0.01)
        conducted.add(tuple(np.unique(np.rint(waves).astype(int))))
    assert {(2,), (3,), (4,)} <= conducted
    assert (2, 3, 4) in conducted  # changing block
    assert not strips.rhythm.has_p.any()
    atrial = 60_000 / strips.rhythm.flutter_period
    assert atrial.min() > 240
    assert atrial.max() < 340


@pytest.mark.parametrize("names", [("PSVT",), ("SVTAC", "PSVT")])
def test_a_paroxysm_begins_within_the_strip(names):
    strips = Strips(*names)
    assert len(strips.records) >= 40
    for times, kinds in zip(strips.times, strips.kinds, strict=True):
        fast = kinds == NODAL
        first = int(fast.argmax())
        assert first >= 2  # it can be seen to begin
        assert fast[first:].all()
        assert not fast[:first].any()
        before, after = np.diff(times[:first]), np.diff(times[first:])
        assert 60_000 / np.median(after) > 140
        if len(before):
            assert np.median(after) < 0.75 * np.median(before)


def test_label_sets_combine():
    paced = Strips("AFIB", "PACE")
    assert paced.rhythm.fibrillates.all()
    assert (paced.rhythm.kind == PACED).all()
    now_and_then = Strips("SR", "PACE")
    assert {NORMAL, PACED} == set(now_and_then.rhythm.kind.tolist())
    assert all(len(set(kinds.tolist())) == 2 for kinds in now_and_then.kinds)
    both = Strips("AFIB", "AFLT").rhythm
    assert (both.fibrillates & both.flutters).all()
    assert Strips("STACH", "AFLT").rates().min() > 100
    assert Strips("AFLT", "SVTAC").rates().min() > 150
    assert Strips("SARRH", "SBRAD").rates().max() < 62


def test_unlabelled_records_are_of_several_kinds():
    strips = Strips()
    junctional = np.array([(kinds == NODAL).all() for kinds in strips.kinds])
    assert 0.15 < junctional.mean() < 0.45
    longest = np.array([rr.max() / np.median(rr) for rr in strips.intervals])
    assert 0.1 < (longest > 1.7).mean() < 0.4  # dropped beats


def test_women_and_the_young_beat_a_little_faster():
    plain = POOL[(LABELS[:, 0] == 1) & (LABELS.sum(axis=1) == 1)][:4000]
    people, rhythm = describe_records(plain), simulate_rhythm(plain)
    usual = np.array([np.median(part) for part in np.split(rhythm.before, _starts(rhythm.row))])
    rate = 60_000 / usual
    assert 0.5 < rate[people.female].mean() - rate[~people.female].mean() < 4
    assert 0.5 < rate[people.age < 50].mean() - rate[people.age > 75].mean() < 6


def _starts(rows):
    return np.flatnonzero(np.diff(rows)) + 1


def test_beats_depend_on_the_record_alone():
    among, alone = simulate_rhythm(np.array([3, 5000, 77])), simulate_rhythm(np.array([5000]))
    chosen = among.row == 1
    for name in ("time", "before", "kind", "has_p"):
        np.testing.assert_array_equal(getattr(among, name)[chosen], getattr(alone, name))
    for name in ("fibrillates", "flutter_period", "turn", "breath", "breath_start"):
        assert getattr(among, name)[1] == getattr(alone, name)[0]


def test_beats_are_ordered_and_cover_the_strip():
    rhythm = simulate_rhythm(POOL[:2000])
    for times in np.split(rhythm.time, _starts(rhythm.row)):
        assert np.diff(times).min() >= 270
        assert times[0] < 2000
        assert times[-1] > 8000
