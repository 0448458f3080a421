"""Checks the reference against itself, against published numbers and against the committed goldens.

Needs NumPy only:  python reference_test.py
"""

import dataclasses
import json
import sys
import unittest
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import reference as ref  # noqa: E402
from checkpoint_io import from_bf16_bits, to_bf16_bits  # noqa: E402
from reference_config import load  # noqa: E402

# The reference reads plain layouts; the others hold the same values under other names.
FIXTURES = sorted(
    path.parent
    for path in HERE.glob("*/meta.json")
    if json.loads(path.read_text()).get("layout", "plain") == "plain"
)


def mla_problem(t=9, s=23, h=3, n=5, r=4, v=7, c=11, seed=0):
    """Random inputs of attend_*: the T queries are the last of the S positions."""
    rng = np.random.default_rng(seed)
    w = ref.MlaWeights(
        *[None] * 5,
        w_uk=rng.normal(size=(h, n, c)),
        w_uv=rng.normal(size=(h, v, c)),
        w_o=None,
        q_norm=None,
        kv_norm=None,
    )
    visible = np.arange(s - t, s)[:, None] >= np.arange(s)[None, :]
    q_nope, q_rope = rng.normal(size=(t, h, n)), rng.normal(size=(t, h, r))
    c_kv, k_rope = rng.normal(size=(s, c)), rng.normal(size=(s, r))
    return q_nope, q_rope, c_kv, k_rope, w, (n + r) ** -0.5, visible


class AttentionTest(unittest.TestCase):
    def test_absorbed_equals_expanded(self):
        problem = mla_problem()
        o_expanded, lse_expanded = ref.attend_expanded(*problem)
        o_absorbed, lse_absorbed = ref.attend_absorbed(*problem)
        np.testing.assert_allclose(o_absorbed, o_expanded, rtol=0, atol=1e-12)
        np.testing.assert_allclose(lse_absorbed, lse_expanded, rtol=0, atol=1e-12)

    def test_chunks_merged_by_lse_equal_one_pass(self):
        problem = mla_problem()
        for form in (ref.attend_expanded, ref.attend_absorbed):
            o, lse = form(*problem)
            for chunk in (1, 4, 22, 23, 64):  # with 1, early queries see nothing of late chunks
                o_chunked, lse_chunked = ref.attend_chunked(form, chunk, *problem)
                np.testing.assert_allclose(o_chunked, o, rtol=0, atol=1e-12)
                np.testing.assert_allclose(lse_chunked, lse, rtol=0, atol=1e-12)

    def test_merge_ignores_parts_that_saw_nothing(self):
        o = np.ones((1, 1, 2))
        seen = np.zeros((1, 1))
        for empty in (-np.inf, np.inf):
            garbage = (np.full_like(o, np.nan), np.full_like(seen, empty))
            merged, lse = ref.merge_by_lse([garbage, (o, seen)])
            np.testing.assert_array_equal(merged, o)
            np.testing.assert_array_equal(lse, seen)
            merged, lse = ref.merge_by_lse([garbage, garbage])
            np.testing.assert_array_equal(merged, np.zeros_like(o))
            np.testing.assert_array_equal(lse, np.full_like(seen, -np.inf))

    def test_rope_scores_depend_on_distance_only(self):
        config, _ = load(HERE / "v3_noaux")
        rng = np.random.default_rng(1)
        q, k = rng.normal(size=(2, 1, config.r))
        for interleave in (True, False):
            layout = dataclasses.replace(config, rope_interleave=interleave)

            def score(q_pos, k_pos, layout=layout):
                rotated_q = ref.apply_rope(q, np.array([q_pos]), layout)
                return float((rotated_q @ ref.apply_rope(k, np.array([k_pos]), layout).T).item())

            self.assertAlmostEqual(score(7, 3), score(107, 103), delta=1e-12)
            self.assertGreater(abs(score(7, 3) - score(8, 3)), 1e-3)


