"""The DeepSeek-V3 architecture in plain PyTorch, sized for a CPU; for training and evaluation.

Multi-head latent attention (DeepSeek-V2 report, section 2.1, eq. 9-19), YaRN rotary positions,
a sigmoid router with group limits and a selection bias (DeepSeek-V3 report, section 2.1.2), and
one multi-token-prediction layer (section 2.2); with `index_topk` in the config, sparse attention
(indexer.py). Modules carry the Hugging Face tensor names, except that the experts of a layer are
stacked; export.py splits them. There is no key-value cache.

Dimension letters: B sequences, T tokens, D model, H heads, Cq and C latent ranks, N, R, V the
non-rotary, rotary, and value head widths, E experts, K chosen experts, F expert width.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from indexer import Indexer

LORA_NORM_EPS = 1e-6  # the norms inside the low-rank projections use this whatever the config says


def tiny_config():
    """config.json of the tiny model, with the keys of the DeepSeek-V3 files."""
    return dict(
        architectures=["DeepseekV3ForCausalLM"], model_type="deepseek_v3", torch_dtype="bfloat16",
        vocab_size=2048, hidden_size=192, intermediate_size=512, moe_intermediate_size=96,
        num_hidden_layers=4, num_nextn_predict_layers=1, num_attention_heads=6,
        num_key_value_heads=6, q_lora_rank=96, kv_lora_rank=64, qk_nope_head_dim=32,
        qk_rope_head_dim=16, v_head_dim=32, n_routed_experts=16, n_shared_experts=1,
        num_experts_per_tok=2, n_group=4, topk_group=2, topk_method="noaux_tc",
        scoring_func="sigmoid", norm_topk_prob=True, routed_scaling_factor=1.5,
        first_k_dense_replace=1, moe_layer_freq=1, ep_size=1, hidden_act="silu",
        max_position_embeddings=4096, rope_theta=10000.0,
        rope_scaling=dict(type="yarn", factor=4.0, original_max_position_embeddings=1024,
                          beta_fast=32.0, beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0),
        rms_norm_eps=1e-6, initializer_range=0.02, attention_bias=False, attention_dropout=0.0,
        tie_word_embeddings=False, use_cache=True, bos_token_id=0, eos_token_id=1, pad_token_id=2,
        pretraining_tp=1)


def tiny_sparse_config():
    """config.json of tiny-sparse, with the keys of the DeepSeek-V3.2 files."""
    return tiny_config() | dict(
        architectures=["DeepseekV32ForCausalLM"], model_type="deepseek_v32",
        index_n_heads=8, index_head_dim=32, index_topk=64)


def yarn_mscale(factor, mscale):
    """Attention temperature of YaRN (Peng et al. 2023, eq. 22, in DeepSeek's parametrisation)."""
    return 1.0 if factor <= 1 else 0.1 * mscale * math.log(factor) + 1.0


def yarn_frequencies(config):
    """Angle per position of each rotary pair. Shapes: [R/2], fp32."""
    width, base, scaling = config["qk_rope_head_dim"], config["rope_theta"], config["rope_scaling"]
    pairs = torch.arange(width // 2, dtype=torch.float64)
    plain = base ** (-2 * pairs / width)

    def correction(rotations):
        span = scaling["original_max_position_embeddings"] / (2 * math.pi * rotations)
        return width * math.log(span) / (2 * math.log(base))

    low = max(math.floor(correction(scaling["beta_fast"])), 0)
    high = min(math.ceil(correction(scaling["beta_slow"])), width - 1)
    ramp = ((pairs - low) / (high - low if high > low else 0.001)).clamp(0, 1)
    return (plain / scaling["factor"] * ramp + plain * (1 - ramp)).float()


def rotate(x, cos, sin):
    """Interleaved rotation: the pair (x[2j], x[2j+1]). Shapes: x [..., T, R]; cos, sin [T, R/2]."""
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


class RMSNorm(nn.Module):
    """x * rsqrt(mean(x^2) + eps) * weight over the last dimension."""

    def __init__(self, width, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x):
        return F.rms_norm(x, (x.shape[-1],), self.weight, self.eps)


def linear(width_in, width_out):
    return nn.Linear(width_in, width_out, bias=False)


class Attention(nn.Module):
    """MLA in its expanded form: keys and values are rebuilt from the latent, then MHA.

    With an indexer, a token attends to the index_topk keys that it chooses.
    """

    def __init__(self, config):
        super().__init__()
        width, self.heads = config["hidden_size"], config["num_attention_heads"]
        self.n, self.r = config["qk_nope_head_dim"], config["qk_rope_head_dim"]
        self.v, self.c = config["v_head_dim"], config["kv_lora_rank"]
        c_q = config["q_lora_rank"]
        self.q_a_proj = linear(width, c_q)
        self.q_a_layernorm = RMSNorm(c_q, LORA_NORM_EPS)
        self.q_b_proj = linear(c_q, self.heads * (self.n + self.r))
        self.kv_a_proj_with_mqa = linear(width, self.c + self.r)
        self.kv_a_layernorm = RMSNorm(self.c, LORA_NORM_EPS)
        self.kv_b_proj = linear(self.c, self.heads * (self.n + self.v))
        self.o_proj = linear(self.heads * self.v, width)
        self.indexer = Indexer(config) if "index_topk" in config else None
        scaling = config["rope_scaling"]
        self.scale = ((self.n + self.r) ** -0.5
                      * yarn_mscale(scaling["factor"], scaling["mscale_all_dim"]) ** 2)
        self.rope_gain = (yarn_mscale(scaling["factor"], scaling["mscale"])
                          / yarn_mscale(scaling["factor"], scaling["mscale_all_dim"]))

    def project(self, h, cos, sin):
        """h [B, T, D] (normed); cos, sin [T, R/2].

        Returns the query latent c_q [B, T, Cq], and q, k [B, H, T, N+R], v [B, H, T, V].
        """
        b, t, _ = h.shape
        c_q = self.q_a_layernorm(self.q_a_proj(h))
        q = self.q_b_proj(c_q).view(b, t, self.heads, self.n + self.r).transpose(1, 2)
        q_nope, q_rope = q.split([self.n, self.r], dim=-1)
        c_kv, k_rope = self.kv_a_proj_with_mqa(h).split([self.c, self.r], dim=-1)
        k_rope = rotate(k_rope, cos, sin).unsqueeze(1).expand(b, self.heads, t, self.r)
        kv = self.kv_b_proj(self.kv_a_layernorm(c_kv))
        k_nope, v = kv.view(b, t, self.heads, self.n + self.v).transpose(1, 2).split(
            [self.n, self.v], dim=-1)
        q = torch.cat((q_nope, rotate(q_rope, cos, sin)), dim=-1)
        return c_q, q, torch.cat((k_nope, k_rope), dim=-1), v

    def forward(self, h, cos, sin):
        """h [B, T, D] (normed); cos, sin [T, R/2]. Returns [B, T, D]."""
        b, t, _ = h.shape
        c_q, q, k, v = self.project(h, cos, sin)
        sparse = self.indexer is not None and t > self.indexer.topk
        chosen = self.indexer.choose(h, c_q, cos, sin).unsqueeze(1) if sparse else None
        # The fused kernel takes values as wide as the keys; on a CPU it is several times faster.
        v = F.pad(v, (0, self.n + self.r - self.v))
        o = F.scaled_dot_product_attention(q, k, v, attn_mask=chosen, is_causal=not sparse,
                                           scale=self.scale)
        return self.o_proj(o[..., :self.v].transpose(1, 2).reshape(b, t, self.heads * self.v))


class Mlp(nn.Module):
    """W_down(silu(W_gate x) * (W_up x))."""

    def __init__(self, width, inner):
        super().__init__()
        self.gate_proj = linear(width, inner)
        self.up_proj = linear(width, inner)
        self.down_proj = linear(inner, width)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Router(nn.Module):
    """Sigmoid scores, group-limited choice with a bias that balances the load and nothing else."""

    def __init__(self, config):
        super().__init__()
        experts = config["n_routed_experts"]
        self.groups, self.top_groups = config["n_group"], config["topk_group"]
        self.k, self.scaling = config["num_experts_per_tok"], config["routed_scaling_factor"]
        self.normalise = config["norm_topk_prob"]
        self.weight = nn.Parameter(torch.empty(experts, config["hidden_size"]))
        self.register_buffer("e_score_correction_bias", torch.zeros(experts))
        self.register_buffer("load", torch.zeros(experts), persistent=False)

    def forward(self, x):
        """x [T, D]. Returns chosen experts [T, K] and their weights [T, K]."""
        scores = torch.sigmoid(F.linear(x.float(), self.weight.float()))
        with torch.no_grad():
            choice = (scores + self.e_score_correction_bias).view(len(x), self.groups, -1)
            group_scores = choice.topk(2, dim=-1).values.sum(-1)
            kept = group_scores.topk(self.top_groups, dim=-1, sorted=False).indices
            outside = torch.ones_like(group_scores, dtype=torch.bool).scatter_(1, kept, False)
            choice = choice.masked_fill(outside.unsqueeze(-1), -math.inf).flatten(1)
            chosen = choice.topk(self.k, dim=-1, sorted=False).indices
            if self.training:
                self.load += torch.bincount(chosen.flatten(), minlength=len(self.load))
        weights = scores.gather(1, chosen)
        if self.normalise:
            weights = weights / (weights.sum(-1, keepdim=True) + 1e-20)
        return chosen, weights * self.scaling

    @torch.no_grad()
    def balance(self, gamma):
        """Moves each bias by gamma towards an even load, and starts a new count.

        Source: the auxiliary-loss-free rule of the DeepSeek-V3 report, section 2.1.2.
        """
        self.e_score_correction_bias += gamma * torch.sign(self.load.mean() - self.load)
        self.load.zero_()


class Experts(nn.Module):
    """The routed experts. gate_up_proj [E, 2F, D] (gate rows first), down_proj [E, D, F]."""

    def __init__(self, config):
        super().__init__()
        count, inner = config["n_routed_experts"], config["moe_intermediate_size"]
        self.gate_up_proj = nn.Parameter(torch.empty(count, 2 * inner, config["hidden_size"]))
        self.down_proj = nn.Parameter(torch.empty(count, config["hidden_size"], inner))

    def forward(self, x, chosen, weights):
        """x [T, D]; chosen, weights [T, K]. Returns the weighted sum [T, D]."""
        k = chosen.shape[1]
        order = chosen.flatten().argsort(stable=True)
        counts = torch.bincount(chosen.flatten(), minlength=len(self.gate_up_proj)).tolist()
        tokens = order // k
        parts = x.index_select(0, tokens).split(counts)
        gate_up = torch.cat([part @ w.t() for part, w in zip(parts, self.gate_up_proj.unbind())])
        gate, up = gate_up.chunk(2, dim=-1)
        inner = F.silu(gate) * up * weights.flatten().index_select(0, order).unsqueeze(-1)
        y = torch.cat([part @ w.t() for part, w in zip(inner.split(counts),
                                                       self.down_proj.unbind())])
        return torch.zeros_like(x).index_add(0, tokens, y)


class MoE(nn.Module):
    """Routed experts plus one shared expert."""

    def __init__(self, config):
        super().__init__()
        self.gate = Router(config)
        self.experts = Experts(config)
        self.shared_experts = Mlp(config["hidden_size"],
                                  config["n_shared_experts"] * config["moe_intermediate_size"])

    def forward(self, x):
        flat = x.flatten(0, 1)
        return (self.experts(flat, *self.gate(flat)) + self.shared_experts(flat)).view_as(x)


class DecoderLayer(nn.Module):
    """Pre-norm attention and feed-forward, each with a residual."""

    def __init__(self, config, layer_idx):
        super().__init__()
        width, eps = config["hidden_size"], config["rms_norm_eps"]
        self.input_layernorm = RMSNorm(width, eps)
        self.self_attn = Attention(config)
        self.post_attention_layernorm = RMSNorm(width, eps)
        dense = layer_idx < config["first_k_dense_replace"]
        self.mlp = Mlp(width, config["intermediate_size"]) if dense else MoE(config)

    def forward(self, h, cos, sin):
        h = h + self.self_attn(self.input_layernorm(h), cos, sin)
        return h + self.mlp(self.post_attention_layernorm(h))


class MtpLayer(DecoderLayer):
    """Predicts the token after next; shares the embedding and the head of the main model."""

    def __init__(self, config):
        super().__init__(config, config["num_hidden_layers"])
        width, eps = config["hidden_size"], config["rms_norm_eps"]
        self.enorm = RMSNorm(width, eps)
        self.hnorm = RMSNorm(width, eps)
        self.eh_proj = linear(2 * width, width)
        self.shared_head = nn.ModuleDict(dict(norm=RMSNorm(width, eps)))

    def forward(self, embedded_next, g, cos, sin):
        """embedded_next [B, T, D] of token t+1; g [B, T, D] main hidden after the final norm."""
        u = self.eh_proj(torch.cat((self.enorm(embedded_next), self.hnorm(g)), dim=-1))
        return self.shared_head["norm"](super().forward(u, cos, sin))


class TinyModel(nn.Module):
    """The language model with its MTP layer (layer index num_hidden_layers)."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        layers = [DecoderLayer(config, i) for i in range(config["num_hidden_layers"])]
        self.model = nn.ModuleDict(dict(
            embed_tokens=nn.Embedding(config["vocab_size"], config["hidden_size"]),
            layers=nn.ModuleList(layers + [MtpLayer(config)]),
            norm=RMSNorm(config["hidden_size"], config["rms_norm_eps"])))
        self.lm_head = linear(config["hidden_size"], config["vocab_size"])
        angles = torch.outer(torch.arange(config["max_position_embeddings"]).float(),
                             yarn_frequencies(config))
        gain = layers[0].self_attn.rope_gain
        self.register_buffer("cos", angles.cos() * gain, persistent=False)
        self.register_buffer("sin", angles.sin() * gain, persistent=False)

    def init_weights(self, seed):
        """Normal weights that keep activations near unit size.

        Projections that write to the residual stream are scaled down by its depth; the head starts
        as a small copy of the embedding, so that copying a token is easy to find.
        """
        torch.manual_seed(seed)
        depth = 2 * len(self.model["layers"])
        for name, parameter in self.named_parameters():
            if parameter.ndim > 1:
                writes = name.endswith(("o_proj.weight", "down_proj.weight", "down_proj"))
                variance = 1 / (parameter.shape[-1] * (depth if writes else 1))
                nn.init.normal_(parameter, std=math.sqrt(variance))
        nn.init.normal_(self.model["embed_tokens"].weight, std=0.5)
        with torch.no_grad():
            self.lm_head.weight.copy_(self.model["embed_tokens"].weight * 0.06)

    def hidden(self, tokens):
        """tokens [B, T]. Returns the hidden after the final norm [B, T, D]."""
        cos, sin = self.cos[:tokens.shape[1]], self.sin[:tokens.shape[1]]
        h = self.model["embed_tokens"](tokens)
        for layer in self.model["layers"][:-1]:
            h = layer(h, cos, sin)
        return self.model["norm"](h)

    def mtp_hidden(self, next_tokens, g):
        """next_tokens [B, T] (token t+1), g [B, T, D]. Returns [B, T, D], head input for t+2."""
        cos, sin = self.cos[:g.shape[1]], self.sin[:g.shape[1]]
        return self.model["layers"][-1](self.model["embed_tokens"](next_tokens), g, cos, sin)

    def forward(self, tokens):
        """tokens [B, T]. Returns logits [B, T, vocabulary]."""
        return self.lm_head(self.hidden(tokens))

    def routers(self):
        return [module for module in self.modules() if isinstance(module, Router)]
