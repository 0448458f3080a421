"""Makes a small checkpoint with integer weights in one of the layouts that are read, with golden logits.

Usage: make_int.py LAYOUT OUT, LAYOUT one of int8, pack4, pack4_zeros, pack8, awq, gptq. Random weights from a fixed seed,
quantised to the nearest code here and packed as docs/formats/weights.md draws it. The fp64 reference
computes the golden logits from the stored codes, zeros and scales.
"""
import argparse
import json
from pathlib import Path

import numpy as np

from checkpoint_io import from_bf16_bits, to_bf16_bits
from fixtures import _V3, _experts, _shape, _yarn, make_tensors
from make_goldens import choose_tokens
from reference_config import parse_config

CONFIG = {**_V3, **_shape(191, 64, 96, 3, 3, 48, 32, 16, 16, 32), **_experts(8, 32, 3, 1, 1.7, 4, 2),
          "rope_theta": 10000, "rope_scaling": {"type": "yarn", **_yarn(40, 1.0)}, "torch_dtype": "bfloat16"}
PROJECTIONS = ("_proj.weight", "_proj_with_mqa.weight")
GROUP = 16
AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]
SIZES = {"BF16": 2, "F16": 2, "F32": 4, "I8": 1, "I32": 4, "I64": 8}


def bf16(values):
    bits = to_bf16_bits(values.astype(np.float32))
    return ("BF16", bits), from_bf16_bits(bits).astype(np.float64).reshape(values.shape)


def f16(values):
    stored = values.astype("<f2")
    return ("F16", stored), stored.astype(np.float64)


def pack(codes, bits, order=None):
    """u8 [..., n] -> i32 [..., n·bits/32], the first of each word in its low bits"""
    each = 32 // bits
    words = codes.reshape(*codes.shape[:-1], -1, each).astype(np.uint64)
    if order is not None:
        words = words[..., order]
    return (words << (np.arange(each, dtype=np.uint64) * np.uint64(bits))).sum(-1).astype("<u4").view("<i4")


def groups_of(weight, group):
    return weight.reshape(weight.shape[0], -1, group)


