"""MedMNIST v2 in the catalog: its sets, and the published file of each set and size.

The sets were published at 28 x 28, and later at 64, 128 and 224 pixels on a side as well.
"""

from seedless.data.catalog_entry import DatasetEntry, File
from seedless.data.class_names import FINDINGS, ORGANS

SMALLEST = 28
SIZES = (SMALLEST, 64, 128, 224)  # pixels on a side
_RECORD = "https://zenodo.org/records/10519652/files"

# Set -> pixels on a side -> MD5.
_MD5 = {
    "bloodmnist": {
        28: "7053d0359d879ad8a5505303e11de1dc",
        64: "2b94928a2ae4916078ca51e05b6b800b",
        128: "adace1e0ed228fccda1f39692059dd4c",
        224: "b718ff6835fcbdb22ba9eacccd7b2601",
    },
    "organcmnist": {
        28: "b9ceb9546e10131b32923c5bbeaea2b1",
        64: "3ce34a8724ea6f548e6db4744d03b6a9",
        128: "773c1f009daa3fe5d9a2a201b2a7ed94",
        224: "050f5e875dc056f6768abf94ec9995d1",
    },
    "dermamnist": {
        28: "0744692d530f8e62ec473284d019b0c7",
        64: "b70a2f5635c6199aeaa28c31d7202e1f",
        128: "2defd784463fa5243564e855ed717de1",
        224: "8974907d8e169bef5f5b96bc506ae45d",
    },
    "breastmnist": {
        28: "750601b1f35ba3300ea97c75c52ff8f6",
        64: "742edef2a1fd1524b2efff4bd7ba9364",
        128: "363e4b3f8d712e9b5de15470a2aaadf1",
        224: "b56378a6eefa9fed602bb16d192d4c8b",
    },
    "retinamnist": {
        28: "bd4c0672f1bba3e3a89f0e4e876791e4",
        64: "afda852cc34dcda56f86ad2b2457dbcc",
        128: "e48e916a24454daf90583d4e6efb1a18",
        224: "eae7e3b6f3fcbda4ae613ebdcbe35348",
    },
    "chestmnist": {
        28: "02c8a6516a18b556561a56cbdd36c4a8",
        64: "9de6cd0b934ebb5b7426cfba5efbae16",
        128: "db107e5590b27930b62dbaf558aebee3",
        224: "45bd33e6f06c3e8cdb481c74a89152aa",
    },
    "pathmnist": {
        28: "a8b06965200029087d5bd730944a56c1",
        64: "55aa9c1e0525abe5a6b9d8343a507616",
        128: "ac42d08fb904d92c244187169d1fd1d9",
        224: "2c51a510bcdc9cf8ddb2af93af1eadec",
    },
}


def name_file(name: str, size: int) -> str:
    """Return the name of the file of a set.

    >>> name_file("breastmnist", 28), name_file("breastmnist", 64)
    ('breastmnist.npz', 'breastmnist_64.npz')
    """
    return f"{name}.npz" if size == SMALLEST else f"{name}_{size}.npz"


def list_files(name: str) -> dict[int, File]:
    """Return the files of a set by pixels on a side."""
    return {
        size: File(
            path=name_file(name, size),
            url=f"{_RECORD}/{name_file(name, size)}?download=1",
            hash=f"md5:{_MD5[name][size]}",
        )
        for size in SIZES
    }


def _medmnist(
    name: str,
    size: int,
    channels: int,
    sizes: tuple[int, int, int],
    classes: str,
    *,
    task: str = "multi-class",
    licence: str = "CC BY 4.0",
    note: str = "",
    repeated: int | None = None,
) -> DatasetEntry:
    """Return the entry of a MedMNIST v2 set at 28 x 28; classes are separated by semicolons."""
    files = list_files(name)
    return DatasetEntry(
        name=name,
        title=f"MedMNIST v2: {name}, 28 x 28",
        kind="image",
        task=task,
        classes=tuple(text.strip() for text in classes.split(";")),
        sizes=dict(zip(("train", "val", "test"), sizes, strict=True)),
        repeated=repeated,
        shape=(channels, SMALLEST, SMALLEST),
        files=(files[SMALLEST],),
        larger={size: file for size, file in files.items() if size != SMALLEST},
        root=files[SMALLEST].path,
        size=size,
        licence=licence,
        citation="Yang et al., MedMNIST v2, Scientific Data 10:41 (2023)",
        homepage="https://medmnist.com/",
        note=note,
    )


MEDMNIST: dict[str, DatasetEntry] = {
    "bloodmnist": _medmnist(
        "bloodmnist",
        35_500_000,
        3,
        (11_959, 1_712, 3_421),
        "basophil; eosinophil; erythroblast; immature granulocytes; lymphocyte; monocyte; "
        "neutrophil; platelet",
    ),
    "organcmnist": _medmnist(
        "organcmnist",
        15_500_000,
        1,
        (12_975, 2_392, 8_216),
        ORGANS,
    ),
    "dermamnist": _medmnist(
        "dermamnist",
        19_700_000,
        3,
        (7_007, 1_003, 2_005),
        "actinic keratoses and intraepithelial carcinoma; basal cell carcinoma; "
        "benign keratosis-like lesions; dermatofibroma; melanoma; melanocytic nevi; "
        "vascular lesions",
        licence="CC BY-NC 4.0",
        note="not for commercial use",
    ),
    "breastmnist": _medmnist(
        "breastmnist",
        559_580,
        1,
        (546, 78, 156),
        "malignant; normal or benign",
        note="published as a binary task",
        repeated=1,  # one image of the training split is in the test split too
    ),
    "retinamnist": _medmnist(
        "retinamnist",
        3_300_000,
        3,
        (1_080, 120, 400),
        "grade 0; grade 1; grade 2; grade 3; grade 4",
        note="published as an ordinal task: grades of diabetic retinopathy",
    ),
    "chestmnist": _medmnist(
        "chestmnist",
        82_800_000,
        1,
        (78_468, 11_219, 22_433),
        FINDINGS,
        task="multi-label",
        note="a row of zeros is an answer: no finding",
    ),
    "pathmnist": _medmnist(
        "pathmnist",
        205_600_000,
        3,
        (89_996, 10_004, 7_180),
        "adipose; background; debris; lymphocytes; mucus; smooth muscle; normal colon mucosa; "
        "cancer-associated stroma; colorectal adenocarcinoma epithelium",
    ),
}
