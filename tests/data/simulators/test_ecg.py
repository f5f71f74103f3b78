"""The simulated ECG: the same bits everywhere, the laws of the limb leads, a heart that shows."""

import ast
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from seedless.core.dataset import TEN_FOLDS
from seedless.core.errors import DataError, UnknownNameError
from seedless.data.leads import SIX, TWELVE
from seedless.data.simulators import ecg
from seedless.data.simulators.ecg import simulate_ecg, simulate_microvolts, simulate_records
from seedless.data.simulators.heart import project_heart
from seedless.data.simulators.noise import simulate_noise
from seedless.data.simulators.population import CLASSES, describe_records
from seedless.data.simulators.rhythm import PACED, WIDE, simulate_beats

# A changed digest means other records under the same numbers: raise VERSION and say so.
TINY = "sha256:0e45febd9fffe1cc02db05cbccf0705261e01a32b6f7f0a31d032e4cd1bb98d2"
PRINT_DIGEST = (
    "from seedless.data.simulators.ecg import simulate_ecg;"
    "print(simulate_ecg(40, start=900).digest)"
)


@pytest.fixture(scope="module")
def tiny():
    return simulate_ecg(preset="tiny")


@pytest.fixture(scope="module")
def population():
    return describe_records(np.arange(21_799))


def only(population, name):
    """Records with this label and no other."""
    k = CLASSES.index(name)
    return np.flatnonzero((population.labels[:, k] == 1) & (population.labels.sum(axis=1) == 1))


def heart(records):
    """Beats, and leads I, II, V1..V6 in mV without any disturbance."""
    people = describe_records(records)
    rhythm = simulate_beats(records, people)
    return rhythm, project_heart(records, people, rhythm) / 1e6


def average_beats(records, lead, before=30, after=45, kind=None):
    """Mean signal around each record's R peaks: (n, before + after)."""
    rhythm, leads = heart(records)
    out = np.zeros((len(records), before + after))
    for row in range(len(records)):
        mine = (rhythm.row == row) & (rhythm.time > 10 * before) & (rhythm.time < 9_500)
        if kind is not None:
            mine &= rhythm.kind == kind
        peaks = np.rint(rhythm.time[mine] / 10).astype(int)
        out[row] = np.mean([leads[row, lead, p - before : p + after] for p in peaks], axis=0)
    return out


def test_it_is_a_dataset_in_millivolts(tiny):
    assert tiny.X.shape == (240, 12, 1000)
    assert tiny.X.dtype == np.float32
    assert (tiny.name, tiny.fs, tiny.leads, tiny.protocol) == (
        "simulated",
        100.0,
        TWELVE,
        TEN_FOLDS,
    )
    assert tiny.classes == CLASSES
    assert set(tiny.sex) == {"F", "M"}
    assert len(set(tiny.ids)) == 240
    assert 0.1 < tiny.X.std() < 0.5
    assert np.abs(tiny.X).max() < 10
    for split in TEN_FOLDS:
        assert tiny.Y[tiny.rows(split)].any(axis=0).all()
    for split in ("val", "test"):
        assert not set(tiny.patients[tiny.rows(split)]) & set(tiny.patients[tiny.rows("train")])


def test_the_committed_digest(tiny):
    assert tiny.digest == TINY


def test_record_i_depends_on_i_alone(tiny):
    ten = simulate_ecg(10)
    seventh = simulate_ecg(1, start=7)
    np.testing.assert_array_equal(seventh.X[0], ten.X[7])
    assert ten.ids[0] == "sim-000001"
    row = int(np.flatnonzero(tiny.folds == 10)[0])
    number = int(tiny.ids[row].removeprefix("sim-")) - 1
    alone = simulate_ecg(1, start=number)
    np.testing.assert_array_equal(alone.X[0], tiny.X[row])
    for name in ("Y", "folds", "ids", "patients", "sex", "age"):
        np.testing.assert_array_equal(getattr(alone, name)[0], getattr(tiny, name)[row])


