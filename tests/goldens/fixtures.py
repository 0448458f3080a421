"""The golden checkpoints: configurations, variants of them, random weights."""

from dataclasses import dataclass

import numpy as np

from reference_config import value_width
from relayout import LAYOUTS


@dataclass(frozen=True)
class Fixture:
    """One tiny checkpoint. `dtype` is that of all weights but the router bias, always F32."""

    seed: int
    tokens: int
    dtype: str
    config: dict
    shards: int = 1
    layout: str = "plain"  # or one of relayout.LAYOUTS


_V2 = {
    "architectures": ["DeepseekV2ForCausalLM"],
    "model_type": "deepseek_v2",
    "hidden_act": "silu",
    "attention_bias": False,
    "tie_word_embeddings": False,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "rms_norm_eps": 1e-6,
    "max_position_embeddings": 163840,
    "moe_layer_freq": 1,
    "first_k_dense_replace": 1,
    "scoring_func": "softmax",
    "norm_topk_prob": False,
}
_V3 = {
    **_V2,
    "architectures": ["DeepseekV3ForCausalLM"],
    "model_type": "deepseek_v3",
    "scoring_func": "sigmoid",
    "topk_method": "noaux_tc",
    "norm_topk_prob": True,
    "num_nextn_predict_layers": 0,
}


def _shape(vocab, hidden, inter, layers, heads, cq, c, n, r, v):
    return {
        "vocab_size": vocab,
        "hidden_size": hidden,
        "intermediate_size": inter,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "q_lora_rank": cq,
        "kv_lora_rank": c,
        "qk_nope_head_dim": n,
        "qk_rope_head_dim": r,
        "v_head_dim": v,
    }


def _experts(count, width, k, shared, scaling, groups=1, topk_group=1):
    return {
        "n_routed_experts": count,
        "moe_intermediate_size": width,
        "num_experts_per_tok": k,
        "n_shared_experts": shared,
        "routed_scaling_factor": scaling,
        "n_group": groups,
        "topk_group": topk_group,
    }


def _yarn(factor, mscale, beta_fast=32, beta_slow=1):
    """max_position_embeddings must be 4096 * factor: old transformers derive the factor from it."""
    return {
        "factor": factor,
        "original_max_position_embeddings": 4096,
        "beta_fast": beta_fast,
        "beta_slow": beta_slow,
        "mscale": mscale,
        "mscale_all_dim": mscale,
    }


_MOONLIGHT = {
    **_V3,
    **_shape(241, 68, 84, 3, 3, None, 28, 14, 10, 18),
    **_experts(9, 14, 3, 2, 2.446),
    "rms_norm_eps": 1e-5,
    "max_position_embeddings": 8192,
    "rope_theta": 50000.0,
    "rope_scaling": None,
    "tie_word_embeddings": True,
}

# GLM-4.7-Flash: its config names neither the router nor, in this form, first_k_dense_replace.
_GLM_FLASH = {
    **{
        k: v
        for k, v in _MOONLIGHT.items()
        if k not in ("scoring_func", "topk_method", "first_k_dense_replace", "moe_layer_freq")
    },
    "architectures": ["Glm4MoeLiteForCausalLM"],
    "model_type": "glm4_moe_lite",
    "q_lora_rank": 24,
    "tie_word_embeddings": False,
    "rope_theta": 1000000.0,
    "max_position_embeddings": 202752,
}

_INDEXER = {"index_n_heads": 3, "index_head_dim": 24, "index_topk": 2048}
_V32 = {
    **_V3,
    **_shape(199, 56, 72, 3, 3, 36, 32, 20, 16, 12),
    **_experts(12, 12, 4, 1, 2.5, 4, 2),
    **_INDEXER,
    "architectures": ["DeepseekV32ForCausalLM"],
    "model_type": "deepseek_v32",
    "rope_theta": 10000,
    "rope_scaling": {"type": "yarn", **_yarn(40, 1.0)},
}

_AXK1 = {
    **_V3,
    **_shape(193, 60, 72, 3, 3, 26, 36, 18, 12, 14),
    **_experts(12, 12, 4, 1, 2.5, 4, 2),
    "architectures": ["AXK1ForCausalLM"],
    "model_type": "axk1",
    "max_position_embeddings": 131072,
    "rope_theta": 10000,
    "rope_scaling": {"type": "yarn", **_yarn(32, 1.0)},
}

