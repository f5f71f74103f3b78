"""The answer of each study in a sentence, drawn from its tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Found = Mapping[str, Any]


def find_table(found: Found, words: str) -> Found:
    """Return the table whose title begins so."""
    for table in found["tables"]:
        if table["title"].startswith(words):
            return dict(table)
    return {"rows": [], "values": [], "notes": []}


def comparable(found: Found) -> bool:
    """Whether a published value may stand in one sentence with ours: the data are the same."""
    return not found["setting"]["simulated"] and "derived" not in found["data"]["name"]


def show_arms(found: Found, title: str, block: str | None = None) -> str:
    """Return the mean of each arm of a block, in words."""
    rows = find_table(found, title)["values"]
    told = []
    for row in rows:
        if row["mean"] is not None and block in (None, row["block"]):
            known = ""
            if row["published"] is not None and comparable(found):
                known = f" (published {row['published']:g})"
            told.append(f"{row['arm']} {row['mean']:.3f}, n = {len(row['scores'])}{known}")
    return "; ".join(told)


def answer_theory(found: Found) -> str:
    """Energy in the first rows and in the ECGs' band, and conditioning."""
    shares = {row["basis"]: row["share"] for row in find_table(found, "Energy of ECGs")["values"]}
    values = find_table(found, "Condition number")["values"]
    worst = max(row["value"] for row in values if row["basis"] == "dct")
    cut = max(row["value"] for row in values if row["basis"] == "hadamard")
    sizes = [
        str(row["size"]) for row in values if row["basis"] == "hadamard" and row["value"] == cut
    ]
    energy = {
        row["basis"]: row["value"]
        for row in find_table(found, "Energy in the first")["values"]
        if row["rho"] == 0.95
    }
    return (
        f"Of these ECGs' energy the first 0.8 N coefficients hold {shares['dct']:.2%} (dct) and "
        f"{shares['hadamard']:.1%} (hadamard). On an AR(1) signal of rho 0.95 a quarter of the "
        f"rows keeps {energy['dct']:.3f} (dct) where the best possible keeps "
        f"{energy['KLT (bound)']:.3f} and a random orthonormal basis "
        f"{energy['random orthonormal']:.3f}, as drawn. Condition numbers: dct at most "
        f"{worst:.3g}, hadamard up to {cut:.3g} where it is cut (N = {', '.join(sizes)})."
    )


def answer_medmnist(found: Found) -> str:
    """Both arms beside the published means, what seeds decide, and the proof."""
    blocks = [row["block"] for row in find_table(found, "Test macro AUC by set")["values"]]
    seeded = [block for block in dict.fromkeys(blocks) if not block.endswith(", golden")]
    told = [f"{block}: {show_arms(found, 'Test macro AUC by set', block)}" for block in seeded]
    told += [
        f"{row[0]} {row[2]}, Welch p {row[3]}: "
        f"{'they differ' if float(row[3]) < 0.05 else 'no difference is shown'}"
        for row in find_table(found, "dct against kaiming")["rows"]
        if row[3]
    ]
    churn = find_table(found, "Test records whose answer")["values"]
    changes = "; ".join(
        f"{row['flips']} of {row['n']} ({row['block']}, {row['arm']})" for row in churn
    )
    proofs = find_table(found, "The same bits twice")["rows"]
    same = sum(row[3].startswith("identical") for row in proofs)
    proof = f" Executed again, {same} of {len(proofs)} runs gave the same bits." if proofs else ""
    return f"{'. '.join(told)}. Test records whose answer depends on the seed: {changes}.{proof}"


def answer_basis(found: Found) -> str:
    """All arms, and the test over the bases."""
    tests = find_table(found, "All bases at once")["rows"]
    told = f" {tests[0][3]}" if tests else ""
    return f"{show_arms(found, 'Test macro AUC by basis')}.{told}"


def answer_golden(found: Found) -> str:
    """Both models."""
    blocks = dict.fromkeys(row["block"] for row in find_table(found, "Golden order")["values"])
    return (
        ". ".join(f"{block}: {show_arms(found, 'Golden order', block)}" for block in blocks) + "."
    )


def answer_perclass(found: Found) -> str:
    """In how many classes the structured start is tighter."""
    told = [table for table in found["tables"] if table["title"].startswith("Range over seeds")]
    return " ".join(
        f"{table['title'].removeprefix('Range over seeds by class, ')}: "
        f"{' '.join(table['notes'][:2])}"
        for table in told
    )


def answer_order(found: Found) -> str:
    """The seed-free orders against the shuffle."""
    rows = find_table(found, "Does an order without a seed")["rows"]
    return " ".join(
        f"{row[0]} less seeded: {row[2]} ({row[3]}), TOST p {row[4]}, by pairs {row[5]}, "
        f"n = {row[1]}: {row[7]}."
        for row in rows
    )


def answer_crossdataset(found: Found) -> str:
    """The AUC of both models on every set."""
    table = find_table(found, "AFIB without training")
    return "; ".join(f"{row[0]}: {row[4]} (n = {row[3]})" for row in table["rows"]) + "."


ANSWERS: dict[str, Callable[[Found], str]] = {
    "theory": answer_theory,
    "medmnist": answer_medmnist,
    "basis": answer_basis,
    "golden": answer_golden,
    "perclass": answer_perclass,
    "order": answer_order,
    "crossdataset": answer_crossdataset,
}


def answer(found: Found) -> str:
    """Return a study's answer."""
    return ANSWERS[found["study"]](found)
