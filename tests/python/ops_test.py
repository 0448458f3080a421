"""latte_mla.ops against the formulas of their docstrings, in float64. Usage: ops_test.py BUILD_DIR LATTE_BINARY."""
import unittest

import support

try:
    import numpy as np
except ImportError:
    np = None

UNIT = 2.0 ** -24  # of float32


def gamma(terms, unit=UNIT):
    """Relative error of a sum of so many rounded terms: Higham, Accuracy and Stability, (3.4)."""
    return terms * unit / (1 - terms * unit)


def rounded(x, dtype):
    """x as the stored type has it, in float64."""
    if dtype == "f16":
        return x.astype(np.float16).astype(np.float64)
    if dtype == "bf16":
        bits = x.astype(np.float32).view(np.uint32)
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
        return bits.view(np.float32).astype(np.float64)
    return x.astype(np.float64)


def attend(scores, values):
    """softmax(scores)·values and the logarithm of the sum, over the first axis of both."""
    top = scores.max(axis=0)
    weights = np.exp(scores - top)
    return (weights[:, None] * values).sum(axis=0) / weights.sum(), top + np.log(weights.sum())


def bounds(keys, width, most_score, most_value, unit):
    """(limit of an output, limit of lse). A score of `width` products errs by e = γ(width)·Σ|q·k| ≤ most_score·γ; a softmax
    over scores that err by e has weights that err by e^(2e) − 1 relatively, and sums of `keys` terms add γ(keys).
    `unit` is the largest of the roundings before the products; 8 units stand for exp and the division."""
    e = most_score * (gamma(width + 8) + 2 * unit)
    relative = np.expm1(2 * e) + 2 * gamma(keys + 8) + 2 * unit
    return 2 * most_value * relative, e + gamma(keys + 8) * (1 + np.log(keys + 1)) + gamma(8) * (most_score + np.log(keys + 1)) + 2 * unit


UNITS = {"f32": UNIT, "bf16": 2.0 ** -8, "f16": 2.0 ** -11}