class YarnTest(unittest.TestCase):
    golden = json.loads((HERE / "yarn_golden.json").read_text())

    def test_frequencies(self):
        for case in self.golden["frequencies"]:
            rope = {**case, "rope_type": "yarn"}
            self.assertEqual(ref.yarn_range(rope, case["dim"]), (case["low"], case["high"]))
            exact = ref.yarn_range({**rope, "truncate": False}, case["dim"])
            np.testing.assert_allclose(exact, case["range"], rtol=0, atol=1e-6)
            f = ref.rope_frequencies(rope, case["dim"])
            self.assertEqual(f[0], 1.0)
            for j, value in case["pairs"].items():
                np.testing.assert_allclose(f[int(j)], value, rtol=1e-8, err_msg=f"f_{j}")

    def test_mscale_and_softmax_scale(self):
        for case in self.golden["mscale"]:
            mscale = ref.yarn_mscale(case["factor"], case["mscale"])
            np.testing.assert_allclose(mscale, case["value"], rtol=1e-9)
            np.testing.assert_allclose(mscale**2, case["squared"], rtol=1e-9)
        for case in self.golden["softmax_scale"]:
            rope = {**case, "rope_type": "yarn"}
            scale = ref.softmax_scale(rope, case["n"], case["r"])
            np.testing.assert_allclose(scale, case["value"], rtol=1e-8)


class RouterTest(unittest.TestCase):
    config = load(HERE / "v3_noaux")[0]

    def choose(self, scores, bias=None, excluded_score=-np.inf, **changes):
        """Experts chosen for sigmoid scores [E], in order of choice."""
        config = dataclasses.replace(self.config, **changes)
        scores = np.asarray(scores)
        logits = np.log(scores / (1.0 - scores))[None]
        return ref.route(logits, bias, config, excluded_score).experts[0].tolist()

    def test_a_group_counts_by_its_best_two_or_its_best_one(self):
        scores = [0.9, 0.1, 0.1, 0.6, 0.5, 0.1]
        small = {"groups": 2, "topk_group": 1, "k": 2}
        self.assertEqual(self.choose(scores, topk_method="noaux_tc", **small), [3, 4])
        self.assertEqual(self.choose(scores, topk_method="group_limited_greedy", **small), [0, 1])

    def test_excluded_experts_stay_out_when_the_chosen_scores_are_negative(self):
        scores, bias = [0.5, 0.5, 0.4, 0.4], np.array([-0.6, -0.7, -0.9, -0.9])
        small = {"groups": 2, "topk_group": 1, "k": 2}
        self.assertEqual(self.choose(scores, bias, **small), [0, 1])
        self.assertEqual(self.choose(scores, bias, excluded_score=0.0, **small), [2, 3])

    def test_weights_ignore_the_bias(self):
        config = dataclasses.replace(self.config, groups=1, k=2, routed_scaling=2.5)
        routing = ref.route(np.zeros((1, 3)), np.array([0.0, 1.0, 2.0]), config)
        self.assertEqual(routing.experts.tolist(), [[2, 1]])
        np.testing.assert_allclose(routing.weights, [[1.25, 1.25]])


class GoldenTest(unittest.TestCase):
    def test_reference_reproduces_the_committed_logits(self):
        self.assertTrue(FIXTURES)
        for folder in FIXTURES:
            with self.subTest(folder.name):
                config, tensors = load(folder)
                tokens = json.loads((folder / "tokens.json").read_text())
                golden = np.load(folder / "logits.npy")
                for form in (ref.attend_expanded, ref.attend_absorbed):
                    for chunk in (None, 7, 64):
                        logits = ref.forward(tokens, tensors, config, form, chunk)
                        # Half a float32 step at the largest logit, plus fp64 noise.
                        atol = np.spacing(np.abs(golden).max()) / 2 + 1e-10
                        np.testing.assert_allclose(logits, golden, rtol=0, atol=atol)

    def test_bf16_rounds_to_nearest_even(self):
        values = np.array([1.0, 1.0 + 2**-9, 1.0 + 2**-8, 1.0 + 3 * 2**-8, -2.5], np.float32)
        rounded = from_bf16_bits(to_bf16_bits(values))
        np.testing.assert_array_equal(rounded, [1.0, 1.0, 1.0, 1.0 + 2**-6, -2.5])


if __name__ == "__main__":
    unittest.main()
