"""The lightning indexer of DeepSeek Sparse Attention in plain PyTorch.

Scores all keys before a token and chooses the index_topk best (DeepSeek-V3.2 report, section 2.1):

    score[t, s] = sum over j of w[t, j] * relu(q[t, j] . k[s])

with q from the query latent, one key for all heads, and w from the layer's input. The first R
columns of q and k are rotated, in halves (the main attention rotates neighbouring pairs).

Dimension letters as in model.py; J heads and W width of the indexer.
"""

import torch
import torch.nn.functional as F
from torch import nn


def rotate_halves(x, cos, sin):
    """Half-split rotation of the first R columns: the pair (x[j], x[j + R/2]).

    Shapes: x [..., T, W]; cos, sin [T, R/2].
    """
    half = cos.shape[-1]
    first, second, rest = x.split([half, half, x.shape[-1] - 2 * half], dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin, rest), dim=-1)


class Indexer(nn.Module):
    """The indexer of one layer; parameter names of the DeepSeek-V3.2 checkpoints."""

    def __init__(self, config):
        super().__init__()
        self.heads, self.width = config["index_n_heads"], config["index_head_dim"]
        self.topk = config["index_topk"]
        self.wq_b = nn.Linear(config["q_lora_rank"], self.heads * self.width, bias=False)
        self.wk = nn.Linear(config["hidden_size"], self.width, bias=False)
        self.k_norm = nn.LayerNorm(self.width, eps=1e-6)
        self.weights_proj = nn.Linear(config["hidden_size"], self.heads, bias=False)

    def scores(self, h, c_q, cos, sin, rows):
        """Scores of all keys for the tokens `rows` [Q]; those of later keys mean nothing.

        h [B, T, D], c_q [B, T, Cq], cos, sin [T, R/2]. Returns [B, Q, T].
        """
        b, count = len(h), len(rows)
        q = self.wq_b(c_q[:, rows]).view(b, count, self.heads, self.width).transpose(1, 2)
        q = rotate_halves(q, cos[rows], sin[rows])
        k = rotate_halves(self.k_norm(self.wk(h)), cos, sin)
        weights = self.weights_proj(h[:, rows]) * (self.heads * self.width) ** -0.5
        products = F.relu(q @ k.unsqueeze(1).transpose(-1, -2))
        return torch.einsum("bqj,bjqs->bqs", weights, products)

    def choose(self, h, c_q, cos, sin):
        """The keys that each token attends to. Returns a mask [B, T, T]."""
        t = h.shape[1]
        visible = torch.ones(t, t, dtype=torch.bool).tril()
        scores = self.scores(h, c_q, cos, sin, torch.arange(t)).masked_fill(~visible, -torch.inf)
        best = scores.topk(self.topk, dim=-1).indices
        return torch.zeros_like(scores, dtype=torch.bool).scatter_(-1, best, True) & visible
