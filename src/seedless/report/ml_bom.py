"""The bill of materials of a model (ML-BOM) in CycloneDX 1.6: what it is, and how it was made.

Everything comes from the receipt, and there is no time in it: the same run gives the same bytes.
The model card of the BOM has the scores; its formulation has the settings, inputs and outputs of
the training, and the command that repeats it.
Format: https://cyclonedx.org/docs/1.6/json/, https://cyclonedx.org/capabilities/mlbom/.
"""

import json
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from seedless.core.digests import canonical_json, get_hex
from seedless.core.errors import RunError
from seedless.core.version import __version__
from seedless.proof.provenance import describe_source_package, digest_receipt, list_packages
from seedless.proof.receipt import FILE as RECEIPT
from seedless.proof.receipt import WEIGHTS
from seedless.report.card import list_warnings
from seedless.report.facts import (
    SPLITS,
    as_number,
    describe_taken,
    find_weights_file,
    has_own_loss,
    is_user_model,
    list_classes,
    list_own_scores,
    look_up,
    name_classes,
    name_data,
    name_task,
    takes_images,
)
from seedless.report.run_view import RunView, as_mapping

SPEC_VERSION = "1.6"
SCHEMA = f"http://cyclonedx.org/schema/bom-{SPEC_VERSION}.schema.json"
# Files of a run that the BOM points at: name -> type of reference.
REFERENCES = {
    RECEIPT: "attestation",
    "config.toml": "configuration",
    "trail.jsonl": "evidence",
    "log.jsonl": "log",
    "metrics.json": "quality-metrics",
}


def make_ml_bom(receipt: Mapping[str, Any]) -> bytes:
    """Return the BOM of a run as canonical JSON, ended by a newline.

    Args:
        receipt: the whole statement of its receipt, which was validated.

    Example:
        >>> make_ml_bom(open_validated("runs/demo").receipt)
    """
    try:
        bom = _describe_bom(receipt)
    except (LookupError, TypeError, AttributeError) as error:
        raise RunError(
            f"the receipt does not have the form it must have ({error!r}); get the run again"
        ) from None
    return canonical_json(bom) + b"\n"


def _describe_bom(receipt: Mapping[str, Any]) -> dict[str, Any]:
    claims = receipt["predicate"]
    name = claims["config"]["values"]["model"]["name"]
    label = str(claims["model"]["type"] if claims["kind"] == "fit" else name)
    run = RunView(label, receipt, "", (), (), claims["metrics"])
    parts = [_describe_data(run), *_list_weights_file(run), *_list_libraries(claims)]
    serial = uuid.uuid5(uuid.NAMESPACE_URL, f"urn:seedless:run:{claims['digest']}")
    tool = {"type": "application", "name": "seedless", "version": __version__}
    return {
        "$schema": SCHEMA,
        "bomFormat": "CycloneDX",
        "specVersion": SPEC_VERSION,
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {"tools": {"components": [tool]}, "component": _describe_model(run)},
        "components": parts,
        "dependencies": [{"ref": "model", "dependsOn": [part["bom-ref"] for part in parts]}],
        "formulation": [_describe_making(run)],
    }


def _describe_model(run: RunView) -> dict[str, Any]:
    claims, model, weights = run.predicate, look_up(run, "model"), look_up(run, "weights")
    return {
        "type": "machine-learning-model",
        "bom-ref": "model",
        "name": run.label,
        "version": get_hex(claims["digest"])[:16],
        "description": f"{name_task(run)}; {model['parameters']} parameters",
        "hashes": [_make_hash(claims["files"][WEIGHTS])],
        "externalReferences": [
            _make_reference(run, name) for name in REFERENCES if _find_digest(run, name)
        ],
        "modelCard": {
            "modelParameters": {
                "approach": {"type": "supervised"},
                "task": name_task(run),
                "modelArchitecture": run.label,
                "datasets": [{"ref": "data"}],
                "inputs": [{"format": _describe_input(run)}],
                "outputs": [{"format": f"logits of {json.dumps(name_classes(run))}"}],
            },
            "quantitativeAnalysis": {"performanceMetrics": list(_list_scores(run))},
            "considerations": {
                "technicalLimitations": [
                    *(f"{title}: {text}" for title, text in list_warnings(run)),
                    f"The same bits are promised across: {look_up(run, 'promise')['across']}.",
                ]
            },
        },
        "properties": _make_properties(
            {"weights:digest": weights["digest"], "weights:epoch": weights["epoch"]}
        ),
    }