def symmetric(weight, group, bits):
    """-> (scale as wanted, codes q of a given scale)"""
    parts = groups_of(weight, group)
    scale = np.abs(parts).max(-1) / (2 ** (bits - 1) - 0.5)
    return scale, lambda s: np.clip(np.rint(parts / s[..., None]), -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def meaning(codes, zero, scale, shape):
    return ((codes - zero) * scale[..., None]).reshape(shape)


def store_int8(name, weight):
    scale, codes_of = symmetric(weight, weight.shape[1], 8)
    stored, scale = bf16(scale)
    codes = codes_of(scale)
    return {name: ("I8", codes.reshape(weight.shape).astype(np.int8)), name + "_scale": stored}, meaning(
        codes, 0, scale, weight.shape)


def store_pack(bits):
    def store(name, weight):
        scale, codes_of = symmetric(weight, GROUP, bits)
        stored, scale = bf16(scale)
        codes = codes_of(scale)
        words = pack((codes + 2 ** (bits - 1)).reshape(weight.shape), bits)
        return {name + "_packed": ("I32", words), name + "_scale": stored,
                name + "_shape": ("I64", np.array(weight.shape, "<i8"))}, meaning(codes, 0, scale, weight.shape)
    return store


def asymmetric(weight, least_zero):
    """-> (scale, zero of least_zero … least_zero + 15, codes of a given scale) of each group"""
    parts = groups_of(weight, GROUP)
    low, high = np.minimum(parts.min(-1), 0), np.maximum(parts.max(-1), 0)
    scale = (high - low) / 15

    def codes_of(s):
        zero = np.clip(np.rint(-low / s), least_zero, least_zero + 15)
        return zero, np.clip(np.rint(parts / s[..., None]) + zero[..., None], 0, 15)
    return scale, codes_of


def store_pack_zeros(name, weight):
    scale, codes_of = asymmetric(weight, 0)
    stored, scale = bf16(scale)
    zero, codes = codes_of(scale)
    return {name + "_packed": ("I32", pack(codes.reshape(weight.shape), 4)), name + "_scale": stored,
            name + "_zero_point": ("I32", np.ascontiguousarray(pack(zero.T, 4).T))}, meaning(
                codes, zero[..., None], scale, weight.shape)


def store_awq(name, weight):
    module = name.removesuffix(".weight")
    scale, codes_of = asymmetric(weight, 0)
    stored, scale = f16(scale.T)
    zero, codes = codes_of(scale.T)
    return {module + ".qweight": ("I32", pack(codes.reshape(weight.shape).T, 4, AWQ_ORDER)),
            module + ".qzeros": ("I32", pack(zero.T, 4, AWQ_ORDER)), module + ".scales": stored}, meaning(
                codes, zero[..., None], scale.T, weight.shape)


def store_gptq(name, weight):
    module = name.removesuffix(".weight")
    scale, codes_of = asymmetric(weight, 1)
    stored, scale = f16(scale.T)
    zero, codes = codes_of(scale.T)
    return {module + ".qweight": ("I32", np.ascontiguousarray(pack(codes.reshape(weight.shape), 4).T)),
            module + ".qzeros": ("I32", pack(zero.T - 1, 4)), module + ".scales": stored,
            module + ".g_idx": ("I32", (np.arange(weight.shape[1]) // GROUP).astype("<i4"))}, meaning(
                codes, zero[..., None], scale.T, weight.shape)


def compressed(form, bits, strategy, symmetric_codes=True):
    weights = {"num_bits": bits, "type": "int", "strategy": strategy, "symmetric": symmetric_codes, "dynamic": False,
               "group_size": GROUP if strategy == "group" else None}
    return {"quant_method": "compressed-tensors", "format": form, "quantization_status": "compressed",
            "ignore": ["lm_head"], "kv_cache_scheme": None,
            "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights, "input_activations": None}}}


LAYOUTS = {
    "int8": (store_int8, compressed("int-quantized", 8, "channel")),
    "pack4": (store_pack(4), compressed("pack-quantized", 4, "group")),
    "pack4_zeros": (store_pack_zeros, compressed("pack-quantized", 4, "group", False)),
    "pack8": (store_pack(8), compressed("pack-quantized", 8, "group")),
    "awq": (store_awq, {"quant_method": "awq", "bits": 4, "group_size": GROUP, "zero_point": True, "version": "gemm"}),
    "gptq": (store_gptq, {"quant_method": "gptq", "bits": 4, "group_size": GROUP, "desc_act": False, "sym": False,
                          "checkpoint_format": "gptq"}),
}


def write_file(path, tensors):
    """{name: (dtype, array of the stored bytes' type)}"""
    header, blobs, offset = {"__metadata__": {"format": "pt"}}, [], 0
    for name in sorted(tensors, key=lambda n: (-SIZES[tensors[n][0]], n)):
        dtype, values = tensors[name]
        blobs.append(np.ascontiguousarray(values).tobytes())
        header[name] = {"dtype": dtype, "shape": list(values.shape), "data_offsets": [offset, offset + len(blobs[-1])]}
        offset += len(blobs[-1])
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(blobs))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("layout", choices=LAYOUTS)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    store, quant = LAYOUTS[args.layout]
    rng = np.random.default_rng(404)
    stored, meant = {}, {}
    for name, (dtype, values) in make_tensors(CONFIG, rng, "BF16").items():
        values = np.asarray(values, np.float64)
        if name.endswith(PROJECTIONS):
            tensors, meant[name] = store(name, values)
            stored.update(tensors)
        elif dtype == "BF16":
            stored[name], meant[name] = bf16(values)
        else:
            stored[name], meant[name] = (dtype, values.astype("<f4")), values.astype(np.float32).astype(np.float64)
    raw = {**CONFIG, "quantization_config": quant}
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "config.json").write_text(json.dumps(raw, indent=2) + "\n")
    write_file(args.out / "model.safetensors", stored)
    tokens, logits, _ = choose_tokens(40, meant, parse_config(raw), rng)
    (args.out / "tokens.json").write_text(json.dumps([int(t) for t in tokens]) + "\n")
    np.save(args.out / "logits.npy", logits.astype(np.float32))
    print(f"{args.out.name}: {sum('scale' in name for name in stored)} matrices as {args.layout}")


if __name__ == "__main__":
    main()
