"""The DeepSeek V2/V3 decoder in fp64 NumPy: what Latte's golden logits mean.

Read it next to docs/math/mla.md; the names are the same. It goes for clarity, not speed, and does
one sequence from position 0, without quantisation.

Sources: "V2" is the DeepSeek-V2 paper (arXiv:2405.04434), "V3" the DeepSeek-V3 technical report
(arXiv:2412.19437), "V3.2" the DeepSeek-V3.2 report, "YaRN" is arXiv:2309.00071. Linear weights are [out, in], as in checkpoints.

Dimension letters: T new tokens, S cached tokens, D model, H heads, C and Cq latent ranks,
N, R, V nope/rope/value head dims, E experts, K chosen experts.
"""

import math
from dataclasses import dataclass, field

import numpy as np

# ----------------------------------------------------------------------------- small functions


def rms_norm(x, weight, eps):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * weight


def layer_norm(x, weight, bias, eps):
    x = x - x.mean(axis=-1, keepdims=True)
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * weight + bias


def silu(x):
    return x / (1.0 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


# ----------------------------------------------------------------------------- RoPE and YaRN


def yarn_mscale(factor, mscale):
    """YaRN's sqrt(1/t) = 0.1 * ln(factor) + 1, with DeepSeek's multiplier `mscale`."""
    return 1.0 if factor <= 1.0 else 0.1 * mscale * math.log(factor) + 1.0


def yarn_range(rope, dim):
    """The pair indices between which YaRN blends: below `low` untouched, above `high` divided."""

    def pair_turning(turns):  # the (fractional) pair that turns this often in the original context
        span = rope["original_max_position_embeddings"] / (turns * 2.0 * math.pi)
        return dim * math.log(span) / (2.0 * math.log(rope["rope_theta"]))

    low = pair_turning(rope.get("beta_fast") or 32.0)
    high = pair_turning(rope.get("beta_slow") or 1.0)
    if rope.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    return max(low, 0), min(high, dim - 1)


def rope_frequencies(rope, dim):
    """f_j, one per rotated pair: [dim/2]. YaRN holds at every position, not only far ones."""
    j = np.arange(dim // 2)
    theta = float(rope["rope_theta"]) ** (-2.0 * j / dim)
    if rope["rope_type"] == "longrope":
        return theta / np.array(rope["long_factor" if rope["is_long"] else "short_factor"])
    if rope["rope_type"] != "yarn":
        return theta
    low, high = yarn_range(rope, dim)
    if low == high:
        high += 0.001
    ramp = np.clip((j - low) / (high - low), 0.0, 1.0)
    return theta / rope["factor"] * ramp + theta * (1.0 - ramp)


def rope_magnitude(rope):
    """The factor on cos and sin; 1 whenever mscale == mscale_all_dim, as in all published files."""
    if rope["rope_type"] == "longrope":
        return rope["attention_factor"]
    if rope["rope_type"] != "yarn":
        return 1.0
    if rope.get("attention_factor") is not None:
        return rope["attention_factor"]
    on_cos_sin = yarn_mscale(rope["factor"], rope.get("mscale", 1.0))
    on_softmax = yarn_mscale(rope["factor"], rope.get("mscale_all_dim", 0.0))
    return on_cos_sin / on_softmax


def softmax_scale(rope, n, r):
    """(N + R)^-1/2, times the squared YaRN mscale. The same in the absorbed form."""
    scale = (n + r) ** -0.5
    if rope["rope_type"] == "yarn" and rope.get("mscale_all_dim"):
        scale *= yarn_mscale(rope["factor"], rope["mscale_all_dim"]) ** 2
    return scale


@dataclass
class Trace:
    """The decisions: (logits, bias, Routing) of MoE layers, margins [T] of chosen keys."""

    routings: list = field(default_factory=list)
    cuts: list = field(default_factory=list)

    def margin(self):
        """By how little the closest decision of each token was taken [T]; None without decisions."""
        margins = [routing.margin for _, _, routing in self.routings] + self.cuts
        return np.min(margins, axis=0) if margins else None


def query_temperature(rope, positions):
    """t(p) = 1 + beta * ln(1 + floor(p / original)) [T]: 1 without llama_4_scaling_beta."""
    periods = positions // rope.get("original_max_position_embeddings", 1)
    return 1.0 + rope.get("llama_4_scaling_beta", 0.0) * np.log(1.0 + periods)


def apply_rope(x, positions, config, interleave=None):
    """Rotates x [T, ..., R] by its row's position.

    Pairs are neighbours, (2j, 2j+1), if `interleave` (None: config.rope_interleave), else (j, j+R/2).
    """
    interleave = config.rope_interleave if interleave is None else interleave
    if not config.use_rope:
        return x
    angle = positions[:, None] * rope_frequencies(config.rope, config.r)  # [T, R/2]
    angle = angle.reshape(len(positions), *[1] * (x.ndim - 2), config.r // 2)
    magnitude = rope_magnitude(config.rope)
    cos, sin = np.cos(angle) * magnitude, np.sin(angle) * magnitude
    half = config.r // 2
    first = np.s_[..., 0::2] if interleave else np.s_[..., :half]
    second = np.s_[..., 1::2] if interleave else np.s_[..., half:]
    out = np.empty_like(x)
    out[first] = x[first] * cos - x[second] * sin
    out[second] = x[first] * sin + x[second] * cos
    return out


# ----------------------------------------------------------------------------- attention


@dataclass(frozen=True)
class MlaWeights:
    """One layer's projections, split as in V2 eq. 9-19. Absent biases and norms are None."""

    w_dq: np.ndarray  # [Cq, D]; None without q_lora
    w_uq: np.ndarray  # [H, N, Cq]; [H, N, D] without q_lora
    w_qr: np.ndarray  # [H, R, Cq]; [H, R, D] without q_lora
    w_dkv: np.ndarray  # [C, D]
    w_kr: np.ndarray  # [R, D]
    w_uk: np.ndarray  # [H, N, C]
    w_uv: np.ndarray  # [H, V, C]
    w_o: np.ndarray  # [D, H*V]
    q_norm: np.ndarray  # [Cq]
    kv_norm: np.ndarray  # [C]
    b_dq: np.ndarray = None  # [Cq]
    b_dkv: np.ndarray = None  # [C]
    b_kr: np.ndarray = None  # [R]
    b_o: np.ndarray = None  # [D]


def split_mla_weights(tensors, prefix, config):
    """Cuts the Hugging Face matrices into the paper's.

    Within a head the nope rows come first, then the rope rows (queries) or value rows (kv_b).
    """

    def get(name):
        return tensors.get(prefix + name)

    h, n, r, v, c = config.h, config.n, config.r, config.v, config.c
    q = get("q_b_proj.weight" if config.cq else "q_proj.weight").reshape(h, n + r, -1)
    kv_a, kv_a_bias = get("kv_a_proj_with_mqa.weight"), get("kv_a_proj_with_mqa.bias")
    kv_b = get("kv_b_proj.weight").reshape(h, n + v, c)
    return MlaWeights(
        w_dq=get("q_a_proj.weight"),
        w_uq=q[:, :n],
        w_qr=q[:, n:],
        w_dkv=kv_a[:c],
        w_kr=kv_a[c:],
        w_uk=kv_b[:, :n],
        w_uv=kv_b[:, n:],
        w_o=get("o_proj.weight"),
        q_norm=get("q_a_layernorm.weight"),
        kv_norm=get("kv_a_layernorm.weight"),
        b_dq=get("q_a_proj.bias"),
        b_dkv=None if kv_a_bias is None else kv_a_bias[:c],
        b_kr=None if kv_a_bias is None else kv_a_bias[c:],
        b_o=get("o_proj.bias"),
    )


def _linear(x, weight, bias=None):
    y = x @ weight.T
    return y if bias is None else y + bias


def query_latent(h, w, config):
    """h [T, D] -> c_q [T, Cq]; h itself without q_lora. V2 eq. 12."""
    if w.w_dq is None:
        return h
    return rms_norm(_linear(h, w.w_dq, w.b_dq), w.q_norm, config.lora_norm_eps)


def project_queries(h, w, positions, config):
    """h [T, D] -> q_nope [T, H, N], q_rope [T, H, R], rotated. V2 eq. 12-14.

    Mistral 4 multiplies both by the temperature of the position.
    """
    c_q = query_latent(h, w, config)
    q_nope = np.einsum("tc,hnc->thn", c_q, w.w_uq)
    q_rope = apply_rope(np.einsum("tc,hrc->thr", c_q, w.w_qr), positions, config)
    t = query_temperature(config.rope, positions)[:, None, None]
    return q_nope * t, q_rope * t


def project_latents(h, w, positions, config):
    """h [T, D] -> c_kv [T, C], normalised, k_rope [T, R], rotated: the cache. V2 eq. 9, 15."""
    c_kv = rms_norm(_linear(h, w.w_dkv, w.b_dkv), w.kv_norm, config.lora_norm_eps)
    k_rope = apply_rope(_linear(h, w.w_kr, w.b_kr), positions, config)
    return c_kv, k_rope


def attend(scores, values, visible):
    """softmax(scores) @ values over the visible keys.

    Shapes: scores [H, T, S], values [H, S, X] or [S, X], visible [T, S] -> o [T, H, X], lse [T, H].
    A query that sees no key gets o = 0 and lse = -inf.
    """
    scores = np.where(visible, scores, -np.inf)
    peak = scores.max(axis=-1, keepdims=True)
    peak = np.where(np.isneginf(peak), 0.0, peak)  # else -inf - -inf is NaN
    p = np.exp(scores - peak)
    total = p.sum(axis=-1, keepdims=True)
    o = (p @ values) / np.where(total > 0.0, total, 1.0)
    with np.errstate(divide="ignore"):
        lse = peak + np.log(total)
    return o.transpose(1, 0, 2), lse[..., 0].T


def attend_expanded(q_nope, q_rope, c_kv, k_rope, w, scale, visible):
    """Every head gets its own keys and values back from the latents -> o [T, H, V], lse [T, H].

    V2 eq. 10, 11, 16-18.
    """
    k_nope = np.einsum("sc,hnc->hsn", c_kv, w.w_uk)
    v = np.einsum("sc,hvc->hsv", c_kv, w.w_uv)
    scores = q_nope.transpose(1, 0, 2) @ k_nope.transpose(0, 2, 1)
    scores = scores + q_rope.transpose(1, 0, 2) @ k_rope.T
    return attend(scale * scores, v, visible)


def attend_absorbed(q_nope, q_rope, c_kv, k_rope, w, scale, visible):
    """All heads read the latents themselves -> o [T, H, V], lse [T, H].

    V2 section 2.1.2: W_UK moves into the query, W_UV out of the sum.
    """
    q_latent = np.einsum("thn,hnc->thc", q_nope, w.w_uk)
    scores = q_latent.transpose(1, 0, 2) @ c_kv.T + q_rope.transpose(1, 0, 2) @ k_rope.T
    o_latent, lse = attend(scale * scores, c_kv, visible)
    return np.einsum("thc,hvc->thv", o_latent, w.w_uv), lse


def merge_by_lse(parts):
    """Joins attention over disjoint key sets: [(o [T, H, V], lse [T, H])] -> (o, lse).

    A part with lse = -inf saw nothing; it is selected away, not multiplied, so its o may be NaN.
    """
    lses = np.stack([lse for _, lse in parts])
    lses = np.where(np.isposinf(lses), -np.inf, lses)  # some kernels mark an empty part with +inf
    peak = lses.max(axis=0)
    peak = np.where(np.isneginf(peak), 0.0, peak)
    weights = np.exp(lses - peak)  # [parts, T, H]
    total = weights.sum(axis=0)
    share = weights / np.where(total > 0.0, total, 1.0)
    o = sum(
        np.where(s[..., None] > 0.0, s[..., None] * part_o, 0.0)
        for s, (part_o, _) in zip(share, parts, strict=True)
    )
    with np.errstate(divide="ignore"):
        return o, peak + np.log(total)


def attend_chunked(form, chunk, q_nope, q_rope, c_kv, k_rope, w, scale, visible):
    """`form` over S in chunks, then merged: prefill in a bounded workspace."""
    parts = []
    for begin in range(0, len(c_kv), chunk):
        s = slice(begin, begin + chunk)
        parts.append(form(q_nope, q_rope, c_kv[s], k_rope[s], w, scale, visible[:, s]))
    return merge_by_lse(parts)


def index_scores(h, c_q, tensors, prefix, config):
    """The lightning indexer: how much token t wants key s -> [T, S]. V3.2 section 2.1, eq. 1.

    The positive factor (heads * width)^-1/2 of published code is left out: it changes no choice.
    """
    positions = np.arange(len(h))
    rope = config.r if config.use_rope else 0

    def rotate(x):
        rotated = apply_rope(x[..., :rope], positions, config, config.index_interleave)
        return np.concatenate((rotated, x[..., rope:]), axis=-1)

    q = c_q @ tensors[prefix + "wq_b.weight"].T
    q = rotate(q.reshape(len(h), config.index_heads, -1))
    norm = tensors[prefix + "k_norm.weight"], tensors[prefix + "k_norm.bias"]
    k = rotate(layer_norm(h @ tensors[prefix + "wk.weight"].T, *norm, 1e-6))
    weights = h @ tensors[prefix + "weights_proj.weight"].T
    return np.einsum("th,ths->ts", weights, np.maximum(np.einsum("thw,sw->ths", q, k), 0.0))


def choose_keys(scores, visible, topk):
    """The `topk` best visible keys, ties to the lower index: mask [T, S] and gap to the next [T]."""
    scores = np.where(visible, scores, -np.inf)
    if topk >= scores.shape[1]:
        return visible, np.full(len(scores), np.inf)
    with np.errstate(invalid="ignore"):  # a token that sees fewer keys
        best, margin = _best(scores, topk)
    chosen = np.zeros_like(visible)
    np.put_along_axis(chosen, best, True, axis=-1)
    few = visible.sum(axis=-1) <= topk
    return chosen & visible, np.where(few, np.inf, margin)


def mla(h, w, config, form=attend_expanded, chunk=None, chosen=None):
    """The whole attention block on one sequence: h [T, D] -> u [T, D].

    `chosen` [T, T]: the keys that sparse attention keeps; None: all.
    """
    positions = np.arange(len(h))
    q_nope, q_rope = project_queries(h, w, positions, config)
    c_kv, k_rope = project_latents(h, w, positions, config)
    visible = positions[:, None] >= positions[None, :]
    if chosen is not None:
        visible = visible & chosen
    scale = softmax_scale(config.rope, config.n, config.r)
    args = (q_nope, q_rope, c_kv, k_rope, w, scale, visible)
    o, _ = form(*args) if chunk is None else attend_chunked(form, chunk, *args)
    return _linear(o.reshape(len(h), -1), w.w_o, w.b_o)


# ----------------------------------------------------------------------------- experts


@dataclass(frozen=True)
class Routing:
    """Chosen experts [T, K], their weights [T, K], and by how little it was decided [T]."""

    experts: np.ndarray
    weights: np.ndarray
    margin: np.ndarray


def _best(scores, count):
    """The `count` largest per row, ties to the lower index, and their gap to the next one."""
    order = np.argsort(-scores, axis=-1, kind="stable")
    ranked = np.take_along_axis(scores, order, axis=-1)
    refused = ranked[:, count] if count < scores.shape[-1] else -np.inf
    return order[:, :count], ranked[:, count - 1] - refused


def route(logits, bias, config, excluded_score=-np.inf):
    """Router logits [T, E] -> Routing. V2 eq. 20-22 and section 2.2.2; V3 eq. 12-16.

    `bias` [E] or None steers the choice only; the weights come from the plain scores.
    """
    scores = softmax(logits) if config.scoring == "softmax" else 1.0 / (1.0 + np.exp(-logits))
    choice = scores if bias is None else scores + bias
    margin = np.full(len(logits), np.inf)
    if config.topk_method != "greedy" and config.groups > 1:
        grouped = choice.reshape(len(choice), config.groups, -1)
        if config.topk_method == "noaux_tc":
            group_scores = np.sort(grouped, axis=-1)[..., -2:].sum(axis=-1)
        else:  # group_limited_greedy
            group_scores = grouped.max(axis=-1)
        kept, margin = _best(group_scores, config.topk_group)
        keep = np.zeros(group_scores.shape, dtype=bool)
        np.put_along_axis(keep, kept, True, axis=-1)
        choice = np.where(keep[..., None], grouped, excluded_score).reshape(choice.shape)
    experts, gap = _best(choice, config.k)
    weights = np.take_along_axis(scores, experts, axis=-1)
    normalise = config.norm_topk and (config.k > 1 or config.scale_after_norm)
    if normalise:
        weights = weights / (weights.sum(axis=-1, keepdims=True) + 1e-20)
    if not normalise or config.scale_after_norm:
        weights = weights * config.routed_scaling
    return Routing(experts, weights, np.minimum(margin, gap))


def gated_mlp(x, tensors, prefix):
    gate, up, down = (tensors[f"{prefix}{part}_proj.weight"] for part in ("gate", "up", "down"))
    return (silu(x @ gate.T) * (x @ up.T)) @ down.T


def moe(x, tensors, prefix, config, trace=None):
    """x [T, D] -> [T, D]: the weighted chosen experts plus the shared ones, never scaled."""
    logits = x @ tensors[prefix + "gate.weight"].T
    bias = tensors.get(prefix + "gate.e_score_correction_bias")
    routing = route(logits, bias, config)
    if trace is not None:
        trace.routings.append((logits, bias, routing))
    out = np.zeros_like(x)
    for e in np.unique(routing.experts):
        token, slot = np.nonzero(routing.experts == e)
        y = gated_mlp(x[token], tensors, f"{prefix}experts.{e}.")
        out[token] += routing.weights[token, slot, None] * y
    if prefix + "shared_experts.gate_proj.weight" in tensors:
        out += gated_mlp(x, tensors, prefix + "shared_experts.")
    return out


# ----------------------------------------------------------------------------- the decoder


def decoder_layer(
    x,
    tensors,
    prefix,
    config,
    sparse,
    form=attend_expanded,
    chunk=None,
    trace=None,
    chosen=None,
    first_choice=None,
):
    """x [T, D] -> [T, D]: attention and feed-forward, each with a residual; and the keys chosen.

    `chosen` [T, T] are the keys that the layer before attended to: a layer without an indexer
    attends to the same ones. `first_choice`: as of mtp_layer.
    """
    h = rms_norm(x, tensors[prefix + "input_layernorm.weight"], config.eps)
    w = split_mla_weights(tensors, prefix + "self_attn.", config)
    if prefix + "self_attn.indexer.wk.weight" in tensors:
        c_q = query_latent(h, w, config)
        scores = index_scores(h, c_q, tensors, prefix + "self_attn.indexer.", config)
        visible = np.tril(np.ones(scores.shape, dtype=bool))
        chosen, margin = choose_keys(scores, visible, config.index_topk)
        if first_choice is not None:
            chosen[len(first_choice) :] = False
            chosen[len(first_choice) :, : len(first_choice)] = first_choice
        if trace is not None:
            trace.cuts.append(margin)
    x = x + config.residual_scale * mla(h, w, config, form, chunk, chosen)
    y = rms_norm(x, tensors[prefix + "post_attention_layernorm.weight"], config.eps)
    if not sparse:
        return x + config.residual_scale * gated_mlp(y, tensors, prefix + "mlp."), chosen
    y = moe(y, tensors, prefix + "mlp.", config, trace)
    if config.post_mlp_norm:
        y = rms_norm(y, tensors[prefix + "post_mlp_layernorm.weight"], config.eps)
    return x + y, chosen


def hidden(tokens, tensors, config, form=attend_expanded, chunk=None, trace=None):
    """Token ids [T] -> hidden states [T, D] after the final norm."""
    x = config.embedding_scale * tensors["model.embed_tokens.weight"][np.asarray(tokens)]
    chosen = None
    for i in range(config.layers):
        prefix = f"model.layers.{i}."
        sparse = config.moe_layers[i]
        x, chosen = decoder_layer(x, tensors, prefix, config, sparse, form, chunk, trace, chosen)
    return rms_norm(x, tensors["model.norm.weight"], config.eps)


def forward(tokens, tensors, config, form=attend_expanded, chunk=None, trace=None):
    """Token ids [T] -> logits [T, vocab].

    `trace`, a Trace, collects what layers decide.
    """
    head = tensors.get("lm_head.weight", tensors["model.embed_tokens.weight"])  # absent: tied
    return config.head_scale * hidden(tokens, tensors, config, form, chunk, trace) @ head.T


def mtp_layer(k, g, following, tensors, config, trace=None, first_choice=None):
    """MTP layer k, counted from 0: rows [T, D] and the token that each takes -> z [T, D], the keys chosen.

    Row t takes g of position t and token t+k+1; z, after the norm of the layer's head, gives the
    logits of token t+k+2. V3 section 2.2, eq. 21-23; the embedding half of eh_proj comes first.
    `first_choice` [S]: the keys that rows from S on attend to, in place of their own choice.
    """
    p = f"model.layers.{config.layers + k}."
    embedding = tensors.get(p + "embed_tokens.weight", tensors["model.embed_tokens.weight"])
    e = rms_norm(embedding[np.asarray(following)], tensors[p + "enorm.weight"], config.eps)
    g = rms_norm(g, tensors[p + "hnorm.weight"], config.eps)
    u = np.concatenate((e, g), axis=-1) @ tensors[p + "eh_proj.weight"].T
    sparse = any(config.moe_layers)
    z, chosen = decoder_layer(
        u, tensors, p, config, sparse, trace=trace, first_choice=first_choice
    )
    return rms_norm(z, tensors[p + "shared_head.norm.weight"], config.eps), chosen


def mtp_logits(k, z, tensors, config):
    own_head = tensors.get("lm_head.weight", tensors["model.embed_tokens.weight"])
    name = f"model.layers.{config.layers + k}.shared_head.head.weight"
    return z @ tensors.get(name, own_head).T


def draft(tokens, tensors, config, trace=None):
    """The first MTP layer's logits [T-1, vocab] for token t+2, from the state at t and token t+1."""
    g = hidden(tokens, tensors, config)[:-1]
    z, _ = mtp_layer(0, g, tokens[1:], tensors, config, trace)
    return mtp_logits(0, z, tensors, config)


def further_drafts(tokens, tensors, config, count, trace=None):
    """Logits [count, vocab] of the drafts after `tokens`, the last of which is not computed yet.

    Layers draft in turn. The first time, layer k has a row at every position t that is computed, which
    takes token t+k+1: a draft, where the text ends before. After that it has one more row each time, at
    the next position, of the last draft and the state that the draft was made from.
    """
    text = list(tokens)
    g = hidden(text[:-1], tensors, config)
    computed = len(g)
    states, following = {}, {}  # by layer: its rows
    first_choice = None
    out = []
    for draft_index in range(count):
        turn, k = divmod(draft_index, config.mtp_layers)
        if turn == 0:
            states[k], following[k] = g, text[k + 1 : k + 1 + computed]
        else:
            states[k] = np.concatenate((states[k], g[-1:]))
            following[k].append(text[-1])
        g, chosen = mtp_layer(k, states[k], following[k], tensors, config, trace, first_choice)
        if config.mtp_shares_keys and config.mtp_layers == 1 and first_choice is None:
            first_choice = chosen[-1]
        out.append(mtp_logits(k, g[-1], tensors, config))
        text.append(int(np.argmax(out[-1])))
    return np.array(out)
