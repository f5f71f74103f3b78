"""`seedless sign` and `seedless bundle` as a person runs them."""

import hashlib
import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from seedless.cli.bundle import bundle
from seedless.cli.sign import sign
from seedless.core.errors import SeedlessError
from seedless.proof.bundle import open_bundle
from seedless.proof.signature import check_signature
from tests.tiny import copy_run, fit_run, flags_restored


@pytest.fixture
def cli():
    app = typer.Typer()
    app.command("sign")(sign)
    app.command("bundle")(bundle)

    def call(*arguments):
        done = CliRunner().invoke(app, [str(argument) for argument in arguments])
        if done.exception is not None:
            raise done.exception
        return done.stdout

    return call


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    with flags_restored():
        return fit_run(tmp_path_factory.mktemp("sign") / "a", train={"epochs": 1})


@pytest.fixture
def run(made, tmp_path):
    return copy_run(made, tmp_path / "runs" / "a")


def test_make_a_key_sign_bundle_open_and_check(cli, tmp_path, run):
    key = tmp_path / "key.pem"
    made = json.loads(cli("sign", "--new-key", key, "--json"))
    assert made["key"] == str(key)
    assert made["public_key"] == f"{key}.pub"
    signed = json.loads(cli("sign", run, "--key", key, "--json"))
    assert signed == {
        "envelope": str(run / "receipt.dsse.json"),
        "keyid": made["keyid"],
        "run": str(run),
    }
    packed = json.loads(cli("bundle", run, "--json"))
    file = Path(packed["file"])
    assert file == tmp_path / "runs" / "a.bundle.zip"
    assert packed["bytes"] == file.stat().st_size
    assert packed["digest"] == f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}"
    folder = open_bundle(file, tmp_path / "out")
    assert check_signature(folder, Path(made["public_key"])) == made["keyid"]
    assert (folder.parent / "source/seedless/cli/bundle.py").is_file()


def test_plain_output_says_where_things_are(cli, tmp_path, run):
    key, out = tmp_path / "key.pem", tmp_path / "b.zip"
    made = cli("sign", "--new-key", key)
    assert f"private key in {key}: keep it secret" in made
    assert f"public key in {key}.pub: publish it" in made
    keyid = made.splitlines()[-1]
    assert keyid.startswith("keyid ")
    assert cli("sign", run, "--key", key).splitlines()[-1] == keyid
    name, size, digest = cli("bundle", run, "--out", out).splitlines()
    assert name == str(out)
    assert size == f"{out.stat().st_size:,} bytes"
    assert digest == f"sha256:{hashlib.sha256(out.read_bytes()).hexdigest()}"


def test_a_bundle_is_replaced_by_force_with_the_same_bytes(cli, run):
    first = cli("bundle", run)
    with pytest.raises(SeedlessError, match="--force"):
        cli("bundle", run)
    assert cli("bundle", run, "--force") == first


def test_the_folder_one_stands_in_has_a_name_too(cli, run, monkeypatch):
    monkeypatch.chdir(run)
    assert json.loads(cli("bundle", ".", "--json"))["file"] == f"{run}.bundle.zip"


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("RUN",),
        ("--key", "k"),
        ("RUN", "--new-key", "k"),
        ("RUN", "--key", "k", "--new-key", "k"),
    ],
)
def test_sign_is_one_of_two_things(cli, run, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SeedlessError, match="expected `seedless sign RUN --key"):
        cli("sign", *(run if argument == "RUN" else argument for argument in arguments))
    assert not (tmp_path / "k").exists()
