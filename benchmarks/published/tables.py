"""The paper's other tables: ablation, golden runs, images, folds, datasets, orders."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from benchmarks.published.evidence import (
    GOLDEN,
    KAIMING,
    Claim,
    Found,
    find_files,
    read_json,
    read_seeds,
    summarize,
)
from seedless.stats.compare import describe_arm
from seedless.stats.permutation import flip_signs
from seedless.stats.t_tests import paired_t_test, welch_t_test

ABLATION = "ecg/ablation/conformer_{}_s*_metrics.json"
FOLDS = "ecg/cv/cv_final_results.json"
GOLDEN_FOLDS = "ecg/cv/cv_conformer_gold_results.json"
# The paper's name of an order, and the file's.
ORDERS = {
    name: name
    for name in (
        *("seeded", "class_guaranteed", "golden", "sobol", "feature_space", "stratified"),
        *("class_diverse", "herding", "content_hash", "interleaved"),
    )
} | {"pairbalance": "grad_balance"}
IMAGES = ("bloodmnist", "dermamnist", "breastmnist", "retinamnist", "pathmnist")


def ablate(folder: Path, name: str, above: float | None = None) -> Found:
    """Mean and SD of five runs; the remark says which are other runs over again."""
    pattern = ABLATION.format(name)
    found = summarize(folder, pattern, above, n=False)
    remark = found.remark
    if name in ("mixed_nocw", "dct_cw"):
        both = [
            read_seeds(folder, ABLATION.format(x), "final_md5") for x in ("mixed_nocw", "dct_cw")
        ]
        same = sum(both[0][seed] == both[1][seed] for seed in both[0])
        remark = f"final_md5 of mixed_nocw and dct_cw agree for {same} of {len(both[0])} seeds: "
        remark += "one experiment under two names"
    if name == "kaiming":
        main = find_files(folder, KAIMING)
        same = sum(
            path.read_bytes() == main[seed].read_bytes()
            for seed, path in find_files(folder, pattern).items()
        )
        remark = f"{same} of 5 files are those of the main comparison, byte for byte"
    return Found(found.value, found.n, remark)


def read_golden(folder: Path, name: str) -> Found:
    """Macro AUC and three classes of one run without a seed."""
    run = read_json(folder, f"ecg/golden/{name}_golden_metrics.json")
    classes = [run["per_auc"][label] for label in ("TRIGU", "SVARR", "AFLT")]
    remark = ""
    if name.endswith("_dct"):
        remark = "the row is called mixed; the file that gives it is that of one basis, DCT"
    if name == "conformer_kaiming":
        other = read_json(folder, "ecg/golden/conformer_kaiming_sqrt_golden_metrics.json")
        same = run["init_md5"] == other["init_md5"]
        remark = f"with class weights ({'same' if same else 'other'} initial MD5): {other['auc']}"
    return Found([run["auc"], *classes], (1,), remark)


def compare_images(folder: Path, name: str) -> Found:
    """Means and SDs of DCT and Kaiming, their difference, and Welch's p."""
    runs = [
        read_seeds(folder, f"medmnist/{name}/{arm}/{name}_resnet18_*_s*_results.json", "best_auc")
        for arm in ("dct", "kaiming")
    ]
    arms = [describe_arm("arm", group.values()) for group in runs]
    test = welch_t_test(runs[0].values(), runs[1].values())
    numbers = [number for arm in arms for number in (arm.mean, arm.sd)]
    remark = ""
    if name == "pathmnist":
        files = find_files(folder, f"medmnist/{name}/dct/{name}_resnet18_*_s*_results.json")
        old = [seed for seed, path in files.items() if "batch_order" not in path.read_text()]
        rest = [value for seed, value in runs[0].items() if seed not in old]
        remark = f"{len(old)} DCT files are of an older form, mean "
        remark += f"{describe_arm('old', [runs[0][seed] for seed in old]).mean:.5f}; without them "
        remark += f"p = {welch_t_test(rest, runs[1].values()).p:.3f}"
    return Found([*numbers, test.difference, test.p], test.n, remark)


def golden_images(folder: Path, name: str) -> Found:
    """One run for each of five initializations."""
    places = {"dct": f"medmnist/{name}/dct", "kaiming": f"medmnist/{name}/kaiming"}
    values = [
        read_json(
            folder,
            f"{places.get(basis, 'basis_golden')}/{name}_resnet18_{basis}_golden_results.json",
        )["best_auc"]
        for basis in ("dct", "hadamard", "hartley", "sinusoidal", "kaiming")
    ]
    return Found(values, (1,) * 5)


def fold_scores(folder: Path, file: str, name: str | None = None) -> Found:
    """Three folds, their mean and their SD."""
    content = read_json(folder, file)
    folds = (content[name] if name else content)["folds"]
    arm = describe_arm("folds", folds)
    return Found([*folds, arm.mean, arm.sd], (arm.n,))


