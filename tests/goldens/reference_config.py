"""config.json of a DeepSeek V2/V3 model -> the values that change the numbers.

Hugging Face spelling is used only here; reference.py uses the symbols of docs/math/mla.md.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path

from checkpoint_io import read_checkpoint
from relayout import split_experts


@dataclass(frozen=True)
class Config:
    """The parts of config.json that change the numbers."""

    vocab: int
    layers: int
    d: int  # hidden_size
    h: int  # num_attention_heads
    cq: int  # q_lora_rank; 0: queries are projected straight from the hidden state
    c: int  # kv_lora_rank
    n: int  # qk_nope_head_dim
    r: int  # qk_rope_head_dim
    v: int  # v_head_dim
    eps: float  # rms_norm_eps
    rope: dict  # rope_theta and, under the Hugging Face names, the scaling
    rope_interleave: bool
    use_rope: bool  # False: the R dims stay in the dot product, unrotated (NoPE)
    moe_layers: tuple  # one bool per layer
    k: int  # num_experts_per_tok
    groups: int
    topk_group: int
    topk_method: str  # greedy | group_limited_greedy | noaux_tc
    scoring: str  # softmax | sigmoid
    norm_topk: bool
    scale_after_norm: bool  # V3: normalised weights are still multiplied by routed_scaling
    routed_scaling: float
    index_heads: int  # of the indexer of sparse attention; 0: none
    index_topk: int
    index_interleave: bool
    mtp_layers: int
    mtp_shares_keys: bool  # later drafts attend to the keys that the first one chose
    post_mlp_norm: bool  # A.X-K1: RMSNorm between the MoE output and the residual
    embedding_scale: float = 1.0  # MiniCPM
    residual_scale: float = 1.0  # of what attention and MLP add
    head_scale: float = 1.0  # of the state before the LM head
    lora_norm_eps: float = 1e-6  # q_a and kv_a norms ignore rms_norm_eps in the published code


def _long_rope(rope, longest):
    """The choice of the list and the factor of cos and sin (LongRoPE, arXiv:2402.13753)."""
    original = rope.setdefault("original_max_position_embeddings", longest)
    rope["is_long"] = longest > original
    extension = rope.get("factor") or longest / original
    usual = math.sqrt(1.0 + math.log(extension) / math.log(original)) if extension > 1 else 1.0
    rope.setdefault("attention_factor", usual)


def _state_scales(raw):
    """MiniCPM (arXiv:2404.06395 section 3): the factors of embedding, residuals and logits."""
    if raw["model_type"] != "minicpm3":
        return {}
    return {
        "embedding_scale": raw["scale_emb"],
        "residual_scale": raw["scale_depth"] / math.sqrt(raw["num_hidden_layers"]),
        "head_scale": raw["dim_model_base"] / raw["hidden_size"],
    }


def value_width(raw):
    """MiniCPM3's configs leave it out."""
    return raw.get("v_head_dim", raw["hidden_size"] // raw["num_attention_heads"])


def parse_config(raw):
    """config.json as a dict -> Config. Absent keys take the default of the model's own class."""
    v2 = raw["model_type"] == "deepseek_v2"
    glm = raw["model_type"] == "glm4_moe_lite"
    axk1 = raw["model_type"] == "axk1"
    mistral4 = raw["model_type"] == "mistral4"

    def get(key, default):
        value = raw.get(key)
        return default if value is None else value

    rope = {**(raw.get("rope_scaling") or {}), **(raw.get("rope_parameters") or {})}
    rope.setdefault("rope_theta", get("rope_theta", 10000.0))
    rope["rope_type"] = rope.get("rope_type", rope.get("type", "default"))

    if mistral4 and rope.get("attention_factor") == 1.0:
        rope["mscale_all_dim"] = 0.0  # vLLM: YaRN changes the frequencies only

    if rope["rope_type"] == "longrope":
        _long_rope(rope, raw["max_position_embeddings"])

    layers = raw["num_hidden_layers"]
    first_dense = get("first_k_dense_replace", 0 if v2 or mistral4 else 1 if glm or axk1 else 3)
    every = get("moe_layer_freq", 1)
    kinds = raw.get("mlp_layer_types") or [
        "sparse" if i >= first_dense and i % every == 0 else "dense" for i in range(layers)
    ]
    has_experts = raw.get("n_routed_experts") is not None
    return Config(
        vocab=raw["vocab_size"],
        layers=layers,
        d=raw["hidden_size"],
        h=raw["num_attention_heads"],
        cq=raw.get("q_lora_rank") or 0,
        c=raw["kv_lora_rank"],
        n=raw["qk_nope_head_dim"],
        r=raw["qk_rope_head_dim"],
        v=value_width(raw),
        eps=get("rms_norm_eps", 1e-6),
        rope=rope,
        rope_interleave=get("rope_interleave", raw["model_type"] != "minicpm3"),
        use_rope=not raw.get("mla_use_nope", False),
        moe_layers=tuple(has_experts and kind == "sparse" for kind in kinds),
        k=get("num_experts_per_tok", 8),
        groups=get("n_group", 1),
        topk_group=get("topk_group", 1),
        topk_method=get("topk_method", "greedy" if v2 else "noaux_tc"),
        scoring=get("scoring_func", "softmax" if v2 or mistral4 else "sigmoid"),
        norm_topk=get("norm_topk_prob", not v2),
        scale_after_norm=not v2,
        routed_scaling=get("routed_scaling_factor", 1.0 if v2 or mistral4 else 1.8 if glm else 2.5),
        index_heads=raw.get("index_n_heads", 0),
        index_topk=raw.get("index_topk", 0),
        index_interleave=get("indexer_rope_interleave", raw["model_type"] == "glm_moe_dsa"),
        mtp_layers=raw.get("num_nextn_predict_layers") or 0,
        mtp_shares_keys=get("index_share_for_mtp_iteration", False),
        post_mlp_norm=axk1,
        **_state_scales(raw),
    )


def load(folder):
    """A Hugging Face folder -> (Config, {name: float64 array})."""
    raw = json.loads((Path(folder) / "config.json").read_text())
    return parse_config(raw), split_experts(read_checkpoint(folder))
