"""Six-lead models on sets they were never trained on, as they are."""

import json

import numpy as np
import pytest

from seedless.analysis.evaluation import evaluate
from seedless.core.config import DataConfig
from seedless.core.errors import DataError, SeedlessError, StudyError
from seedless.data.leads import SIX
from seedless.data.loading import load
from seedless.data.simulators.ecg import simulate_ecg
from seedless.data.simulators.population import PRESETS, preset_records
from seedless.studies.engine.options import StudyOptions
from seedless.studies.engine.runner import write_study
from seedless.studies.engine.store import Store
from seedless.studies.engine.worker import Worker
from seedless.studies.published import crossdataset
from seedless.studies.shared import external_datasets
from seedless.studies.shared.external_datasets import is_standardized, standardize
from tests.studies.plans import plan
from tests.tiny import flags_restored

OPTIONS = StudyOptions(seeds=1, device="cpu")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Two trained models in a store."""
    folder = tmp_path_factory.mktemp("store")
    worker = Worker(Store(folder))
    with flags_restored():
        for point in crossdataset.make(OPTIONS).points:
            assert worker.execute(point)
    return folder


def test_models_differ_in_their_name_and_the_head_they_declare_and_have_six_leads():
    grid = crossdataset.make(OPTIONS)
    assert grid.factor == ("model.name", "init.heads")
    assert grid.arms == ("baseline", "conformer")
    assert all(point.config.data.leads == "6" for point in grid.points)


def test_no_model_has_seen_a_record_that_stands_in():
    assert all(preset_records(name).max() < external_datasets.FIRST_RECORD for name in PRESETS)
    strangers = set(simulate_ecg(50, start=external_datasets.FIRST_RECORD, leads="6").patients)
    assert not strangers & set(simulate_ecg(preset="tiny", leads="6").patients)


def test_tables_and_figure_from_simulated_records(store, tmp_path):
    with flags_restored():
        written = write_study(plan("crossdataset", OPTIONS), Store(store))
    assert written.figure.read_bytes()[:4] == b"\x89PNG"
    rows = {row[0]: row for row in written.tables[0].rows}
    assert rows["simulated, other records / conformer"][-1].startswith("approximate: simulated")
    assert rows["its own test set / baseline"][-1] == ""
    values = {(v["set"], v["model"]): v for v in written.tables[0].values}
    assert len(values) == 4

    # The same, by hand: write the records, and ask for the scores of one run.
    data = simulate_ecg(400, start=external_datasets.FIRST_RECORD, leads="6")
    names = np.array(data.classes), np.array(data.leads)
    np.savez(tmp_path / "a.npz", X=data.X, Y=data.Y, folds=data.folds, classes=names[0])
    run = Store(store).run_folder(crossdataset.make(OPTIONS).points_of("conformer")[0])
    with flags_restored():
        found = evaluate(run, data=str(tmp_path / "a.npz"), split="all")
    part = found.scores["classes"]["AFIB"]
    mine = values["simulated, other records", "conformer"]
    assert mine["auc"] == [pytest.approx(part["auc"])]
    assert mine["calls"] == [pytest.approx((part["tp"] + part["fp"]) / 400)]


def test_real_sets_are_called_what_they_are(store, real_data):
    other = (f"mitdb={real_data / 'mitdb'}", f"cpsc2018-original={real_data / 'cpsc2018'}")
    with flags_restored():
        written = write_study(
            plan("crossdataset", StudyOptions(seeds=1, device="cpu", other=other)), Store(store)
        )
    rows = {row[0]: row for row in written.tables[0].rows}
    assert "MIT-BIH Arrhythmia in place of AFDB" in rows["mitdb / baseline"][-1]
    assert rows["mitdb / baseline"][5] == ""  # it is not AFDB: nothing is published of it
    few = rows["cpsc2018-original / conformer"]
    assert few[1:3] == ("5", "0")
    assert few[4] == "none"  # no positive, no AUC
    assert few[-1] == "approximate: 5 of 6,877 records"
    assert (
        written.markdown.name == "crossdataset-smoke-simulated-1-seeds-mitdb-cpsc2018-original.md"
    )
    json.loads(written.markdown.with_suffix(".json").read_bytes())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("afdb", "expected NAME=PATH"),
        ("afdb=", "expected NAME=PATH"),
        ("afdb=nowhere", "there is no folder 'nowhere'"),
        ("afbd=.", "did you mean 'afdb'"),
    ],
)
def test_a_set_that_cannot_be_read_is_refused_before_training(text, message):
    with pytest.raises(SeedlessError, match=message):
        plan("crossdataset", StudyOptions(other=(text,)))


def test_a_name_given_twice_and_a_study_without_other_sets_are_refused():
    with pytest.raises(StudyError, match="each name once"):
        plan("crossdataset", StudyOptions(other=("mitdb=.", "mitdb=.")))
    with pytest.raises(StudyError, match="--other has no meaning for the study basis"):
        plan("basis", StudyOptions(other=("mitdb=.",)))


def test_leads_of_an_array_file_are_chosen_by_name(tmp_path):
    data = simulate_ecg(4)
    turned = [*reversed(range(12))]
    names = np.array(data.leads)[turned]
    arrays = {"X": data.X[:, turned], "Y": data.Y, "folds": data.folds}
    np.savez(tmp_path / "a.npz", **arrays, leads=names)
    found = load(DataConfig(name=str(tmp_path / "a.npz"), leads="6"))
    assert found.leads == SIX
    order = {content.tobytes(): row for row, content in enumerate(simulate_ecg(4, leads="6").X)}
    assert all(sample.tobytes() in order for sample in found.X)
    np.savez(tmp_path / "b.npz", **arrays)
    with pytest.raises(DataError, match="names no leads"):
        load(DataConfig(name=str(tmp_path / "b.npz"), leads="6"))
    np.savez(tmp_path / "c.npz", **{**arrays, "X": data.X[:, 6:]}, leads=np.array(data.leads[6:]))
    with pytest.raises(DataError, match="lacks I, II"):
        load(DataConfig(name=str(tmp_path / "c.npz"), leads="6"))


def test_a_split_that_says_nothing_of_the_class_is_refused():
    with pytest.raises(StudyError, match="a run: there is no score of AFIB"):
        external_datasets.read_score_of_class({"n": 3, "classes": {"SR": {}}}, "a run")
    with pytest.raises(StudyError, match="there is no score"):
        external_datasets.read_score_of_class(None, "a run")


def test_records_are_brought_into_the_form_of_the_training_records():
    """A slow drift and another gain make no difference; a lead that is flat stays flat."""
    time = np.arange(1000) / 100
    wave = np.sin(2 * np.pi * 1.3 * time) + 0.4 * np.sin(2 * np.pi * 9 * time)
    records = np.stack([wave, 7 * wave + 3 + 0.5 * time, np.full(1000, 2.0)])[None].astype("f4")
    found = standardize(records, 100.0)
    assert found.shape == records.shape
    np.testing.assert_allclose(found[0, :2].mean(axis=1), 0, atol=1e-5)
    np.testing.assert_allclose(found[0, :2].std(axis=1), 1, atol=1e-5)
    assert np.corrcoef(found[0, 0], found[0, 1])[0, 1] > 0.99
    assert not found[0, 2].any()


def test_only_standardized_training_records_ask_for_it(tmp_path):
    data = simulate_ecg(60)
    for name, samples in (("plain", data.X), ("standard", standardize(data.X, 100.0))):
        np.savez(
            tmp_path / f"{name}.npz",
            X=samples,
            Y=data.Y,
            folds=data.folds,
            ids=data.ids,
            classes=np.array(data.classes),
            leads=np.array(data.leads),
            fs=np.array(data.fs),
        )
        config = StudyOptions("smoke", str(tmp_path / f"{name}.npz"), device="cpu").ecg()
        assert is_standardized(config) == (name == "standard")