# Mistral-Small-4 with an original context of 40 positions, so that the queries' temperature rises three
# times within the tokens of a fixture.
_MISTRAL4 = {
    **{k: v for k, v in _V3.items() if k not in ("topk_method", "scoring_func", "moe_layer_freq")},
    **_shape(227, 60, 72, 3, 3, 26, 36, 18, 12, 14),
    **_experts(10, 12, 3, 1, 1.0),
    "architectures": ["Mistral4ForCausalLM"],
    "model_type": "mistral4",
    "first_k_dense_replace": 0,
    "max_position_embeddings": 40 * 128,
    "rope_parameters": {
        **_yarn(128.0, 1.0),
        "type": "yarn",
        "rope_type": "yarn",
        "rope_theta": 10000.0,
        "original_max_position_embeddings": 40,
        "llama_4_scaling_beta": 0.3,
    },
}

FIXTURES = {
    # V2-Lite: no q_lora, greedy softmax router, weights not summing to 1, YaRN with mscale 0.707.
    "v2_lite": Fixture(
        101,
        192,
        "BF16",
        {
            **_V2,
            **_shape(257, 72, 100, 4, 4, None, 40, 24, 16, 20),
            **_experts(8, 20, 3, 2, 1.0),
            "topk_method": "greedy",
            "rope_theta": 10000,
            "rope_scaling": {"type": "yarn", **_yarn(40, 0.707)},
        },
    ),
    # V2: group-limited router, large routed scaling, two shards, RoPE keys in the nested new form.
    "v2_group": Fixture(
        102,
        170,
        "F32",
        {
            **_V2,
            **_shape(211, 60, 80, 3, 5, 24, 32, 12, 8, 16),
            **_experts(12, 14, 4, 2, 4.0, 4, 2),
            "topk_method": "group_limited_greedy",
            "rope_parameters": {"rope_type": "yarn", "rope_theta": 10000.0, **_yarn(40, 1.0)},
        },
        shards=2,
    ),
    # V3: biased sigmoid router with groups, three heads, and the tensors of one MTP layer.
    "v3_noaux": Fixture(
        103,
        180,
        "F32",
        {
            **_V3,
            **_shape(203, 56, 72, 3, 3, 40, 32, 20, 16, 12),
            **_experts(12, 12, 4, 1, 2.5, 4, 2),
            "num_nextn_predict_layers": 1,
            "rope_theta": 10000,
            "rope_scaling": {"type": "yarn", **_yarn(40, 1.0)},
        },
    ),
    # Kimi-Linear's attention: the rope dims take part in the dot product without being rotated.
    "nope": Fixture(
        104,
        160,
        "F16",
        {
            **_V3,
            **_shape(229, 88, 96, 3, 5, None, 36, 16, 12, 10),
            **_experts(10, 16, 3, 1, 2.446),
            "mla_use_nope": True,
            "rope_theta": 10000.0,
            "rope_scaling": None,
        },
    ),
    # Moonlight: V3 without q_lora, groups and YaRN; eps 1e-5; here also tied embeddings.
    "moonlight": Fixture(105, 150, "F32", _MOONLIGHT),
    # The same kind of model with half-split (NeoX) RoPE.
    "half_split": Fixture(106, 150, "BF16", {**_MOONLIGHT, "rope_interleave": False}),
    # GLM-4.7-Flash: V > N, heads that no power of two divides, layer kinds as a list, the router
    # named by the class alone; experts stacked in one tensor per layer.
    "glm": Fixture(
        107,
        140,
        "BF16",
        {
            **_GLM_FLASH,
            **_shape(251, 60, 76, 3, 5, 24, 32, 12, 8, 20),
            "mlp_layer_types": ["dense", "sparse", "sparse"],
        },
        layout="fused",
    ),
    # DeepSeek-V3.2 up to index_topk tokens: an indexer whose choice is everything.
    "v32": Fixture(108, 130, "F32", _V32),
    # A.X-K1 inside a wrapper with a prefix: a norm after the experts, no router bias.
    "axk1": Fixture(109, 130, "BF16", _AXK1, shards=2, layout="kimi_k25"),
    # Mistral-Small-4 inside its wrapper: a temperature of queries, softmax scores, stacked experts.
    "mistral4": Fixture(113, 150, "BF16", _MISTRAL4, layout="mistral3"),
}

