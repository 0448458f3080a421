"""Makes a small GGUF file, with golden logits.

Usage: make_gguf.py NAME OUT, NAME one of gguf_v2 (attn_kv_b, types of 32 values, without the keys that files of 2024
lack), gguf_v3 (attn_k_b and attn_v_b, types of 256 values, in parts). Random weights from a fixed seed. Needs numpy and
`gguf` 0.19.0, which quantises and dequantises them and writes the file; the fp64 reference computes the golden logits
from the dequantised values.
"""
import argparse
import json
import sys
from pathlib import Path

import numpy as np

from fixtures import _V2, _V3, _experts, _shape, _yarn, make_tensors
from make_goldens import choose_tokens
from reference_config import parse_config

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools/gguf"))
import make_model  # noqa: E402

FILES = {
    "gguf_v2": ({**_V2, **_shape(191, 64, 96, 3, 3, None, 32, 32, 32, 32), **_experts(8, 32, 3, 1, 1.0, 1, 1),
                 "topk_method": "greedy", "rope_theta": 10000, "rope_scaling": {"type": "yarn", **_yarn(40, 0.707)}},
                ["--types", "Q8_0,Q4_0,Q4_1,Q5_0,Q5_1,IQ4_NL,MXFP4", "--kv-b", "kv_b", "--old"]),
    "gguf_v3": ({**_V3, **_shape(191, 256, 256, 2, 2, 256, 256, 32, 32, 256), **_experts(8, 32, 3, 1, 1.7, 4, 2),
                 "rope_theta": 10000, "rope_scaling": {"type": "yarn", **_yarn(40, 1.0)}},
                ["--types", "Q4_K,Q6_K,Q5_K,Q2_K,Q3_K,IQ4_XS", "--parts", "12"]),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=FILES)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    config, words = FILES[args.name]
    rng = np.random.default_rng(505)
    tensors = {name: np.asarray(values, np.float32) for name, (_, values) in make_tensors(config, rng, "F32").items()}
    args.out.mkdir(parents=True, exist_ok=True)
    maker = make_model.Maker(config, tensors, make_model.options().parse_args([*words, str(args.out / "model.gguf")]))
    maker.write()
    meant = {name: np.asarray(values, np.float64) for name, values in maker.twin.items()}
    config = {**config, "num_nextn_predict_layers": 0}
    tokens, logits, _ = choose_tokens(40, meant, parse_config(config), rng)
    (args.out / "tokens.json").write_text(json.dumps([int(t) for t in tokens]) + "\n")
    np.save(args.out / "logits.npy", logits.astype(np.float32))
    print(f"{args.out.name}: {len(maker.twin)} tensors")


if __name__ == "__main__":
    main()
