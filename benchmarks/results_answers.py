"""The answer of each study in a sentence, written from its tables."""

from __future__ import annotations

import re
from collections.abc import Callable

from benchmarks import results_main_answers
from benchmarks.results_fairness import (
    NOT_EQUAL,
    PAIRS_ALONE,
    has_single_runs,
    is_published_arm,
    test_signs,
)
from benchmarks.results_tables import Collected, find_table, show_equivalence

# Published epochs of these were chosen on the test split, ours on the validation split.
SELECTED_ON_TEST = ("medmnist", "medmnist_bases")


def comparable(collected: Collected) -> bool:
    """Whether a published value may be compared with ours: same data, training and selection."""
    own = collected["setting"]["simulated"] or "derived" in collected["data"]["name"]
    selected = collected.get("study") in SELECTED_ON_TEST
    return not own and not selected and "--set train." not in collected["command"]


def show_arms(collected: Collected, title: str, block: str | None = None) -> str:
    """Return the mean of each arm of a block, in words."""
    rows = find_table(collected, title)["values"]
    text = []
    for row in rows:
        if row["mean"] is not None and block in (None, row["block"]):
            known = ""
            name = f"{row['block']} / {row['arm']}"
            same = comparable(collected) and is_published_arm(collected, name)
            if row["published"] is not None and same:
                known = f" (published {row['published']:g})"
            text.append(f"{row['arm']} {row['mean']:.3f}, n = {len(row['scores'])}{known}")
    return "; ".join(text)


def answer_theory(collected: Collected) -> str:
    """Energy in the first rows and in the ECGs' band, and conditioning."""
    shares = {
        row["basis"]: row["share"] for row in find_table(collected, "Energy of ECGs")["values"]
    }
    values = find_table(collected, "Condition number")["values"]
    worst = max(row["value"] for row in values if row["basis"] == "dct")
    cut = max(row["value"] for row in values if row["basis"] == "hadamard")
    sizes = [
        str(row["size"]) for row in values if row["basis"] == "hadamard" and row["value"] == cut
    ]
    energy = {
        row["basis"]: row["value"]
        for row in find_table(collected, "Energy in the first")["values"]
        if row["rho"] == 0.95
    }
    return (
        f"Of these ECGs' energy the first 0.8 N coefficients hold {shares['dct']:.2%} (dct) and "
        f"{shares['hadamard']:.1%} (hadamard). On an AR(1) signal of rho 0.95 a quarter of the "
        f"rows keeps {energy['dct']:.3f} (dct) where the best possible keeps "
        f"{energy['KLT (bound)']:.3f} and a random orthonormal basis "
        f"{energy['random orthonormal']:.3f}, as drawn. Condition numbers: dct at most "
        f"{worst:.3g}, hadamard up to {cut:.3g} where it is cut (N = {', '.join(sizes)})."
        f"{answer_claims(collected)}"
    )


def answer_claims(collected: Collected) -> str:
    """Which published claims hold, where they were computed."""
    information = find_table(collected, "Mutual information in nats as published")["values"]
    pairs = find_table(collected, "Mutual coherence")["values"]
    if not information or not pairs:
        return ""
    crossing = min(row["rho"] for row in information if row["dct"] >= row["kaiming"])
    shared = sum(row["shared"] > 0 for row in pairs)
    return (
        f" As published, with Kaiming's filters louder, the dct has more information from rho "
        f"{crossing:.2f}; published: about 0.3. The published coherence below 1 of bases that "
        f"differ fails for {shared} of {len(pairs)} pairs, which have rows in common. A GELU does "
        "shrink its input, which allows a larger residual scale and does not explain a smaller one."
    )


def answer_factorial(collected: Collected) -> str:
    """The primary tests, one sentence each."""
    text = []
    for question in ("beyond the residual scale", "beyond orthogonality"):
        rows = find_table(collected, f"Primary: {question}")["rows"]
        tests = [f"{row[0]} {row[2]} ({row[3]}), n = {row[1]}: {row[6]}" for row in rows]
        text.append(f"Does structure help {question}? {'; '.join(tests)}.")
    rows = find_table(collected, "Primary: what the residual scale")["rows"]
    tests = [f"{row[0]} {row[2]}, n = {row[1]}, Holm p {row[4]}" for row in rows]
    text.append(f"What does the residual scale change? {'; '.join(tests)}.")
    rows = find_table(collected, "Primary: the spread")["rows"]
    tests = [f"{row[0]}: SDs {row[3]} and {row[4]}, n = {row[1]}, Holm p {row[6]}" for row in rows]
    text.append(f"Does structure reduce the spread over orders? {'; '.join(tests)}.")
    return " ".join(text)