_SPARSE = {"index_topk": 4}
_GLM_DSA = {
    **{k: v for k, v in _GLM_FLASH.items() if k != "num_nextn_predict_layers"},
    **_INDEXER,
    "architectures": ["GlmMoeDsaForCausalLM"],
    "model_type": "glm_moe_dsa",
}
FIXTURES |= {
    # Sparse attention to 4 tokens, with an indexer on every layer: half-split rotation...
    "v32_sparse": Fixture(110, 130, "F32", {**_V32, **_SPARSE}),
    # ...and a drafting layer with an indexer of its own.
    "v32_mtp": Fixture(142, 40, "F32", {**_V32, **_SPARSE, "num_nextn_predict_layers": 1}),
    # ...and interleaved rotation; small index keys, which show the epsilon of their norm.
    "glm5": Fixture(
        111,
        130,
        "BF16",
        {
            **_GLM_DSA,
            **_shape(251, 60, 76, 3, 5, 24, 32, 12, 8, 20),
            **_SPARSE,
            "indexer_rope_interleave": True,
            "mlp_layer_types": ["dense", "sparse", "sparse"],
        },
    ),
    # GLM-5.2: every other layer attends to the keys that the layer before it chose.
    "glm52": Fixture(
        112,
        140,
        "F32",
        {
            **_GLM_DSA,
            **_shape(241, 56, 72, 4, 3, 26, 28, 10, 12, 14),
            **_SPARSE,
            "index_topk_freq": 2,
            "index_skip_topk_offset": 1,
            "indexer_types": ["full", "shared", "full", "shared"],
            "mlp_layer_types": ["dense", "sparse", "sparse", "sparse"],
        },
    ),
}

# MiniCPM3 with a short original context: its long factors hold at every position, and cos and sin
# have a factor. The factors of its state are far from 1, as in the published config.
_MINICPM3 = {
    "architectures": ["MiniCPM3ForCausalLM"],
    "model_type": "minicpm3",
    **_shape(233, 66, 84, 3, 3, 26, 28, 14, 12, 18),
    "hidden_act": "silu",
    "attention_bias": False,
    "tie_word_embeddings": True,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "rms_norm_eps": 1e-5,
    "max_position_embeddings": 4096,
    "scale_emb": 5,
    "scale_depth": 0.9,
    "dim_model_base": 24,
    "rope_scaling": {
        "type": "longrope",
        "long_factor": [1.06, 1.26, 2.09, 4.94, 10.48, 16.94],
        "short_factor": [1.0, 1.05, 1.1, 1.25, 1.5, 2.0],
        "original_max_position_embeddings": 64,
    },
}
FIXTURES |= {
    "minicpm3": Fixture(131, 150, "BF16", _MINICPM3),
    # Its short factors, with all positions inside the original context; V is D/H, and not said. The
    # epsilon shows whether the scale of residuals is in it, if states are kept without that scale.
    "minicpm3_short": Fixture(
        132,
        150,
        "F32",
        {
            **{k: v for k, v in _MINICPM3.items() if k != "v_head_dim"},
            "rope_scaling": {
                **_MINICPM3["rope_scaling"],
                "original_max_position_embeddings": 4096,
            },
            "tie_word_embeddings": False,
            "rms_norm_eps": 0.02,
        },
    ),
}

FIXTURES |= {
    # Two drafting layers, each with rows of its own.
    "v3_mtp2": Fixture(
        114,
        40,
        "F32",
        {
            **_V3,
            **_shape(97, 48, 56, 2, 3, 28, 24, 16, 8, 12),
            **_experts(6, 10, 2, 1, 2.5, 2, 1),
            "num_nextn_predict_layers": 2,
            "rope_theta": 10000,
            "rope_scaling": {"type": "yarn", **_yarn(40, 1.0)},
        },
    ),
    # GLM-5.2's drafting layer, whose later drafts attend to the keys that the first one chose.
    "glm52_mtp": Fixture(
        120,
        40,
        "F32",
        {
            **FIXTURES["glm52"].config,
            **_shape(109, 48, 56, 2, 3, 26, 24, 16, 8, 12),
            **_experts(6, 10, 2, 1, 1.8),
            "num_nextn_predict_layers": 1,
            "first_k_dense_replace": 1,
            "index_share_for_mtp_iteration": True,
            "indexer_types": ["full", "shared"],
            "mlp_layer_types": ["dense", "sparse"],
        },
    ),
}