@unittest.skipIf(np is None, "not installed: numpy")
class Ops(unittest.TestCase):
    def setUp(self):
        from latte_mla import LatteError, ops
        self.ops, self.error = ops, LatteError
        self.random = np.random.default_rng(5)

    def normal(self, *shape):
        return self.random.standard_normal(shape).astype(np.float32)

    def test_gemm(self):
        for m, n, k in ((1, 1, 1), (3, 5, 7), (17, 33, 65), (1, 130, 257), (70, 64, 96)):
            for dtype in ("f32", "bf16", "f16"):
                with self.subTest(m=m, n=n, k=k, dtype=dtype):
                    x, w = self.normal(m, k), self.normal(n, k)
                    used = rounded(w, dtype)
                    exact = np.einsum("mk,nk->mn", x.astype(np.float64), used)
                    bound = gamma(k + 1) * np.einsum("mk,nk->mn", abs(x.astype(np.float64)), abs(used)) + 1e-30
                    self.assertTrue((abs(self.ops.gemm(x, w, dtype=dtype, threads=1) - exact) <= bound).all())

    def decode(self, counts, lengths, h, c, r, p, dtype):
        """A decode over pages in a random order, and its definition."""
        t, width = sum(counts), max(-(-length // p) for length in lengths)
        pages = self.normal(len(lengths) * width, p, c + r)
        table = self.random.permutation(len(lengths) * width).astype(np.int32).reshape(len(lengths), width)
        q_latent, q_rope, scale = self.normal(t, h, c), self.normal(t, h, r), (c + r) ** -0.5
        found, lse = self.ops.mla_decode(q_latent, q_rope, pages, table, lengths, scale, new_tokens=counts, dtype=dtype,
                                         threads=2)
        row, stored = 0, rounded(pages, dtype)
        query = np.concatenate([q_latent, q_rope], axis=2).astype(np.float64)
        for b, (count, length) in enumerate(zip(counts, lengths)):
            keys = stored[table[b]].reshape(-1, c + r)[:length]
            for i in range(count):
                seen = keys[:length - count + i + 1]
                for head in range(h):
                    scores = scale * np.einsum("jc,c->j", seen, query[row, head])
                    most = (scale * abs(seen) @ abs(query[row, head])).max()
                    exact, exact_lse = attend(scores, seen[:, :c])
                    limit, lse_limit = bounds(len(seen), c + r, most, abs(seen).max(), UNITS[dtype])
                    self.assertLessEqual(abs(found[row, head] - exact).max(), limit)
                    self.assertLessEqual(abs(lse[row, head] - exact_lse), lse_limit)
                row += 1

    def test_mla_decode(self):
        for dtype in ("f32", "bf16", "f16"):
            for counts, lengths, p in (([1], [1], 16), ([1, 1, 1], [5, 16, 33], 16), ([3, 1], [3, 130], 64), ([2], [1030], 64)):
                for h, c, r in ((2, 32, 16), (1, 5, 3)):
                    with self.subTest(counts=counts, lengths=lengths, h=h, c=c, r=r, dtype=dtype):
                        self.decode(counts, lengths, h, c, r, p, dtype)

    def test_mla_prefill(self):
        for dtype in ("f32", "bf16", "f16"):
            for t, s, h, n, r, v in ((1, 1, 1, 1, 1, 1), (5, 5, 2, 16, 8, 16), (3, 70, 2, 24, 8, 20), (65, 65, 1, 32, 16, 32)):
                with self.subTest(t=t, s=s, h=h, n=n, r=r, v=v, dtype=dtype):
                    q_nope, q_rope, k_nope = self.normal(t, h, n), self.normal(t, h, r), self.normal(s, h, n)
                    k_rope, values, scale = self.normal(s, r), self.normal(s, h, v), (n + r) ** -0.5
                    found, lse = self.ops.mla_prefill(q_nope, q_rope, k_nope, k_rope, values, scale, dtype=dtype, threads=2)
                    for i in range(t):
                        seen = s - t + i + 1
                        for head in range(h):
                            key = np.concatenate([k_nope[:seen, head], k_rope[:seen]], axis=1).astype(np.float64)
                            query = np.concatenate([q_nope[i, head], q_rope[i, head]]).astype(np.float64)
                            exact, exact_lse = attend(scale * key @ query, values[:seen, head].astype(np.float64))
                            most = (scale * abs(key) @ abs(query)).max()
                            limit, lse_limit = bounds(seen, n + r, most, abs(values).max(), UNITS[dtype])
                            self.assertLessEqual(abs(found[i, head] - exact).max(), limit)
                            self.assertLessEqual(abs(lse[i, head] - exact_lse), lse_limit)

    def test_wrong_arguments_are_named(self):
        x = self.normal(2, 3)
        self.assertRaisesRegex(ValueError, r"w: expected an array \[N, K=3\], found \[2, 4\]", self.ops.gemm, x, self.normal(2, 4))
        self.assertRaisesRegex(self.error, "dtype", self.ops.gemm, x, x, dtype="int8")
        self.assertRaisesRegex(self.error, "M: expected a size", self.ops.gemm, np.zeros((0, 3)), x)
        q, pages = self.normal(1, 1, 4), self.normal(1, 16, 6)
        rope = self.normal(1, 1, 2)
        good = (q, rope, pages, [[0]], [3], 0.5)
        self.ops.mla_decode(*good)
        for at, wrong, word in ((3, [[1]], "page_table"), (4, [17], "page_table"), (4, [0], "lengths"), (5, 0.0, "scale"),
                                (2, self.normal(1, 10, 6), "pages")):
            with self.subTest(word=word, wrong=wrong if at != 2 else "10 tokens per page"):
                self.assertRaisesRegex(self.error, word, self.ops.mla_decode, *good[:at], wrong, *good[at + 1:])
        self.assertRaisesRegex(self.error, "new_tokens", self.ops.mla_decode, *good, new_tokens=[2])
        k = self.normal(1, 1, 4)
        self.assertRaisesRegex(self.error, "S: expected", self.ops.mla_prefill, self.normal(2, 1, 4), self.normal(2, 1, 2), k,
                               self.normal(1, 2), k, 0.5)


if __name__ == "__main__":
    support.main()
