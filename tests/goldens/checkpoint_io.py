"""Reads and writes Hugging Face checkpoint folders with NumPy alone.

A safetensors file is: u64 little-endian header length, a JSON header
{name: {dtype, shape, data_offsets: [begin, end]}}, then the raw row-major tensors.
Only F32, F16 and BF16 are needed here; anything else is refused.
"""

import json
from pathlib import Path

import numpy as np

_ALIGNMENT = 8  # the header is padded with spaces so that the data starts on a multiple of 8
_BYTES_PER_VALUE = {"F32": 4, "F16": 2, "BF16": 2}


def to_bf16_bits(values):
    """float32 -> the 16 bits of the nearest bfloat16, ties to even. Finite input only."""
    bits = np.ascontiguousarray(values, dtype="<f4").view("<u4").astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")


def from_bf16_bits(bits):
    """The 16 bits of a bfloat16 -> float32, exact."""
    return (bits.astype("<u4") << 16).view("<f4")


def _encode(values, dtype):
    if dtype == "BF16":
        return to_bf16_bits(values).tobytes()
    return np.ascontiguousarray(values, dtype={"F32": "<f4", "F16": "<f2"}[dtype]).tobytes()


def _decode(raw, dtype, shape):
    if dtype == "BF16":
        values = from_bf16_bits(np.frombuffer(raw, "<u2"))
    else:
        values = np.frombuffer(raw, {"F32": "<f4", "F16": "<f2"}[dtype])
    return values.reshape(shape).astype(np.float64)


def read_safetensors(path):
    """One file -> {name: float64 array}."""
    blob = Path(path).read_bytes()
    header_len = int.from_bytes(blob[:8], "little")
    header = json.loads(blob[8 : 8 + header_len])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + header_len + offset for offset in entry["data_offsets"])
        tensors[name] = _decode(blob[begin:end], entry["dtype"], entry["shape"])
    return tensors


def read_checkpoint(folder):
    """A folder with model.safetensors, or with shards and an index -> {name: float64 array}."""
    folder = Path(folder)
    index = folder / "model.safetensors.index.json"
    if not index.exists():
        return read_safetensors(folder / "model.safetensors")
    tensors = {}
    for shard in sorted(set(json.loads(index.read_text())["weight_map"].values())):
        tensors.update(read_safetensors(folder / shard))
    return tensors


def write_safetensors(path, tensors):
    """{name: (dtype, array)} -> one file, wide dtypes first so that every tensor is aligned."""
    header, blobs, offset = {"__metadata__": {"format": "pt"}}, [], 0
    for name in sorted(tensors, key=lambda n: (-_BYTES_PER_VALUE[tensors[n][0]], n)):
        dtype, values = tensors[name]
        blobs.append(_encode(values, dtype))
        end = offset + len(blobs[-1])
        header[name] = {"dtype": dtype, "shape": list(values.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    Path(path).write_bytes(len(text).to_bytes(8, "little") + text + b"".join(blobs))


def write_checkpoint(folder, tensors, shards=1):
    """Writes {name: (dtype, array)} as model.safetensors, or as `shards` files with an index."""
    folder = Path(folder)
    if shards == 1:
        write_safetensors(folder / "model.safetensors", tensors)
        return
    weight_map, total_size = {}, 0
    for i in range(shards):
        file_name = f"model-{i + 1:05d}-of-{shards:05d}.safetensors"
        part = {name: tensors[name] for name in sorted(tensors)[i::shards]}
        write_safetensors(folder / file_name, part)
        weight_map.update(dict.fromkeys(part, file_name))
        total_size += sum(v.size * _BYTES_PER_VALUE[dtype] for dtype, v in part.values())
    index = {"metadata": {"total_size": total_size}, "weight_map": dict(sorted(weight_map.items()))}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=1) + "\n")
