"""Canonical JSON, safetensors and npz files, written from docs/receipt.md and nothing else."""

import hashlib
import io
import json
import math
import struct
import warnings
import zipfile

import numpy as np

DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "u1"}
LONG_NAMES = {"F64": "float64", "F32": "float32", "F16": "float16", "I64": "int64", "U8": "uint8"}


def write_json(value):
    """Return canonical JSON: sorted keys, no white space, UTF-8."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


def hash_bytes(content):
    return "sha256:" + hashlib.sha256(content).hexdigest()


def hash_json(value):
    return hash_bytes(write_json(value))


def read_safetensors(content):
    """Return (metadata, name -> (dtype, shape, bytes)) of a safetensors file."""
    (size,) = struct.unpack("<Q", content[:8])
    head = json.loads(content[8 : 8 + size])
    body = content[8 + size :]
    metadata = head.pop("__metadata__", None)
    tensors = {}
    for name, entry in head.items():
        begin, end = entry["data_offsets"]
        tensors[name] = (entry["dtype"], entry["shape"], body[begin:end])
    return metadata, tensors


def write_safetensors(metadata, tensors):
    """Return the bytes of a safetensors file; the tensors lie one after the other."""
    head, body = {}, b""
    if metadata is not None:
        head["__metadata__"] = metadata
    for name, (dtype, shape, data) in tensors.items():
        head[name] = {
            "dtype": dtype,
            "shape": shape,
            "data_offsets": [len(body), len(body) + len(data)],
        }
        body += data
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + body


def hash_tensors(tensors, prefix=""):
    """Return the digest of named tensors, those whose names begin with ``prefix``, without it."""
    chosen = {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
    return (
        "sha256:"
        + hashlib.sha256(b"".join(_spell(n, chosen[n]) for n in sorted(chosen))).hexdigest()
    )


def hash_tensor(name, tensor):
    """Return the hex digest of one tensor under its name, as a line of a trail has it."""
    return hashlib.sha256(_spell(name, tensor)).hexdigest()


def _spell(name, tensor):
    dtype, shape, data = tensor
    head = {"dtype": LONG_NAMES[dtype], "name": name, "shape": shape}
    return write_json(head) + b"\n" + data


def read_npz(content):
    """Return the arrays of an npz file by name."""
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        return dict(file)


def write_npz(arrays, compress=False):
    """Return an npz file with fixed dates, as numpy writes it."""
    members = {f"{name}.npy": write_npy(array) for name, array in arrays.items()}
    return write_zip(members, zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED)


def write_npy(array):
    buffer = io.BytesIO()
    np.save(buffer, np.asanyarray(array), allow_pickle=True)  # an attacker pickles what they like
    return buffer.getvalue()


def write_npy_header(descr, shape, fortran=False):
    """Return the head of an npy file that claims any type and shape."""
    text = f"{{'descr': {descr!r}, 'fortran_order': {fortran}, 'shape': {shape!r}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode("latin1")


def write_zip(members, method=zipfile.ZIP_STORED):
    """Return a zip file; ``members``: bytes by name, or (ZipInfo, bytes) pairs."""
    pairs = members.items() if isinstance(members, dict) else members
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", method) as archive:
        warnings.simplefilter("ignore")  # about a name twice, which is the attack
        for name, content in pairs:
            info = name if isinstance(name, zipfile.ZipInfo) else make_info(name)
            archive.writestr(info, content, method)
    return buffer.getvalue()


def make_info(name, mode=0o100644):
    """Return a zip entry with the first date there is and a Unix mode."""
    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    info.create_system = 3
    info.external_attr = mode << 16
    return info


def read_zip(content):
    """Return the members of a zip file by name, in their order."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def hash_predictions(arrays):
    """Return the digest of a predictions file's arrays, as the receipt has it."""
    texts = {n: a.tolist() for n, a in arrays.items() if a.dtype.kind == "U"}
    short = {np.dtype(long): code for code, long in LONG_NAMES.items()}
    numbers = {
        n: (short.get(a.dtype, "U8"), list(a.shape), np.ascontiguousarray(a).tobytes())
        for n, a in arrays.items()
        if n not in texts
    }
    return hash_json({"numbers": hash_tensors(numbers), "texts": hash_json(texts)})


def list_leaves(value, path=()):
    """Yield (path, leaf) of every leaf of plain values; an empty container is one."""
    items = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    if not items:
        yield path, value
    for key, item in items:
        yield from list_leaves(item, (*path, key))


def look_up(value, path):
    for key in path:
        value = value[key]
    return value


def set_at(value, path, new):
    """Return plain values with the one at ``path`` replaced; the originals stay as they are."""
    if not path:
        return new
    changed = json.loads(json.dumps(value))
    look_up(changed, path[:-1])[path[-1]] = new
    return changed


def drop_at(value, path):
    """Return plain values without the one at ``path``."""
    changed = json.loads(json.dumps(value))
    del look_up(changed, path[:-1])[path[-1]]
    return changed


def alter(leaf):
    """Return another value of the same type."""
    if isinstance(leaf, bool):
        return not leaf
    if isinstance(leaf, int):
        return leaf + 1
    if isinstance(leaf, float):
        return leaf * 1.5 if leaf and math.isfinite(leaf) else 0.5
    if isinstance(leaf, str):
        middle = len(leaf) // 2
        other = "1" if leaf[middle : middle + 1] == "0" else "0"
        return leaf[:middle] + other + leaf[middle + 1 :]
    return "something" if leaf is None else ["something"]