def test_blocks_and_order_do_not_show():
    records = np.array([400, 3, 21_800, 77])
    whole = simulate_microvolts(records)
    for row, record in enumerate(records):
        np.testing.assert_array_equal(simulate_microvolts(np.array([record]))[0], whole[row])
    np.testing.assert_array_equal(simulate_microvolts(records[::-1]), whole[::-1])


def test_no_generator_moves():
    before = np.random.get_state()[1].copy()
    simulate_ecg(2)
    np.testing.assert_array_equal(np.random.get_state()[1], before)


def test_the_same_bits_in_other_processes(run_python):
    """One thread or two, and without the processor's vector instructions."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    vector = " ".join(name for name in __cpu_dispatch__ if __cpu_features__.get(name))
    expected = simulate_ecg(40, start=900).digest
    for variables in (
        {"OMP_NUM_THREADS": 1, "OPENBLAS_NUM_THREADS": 1},
        {"OMP_NUM_THREADS": 2, "OPENBLAS_NUM_THREADS": 2},
        {"NPY_DISABLE_CPU_FEATURES": vector},
    ):
        assert run_python("-c", PRINT_DIGEST, **variables).stdout.strip() == expected


def test_nothing_is_asked_of_a_math_library():
    """Only correctly rounded operations, elementwise; no powers, products or sums of arrays."""
    exact = {"abs", "arange", "argsort", "array", "bincount", "ceil", "clip"}
    exact |= {"concatenate", "diff", "empty", "flatnonzero", "floor", "lexsort"}
    exact |= {"maximum", "mgrid", "minimum", "nonzero", "ones", "ones_like", "repeat", "rint"}
    exact |= {"searchsorted", "sqrt", "stack", "tile", "unique", "where", "zeros", "zeros_like"}
    exact |= {"append", "cumsum"}  # of integers alone
    exact |= {"bool_", "float32", "float64", "int64", "uint8"}
    files = sorted(Path(ecg.__file__).parent.glob("*.py"))
    assert len(files) == 10
    for path in files:
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "np":
                assert node.attr in exact, f"{path.name}:{node.lineno}: np.{node.attr}"
            if isinstance(node, ast.BinOp):
                assert not isinstance(node.op, ast.MatMult)
                plain = isinstance(node.left, ast.Constant) and isinstance(node.right, ast.Constant)
                assert plain or not isinstance(node.op, ast.Pow), f"{path.name}:{node.lineno}"


def test_einthoven_and_goldberger_hold_to_the_microvolt(tiny):
    microvolts = np.rint(tiny.X.astype(np.float64) * 1000).astype(np.int64)
    np.testing.assert_array_equal((microvolts / 1000).astype(np.float32), tiny.X)
    i, ii, iii, avr, avl, avf = (microvolts[:, lead] for lead in range(6))
    np.testing.assert_array_equal(i + iii, ii)
    np.testing.assert_array_equal(2 * avr, -(i + ii))
    np.testing.assert_array_equal(2 * avl, i - iii)
    np.testing.assert_array_equal(2 * avf, ii + iii)
    np.testing.assert_array_equal(avr + avl + avf, 0)


def test_six_leads_are_the_first_six():
    six, twelve = simulate_ecg(3, leads="6"), simulate_ecg(3)
    assert six.leads == SIX
    np.testing.assert_array_equal(six.X, twelve.X[:, :6])


def test_the_r_peak_is_at_the_time_of_the_beat(population):
    beats = np.abs(average_beats(only(population, "SR")[:60], lead=1))
    assert np.median(np.abs(beats.argmax(axis=1) - 30)) <= 2


def test_sinus_rhythm_has_p_waves_and_fibrillation_has_none(population):
    """Lead II averaged around R: 80 to 240 ms before it against 260 ms before."""

    def p_height(name):
        beats = average_beats(only(population, name)[:80], lead=1)
        return (beats[:, 6:22].max(axis=1) - beats[:, 4]).mean()

    assert p_height("SR") > 0.07
    assert p_height("AFIB") < 0.035


def test_early_and_paced_beats_are_wide(population):
    """Time the QRS spends above half its height, in samples, in the lead II of wide and narrow."""

    def width(records, kind):
        beats = np.abs(average_beats(records, lead=1, kind=kind)[:, 20:42])
        return np.median((beats > beats.max(axis=1, keepdims=True) / 2).sum(axis=1))

    narrow = width(only(population, "SR")[:60], None)
    assert width(only(population, "BIGU")[:20], WIDE) > 1.5 * narrow
    assert width(only(population, "PACE")[:60], PACED) > 1.5 * narrow


def test_flutter_shows_as_a_regular_wave(population):
    """Between beats, lead II repeats itself after the flutter period and not after half of it."""
    records = only(population, "AFLT")[:30]
    rhythm, leads = heart(records)
    people = describe_records(records)
    silent = project_heart(records, people, _without_flutter(rhythm)) / 1e6
    tooth = (leads - silent)[:, 1]
    for row in range(len(records)):
        period = rhythm.flutter_period[row] / 10
        spectrum = np.abs(np.fft.rfft(tooth[row] - tooth[row].mean()))
        assert spectrum.argmax() == pytest.approx(1000 / period, abs=1.01)
        assert 0.05 < np.ptp(tooth[row]) < 0.6


def _without_flutter(rhythm):
    return replace(rhythm, flutters=np.zeros_like(rhythm.flutters))


def test_patients_differ_and_their_records_resemble_each_other(population):
    """QRS in V1..V6 of two records of a patient agrees more than that of two patients."""
    plain = only(population, "SR")
    patient = population.patients[plain]
    _, inverse, size = np.unique(patient, return_inverse=True, return_counts=True)
    twice = [plain[inverse == k][:2] for k in np.flatnonzero(size >= 2)[:40]]
    a, b = (
        np.concatenate([average_beats(np.array(half), lead, 6, 10) for lead in range(2, 8)], axis=1)
        for half in zip(*twice, strict=True)
    )
    same = np.abs(a - b).mean()
    other = np.abs(a - np.roll(b, 1, axis=0)).mean()
    assert same < 0.4 * other


def test_sex_and_age_have_a_mild_effect(population):
    plain = only(population, "SR")[:800]
    people = describe_records(plain)
    limb = [average_beats(plain, lead, 8, 8) for lead in (0, 1)]
    size = np.ptp(limb[1], axis=1)
    ratio = np.median(size[~people.female]) / np.median(size[people.female])
    assert 1.02 < ratio < 1.35
    downward = (limb[1] - limb[0] / 2).sum(axis=1)  # aVF: the axis turns left with age
    r = np.corrcoef(downward, people.age)[0, 1]
    assert -0.8 < r < -0.15


def test_disturbances_are_those_of_a_recording(population):
    """Mostly below the heart's signal; unlabelled records are the noisiest."""

    def roughness(records):
        people = describe_records(records)
        noise = simulate_noise(records, people, simulate_beats(records, people)) / 1e6
        assert noise.shape == (len(records), 8, 1000)
        return np.diff(noise, axis=2).std(axis=(1, 2))

    labelled = roughness(only(population, "SR")[:200])
    bare = roughness(np.flatnonzero(~population.labels.any(axis=1))[:200])
    assert 0.003 < np.median(labelled) < 0.05
    assert bare.mean() > 2 * labelled.mean()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"count": 0}, "count to be an integer >= 1, got 0"),
        ({"count": 2.0}, "count to be an integer"),
        ({"count": True}, "count to be an integer"),
        ({"count": 1, "start": -1}, "start to be an integer >= 0, got -1"),
        ({"count": 1, "start": 2**40}, "below 2\\^40"),
        ({"count": 5, "preset": "tiny"}, "leave out count and start"),
        ({"start": 5, "preset": "tiny"}, "leave out count and start"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(DataError, match=message):
        simulate_ecg(**arguments)


def test_unknown_names_and_bad_record_numbers_are_refused():
    with pytest.raises(UnknownNameError, match="unknown preset 'huge'"):
        simulate_ecg(preset="huge")
    with pytest.raises(UnknownNameError, match="unknown lead set '3'"):
        simulate_ecg(1, leads="3")
    for records in ([-1], [[1]], [0.5]):
        with pytest.raises(DataError, match="integers >= 0"):
            simulate_records(np.array(records))
    with pytest.raises(DataError, match="more than once"):
        simulate_records(np.array([4, 4]))