# Families that only appear among the variants.
_EXTRA = {
    # Kimi-K2's YaRN: beta_fast == beta_slow, so the blend is one pair wide.
    "kimi_k2": {
        **FIXTURES["v3_noaux"].config,
        "n_group": 1,
        "topk_group": 1,
        "routed_scaling_factor": 2.827,
        "num_nextn_predict_layers": 0,
        "max_position_embeddings": 131072,
        "rope_theta": 50000.0,
        "rope_scaling": {"type": "yarn", **_yarn(32, 1.0, 1, 1)},
    },
    "v3_bias": {
        **FIXTURES["v3_noaux"].config,
        "attention_bias": True,
        "num_nextn_predict_layers": 0,
    },
    "glm_flash": _GLM_FLASH,
    # GLM-5.2: an indexer on some layers only, the others take over its choice.
    "glm_dsa": {
        **_GLM_DSA,
        "index_topk_freq": 2,
        "index_skip_topk_offset": 1,
    },
    # Youtu-LLM: every layer dense, embeddings tied.
    "youtu": {
        **{k: v for k, v in _V2.items() if k not in ("moe_layer_freq", "first_k_dense_replace")},
        **_shape(241, 68, 84, 3, 3, 30, 28, 14, 10, 18),
        "architectures": ["YoutuForCausalLM"],
        "model_type": "youtu",
        "max_position_embeddings": 131072,
        "rope_theta": 1600000.0,
        "rope_scaling": None,
        "tie_word_embeddings": True,
    },
}


# Families whose files list the kind of every layer.
_LISTED_LAYERS = ("glm4_moe_lite", "glm_moe_dsa")


def make_variants(seed):
    """{name: Fixture}: every family once, with random sizes, odd head counts and N != V != R."""
    rng = np.random.default_rng(seed)
    # Indexers of drafting layers are seldom decided: their seeds are picked by hand.
    families = {k: v.config for k, v in FIXTURES.items() if "_mtp" not in k} | _EXTRA
    variants = {}
    for i, (name, base) in enumerate(families.items()):
        dtype = ("F32", "BF16", "F16")[int(rng.integers(3))]
        fixture = Fixture(
            seed * 1000 + i,
            int(rng.integers(130, 200)),
            dtype,
            _resize(base, rng),
            int(rng.integers(1, 4)),
            ("plain", *LAYOUTS)[int(rng.integers(1 + len(LAYOUTS)))],
        )
        variants[f"{name}_seed{seed}"] = fixture
    return variants


