"""`latte simulate`, `latte bench steps` and `latte bench simulation` as a user sees them: counts and refusals, never times.
Usage: simulate_test.py LATTE_BINARY"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

LATTE = None
SMALL = ["--context", 128, "--max-batch-tokens", 64, "--max-sequences", 8, "--cache-bytes", 1 << 20, "--threads", 1]
PERCENTILES = [f"{name}_{p}" for name in ("ttft_ms", "inter_token_ms", "end_to_end_ms")
               for p in ("p50", "p90", "p99", "mean")]
KEYS = (["requests", "refused", "duration_s", "output_tokens_per_s", "total_tokens_per_s", "requests_per_s"] + PERCENTILES +
        ["waiting_mean", "waiting_peak", "pages_peak", "pages_total", "preemptions", "prefix_hit_tokens", "steps", "step_s",
         "real_s"])


def latte(*args):
    return subprocess.run([LATTE, *map(str, args)], text=True, capture_output=True, timeout=300)


def record(*args):
    done = latte(*args, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Simulate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.cost = pathlib.Path(cls.folder.name) / "cost.json"
        cls.steps = record("bench", "steps", "tiny", *SMALL, "--quick", "--out", cls.cost)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def simulate(self, *args):
        return record("simulate", "tiny", *SMALL, "--cost", self.cost, *args)

    def trace(self, *lines):
        path = pathlib.Path(self.folder.name) / "trace.jsonl"
        path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
        return path

    def test_steps_are_priced(self):
        self.assertEqual(json.loads(self.cost.read_text()), self.steps)
        self.assertTrue(all(price >= 0 for price in self.steps["microseconds"].values()))
        for step in self.steps["steps"]:
            self.assertEqual(step["tokens"], sum(p["many"] * p["count"] for p in step["pieces"]))
            self.assertLessEqual(step["tokens"], 64)
            self.assertGreater(step["fitted_us"], 0)

    def test_the_same_seed_gives_the_same_figures(self):
        flags = ["--requests", 300, "--rate", 50, "--prompt-mean", 40, "--output-mean", 20]
        out, again, other = self.simulate(*flags), self.simulate(*flags), self.simulate(*flags, "--seed", 1)
        self.assertEqual(list(out), KEYS)
        self.assertEqual([out["requests"], out["refused"]], [300, 0])
        for known in (out, again):
            del known["real_s"]
        self.assertEqual(out, again)
        self.assertNotEqual(out["duration_s"], other["duration_s"])
        self.assertLessEqual(out["ttft_ms_p50"], out["ttft_ms_p90"])
        self.assertLessEqual(out["ttft_ms_p90"], out["ttft_ms_p99"])
        self.assertLessEqual(out["pages_peak"], out["pages_total"])

    def test_shared_prefixes_are_found_unless_switched_off(self):
        flags = ["--requests", 20, "--rate", 1, "--shared-prefix", 64, "--prompt-mean", 10, "--output-mean", 4]
        self.assertEqual(self.simulate(*flags)["prefix_hit_tokens"], 19 * 64)
        self.assertEqual(self.simulate(*flags, "--no-prefix-cache")["prefix_hit_tokens"], 0)

    def test_groups_of_ranks(self):
        flags = ["--requests", 200, "--rate", 200, "--prompt-mean", 20, "--output-mean", 12, "--shared-prefix", 64, "--prefix-groups", 6]

        def metrics(*more):
            out = self.simulate(*flags, *more)
            del out["real_s"]
            return out

        one = metrics()
        self.assertEqual(metrics("--dp", 1, "--dp-policy", "round-robin"), one)
        self.assertNotIn("idle_share", one)
        for policy in ("balanced", "tokens", "round-robin"):
            out = metrics("--dp", 3, "--dp-policy", policy)
            self.assertEqual(metrics("--dp", 3, "--dp-policy", policy), out)
            self.assertEqual(out["pages_total"], 3 * one["pages_total"])
            self.assertTrue(0 <= out["idle_share"] < 1, out["idle_share"])
        self.assertEqual(metrics("--dp", 3), metrics("--dp", 3, "--dp-policy", "balanced"))
        self.assertNotEqual(metrics("--dp", 3), out)
        refused = latte("simulate", "tiny", *SMALL, "--cost", self.cost, "--dp-policy", "best")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("balanced, tokens or round-robin", refused.stderr)

    def test_a_trace_is_read_from_a_file(self):
        path = self.trace({"arrival_s": 0, "prompt_tokens": 9, "output_tokens": 5},
                          {"arrival_s": 1e6, "tokens": [1, 2, 3], "output_tokens": 1, "priority": -1})
        out = self.simulate("--trace", path)
        self.assertEqual([out["requests"], out["steps"]], [2, 6])
        self.assertGreater(out["duration_s"], 1e6)
        table = latte("simulate", "tiny", *SMALL, "--cost", self.cost, "--trace", path)
        self.assertEqual([line.split()[0] for line in table.stdout.splitlines()], KEYS)

    def test_bad_lines_are_named(self):
        good = {"arrival_s": 0, "prompt_tokens": 9, "output_tokens": 5}
        for line, word in (("{", "byte"), ("[]", "object"), ({**good, "arrival_s": -1}, "'arrival_s'"),
                           ({**good, "output_tokens": 1000}, "'output_tokens'"), ({**good, "promt": 1}, "'promt'"),
                           ({"arrival_s": 0, "output_tokens": 5}, "'prompt_tokens'"),
                           ({**good, "prompt_tokens": "9"}, "'prompt_tokens'"),
                           ({"arrival_s": 0, "tokens": [5000], "output_tokens": 5}, "'tokens'")):
            path = self.trace(good, line)
            done = latte("simulate", "tiny", *SMALL, "--cost", self.cost, "--trace", path)
            self.assertEqual(done.returncode, 2, line)
            self.assertEqual(done.stdout, "")
            self.assertIn(f"{path}: line 2", done.stderr)
            self.assertIn(word, done.stderr)

    def test_refusals_name_the_flag(self):
        for args, words in ((["--rate", -1], ("--rate",)), (["--requests", 0], ("--requests",)),
                            (["--output-mean", 0], ("--output-mean",)), (["--shared-prefix", 128], ("--shared-prefix",)),
                            (["--trace", "/no/such/file"], ("/no/such/file",)),
                            (["--page-tokens", 17], ("page-tokens",)),
                            (["--dtype", "f32"], ("made_for", "latte bench steps"))):
            done = latte("simulate", "tiny", *SMALL, "--cost", self.cost, *args)
            self.assertNotEqual(done.returncode, 0, args)
            for word in words:
                self.assertIn(word, done.stderr)

    def test_reality_beside_it_counts_the_same(self):
        out = record("bench", "simulation", "tiny", *SMALL, "--cost", self.cost, "--requests", 12, "--rate", 0,
                     "--shared-prefix", 32, "--prompt-mean", 20, "--output-mean", 10, "--runs", 2)
        self.assertEqual(list(out["simulated"]), KEYS)
        for key in ("requests", "refused", "preemptions", "prefix_hit_tokens", "steps", "pages_peak"):
            self.assertEqual(out["real"][key], out["simulated"][key], key)
            self.assertEqual(out["real"][key]["least"], out["real"][key]["most"], key)
        self.assert_one_simulation_for_all(out, True)

    def test_every_run_beside_reality_has_prices_of_its_own(self):
        out = record("bench", "simulation", "tiny", *SMALL, "--requests", 4, "--rate", 0, "--prompt-mean", 20,
                     "--output-mean", 10, "--runs", 3)
        self.assertEqual(out["real"]["steps"], out["simulated"]["steps"])
        self.assert_one_simulation_for_all(out, False)

    def assert_one_simulation_for_all(self, out, one):
        for key in ("output_tokens_per_s", "ttft_ms_p50"):
            simulated, ratio = out["simulated"][key], out["ratio"][key]
            self.assertEqual(simulated["least"] == simulated["most"], one, key)
            self.assertLessEqual(ratio["least"], ratio["median"])
            self.assertLessEqual(ratio["median"], ratio["most"])
            self.assertGreater(ratio["least"], 0)
            self.assertLessEqual(ratio["most"], simulated["most"] / out["real"][key]["least"])


if __name__ == "__main__":
    LATTE = sys.argv.pop(1)
    unittest.main()
