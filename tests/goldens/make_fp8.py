"""Makes a block-scaled FP8 copy of a checkpoint folder of make_goldens.py, with its own golden logits.

Usage: make_fp8.py SOURCE OUT [--block ROWS COLUMNS | --whole] [--fnuz] [--ue8m0] [--fuse]
Every projection of attention and MLPs becomes F8_E4M3 (or F8_E4M3FNUZ) with one scale per block; blocks at the edges are
ragged. --whole takes one BF16 scale per matrix and adds scales of activations, as Mistral's files have them. --fuse stacks the experts of a layer first; --ue8m0 rounds scales up to powers of two and stores them as F8_E8M0.
There are two shards: the matrices in one file, their scales in the other. The fp64 reference computes the golden logits
from the dequantised weights.
"""
import argparse
import json
from pathlib import Path

import numpy as np

import reference
from reference_config import parse_config
from checkpoint_io import from_bf16_bits, read_checkpoint, to_bf16_bits
from relayout import fuse_experts

F8_MAX = {"F8_E4M3": 448.0, "F8_E4M3FNUZ": 240.0}
F8_NAMES = ("_proj.weight", "_proj_with_mqa.weight", ".indexer.wq_b.weight", ".indexer.wk.weight")
SIZES = {"F32": 4, "F8_E4M3": 1, "F8_E4M3FNUZ": 1, "F8_E8M0": 1, "BF16": 2}
WRAPPED = "language_model."  # the prefix of a text model in a wrapper


def f8_values(dtype):
    """[256] the number of each code; NaN where the code is none."""
    bias = 7 if dtype == "F8_E4M3" else 8
    codes = np.arange(256)
    exponent, mantissa = (codes >> 3) & 15, codes & 7
    magnitude = np.where(exponent == 0, mantissa * 2.0 ** (1 - bias - 3), (8 + mantissa) * 2.0 ** (exponent - bias - 3.0))
    values = np.where(codes >= 128, -magnitude, magnitude)
    nan = (codes & 127) == 127 if dtype == "F8_E4M3" else codes == 128
    return np.where(nan, np.nan, values)


def power_of_two(scale):
    return 2.0 ** np.ceil(np.log2(scale))


def nearest_f32(scale):
    return float(np.float32(scale))


def nearest_bf16(scale):
    return float(from_bf16_bits(to_bf16_bits(np.array([scale])))[0])


