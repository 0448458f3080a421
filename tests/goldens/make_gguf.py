"""Makes a small GGUF file, with golden logits.

Usage: make_gguf.py NAME OUT, NAME one of gguf_v2 (attn_kv_b, types of 32 values and plain numbers, also gates and up
projections of one of each, without the keys that files of 2024 lack), gguf_v3 (attn_k_b and attn_v_b, types of 256
values, in parts), gguf_k2 (384 experts in Q4_0, the other matrices in Q8_0, without the betas of YaRN), gguf_v32 (an
indexer and a drafting layer), gguf_glm52 (layers that share keys, whose indexers are in the file all the same), gguf_mistral4, gguf_minicpm3 (factors of
LongRoPE as tensors, constants of the published model). Random weights from a
fixed seed. Needs numpy and `gguf` 0.19.0, which quantises and dequantises them and writes the file; the fp64 reference
computes the golden logits from the dequantised values.
"""
import argparse
import json
import sys
from pathlib import Path

import numpy as np

from fixtures import _GLM_DSA, _MINICPM3, _MISTRAL4, _V2, _V3, _V32, _experts, _shape, _yarn, make_tensors
from make_goldens import DRAFT_ROWS, choose_tokens, draft_logits, greedy_drafts
from reference_config import parse_config

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools/gguf"))
import make_model  # noqa: E402

_INDEXER = {"index_n_heads": 8, "index_head_dim": 40, "index_topk": 4}
FILES = {
    "gguf_v2": ({**_V2, **_shape(191, 64, 96, 3, 3, None, 32, 32, 32, 32), **_experts(8, 32, 3, 1, 1.0, 1, 1),
                 "topk_method": "greedy", "rope_theta": 10000, "rope_scaling": {"type": "yarn", **_yarn(40, 0.707)}},
                ["--types", "Q8_0,BF16,Q4_0,Q4_1,F16,F32,Q5_1,IQ4_NL,MXFP4,Q5_0,Q4_0", "--kv-b", "kv_b", "--old"]),
    "gguf_k2": ({**_V3, **_shape(163, 32, 64, 2, 2, 32, 32, 32, 32, 32), **_experts(384, 32, 8, 1, 2.827),
                 "rope_theta": 50000, "max_position_embeddings": 131072,
                 "rope_scaling": {"type": "yarn", **_yarn(32, 1.0, beta_fast=1, beta_slow=1)}},
                ["--types", "Q8_0", "--experts", "Q4_0", "--old", "--pre", "kimi-k2"]),
    "gguf_v3": ({**_V3, **_shape(191, 256, 256, 2, 2, 256, 256, 32, 32, 256), **_experts(8, 32, 3, 1, 1.7, 4, 2),
                 "rope_theta": 10000, "rope_scaling": {"type": "yarn", **_yarn(40, 1.0)}},
                ["--types", "Q4_K,Q6_K,Q5_K,Q2_K,Q3_K,IQ4_XS", "--parts", "12"]),
    "gguf_v32": ({**_V32, **_shape(199, 64, 96, 2, 3, 64, 64, 32, 32, 32), **_experts(8, 32, 3, 1, 1.7, 4, 2),
                  **_INDEXER, "num_nextn_predict_layers": 1},
                 ["--types", "Q8_0,Q5_0,Q4_1", "--drafts"]),
    "gguf_glm52": ({**_GLM_DSA, **_shape(199, 64, 96, 3, 3, 64, 64, 32, 32, 64), **_experts(8, 32, 3, 1, 1.8), **_INDEXER,
                    "num_nextn_predict_layers": 1, "index_topk_freq": 2, "index_skip_topk_offset": 1, "indexer_types": ["full", "shared", "full"],
                    "mlp_layer_types": ["dense", "sparse", "sparse"]},
                   ["--types", "Q8_0,Q5_1,Q4_0", "--drafts"]),
    "gguf_mistral4": ({**_MISTRAL4, **_shape(227, 64, 96, 3, 3, 64, 32, 32, 32, 32), **_experts(8, 32, 3, 1, 1.0)},
                      ["--types", "Q8_0,Q5_0,Q4_0"]),
    "gguf_minicpm3": ({**_MINICPM3, **_shape(227, 96, 96, 3, 3, 64, 32, 32, 16, 32), "scale_emb": 12, "scale_depth": 1.4,
                       "dim_model_base": 256, "rope_scaling": {
                           "type": "longrope", "long_factor": [1.0, 1.25, 2.0, 3.5, 5.0, 9.0, 13.0, 16.0],
                           "short_factor": [1.0, 1.0625, 1.125, 1.25, 1.5, 2.0, 3.0, 4.0],
                           "original_max_position_embeddings": 4096}},
                      ["--types", "Q8_0,Q4_0", "--kv-b", "kv_b"]),
}
SEEDS = {"gguf_v32": 505, "gguf_glm52": 505}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=FILES)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int)
    args = parser.parse_args()
    config, words = FILES[args.name]
    rng = np.random.default_rng(args.seed or SEEDS.get(args.name, 505))
    tensors = {name: np.asarray(values, np.float32) for name, (_, values) in make_tensors(config, rng, "F32").items()}
    args.out.mkdir(parents=True, exist_ok=True)
    maker = make_model.Maker(config, tensors, make_model.options().parse_args([*words, str(args.out / "model.gguf")]))
    if args.name == "gguf_glm52":
        for inner in ("wq_b", "wk", "weights_proj"):
            unused = tensors[f"model.layers.0.self_attn.indexer.{inner}.weight"]
            maker.store(f"blk.1.{make_model.LAYER[f'self_attn.indexer.{inner}']}.weight", unused[::-1])
    if args.name == "gguf_k2":
        maker.out.add_tokenizer_pre(maker.args.pre)  # by which, and 384 experts, Kimi-K2 is recognised
    maker.write()
    meant = {name: np.asarray(values, np.float64) for name, values in maker.twin.items()}
    if not maker.args.drafts:
        config = {**config, "num_nextn_predict_layers": 0}
    parsed = parse_config(config)
    tokens, logits, _ = choose_tokens(40, meant, parsed, rng)
    (args.out / "tokens.json").write_text(json.dumps([int(t) for t in tokens]) + "\n")
    np.save(args.out / "logits.npy", logits.astype(np.float32))
    if maker.args.drafts:
        np.save(args.out / "draft_logits.npy", draft_logits(tokens, meant, parsed)[:DRAFT_ROWS])
        lines = [json.dumps(one) for one in greedy_drafts(tokens, logits, meant, parsed)]
        (args.out / "drafts.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")
    print(f"{args.out.name}: {len(maker.twin)} tensors")


if __name__ == "__main__":
    main()