def _describe_input(run: RunView) -> str:
    if is_user_model(run):
        return "as the model's author defines it"
    shape = "(batch, channels, height, width)" if takes_images(run) else "(batch, leads, time)"
    return f"float32 {shape}, normalized as the receipt says"


def _list_scores(run: RunView) -> Iterator[dict[str, Any]]:
    """Yield the scores of each split: macro AUC and accuracy, then the AUC of each class.

    A run with a loss of its own has that loss and the metrics of its author instead.
    """
    for split in SPLITS:
        scores = as_mapping(run.metrics.get(split))
        if has_own_loss(run):
            for name, value in list_own_scores(scores):
                yield from _make_metric(name, value, split)
            continue
        macro = as_number(scores.get("macro_auc"))
        yield from _make_metric("macro AUC", macro, split, scores.get("macro_auc_interval"))
        yield from _make_metric("accuracy", as_number(scores.get("accuracy")), split)
        for label, area, _ in list_classes(run, scores):
            interval = as_mapping(as_mapping(scores.get("classes")).get(label)).get("auc_interval")
            yield from _make_metric("AUC", area, f"{split}, class {label}", interval)


def _make_metric(
    kind: str, value: float | None, part: str, interval: Any = None
) -> Iterator[dict[str, Any]]:
    """Yield a score with its 95% interval; nothing where the score is not defined."""
    if value is None:
        return
    metric: dict[str, Any] = {"type": kind, "value": repr(value), "slice": part}
    bounds = [as_number(bound) for bound in interval] if isinstance(interval, list) else []
    if len(bounds) == 2 and None not in bounds:
        lower, upper = map(repr, bounds)
        metric["confidenceInterval"] = {"lowerBound": lower, "upperBound": upper}
    yield metric


def _describe_data(run: RunView) -> dict[str, Any]:
    data = look_up(run, "data")
    counts = {
        f"{fact}:{part}": count
        for fact in ("records", "repeated")  # "repeated": records that occur in two splits
        for part, count in sorted(as_mapping(data.get(fact)).items())
    }
    schema = str(run.predicate["schema"]).partition(".")[0]
    return {
        "type": "data",
        "bom-ref": "data",
        "name": name_data(run),
        # Not a hash of a file, so it is a property: receipt.md says what it is made of.
        "properties": _make_properties({f"data:digest:{schema}": data["digest"], **counts}),
        "data": [{"type": "dataset", "name": name_data(run)}],
    }


def _list_weights_file(run: RunView) -> list[dict[str, Any]]:
    """Return the weights file that the run began with, as a component; none where none was."""
    file = find_weights_file(run)
    if not file:
        return []
    described = {
        "type": "machine-learning-model",
        "bom-ref": "weights",
        "name": str(file["name"]),
        "description": f"the weights that the training began with: {describe_taken(file)}",
        "hashes": [_make_hash(str(file["digest"]))],
    }
    return [described]


