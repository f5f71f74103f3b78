"""The catalog of datasets: where each is published, how it is checked, and what it holds."""

from typing import Any

from seedless.core.registry import choose
from seedless.data.catalog_entry import DatasetEntry, File, as_dict, resize_entry
from seedless.data.class_names import CIFAR_100, RHYTHMS
from seedless.data.leads import TWELVE
from seedless.data.medmnist_catalog import MEDMNIST

__all__ = ["CATALOG", "SUMS", "DatasetEntry", "File", "as_dict", "find_entry"]

SUMS = "SHA256SUMS.txt"  # PhysioNet's list of a project's files, in the project's folder


def find_entry(name: str, size: int | None = None) -> DatasetEntry:
    """Return the catalog's entry of a dataset; an unknown name is an error.

    ``size``: pixels on a side, of images that are published in several sizes.
    """
    entry = choose("dataset", name, CATALOG)
    return entry if size is None else resize_entry(entry, size)


def _physionet(name: str, *, project: str, size: int, listed: str, **facts: Any) -> DatasetEntry:
    """Return the entry of a PhysioNet project, "slug/version"."""
    listing = File(
        path=SUMS,
        url=f"https://physionet.org/files/{project}/{SUMS}",
        check="fetched over https; every other file is checked against the SHA-256 in it",
    )
    homepage = f"https://physionet.org/content/{project}/"
    return DatasetEntry(
        name=name, files=(listing,), listed=listed, size=size, homepage=homepage, **facts
    )


_ARCHIVE_CHECK = "by the CRC-32 of every member, and by the number of records unpacked"

