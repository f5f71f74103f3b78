"""`seedless data` as a person runs it, on real files where they are here."""

import json

import numpy as np
import pytest


@pytest.fixture
def cli(run_seedless):
    def run(*arguments, **options):
        return run_seedless("data", *arguments, **options)

    return run


def read(cli, *arguments):
    return json.loads(cli(*arguments, "--json").stdout)


def test_list_names_every_dataset(cli):
    entries = {entry["name"]: entry for entry in read(cli, "list")}
    assert {"simulated", "ptb-xl", "afdb", "nstdb", "cpsc2018", "chapman", "cifar-100"} <= set(
        entries
    )
    assert sum(name.endswith("mnist") for name in entries) == 7
    assert entries["breastmnist"]["sizes"] == {"train": 546, "val": 78, "test": 156}
    assert "CC BY 4.0" in cli("list").stdout


def test_check_the_whole_label_table(cli, real_data):
    table = real_data / "ptb-xl" / "ptbxl_database.rebuilt_rhythm_form.csv"
    found = read(cli, "check", "ptb-xl", table, "--labels-only")
    assert found["records"] == 21_799
    assert found["splits"] == {"train": 17_418, "val": 2_183, "test": 2_198}
    assert found["counts"]["train"]["AFIB"] == 1_211
    assert found["counts"]["test"]["TRIGU"] == 2


def test_a_folder_of_several_label_tables_asks_which(cli, real_data):
    done = cli("check", "ptb-xl", real_data / "ptb-xl", "--labels-only", check=False)
    assert done.returncode == 2
    assert "ptbxl_database.first520rows.csv" in done.stderr
    table = real_data / "ptb-xl" / "ptbxl_database.first520rows.csv"
    assert read(cli, "check", "ptb-xl", table, "--labels-only")["records"] == 521


def test_check_real_records(cli, real_data):
    done = cli("check", "ptb-xl", real_data / "ptb-xl-sample", "--json")
    assert json.loads(done.stdout)["records"] == 150
    text = cli("check", "ptb-xl", real_data / "ptb-xl-sample").stdout
    assert "warning: classes absent from train: 2 (PACE, TRIGU)" in text


@pytest.mark.parametrize(
    ("name", "place", "records"),
    [
        ("breastmnist", "medmnist/breastmnist.npz", 780),
        ("rhythms", "cpsc2021", 189),
        ("challenge", "challenge", 13),
        ("cpsc2018-original", "cpsc2018", 5),
    ],
)
def test_check_every_real_format(cli, real_data, name, place, records):
    assert read(cli, "check", name, real_data / place)["records"] == records


def test_check_noise(cli, real_data):
    found = read(cli, "check", "nstdb", real_data / "nstdb-excerpt")["noise"]
    assert {kind: facts["seconds"] for kind, facts in found.items()} == {
        "bw": pytest.approx(30, abs=1),
        "ma": pytest.approx(30, abs=1),
        "em": pytest.approx(30, abs=1),
    }


def test_check_your_own_arrays(cli, real_data):
    found = read(cli, "check", real_data / "ptb-xl-derived100.npz")
    assert found["records"] == 1_819


def test_leads_of_another_name_need_an_explicit_map(cli, real_data):
    refused = cli("check", "rhythms", real_data / "mitdb", check=False)
    assert refused.returncode == 2
    assert "lead_map" in refused.stderr
    mapped = 'data.lead_map={MLII="II",V1="I",V5="I"}'
    found = read(cli, "check", "rhythms", real_data / "mitdb", "--set", mapped)
    assert any("approximate" in warning for warning in found["warnings"])


def test_check_and_show_the_embedded_sets(cli, tmp_path):
    found = read(cli, "check", "simulated", "--set", "data.preset=tiny")
    assert found["warnings"] == []
    assert read(cli, "check", "simulated-images", "--set", "data.classes=5")["records"] >= 1000
    file = tmp_path / "afib.png"
    arguments = ("--class", "AFIB", "--out", file, "--set", "data.preset=tiny")
    shown = read(cli, "show", "simulated", *arguments)
    assert "AFIB" in shown["labels"]
    assert file.read_bytes().startswith(b"\x89PNG")


def test_show_draws_signals_without_names_and_warns_of_swapped_axes(cli, tmp_path):
    signals = np.sin(np.arange(20 * 3 * 50.0)).reshape(20, 3, 50).astype(np.float32)
    rest = {"Y": np.arange(20) % 2, "folds": np.arange(20) % 10 + 1}
    heights = []
    for name, samples in (("mine", signals), ("swapped", signals.transpose(0, 2, 1))):
        np.savez(tmp_path / f"{name}.npz", X=samples, **rest)
        file = tmp_path / f"{name}.png"
        shown = read(cli, "show", tmp_path / f"{name}.npz", "--out", file)
        assert any("transpose" in warning for warning in shown["warnings"]) is (name == "swapped")
        heights.append(int.from_bytes(file.read_bytes()[20:24], "big"))
    assert heights[0] < heights[1]  # 3 rows on ECG paper, and 24; an image has one height


def test_show_an_image_and_a_record_by_id(cli, real_data, tmp_path):
    image = read(
        cli,
        "show",
        "breastmnist",
        real_data / "medmnist/breastmnist.npz",
        "--out",
        tmp_path / "i.png",
    )
    assert image["labels"]
    record = read(
        cli,
        "show",
        "ptb-xl",
        real_data / "ptb-xl-sample",
        "--record",
        "9",
        "--out",
        tmp_path / "r.png",
    )
    assert (record["id"], record["labels"]) == ("9", ["SR"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "ptbxl", "."], "did you mean 'ptb-xl'"),
        (["check", "ptb-xl"], "needs the folder or file"),
        (["check", "simulated", "somewhere"], "computed; leave the path out"),
        (["check", "simulated", "--set", "data.fs=500"], "has no setting data.fs"),
        (["check", "simulated", "--labels-only"], "PTB-XL's table"),
        (
            ["show", "simulated", "--class", "AFB", "--set", "data.preset=tiny"],
            "did you mean 'AFIB'",
        ),
        (["show", "simulated", "--record", "x", "--set", "data.preset=tiny"], "no record 'x'"),
        (["fetch", "ptb-lx"], "did you mean 'ptb-xl'"),
        (["show", "nstdb", "."], "nstdb is noise"),
    ],
)
def test_bad_input_ends_in_one_message_and_exit_code_2(cli, arguments, message):
    done = cli(*arguments, check=False)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_an_empty_folder_is_an_error(cli, tmp_path):
    for name in ("ptb-xl", "rhythms", "challenge", "cpsc2018-original", "afdb"):
        done = cli("check", name, tmp_path, check=False)
        assert done.returncode == 2, name
        assert str(tmp_path) in done.stderr, name


def test_shuffled_storage_is_the_same_dataset(cli, real_data, tmp_path):
    with np.load(real_data / "ptb-xl-derived100.npz", allow_pickle=False) as arrays:
        order = np.argsort(np.cos(np.arange(len(arrays["ids"])) * 3.0))
        n = len(order)
        moved = {k: v[order] if v.shape[:1] == (n,) else v for k, v in arrays.items()}
    np.savez(tmp_path / "moved.npz", **moved)
    one = read(cli, "check", real_data / "ptb-xl-derived100.npz")["digest"]
    assert read(cli, "check", tmp_path / "moved.npz")["digest"] == one