def _list_libraries(claims: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return this package, Python and the packages that can change bits, as components."""
    name, version, url = describe_source_package(claims)
    source = _make_properties({"source:digest": claims["source"]["digest"]})
    own = {"type": "library", "bom-ref": url, "name": name, "version": version, "purl": url}
    return [
        {**own, "properties": source},
        *(
            {
                "type": "platform" if name == "python" else "library",
                "bom-ref": url,
                "name": name,
                "version": version,
                "purl": url,
            }
            for name, version, url in list_packages(claims)
        ),
    ]


def _describe_making(run: RunView) -> dict[str, Any]:
    """Return how the model was made: settings, inputs, outputs, and how to repeat and check it."""
    claims = run.predicate
    command = "seedless train config.toml --out RUN"
    if is_user_model(run):
        command = "seedless.fit(model, train, ...), in a program of the model's author"
    inputs = [
        {"resource": {"ref": "data"}},
        *({"resource": {"ref": part["bom-ref"]}} for part in _list_weights_file(run)),
        {"parameters": list(_flatten(run.settings))},
        *_list_variables(claims["environment"]["variables"]),
    ]
    kinds = {RECEIPT: "attestation", "log.jsonl": "log", "metrics.json": "metrics"}
    files = [name for name in REFERENCES if name != "config.toml" and _find_digest(run, name)]
    outputs = [
        {"type": "artifact", "resource": {"ref": "model"}},
        *(
            {
                "type": kinds.get(name, "evidence"),
                "resource": {"externalReference": _make_reference(run, name)},
            }
            for name in files
        ),
    ]
    training = {
        "bom-ref": "training",
        "uid": claims["digest"],
        "name": "training",
        "taskTypes": ["build"],
        "steps": [{"name": "train", "commands": [{"executed": command}]}],
        "inputs": inputs,
        "outputs": outputs,
        "properties": _make_properties(
            {name: claims["initialization"][name] for name in ("basis", "plan", "weights")}
            | {"schedule": claims["schedule"], "trail:head": claims["trail"]["head"]}
        ),
    }
    check = {
        "bom-ref": "verification",
        "uid": f"{claims['digest']}:verify",
        "name": "verification, by anyone",
        "description": "Trains again and compares every bit. This BOM does not say it was done.",
        "taskTypes": ["test"],
        "steps": [{"name": "verify", "commands": [{"executed": "seedless verify RUN"}]}],
    }
    workflow = {
        "bom-ref": "workflow",
        "uid": f"urn:seedless:run:{claims['digest']}",
        "taskTypes": ["build", "test"],
        "tasks": [training, check],
        "taskDependencies": [{"ref": "verification", "dependsOn": ["training"]}],
    }
    return {"bom-ref": "formulation", "workflows": [workflow]}


def _flatten(values: Mapping[str, Any], before: str = "") -> Iterator[dict[str, str]]:
    """Yield each setting as a parameter: its full name, and its value as JSON."""
    for name in sorted(values):
        if isinstance(values[name], Mapping):
            yield from _flatten(values[name], f"{before}{name}.")
        else:
            yield {"name": f"{before}{name}", "value": canonical_json(values[name]).decode()}


def _list_variables(variables: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the recorded environment variables as an input; none where none were set."""
    listed = [{"name": name, "value": variables[name]} for name in sorted(variables)]
    return [{"environmentVars": listed}] if listed else []


def _find_digest(run: RunView, name: str) -> str | None:
    """Return "sha256:..." of the receipt or of a file that it covers."""
    if name == RECEIPT:
        return digest_receipt(run.receipt)
    digest: str | None = run.predicate["files"].get(name)
    return digest


def _make_reference(run: RunView, name: str) -> dict[str, Any]:
    """Return a reference to a file of the run, by its name in the run folder."""
    digest = _find_digest(run, name)
    return {"type": REFERENCES[name], "url": name, "hashes": [_make_hash(str(digest))]}


def _make_hash(digest: str) -> dict[str, str]:
    return {"alg": "SHA-256", "content": get_hex(digest)}


def _make_properties(values: Mapping[str, Any]) -> list[dict[str, str]]:
    return [{"name": f"seedless:{name}", "value": str(value)} for name, value in values.items()]
