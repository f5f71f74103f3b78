"""The published files of MedMNIST v2: one for each set and size, and the MD5 of each.

The sets were published at 28 x 28, and later at 64, 128 and 224 pixels on a side as well.
"""

from seedless.data.catalog_entry import File

SMALLEST = 28
SIZES = (SMALLEST, 64, 128, 224)  # pixels on a side
_RECORD = "https://zenodo.org/records/10519652/files"

# Set -> pixels on a side -> MD5. Those of the smallest size are in the catalog.
LARGER_MD5 = {
    "bloodmnist": {
        64: "2b94928a2ae4916078ca51e05b6b800b",
        128: "adace1e0ed228fccda1f39692059dd4c",
        224: "b718ff6835fcbdb22ba9eacccd7b2601",
    },
    "organcmnist": {
        64: "3ce34a8724ea6f548e6db4744d03b6a9",
        128: "773c1f009daa3fe5d9a2a201b2a7ed94",
        224: "050f5e875dc056f6768abf94ec9995d1",
    },
    "dermamnist": {
        64: "b70a2f5635c6199aeaa28c31d7202e1f",
        128: "2defd784463fa5243564e855ed717de1",
        224: "8974907d8e169bef5f5b96bc506ae45d",
    },
    "breastmnist": {
        64: "742edef2a1fd1524b2efff4bd7ba9364",
        128: "363e4b3f8d712e9b5de15470a2aaadf1",
        224: "b56378a6eefa9fed602bb16d192d4c8b",
    },
    "retinamnist": {
        64: "afda852cc34dcda56f86ad2b2457dbcc",
        128: "e48e916a24454daf90583d4e6efb1a18",
        224: "eae7e3b6f3fcbda4ae613ebdcbe35348",
    },
    "chestmnist": {
        64: "9de6cd0b934ebb5b7426cfba5efbae16",
        128: "db107e5590b27930b62dbaf558aebee3",
        224: "45bd33e6f06c3e8cdb481c74a89152aa",
    },
    "pathmnist": {
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


def list_files(name: str, md5: str) -> dict[int, File]:
    """Return the files of a set by pixels on a side; ``md5``: of the smallest one."""
    sums = {SMALLEST: md5, **LARGER_MD5[name]}
    return {
        size: File(
            path=name_file(name, size),
            url=f"{_RECORD}/{name_file(name, size)}?download=1",
            hash=f"md5:{sums[size]}",
        )
        for size in SIZES
    }
