"""Tables of the published claims about starts, each with what was found of it."""

import math

from seedless.studies.engine.table import Table
from seedless.studies.shared import published_theory as theory
from seedless.studies.shared.basis_theory import DRAWS, FILTERS, RHOS, SIZE

BRANCH_STARTS = ("dct", "mixed", "canonical_kaiming")


def tabulate_claims() -> list[Table]:
    """Return a table for each published claim."""
    return [
        tabulate_information(),
        tabulate_moments(),
        tabulate_marchenko_pastur(),
        tabulate_coherence(),
        tabulate_growth(),
        tabulate_branch_gains(),
        tabulate_gelu(),
    ]


def tabulate_information() -> Table:
    """Return the information of the DCT and of Kaiming by correlation, and where they cross."""
    crossing = theory.find_crossing()
    rows, values = [], []
    for rho in (*RHOS[:2], crossing, *RHOS[2:]):
        dct, kaiming = theory.dct_information(rho), theory.kaiming_information(rho)
        rows.append((f"{rho:.2f}", f"{dct:.2f}", f"{kaiming:.2f}", f"{dct - kaiming:+.2f}"))
        values.append({"rho": rho, "dct": dct, "kaiming": kaiming})
    notes = (
        f"As published: rows of the DCT of norm 1, Kaiming's N(0, 2/N), median of {DRAWS} draws. "
        f"They cross at rho = {crossing:.2f}; published: about 0.3.",
        "Kaiming's lead at low rho is its gain: a squared norm of 2 against 1, twice the signal "
        "for the same noise. With rows of equal norm, above, there is none.",
    )
    title = f"Mutual information in nats as published, M = {FILTERS}, N = {SIZE}, 10 dB"
    return Table(title, ("rho", "dct", "Kaiming", "difference"), tuple(rows), notes, tuple(values))


def tabulate_moments() -> Table:
    """Return mean and variance of the share of energy that Kaiming's filters keep."""
    mean, variance = theory.measure_energy_moments()
    known = 2 * FILTERS / SIZE, 8 * FILTERS / SIZE**2
    rows = (
        ("mean", "2 K / N", f"{known[0]:.4f}", f"{mean:.4f}"),
        ("variance", "8 K / N^2", f"{known[1]:.4f}", f"{variance:.4f}"),
    )
    note = (
        f"K = {FILTERS}, N = {SIZE}; {theory.MOMENT_DRAWS} draws. The mean of these draws has a "
        f"standard error of {math.sqrt(known[1] / theory.MOMENT_DRAWS):.4f}."
    )
    values = ({"moments": [mean, variance], "published": list(known)},)
    columns = ("", "published", "its value", "found")
    return Table("Energy that Kaiming's filters keep", columns, rows, (note,), values)


def tabulate_marchenko_pastur() -> Table:
    """Return condition numbers of drawn M x N matrices, and their limit."""
    rows, values = [], []
    for aspect in theory.ASPECTS:
        found = [theory.measure_condition(aspect, size) for size in theory.ASPECT_SIZES]
        limit = theory.limit_condition(aspect)
        rows.append((f"{aspect:g}", *(f"{value:.2f}" for value in found), f"{limit:.2f}"))
        values.append({"aspect": aspect, "found": found, "limit": limit})
    columns = ("gamma = M/N", *(f"N {size}" for size in theory.ASPECT_SIZES), "limit")
    note = f"Median of {DRAWS} draws. At gamma = 1 the limit is infinite; see Condition number."
    title = "Condition number of M x N Gaussian matrices, and Marchenko and Pastur's limit"
    return Table(title, columns, tuple(rows), (note,), tuple(values))


def tabulate_coherence() -> Table:
    """Return the mutual coherence of each pair of bases."""
    rows, values = [], []
    for one, other in theory.list_pairs_of_bases():
        coherence, shared = theory.find_coherence(one, other)
        rows.append((f"{one}, {other}", f"{coherence:.3f}", str(shared)))
        values.append({"pair": [one, other], "coherence": coherence, "shared": shared})
    ones = sum(row[2] != "0" for row in rows)
    notes = (
        f"Published: below 1 wherever two bases differ. Found: 1 for {ones} of {len(rows)} pairs, "
        "since these bases have rows in common. Those of `mixed` (dct, hadamard, hartley) all do: "
        "the constant row, and others.",
        f"N = {SIZE}. The smallest possible value is 1/sqrt(N) = {1 / math.sqrt(SIZE):.3f}.",
    )
    columns = ("bases", "coherence", "rows in common")
    return Table("Mutual coherence of two bases", columns, tuple(rows), notes, tuple(values))


def tabulate_growth() -> Table:
    """Return (1 + alpha)^L and its approximation."""
    rows, values = [], []
    for scale in theory.SCALES:
        bound, near = (1 + scale) ** theory.DEPTH, math.exp(scale * theory.DEPTH)
        rows.append((f"{scale:g}", f"{bound:.3g}", f"{near:.3g}"))
        values.append({"scale": scale, "bound": bound, "approximation": near})
    notes = (
        "A bound on the norm after L residual blocks that do not lengthen their input; the "
        "approximation holds for small alpha alone.",
        "It leaves out that the conformer's blocks end in a LayerNorm, which sets the norm anew "
        "after every block: for this network it bounds nothing that occurs.",
    )
    columns = ("alpha", "(1 + alpha)^L", "exp(alpha L)")
    title = f"Growth over L = {theory.DEPTH} residual blocks"
    return Table(title, columns, tuple(rows), notes, tuple(values))


def tabulate_branch_gains() -> Table:
    """Return by how much a residual branch of the conformer can lengthen its input."""
    rows, values = [], []
    for start in BRANCH_STARTS:
        gains = theory.measure_branch_gains(start)
        product = math.prod(gains)
        rows.append((start, *(f"{gain:.2f}" for gain in gains), f"{product:.2f}"))
        values.append({"start": start, "gains": list(gains), "product": product})
    note = (
        "The bound above assumes that a branch does not lengthen its input. Weights have the "
        "standard deviation 1/sqrt(3 F), so orthonormal rows become rows of norm 0.58; a "
        "convolution adds up windows that overlap, so its gain may be larger. Without activations."
    )
    columns = ("start", "first layer", "second", "third", "product")
    title = "Largest gain of the conformer's bottlenecks at residual scale 1"
    return Table(title, columns, tuple(rows), (note,), tuple(values))


def tabulate_gelu() -> Table:
    """Return what a GELU keeps of the second moment of a normal input."""
    ratios = [(deviation, theory.gelu_ratio(deviation)) for deviation in theory.DEVIATIONS]
    rows = tuple((f"{deviation:.3g}", f"{ratio:.3f}") for deviation, ratio in ratios)
    values = tuple({"deviation": deviation, "ratio": ratio} for deviation, ratio in ratios)
    notes = (
        "Published: below 1. It is, from 1/4 for small inputs to 1/2 for large ones.",
        "It does not explain why 0.01 is better than 1/L = 0.03: a branch that shrinks its input "
        "allows a larger scale within the same bound, not a smaller one.",
    )
    columns = ("SD of x", "E[GELU(x)^2] / E[x^2]")
    return Table("What a GELU keeps of the second moment", columns, rows, notes, values)
