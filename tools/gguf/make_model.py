"""Writes a Hugging Face folder as a GGUF file, and the folder of the same values in F32: its twin.

    make_model.py OUT.gguf FOLDER TWIN [--types Q4_K,Q6_K] [--experts Q4_0] [--kv-b kv_b|split|all] [--parts N] [--old]

Needs numpy and `gguf` 0.19.0, which quantises, dequantises and writes the file, so that both are independent of Latte.
Types that it cannot quantise become random blocks, whose scales have the size that the weights need. Matrices take the
types in turn; where rows are no whole blocks, Q8_0. Norms, router and router bias are F32. The twin's
kv_b_proj is rounded to bf16 where it lies in blocks, as Latte holds it. --old leaves out what files of
2024 lack: groups of experts, betas and the absorbed form of attention.
"""
import argparse
import json
import pathlib
import shutil
import struct

import gguf
import numpy as np

RANDOM = {"Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS"}
PLAIN = [gguf.GGMLQuantizationType[name] for name in ("F32", "F16", "BF16")]
# Where the f16 scales of a block are, and the largest |scale · code| without them.
SCALES = {"Q2_K": ((80, 45), (82, 15)), "Q3_K": ((108, 128),), "Q4_K": ((0, 945), (2, 63)), "Q5_K": ((0, 1953), (2, 63)),
          "Q6_K": ((208, 4096),), "IQ4_NL": ((0, 127),), "IQ4_XS": ((0, 4064),)}
LAYER = {
    "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.q_a_proj": "attn_q_a",
    "self_attn.q_a_layernorm": "attn_q_a_norm", "self_attn.q_b_proj": "attn_q_b",
    "self_attn.kv_a_proj_with_mqa": "attn_kv_a_mqa", "self_attn.kv_a_layernorm": "attn_kv_a_norm",
    "self_attn.indexer.wq_b": "indexer.attn_q_b", "self_attn.indexer.wk": "indexer.attn_k",
    "self_attn.indexer.k_norm": "indexer.k_norm", "self_attn.indexer.weights_proj": "indexer.proj",
    "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "mlp.gate": "ffn_gate_inp",
    "mlp.shared_experts.gate_proj": "ffn_gate_shexp", "mlp.shared_experts.up_proj": "ffn_up_shexp",
    "mlp.shared_experts.down_proj": "ffn_down_shexp", "eh_proj": "nextn.eh_proj", "enorm": "nextn.enorm",
    "hnorm": "nextn.hnorm", "shared_head.norm": "nextn.shared_head_norm", "shared_head.head": "nextn.shared_head_head",
    "embed_tokens": "nextn.embed_tokens"}
ARCHITECTURES = {"deepseek_v32": "deepseek32", "glm_moe_dsa": "glm-dsa", "mistral4": "mistral4",
                 "minicpm3": "minicpm3"}  # others: deepseek2
MODEL = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def read_folder(folder):
    """Name → f32 array of every tensor."""
    out = {}
    for path in sorted(pathlib.Path(folder).glob("*.safetensors")):
        data = path.read_bytes()
        size = struct.unpack("<Q", data[:8])[0]
        for name, t in json.loads(data[8:8 + size]).items():
            if name == "__metadata__":
                continue
            begin, end = (8 + size + offset for offset in t["data_offsets"])
            raw = data[begin:end]
            if t["dtype"] == "BF16":
                values = (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32)
            else:
                values = np.frombuffer(raw, {"F32": np.float32, "F16": np.float16}[t["dtype"]]).astype(np.float32)
            out[name] = values.reshape(t["shape"])
    return out