def answer_medmnist(collected: Collected) -> str:
    """The arms with the published means, what seeds decide, and the proof."""
    blocks = [row["block"] for row in find_table(collected, "Test macro AUC by set")["values"]]
    seeded = [block for block in dict.fromkeys(blocks) if not block.endswith(", golden")]
    text = [f"{block}: {show_arms(collected, 'Test macro AUC by set', block)}" for block in seeded]
    text += [
        f"{row[0]} {row[2]}, Welch p {row[3]}: "
        f"{'they differ' if float(row[3]) < 0.05 else 'no difference is shown'}"
        for row in find_table(collected, "dct against kaiming")["rows"]
        if row[3]
    ]
    like_for_like = show_equivalence(collected, "dct minus kaiming_normal, like for like")
    text += [like_for_like.removesuffix(".")] if like_for_like else []
    churn = find_table(collected, "Test records whose answer")["values"]
    runs = [row[1] for row in find_table(collected, "Test records whose answer")["rows"]]
    changes = "; ".join(
        f"{row['flips']} of {row['n']} over {count} runs ({row['block']}, {row['arm']})"
        for row, count in zip(churn, runs, strict=True)
    )
    proofs = find_table(collected, "The same bits twice")["rows"]
    same = sum(row[3].startswith("identical") for row in proofs)
    proof = f" Executed again, {same} of {len(proofs)} runs gave the same bits." if proofs else ""
    return (
        f"{'. '.join(text)}. Test records that not all runs of an arm answer alike, a count that "
        f"grows with the number of runs: {changes}.{proof}"
    )


def answer_basis(collected: Collected) -> str:
    """All arms, and the test over the bases."""
    tests = find_table(collected, "All bases at once")["rows"]
    text = f" {tests[0][3]}" if tests else ""
    return f"{show_arms(collected, 'Test macro AUC by basis')}.{text}"


def answer_golden(collected: Collected) -> str:
    """Both models, and the basis alone where it was tested; nothing of arms of one run."""
    if has_single_runs(collected):
        return "Not answered here: the seed-free arm has one run, and nothing is compared with it."
    alone = show_equivalence(collected, "like for like, the basis alone")
    blocks = dict.fromkeys(row["block"] for row in find_table(collected, "Golden order")["values"])
    return ". ".join(
        f"{block}: {show_arms(collected, 'Golden order', block)}" for block in blocks
    ) + (f". {alone}" if alone else ".")


def answer_perclass(collected: Collected) -> str:
    """In how many classes the structured start has the smaller range, and what that is worth."""
    tables = [
        table for table in collected["tables"] if table["title"].startswith("Range over seeds")
    ]
    told = []
    for table in tables:
        name = table["title"].removeprefix("Range over seeds by class, ")
        if "sign test" in table["notes"][0]:
            told.append(f"{name}: {' '.join(table['notes'][:2])}")
        elif table["values"]:
            smaller = sum(value["ranges"][1] < value["ranges"][0] for value in table["values"])
            told.append(
                f"{name}: not shown to help. The structured start has the smaller range in "
                f"{smaller} of {len(table['values'])} classes. {test_signs(table['values'])} "
                f"{table['notes'][1]} The ranges do not compare the starts."
            )
    return " ".join(told)


def answer_order(collected: Collected) -> str:
    """The seed-free orders against the shuffle."""
    if tests := show_equivalence(collected, "an order without a seed, less"):
        return tests
    return " ".join(
        f"{row['order']} minus seeded: {row['minus seeded']} ({row['90 % interval']}), TOST p "
        f"{row['p']}, n = {row['n']}: {row['so']}."
        for row in list_orders(collected)
    )


def list_orders(collected: Collected) -> list[dict[str, str]]:
    """Return the rows about orders without a seed, of runs from before the protocol."""
    table = find_table(collected, "Does an order without a seed")
    rows = []
    for cells in table["rows"]:
        row = dict(zip(table["columns"], cells, strict=True))
        if row["so"].endswith(PAIRS_ALONE):  # a test that was not fixed beforehand
            row["so"] = NOT_EQUAL
        row["p"] = next((value for name, value in row.items() if name.startswith("TOST p")), "")
        rows.append(row)
    return rows


def answer_crossdataset(collected: Collected) -> str:
    """The AUC of both models on every set."""
    table = find_table(collected, "AFIB without training")
    told = "; ".join(f"{row[0]}: {row[4]} (n = {row[3]})" for row in table["rows"])
    people = find_people(table)
    few = ", ".join(f"{name} {count}" for name, count in people.items())
    return f"{told}. n counts seeds; people recorded: {few}, so nothing is said of others."


def find_people(table: Collected) -> dict[str, str]:
    """Return how many people each other set's windows are of, from the table's notes."""
    return dict(re.findall(r"(\w+): \d+ windows[^.]*? of (\d+) people", " ".join(table["notes"])))


ANSWERS: dict[str, Callable[[Collected], str]] = {
    "theory": answer_theory,
    "factorial": answer_factorial,
    "medmnist": answer_medmnist,
    "basis": answer_basis,
    "golden": answer_golden,
    "perclass": answer_perclass,
    "order": answer_order,
    "crossdataset": answer_crossdataset,
    **results_main_answers.ANSWERS,
}


def answer(collected: Collected) -> str:
    """Return a study's answer."""
    return ANSWERS[collected["study"]](collected)