def _resize(base, rng):
    def pick(*choices):
        return choices[int(rng.integers(len(choices)))]

    v2 = base["model_type"] == "deepseek_v2"
    heads, r = pick(3, 5, 7), pick(6, 8, 12, 16)
    # deepseek_v2 in transformers views q as complex numbers, so there N + R must be even.
    n = pick(*(x for x in (10, 14, 18, 22) + (() if v2 else (9, 11)) if x != r))
    v = pick(*(x for x in (7, 10, 13, 20, 24) if x not in (n, r)))
    layers = pick(3, 4)
    hidden = heads * pick(
        *(m for m in range(7, 26) if 50 <= heads * m <= 80)
    )  # V2 wants a multiple
    config = {
        **base,
        **_shape(
            int(rng.integers(180, 260)),
            hidden,
            int(rng.integers(60, 100)),
            layers,
            heads,
            None if base["q_lora_rank"] is None else pick(18, 26, 44),
            pick(24, 36, 48),
            n,
            r,
            v,
        ),
    }
    if "n_routed_experts" not in base:
        return config
    dense = pick(0, 1, 2)
    if base["model_type"] in _LISTED_LAYERS:
        config["mlp_layer_types"] = ["dense"] * dense + ["sparse"] * (layers - dense)
    else:
        config["first_k_dense_replace"] = dense
    groups = 1 if base["n_group"] == 1 else pick(2, 3, 5)
    topk_group = 1 if groups == 1 else int(rng.integers(1, groups))
    experts = groups * pick(3, 4) if groups > 1 else pick(7, 10, 13)
    k = int(rng.integers(2, min(5, topk_group * experts // groups) + 1))
    scaling = base["routed_scaling_factor"]
    config.update(_experts(experts, pick(10, 14), k, pick(1, 2), scaling, groups, topk_group))
    if "indexer_types" in base:  # for another number of layers
        config["indexer_types"] = [("full", "shared")[i % 2] for i in range(layers)]
    return config


# ----------------------------------------------------------------------------- random weights


def make_tensors(raw, rng, dtype):
    """A checkpoint's tensors {name: (dtype, array)} for config.json `raw`, MTP layers included.

    Each gain is the standard deviation of a layer's output for unit input; they are chosen so that
    attention has clear peaks, routers are decided, and logits span several units.
    """
    d, h, c = raw["hidden_size"], raw["num_attention_heads"], raw["kv_lora_rank"]
    n, r, v, cq = (
        raw["qk_nope_head_dim"],
        raw["qk_rope_head_dim"],
        value_width(raw),
        raw["q_lora_rank"],
    )
    vocab, layers = raw["vocab_size"], raw["num_hidden_layers"]
    out = {}

    def linear(name, rows, cols, gain=1.0, bias=False):
        out[name + ".weight"] = (dtype, rng.normal(0.0, gain / np.sqrt(cols), (rows, cols)))
        if bias:
            out[name + ".bias"] = (dtype, rng.normal(0.0, 0.3, rows))

    def norm(name, size):
        out[name + ".weight"] = (dtype, rng.uniform(0.6, 1.4, size))

    head_gain = 1.2 * d / raw.get("dim_model_base", d)  # MiniCPM divides the state before the head

    def embedding(name):
        # tied: it is also the head
        spread = head_gain / np.sqrt(d) if raw["tie_word_embeddings"] else 1.0
        out[name + ".weight"] = (dtype, rng.normal(0.0, spread, (vocab, d)))

    def attention(p):
        biased = raw["attention_bias"]
        if cq:
            linear(p + "q_a_proj", cq, d, bias=biased)
            norm(p + "q_a_layernorm", cq)
            linear(p + "q_b_proj", h * (n + r), cq, 1.5)
        else:
            linear(p + "q_proj", h * (n + r), d, 1.5)
        linear(p + "kv_a_proj_with_mqa", c + r, d, bias=biased)
        if (
            raw["rms_norm_eps"] > 1e-6
        ):  # a small latent shows whether its norm took the wrong epsilon
            out[p + "kv_a_proj_with_mqa.weight"][1][:c] *= 0.02
        norm(p + "kv_a_layernorm", c)
        linear(p + "kv_b_proj", h * (n + v), c)
        linear(p + "o_proj", d, h * v, bias=biased)

    def indexer(p):
        heads, width = raw["index_n_heads"], raw["index_head_dim"]
        linear(p + "wq_b", heads * width, cq)
        linear(p + "wk", width, d)
        if raw["rms_norm_eps"] > 1e-6:  # as for latents
            out[p + "wk.weight"][1][:] *= 0.003
        norm(p + "k_norm", width)
        out[p + "k_norm.bias"] = (dtype, rng.normal(0.0, 0.3, width))
        linear(p + "weights_proj", heads, d)

    def owns_indexer(i):
        if "index_topk" not in raw:
            return False
        offset = raw.get("index_skip_topk_offset", 2)
        return max(i - offset + 1, 0) % raw.get("index_topk_freq", 1) == 0

    def mlp(p, width):
        linear(p + "gate_proj", width, d)
        linear(p + "up_proj", width, d)
        linear(p + "down_proj", d, width)

    def experts(p):
        count, width = raw["n_routed_experts"], raw["moe_intermediate_size"]
        linear(p + "gate", count, d, 1.5)
        if raw["model_type"] not in ("deepseek_v2", "axk1", "mistral4"):
            # Both signs, mostly negative: a biased score below 0 loses to an excluded expert
            # wherever exclusion is written as 0 instead of -inf.
            out[p + "gate.e_score_correction_bias"] = ("F32", rng.uniform(-1.1, 0.3, count))
        for e in range(count):
            mlp(f"{p}experts.{e}.", width)
        mlp(p + "shared_experts.", width * raw["n_shared_experts"])

    def decoder_layer(p, sparse, indexed=False):
        norm(p + "input_layernorm", d)
        attention(p + "self_attn.")
        if indexed:
            indexer(p + "self_attn.indexer.")
        norm(p + "post_attention_layernorm", d)
        if sparse:
            experts(p + "mlp.")
        else:
            mlp(p + "mlp.", raw["intermediate_size"])
        if raw["model_type"] == "axk1":  # dense layers have it too and do not use it
            norm(p + "post_mlp_layernorm", d)

    kinds = raw.get("mlp_layer_types")
    embedding("model.embed_tokens")
    for i in range(layers):
        sparse = kinds[i] == "sparse" if kinds else i >= raw.get("first_k_dense_replace", layers)
        decoder_layer(f"model.layers.{i}.", sparse, owns_indexer(i))
    norm("model.norm", d)
    if not raw["tie_word_embeddings"]:
        linear("lm_head", vocab, d, head_gain)
    for i in range(layers, layers + raw.get("num_nextn_predict_layers", 0)):
        p = f"model.layers.{i}."
        decoder_layer(p, True, owns_indexer(0))
        norm(p + "enorm", d)
        norm(p + "hnorm", d)
        linear(p + "eh_proj", d, 2 * d)
        norm(p + "shared_head.norm", d)
        out[p + "embed_tokens.weight"] = out["model.embed_tokens.weight"]
        out[p + "shared_head.head.weight"] = out["lm_head.weight"]
    return out
