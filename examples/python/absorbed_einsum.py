"""Absorbed attention (DeepSeek-V2, arXiv 2405.04434, section 2.1) by einsum and by Latte's kernel. Needs NumPy."""
import numpy as np

from latte_mla import ops

H, N, R, C, S, P = 4, 32, 16, 64, 100, 16  # heads; widths nope, rope, latent; keys; tokens per page
rng = np.random.default_rng(0)
q_nope, q_rope = rng.standard_normal((1, H, N)), rng.standard_normal((1, H, R))
w_uk, latent = rng.standard_normal((H, N, C)) / N**0.5, rng.standard_normal((S, C + R))
scale = (N + R) ** -0.5

# The definition: keys of every head are made of the latents, k = W_UK c.
c, r = latent[:, :C], latent[:, C:]
k = np.einsum("hnc,sc->shn", w_uk, c)
s = scale * (np.einsum("thn,shn->ths", q_nope, k) + np.einsum("thr,sr->ths", q_rope, r))
p = np.exp(s - s.max(axis=2, keepdims=True))
o = np.einsum("ths,sc->thc", p / p.sum(axis=2, keepdims=True), c)

# The kernel: W_UK is moved into the query, so it reads only latents, from pages.
pages = np.zeros((-(-S // P), P, C + R))
pages.reshape(-1, C + R)[:S] = latent
q_latent = np.einsum("thn,hnc->thc", q_nope, w_uk)
found, lse = ops.mla_decode(q_latent, q_rope, pages, [np.arange(len(pages))], [S], scale)

print(f"largest error {abs(found - o).max():.1e} of outputs up to {abs(o).max():.2f}")