CATALOG: dict[str, DatasetEntry] = {
    "simulated": DatasetEntry(
        name="simulated",
        title="Simulated 12-lead ECG",
        kind="ecg",
        task="multi-label",
        classes=RHYTHMS,
        repeated=0,
        fs=100.0,
        leads=TWELVE,
        licence="none needed",
        note="computed, any number of records; the default where no data is named",
    ),
    "simulated-images": DatasetEntry(
        name="simulated-images",
        title="Simulated images",
        kind="image",
        task="multi-class",
        repeated=0,
        licence="none needed",
        note="computed: 28x28 or 32x32, 1 or 3 channels, multi-class or multi-label",
    ),
    "ptb-xl": _physionet(
        "ptb-xl",
        title="PTB-XL 1.0.3",
        project="ptb-xl/1.0.3",
        kind="ecg",
        task="multi-label",
        classes=RHYTHMS,
        sizes={"train": 17_418, "val": 2_183, "test": 2_198},
        fs=100.0,
        leads=TWELVE,
        holds=("*_lr.dat", 21_799),
        listed=r"(ptbxl_database|scp_statements)\.csv|LICENSE\.txt|RECORDS|records100/.+",
        extras={"500": r"records500/.+"},
        size=560_000_000,
        licence="CC BY 4.0",
        citation="Wagner et al., PTB-XL, Scientific Data 7:154 (2020)",
        note="rhythm classes; the diagnostic superclasses too; extra 500: 500 Hz, 2.6 GB more",
    ),
    "afdb": _physionet(
        "afdb",
        title="MIT-BIH Atrial Fibrillation Database 1.0.0",
        project="afdb/1.0.0",
        kind="ecg",
        task="multi-label",
        classes=("AFIB", "AFLT"),
        sizes={"test": 84_334},
        repeated=0,  # all records are in one split
        fs=250.0,
        lead_map={"ECG1": "I", "ECG2": "II"},
        holds=("*.atr", 25),
        listed=r"\d{5}\.(hea|dat|atr)|LICENSE\.txt|RECORDS",
        size=640_000_000,
        licence="ODC-By 1.0",
        citation="Moody and Mark, Computers in Cardiology 10:227-230 (1983)",
        note="25 records, read as 10 s windows; 00735 and 03665 have annotations only",
    ),
    "nstdb": _physionet(
        "nstdb",
        title="MIT-BIH Noise Stress Test Database 1.0.0",
        project="nstdb/1.0.0",
        kind="noise",
        task=None,
        fs=360.0,
        holds=("*.dat", 3),
        listed=r"(bw|em|ma)\.(hea|dat)|LICENSE\.txt",
        size=5_900_000,
        licence="ODC-By 1.0",
        citation="Moody, Muldrow and Mark, Computers in Cardiology 11:381-384 (1984)",
        note="three half hours of noise: baseline wander, electrode motion, muscle",
    ),
    "cpsc2018": _physionet(
        "cpsc2018",
        title="China Physiological Signal Challenge 2018, PhysioNet's form",
        project="challenge-2020/1.0.2",
        kind="ecg",
        task="multi-label",
        classes=RHYTHMS,
        sizes={"test": 6_877},
        repeated=0,  # all records are in one split
        fs=500.0,
        leads=TWELVE,
        holds=("A[0-9][0-9][0-9][0-9].mat", 6_877),
        listed=r"training/cpsc_2018/g\d/A\d{4}\.(hea|mat)|LICENSE\.txt",
        root="training/cpsc_2018",
        size=1_330_000_000,
        licence="CC BY 4.0",
        citation="Liu et al., J. Medical Imaging and Health Informatics 8:1368-1373 (2018)",
        note="WFDB records with SNOMED codes; the A records, not CPSC-Extra's Q records",
    ),
    "cpsc2018-original": DatasetEntry(
        name="cpsc2018-original",
        title="China Physiological Signal Challenge 2018, as first published",
        kind="ecg",
        task="multi-label",
        classes=("NORM", "AFIB", "1AVB", "LBBB", "RBBB", "PAC", "PVC", "STD", "STE"),
        sizes={"test": 6_877},
        repeated=0,  # all records are in one split
        fs=500.0,
        files=(
            *(
                File(
                    path=f"TrainingSet{part}.zip",
                    url=f"http://hhbucket.oss-cn-hongkong.aliyuncs.com/TrainingSet{part}.zip",
                    check=_ARCHIVE_CHECK,
                    unpack=f"TrainingSet{part}",
                )
                for part in (1, 2, 3)
            ),
            File(
                path="REFERENCE.csv",
                url="http://2018.icbeb.org/file/REFERENCE.csv",
                check="by its reader: every record has its labels",
            ),
        ),
        holds=("A[0-9][0-9][0-9][0-9].mat", 6_877),
        size=1_400_000_000,
        licence="not stated by the publisher; PhysioNet's copy is CC BY 4.0",
        citation="Liu et al., J. Medical Imaging and Health Informatics 8:1368-1373 (2018)",
        homepage="http://2018.icbeb.org/Challenge.html",
        note="MATLAB structs; plain http and no published hash: prefer cpsc2018",
    ),
    "chapman": _physionet(
        "chapman",
        title="Chapman-Shaoxing, in PhysioNet's ecg-arrhythmia 1.0.0",
        project="ecg-arrhythmia/1.0.0",
        kind="ecg",
        task="multi-label",
        classes=RHYTHMS,
        sizes={"test": 10_247},
        repeated=0,  # all records are in one split
        fs=500.0,
        leads=TWELVE,
        listed=r"WFDBRecords/\d\d/\d{3}/JS(0\d{4}|10[0-5]\d\d|106[0-3]\d|1064[0-6])\.(hea|mat)"
        r"|ConditionNames_SNOMED-CT\.csv|LICENSE\.txt|RECORDS",
        size=1_240_000_000,
        licence="CC BY 4.0",
        citation="Zheng et al., Scientific Data 7:48 (2020)",
        note="JS00001 to JS10646: 10,646 as first published, 10,247 of them there; the rest "
        "of ecg-arrhythmia is Ningbo's",
    ),
    **MEDMNIST,
    "cifar-100": DatasetEntry(
        name="cifar-100",
        title="CIFAR-100",
        kind="image",
        task="multi-class",
        classes=tuple(CIFAR_100.split()),
        sizes={"train": 45_000, "val": 5_000, "test": 10_000},
        shape=(3, 32, 32),
        files=(
            File(
                path="cifar-100-python.tar.gz",
                url="https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
                hash="md5:eb9058c3a382ffc7106e4002c42a8d85",
                unpack="cifar-100-python",
                contents={
                    "train": "md5:16019d7e3df5f24257cddd939b257f8d",
                    "test": "md5:f0ef6b0ae62326f3e7ffdfab6717acfc",
                    "meta": "md5:7973b15100ade9c7d40fb424638fde48",
                },
            ),
        ),
        root="cifar-100-python",
        size=169_001_437,
        licence="not stated by the publisher, who asks to be cited",
        citation="Krizhevsky, Learning Multiple Layers of Features from Tiny Images (2009)",
        homepage="https://www.cs.toronto.edu/~kriz/cifar.html",
        note="validation: 5,000 training images picked by content key",
    ),
}
