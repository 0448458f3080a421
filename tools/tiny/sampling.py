"""Batched sampling from the tiny model with a cache of latents (the absorbed form of MLA).

The cache of a layer holds, per token, c_kv after its norm and k_rope after its rotation, and
nothing else: [B, S, C + R]. Keys and values are never rebuilt (DeepSeek-V2 report, section 2.1.2).
Every token attends to all tokens before it; an indexer is not used.
"""

import torch

from model import rotate


class Decoder:
    """Feeds one token per sequence and step. Not thread-safe; holds the caches of one batch."""

    def __init__(self, network):
        self.network = network
        self.layers = list(network.model["layers"][:-1])
        self.caches = [None] * len(self.layers)
        self.position = 0

    def _attend(self, layer_idx, h):
        """h [B, D] (normed). Returns the attention output [B, D]."""
        attention = self.layers[layer_idx].self_attn
        cos, sin = self.network.cos[self.position], self.network.sin[self.position]
        b = len(h)
        c_q = attention.q_a_layernorm(attention.q_a_proj(h))
        q_nope, q_rope = attention.q_b_proj(c_q).view(b, attention.heads, -1).split(
            [attention.n, attention.r], dim=-1)
        c_kv, k_rope = attention.kv_a_proj_with_mqa(h).split([attention.c, attention.r], dim=-1)
        row = torch.cat((attention.kv_a_layernorm(c_kv), rotate(k_rope, cos, sin)), dim=-1)
        old = self.caches[layer_idx]
        cache = row.unsqueeze(1) if old is None else torch.cat((old, row.unsqueeze(1)), dim=1)
        self.caches[layer_idx] = cache
        w_uk, w_uv = attention.kv_b_proj.weight.view(
            attention.heads, attention.n + attention.v, attention.c).split(
                [attention.n, attention.v], dim=1)
        q_latent = torch.einsum("bhn,hnc->bhc", q_nope, w_uk)
        q = torch.cat((q_latent, rotate(q_rope, cos, sin)), dim=-1)
        scores = q @ cache.transpose(1, 2) * attention.scale
        o_latent = torch.softmax(scores, dim=-1) @ cache[..., :attention.c]
        return attention.o_proj(torch.einsum("bhc,hvc->bhv", o_latent, w_uv).flatten(1))

    def step(self, tokens):
        """tokens [B]. Returns logits [B, vocabulary] of the next token."""
        h = self.network.model["embed_tokens"](tokens)
        for layer_idx, layer in enumerate(self.layers):
            h = h + self._attend(layer_idx, layer.input_layernorm(h))
            h = h + layer.mlp(layer.post_attention_layernorm(h).unsqueeze(1)).squeeze(1)
        self.position += 1
        return self.network.lm_head(self.network.model["norm"](h))


@torch.no_grad()
def sample(network, prompt, count, temperature, max_tokens, eos_id, seed):
    """`count` continuations of the prompt (list of ids). Returns lists of ids without the EOS.

    temperature 0 takes the likeliest token. A list that reached max_tokens has no EOS.
    """
    generator = torch.Generator().manual_seed(seed)
    decoder = Decoder(network)
    for token in prompt:
        logits = decoder.step(torch.full((count,), token))
    texts, finished = [[] for _ in range(count)], [False] * count
    for _ in range(max_tokens):
        if temperature > 0:
            chances = torch.softmax(logits / temperature, dim=-1)
            tokens = torch.multinomial(chances, 1, generator=generator).squeeze(1)
        else:
            tokens = logits.argmax(-1)
        for row, token in enumerate(tokens.tolist()):
            if token == eos_id:
                finished[row] = True
            if not finished[row]:
                texts[row].append(token)
        if all(finished):
            break
        logits = decoder.step(tokens)
    return texts