def trigeminy_folds(folder: Path) -> Found:
    """The mean of TRIGU over folds; its scores by fold were not published."""
    return Found([read_json(folder, GOLDEN_FOLDS)["per_class"]["TRIGU"], None], (3,))


def two_classes_by_fold(folder: Path) -> Found:
    """SARRH and PACE, conformer and baseline."""
    runs = read_json(folder, FOLDS)
    own, base = (runs[name]["per_class"] for name in ("conformer_comb", "baseline_kaim"))
    return Found([own["SARRH"], base["SARRH"], base["PACE"], own["PACE"]], (3, 3))


def golden_in_folds(folder: Path) -> Found:
    """The run without a seed beside the lowest and highest fold."""
    folds = read_json(folder, FOLDS)["conformer_comb"]["folds"]
    return Found([read_json(folder, GOLDEN)["auc"], min(folds), max(folds)], (1, 3))


def other_datasets(folder: Path) -> Found:
    """AFIB on AFDB, CPSC2018 and Chapman, baseline and conformer."""
    place = "ecg/crossdataset/crossdataset_"
    both = read_json(folder, f"{place}cpsc_chapman_results.json")
    value = []
    for name in ("Baseline", "Conformer"):
        first = read_json(folder, f"{place}results_{name.lower()}.json")["AFDB"]["af_auc"]
        rest = [both[data][f"{name}_6lead"]["af_auc"] for data in ("CPSC2018", "Chapman")]
        value.append([first, *rest])
    worse = [
        both[f"{data}_12lead"]["Conformer_12lead"]["af_auc"] for data in ("CPSC2018", "Chapman")
    ]
    return Found(value, (1, 1), f"not reported: the 12-lead conformer has {worse[0]}, {worse[1]}")


def order_score(folder: Path, name: str) -> Found:
    """The test AUC of one run; the remark says of which model."""
    run = read_json(folder, f"batch_ordering/bo_{name}_metrics.json")
    conformer = read_json(folder, GOLDEN)["params"]
    remark = f"{run['params']} parameters; the conformer that the table names has {conformer}"
    if run["best_ep"] == 0:
        remark += "; the model of epoch 0 was selected"
    return Found(run["auc"], (1,), remark)


def sex_difference(folder: Path) -> Found:
    """The stored p; the differences by seed can be tested, the test behind the p cannot."""
    stored = read_json(folder, "ecg/demographics/demographic_n20_final.json")
    gaps = stored["per_seed_diffs"]
    signs = flip_signs(gaps, [0.0] * len(gaps))
    test = paired_t_test(gaps, [0.0] * len(gaps))
    remark = f"over seeds: t p = {test.p:.4f}, sign flips p = {signs.p:.3f}"
    return Found(stored["p_value_twosided"], (len(gaps),), remark)


def nothing(folder: Path) -> Found:
    """No file was published for this claim."""
    return Found(None, ())


CLAIMS: dict[str, Claim] = {
    **{f"abl.{name}": partial(ablate, name=name) for name in ("mixed_nocw", "dct_cw", "kaiming")},
    "abl.mixed_cw": partial(ablate, name="ms"),
    "abl.kaiming_cw": partial(ablate, name="kaiming_cw", above=0.6),
    "golden.conf_mixed": partial(read_golden, name="conformer_dct"),
    "golden.conf_kaiming": partial(read_golden, name="conformer_kaiming"),
    "golden.base_mixed": partial(read_golden, name="baseline_dct"),
    "golden.base_kaiming": partial(read_golden, name="baseline_kaiming"),
    **{f"medmnist.{name}": partial(compare_images, name=name) for name in IMAGES},
    "medmnist.golden_derma": partial(golden_images, name="dermamnist"),
    "medmnist.golden_retina": partial(golden_images, name="retinamnist"),
    "cv.conformer_seeded": partial(fold_scores, file=FOLDS, name="conformer_comb"),
    "cv.conformer_golden": partial(fold_scores, file=GOLDEN_FOLDS),
    "cv.baseline_mixed": partial(fold_scores, file=FOLDS, name="baseline_dct"),
    "cv.baseline_kaiming": partial(fold_scores, file=FOLDS, name="baseline_kaim"),
    "cv.trigu": trigeminy_folds,
    "cv.sarrh_pace": two_classes_by_fold,
    "cv.golden_within": golden_in_folds,
    "xd.table": other_datasets,
    **{f"batch.{name}": partial(order_score, name=file) for name, file in ORDERS.items()},
    "demog.p": sex_difference,
    **dict.fromkeys(("abl.dct_only", "abl.alpha", "xd.afdb_rate", "batch.loss_ranked"), nothing),
}