def quantise(weight, block, dtype, rounded):
    """float64 [N, K] -> (codes u8 [N, K], scales f64 [block rows, block columns], dequantised f64 [N, K])"""
    rows, columns = block or weight.shape
    values = f8_values(dtype)
    usable = np.flatnonzero(~np.isnan(values))
    order = usable[np.argsort(values[usable], kind="stable")]
    middles = (values[order][1:] + values[order][:-1]) / 2
    grid = (-(-weight.shape[0] // rows), -(-weight.shape[1] // columns))
    scales, codes = np.empty(grid), np.empty(weight.shape, np.uint8)
    meant = np.empty(weight.shape)
    for i in range(grid[0]):
        for j in range(grid[1]):
            part = (slice(i * rows, (i + 1) * rows), slice(j * columns, (j + 1) * columns))
            scale = max(np.abs(weight[part]).max(), 1e-4) / F8_MAX[dtype]
            scale = rounded(scale)
            codes[part] = order[np.searchsorted(middles, weight[part] / scale)]
            scales[i, j] = scale
            meant[part] = (values[codes[part]] * scale).astype(np.float32)
    return codes, scales, meant


def quantise_stack(stack, block, dtype, rounded):
    """float64 [E, N, K] -> the same three arrays as quantise, stacked"""
    return tuple(np.stack(part) for part in zip(*(quantise(w, block, dtype, rounded) for w in stack), strict=True))


def stored_scale(scale, e8m0, whole):
    """(dtype, array) of scales: of whole matrices [E, 1, 1], or a scalar"""
    if whole:
        return ("BF16", to_bf16_bits(scale).reshape(scale.shape if scale.ndim == 3 else ()))
    return ("F8_E8M0", (np.log2(scale) + 127).astype(np.uint8)) if e8m0 else ("F32", scale.astype("<f4"))


def unstack(name, stack):
    """A stack of experts -> {name: matrix} as the reference reads them"""
    layer, part = name.rsplit(".", 1)
    out = {}
    for e, matrix in enumerate(stack):
        if part == "down_proj":
            out[f"{layer}.{e}.down_proj.weight"] = matrix
        else:
            out[f"{layer}.{e}.gate_proj.weight"], out[f"{layer}.{e}.up_proj.weight"] = np.split(matrix, 2)
    return out


def write_file(path, tensors):
    """{name: (dtype, array of the stored bytes' type)}"""
    header, blobs, offset = {}, [], 0
    for name in sorted(tensors, key=lambda n: (-SIZES[tensors[n][0]], n)):
        dtype, values = tensors[name]
        blobs.append(values.tobytes())
        header[name] = {"dtype": dtype, "shape": list(values.shape), "data_offsets": [offset, offset + len(blobs[-1])]}
        offset += len(blobs[-1])
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(blobs))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--block", type=int, nargs=2, default=[128, 128])
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--fnuz", action="store_true")
    parser.add_argument("--ue8m0", action="store_true")
    parser.add_argument("--fuse", action="store_true")
    args = parser.parse_args()
    dtype = "F8_E4M3FNUZ" if args.fnuz else "F8_E4M3"
    raw = json.loads((args.source / "config.json").read_text())
    raw["quantization_config"] = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
                                  "weight_block_size": args.block}
    if args.whole:
        raw["quantization_config"] |= {"activation_scheme": "static", "weight_block_size": None}
    block = None if args.whole else args.block
    rounded = nearest_bf16 if args.whole else power_of_two if args.ue8m0 else nearest_f32
    text = raw.get("text_config", raw)
    tensors, matrices, scales = {}, {}, {}
    source = {name.removeprefix(WRAPPED): ("F32", values) for name, values in read_checkpoint(args.source).items()}
    if args.fuse:
        source = fuse_experts(source)
    for name, (_, weight) in source.items():
        if weight.ndim == 3:
            codes, scale, meant = quantise_stack(weight, block, dtype, rounded)
            tensors.update(unstack(name, meant))
            matrices[name] = (dtype, codes)
            scales[name + "_scale_inv"] = stored_scale(scale, args.ue8m0, args.whole)
            if args.whole:
                scales[name + "_activation_scale"] = ("BF16", to_bf16_bits(np.ones(len(scale))))
            continue
        if not name.endswith(F8_NAMES) or "eh_proj" in name or "weights_proj" in name:
            tensors[name] = weight
            matrices[name] = ("F32", weight.astype("<f4"))
            continue
        codes, scale, tensors[name] = quantise(weight, block, dtype, rounded)
        matrices[name] = (dtype, codes)
        scales[name + "_scale_inv"] = stored_scale(scale, args.ue8m0, args.whole)
        if args.whole:
            scales[name.removesuffix("weight") + "activation_scale"] = ("BF16", to_bf16_bits(np.ones(1)).reshape(()))
    if text is not raw:
        matrices = {name if name.startswith("vision") else WRAPPED + name: v for name, v in matrices.items()}
        scales = {WRAPPED + name: v for name, v in scales.items()}
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "config.json").write_text(json.dumps(raw, indent=2) + "\n")
    files = {"model-00001-of-00002.safetensors": matrices, "model-00002-of-00002.safetensors": scales}
    for file, content in files.items():
        write_file(args.out / file, content)
    index = {"metadata": {}, "weight_map": {name: file for file, content in files.items() for name in content}}
    (args.out / "model.safetensors.index.json").write_text(json.dumps(index, indent=1) + "\n")
    tokens = json.loads((args.source / "tokens.json").read_text())
    logits = reference.forward(np.array(tokens), tensors, parse_config(text))
    (args.out / "tokens.json").write_text(json.dumps(tokens) + "\n")
    np.save(args.out / "logits.npy", logits.astype(np.float32))
    print(f"{args.out.name}: {len(scales)} tensors of scales, blocks {block}, {dtype}")


if __name__ == "__main__":
    main()