def write_folder(folder, tensors):
    header, offset = {}, 0
    for name, t in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(t.shape), "data_offsets": [offset, offset + t.nbytes]}
        offset += t.nbytes
    text = json.dumps(header).encode()
    with open(pathlib.Path(folder) / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for t in tensors.values():
            file.write(np.ascontiguousarray(t, np.float32).tobytes())


def blocks(values, name, rng):
    """The blocks of `name` for the values, and what they stand for."""
    kind = gguf.GGMLQuantizationType[name]
    if name in RANDOM:
        width, size = gguf.GGML_QUANT_SIZES[kind]
        data = rng.integers(0, 256, (values.size // width, size), np.uint8)
        largest = max(float(np.abs(values).max()), 1e-3)
        for at, most in SCALES[name]:
            scale = (largest / most * rng.uniform(0.3, 1, len(data))).astype(np.float16)
            data[:, at:at + 2] = scale.view(np.uint8).reshape(-1, 2)
        data = data.reshape(*values.shape[:-1], -1)
    else:
        data = gguf.quants.quantize(np.ascontiguousarray(values), kind)
    return data, kind, gguf.quants.dequantize(data, kind).astype(np.float32)


class Maker:
    """Writes `tensors`, f32 arrays by their names in a Hugging Face folder, to args.out; `twin` is what they stand for."""

    def __init__(self, config, tensors, args):
        self.config, self.source, self.twin, self.args = config, tensors, {}, args
        self.rng, self.turn = np.random.default_rng(1), 0
        self.arch = ARCHITECTURES.get(config["model_type"], "deepseek2")
        self.out = gguf.GGUFWriter(args.out, self.arch, split_max_tensors=args.parts, small_first_shard=args.parts > 0)

    def store(self, gguf_name, values, plain=False, name=None):
        """Adds a tensor to the file, of type `name` or of the next one, and returns the values that it stands for."""
        if plain or values.ndim == 1:
            self.out.add_tensor(gguf_name, np.ascontiguousarray(values, np.float32))
            return values
        if name is None:
            name = self.args.types[self.turn % len(self.args.types)]
            self.turn += 1
        if values.shape[-1] % gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]][0] != 0:
            name = "Q8_0" if values.shape[-1] % 32 == 0 else "F32"
        if name == "F32":
            return self.store(gguf_name, values, plain=True)
        data, kind, stands_for = blocks(values, name, self.rng)
        self.out.add_tensor(gguf_name, data, raw_dtype=kind)
        return stands_for

    def held(self, gguf_name, values):
        """The same for a part of kv_b, with the values that Latte holds."""
        values = self.store(gguf_name, values)
        return values if self.out.tensors[-1][gguf_name].dtype in PLAIN else round_bf16(values)

    def kv_b(self, name, layer, values):
        c = self.config
        h, n, v, r = (c[k] for k in ("num_attention_heads", "qk_nope_head_dim", "v_head_dim", "kv_lora_rank"))
        if self.args.kv_b != "split":
            self.twin[name] = self.held(f"blk.{layer}.attn_kv_b.weight", values)
        if self.args.kv_b == "kv_b":
            return
        heads = values.reshape(h, n + v, r)
        k = self.held(f"blk.{layer}.attn_k_b.weight", np.ascontiguousarray(heads[:, :n].transpose(0, 2, 1)))
        v = self.held(f"blk.{layer}.attn_v_b.weight", np.ascontiguousarray(heads[:, n:]))
        if self.args.kv_b == "split":
            self.twin[name] = np.concatenate([k.transpose(0, 2, 1), v], axis=1).reshape(values.shape)

    def experts(self, prefix, layer):
        for matrix in ("gate", "up", "down"):
            names = [f"{prefix}mlp.experts.{e}.{matrix}_proj.weight" for e in range(self.config["n_routed_experts"])]
            stored = self.store(f"blk.{layer}.ffn_{matrix}_exps.weight", np.stack([self.source[n] for n in names]),
                                name=self.args.experts)
            self.twin.update(zip(names, stored))

    def tensors(self):
        for name, values in self.source.items():
            stem, _, end = name.rpartition(".")
            if stem in MODEL:
                self.twin[name] = self.store(f"{MODEL[stem]}.{end}", values)
                continue
            layer, _, inner = stem.removeprefix("model.layers.").partition(".")
            if int(layer) >= self.layers():
                continue
            prefix = f"model.layers.{layer}."
            if inner == "self_attn.kv_b_proj":
                self.kv_b(name, layer, values)
            elif name.endswith("e_score_correction_bias"):
                self.twin[name] = self.store(f"blk.{layer}.exp_probs_b.bias", values)
            elif inner.startswith("mlp.experts."):
                if inner == "mlp.experts.0.gate_proj":
                    self.experts(prefix, layer)
            else:
                self.twin[name] = self.store(f"blk.{layer}.{LAYER[inner]}.{end}", values, plain=inner == "mlp.gate")

        for kind in ("long", "short"):
            if (factors := (self.config.get("rope_scaling") or {}).get(f"{kind}_factor")):
                self.store(f"rope_factors_{kind}.weight", np.array(factors, np.float32))

    def layers(self):
        c = self.config
        return c["num_hidden_layers"] + (c.get("num_nextn_predict_layers", 0) if self.args.drafts else 0)

    def metadata(self):
        c, out, arch = self.config, self.out, self.arch
        ints = {"vocab_size": "vocab_size", "context_length": "max_position_embeddings", "embedding_length": "hidden_size",
                "feed_forward_length": "intermediate_size", "attention.head_count": "num_attention_heads",
                "attention.kv_lora_rank": "kv_lora_rank", "attention.q_lora_rank": "q_lora_rank",
                "rope.dimension_count": "qk_rope_head_dim", "expert_count": "n_routed_experts",
                "expert_used_count": "num_experts_per_tok", "expert_shared_count": "n_shared_experts",
                "expert_feed_forward_length": "moe_intermediate_size", "attention.indexer.head_count": "index_n_heads",
                "attention.indexer.key_length": "index_head_dim", "attention.indexer.top_k": "index_topk"}
        for key, own in ints.items():
            if c.get(own) is not None:
                out.add_uint32(f"{arch}.{key}", c[own])
        if c.get("n_routed_experts"):
            kinds = c.get("mlp_layer_types")
            dense = kinds.index("sparse") if kinds else c["first_k_dense_replace"]
            out.add_uint32(f"{arch}.leading_dense_block_count", dense)
            if not self.args.old:
                out.add_uint32(f"{arch}.expert_group_count", c["n_group"])
                out.add_uint32(f"{arch}.expert_group_used_count", c["topk_group"])
        if (kinds := c.get("indexer_types")) and not self.args.old:
            out.add_array(f"{arch}.attention.indexer.types", [kind == "full" for kind in kinds])
        out.add_uint32(f"{arch}.block_count", self.layers())
        if self.args.drafts:
            out.add_uint32(f"{arch}.nextn_predict_layers", c["num_nextn_predict_layers"])
        n, r, v = c["qk_nope_head_dim"], c["qk_rope_head_dim"], c["v_head_dim"]
        split = self.args.kv_b == "split"
        out.add_uint32(f"{arch}.attention.head_count_kv", 1 if split else c["num_attention_heads"])
        out.add_uint32(f"{arch}.attention.key_length", c["kv_lora_rank"] + r if split else n + r)
        if arch != "minicpm3":
            out.add_uint32(f"{arch}.attention.value_length", c["kv_lora_rank"] if split else v)
        if split:
            out.add_uint32(f"{arch}.attention.key_length_mla", n + r)
            out.add_uint32(f"{arch}.attention.value_length_mla", v)
        out.add_float32(f"{arch}.attention.layer_norm_rms_epsilon", c["rms_norm_eps"])
        if arch == "minicpm3":  # constants of the model are not in the file
            return
        rope = c.get("rope_parameters") or {**(c.get("rope_scaling") or {}), "rope_theta": c["rope_theta"]}
        out.add_float32(f"{arch}.rope.freq_base", rope["rope_theta"])
        if c.get("n_routed_experts"):
            softmax = c["model_type"] == "mistral4" or c.get("scoring_func") == "softmax"
            out.add_uint32(f"{arch}.expert_gating_func", 1 if softmax else 2)
            out.add_bool(f"{arch}.expert_weights_norm", c.get("norm_topk_prob", False))
            out.add_float32(f"{arch}.expert_weights_scale", c.get("routed_scaling_factor", 1.0))
        if "factor" in rope:
            out.add_string(f"{arch}.rope.scaling.type", "yarn")
            out.add_float32(f"{arch}.rope.scaling.factor", rope["factor"])
            out.add_uint32(f"{arch}.rope.scaling.original_context_length", rope["original_max_position_embeddings"])
            out.add_float32(f"{arch}.rope.scaling.yarn_log_multiplier", 0.1 * rope["mscale_all_dim"])
            if not self.args.old:
                out.add_float32(f"{arch}.rope.scaling.yarn_beta_fast", rope["beta_fast"])
                out.add_float32(f"{arch}.rope.scaling.yarn_beta_slow", rope["beta_slow"])
        if "llama_4_scaling_beta" in rope and not self.args.old:
            out.add_float32(f"{arch}.attention.temperature_scale", rope["llama_4_scaling_beta"])

    def tokenizer(self, path):
        file = json.loads(path.read_text())
        pieces = file["model"].get("byte_fallback", False)  # SentencePiece's kind
        tokens = {id: (text, 6 if pieces and text.startswith("<0x") and len(text) == 6 else 1)
                  for text, id in file["model"]["vocab"].items()}
        tokens |= {t["id"]: (t["content"], 3 if t["special"] else 4) for t in file["added_tokens"]}
        listed = [tokens.get(i, (f"[PAD{i}]", 5)) for i in range(self.config["vocab_size"])]
        self.out.add_tokenizer_model("llama" if pieces else "gpt2")
        self.out.add_tokenizer_pre("default" if pieces else self.args.pre)
        self.out.add_token_list([text for text, _ in listed])
        self.out.add_token_types([kind for _, kind in listed])
        merges = [m if isinstance(m, str) else " ".join(m) for m in file["model"]["merges"]]
        if pieces:  # what is made first has the highest score
            ranks = {merge.replace(" ", ""): rank for rank, merge in reversed(list(enumerate(merges)))}
            self.out.add_token_scores([-float(ranks.get(text, len(merges))) for text, _ in listed])
        elif merges:
            self.out.add_token_merges(merges)
        for key, add in (("bos_token_id", self.out.add_bos_token_id), ("eos_token_id", self.out.add_eos_token_id)):
            if isinstance(self.config.get(key), int):
                add(self.config[key])
        own = json.loads((path.parent / "tokenizer_config.json").read_text())
        self.out.add_add_bos_token(own.get("add_bos_token", False))
        if isinstance(own.get("chat_template"), str):
            self.out.add_chat_template(own["chat_template"])

    def write(self, tokenizer=None):
        self.out.add_type("model")
        self.metadata()
        if tokenizer is not None:
            self.tokenizer(tokenizer)
        self.tensors()
        self.out.write_header_to_file()
        self.out.write_kv_data_to_file()
        self.out.write_tensors_to_file()
        self.out.close()


def write_twin(maker, source, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for path in source.iterdir():
        if path.suffix in (".json", ".jinja") and "index" not in path.name:
            shutil.copy(path, folder)
    config = {**maker.config, "torch_dtype": "float32"}
    if not maker.args.drafts:
        config["num_nextn_predict_layers"] = 0
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    write_folder(folder, maker.twin)


def round_bf16(values):
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000).view(np.float32)


def options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--types", default="Q8_0", type=lambda text: text.split(","))
    parser.add_argument("--experts", help="the type of the routed experts")
    parser.add_argument("--kv-b", default="split", choices=("kv_b", "split", "all"))
    parser.add_argument("--parts", type=int, default=0, help="tensors per part")
    parser.add_argument("--pre", default="deepseek-llm")
    parser.add_argument("--old", action="store_true")
    parser.add_argument("--drafts", action="store_true")
    parser.add_argument("out")
    return parser


def main():
    parser = options()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("twin", type=pathlib.Path)
    args = parser.parse_args()
    maker = Maker(json.loads((args.folder / "config.json").read_text()), read_folder(args.folder), args)
    maker.write(args.folder / "tokenizer.json")
    write_twin(maker, args.folder, args.twin)


if __name__ == "__main__":
    main()
