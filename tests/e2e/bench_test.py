"""`latte bench` as a user sees it: keys, counts and refusals, never times. Usage: bench_test.py LATTE_BINARY"""
import json
import os
import subprocess
import sys
import unittest

LATTE = None
KEYS = ["bench", "phase", "kernel", "heads", "c", "r", "context", "batch", "q_len", "page_tokens", "cache_dtype",
        "threads", "runs", "flops", "bytes", "unique_bytes", "us", "gflops", "peak_gflops", "fraction", "cache_gbps",
        "peak_f32_gflops", "peak_bf16_gflops", "peak_int8_gops", "peak_amx_bf16_gflops", "peak_amx_int8_gops"]


def bench(*args, env=None):
    return subprocess.run([LATTE, "bench", "attention", *map(str, args)], text=True, capture_output=True, timeout=300,
                          env={**os.environ, **(env or {})})


def record(*args, env=None):
    done = bench(*args, "--json", env=env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Bench(unittest.TestCase):
    def test_counts_can_be_recomputed(self):
        out = record("--heads", 3, "--context", 100, "--batch", 2, "--q-len", 3, "--cache-dtype", "f16", "--threads", 2)
        self.assertEqual(list(out), KEYS)
        asked = [out[k] for k in ("heads", "context", "batch", "q_len", "cache_dtype", "threads")]
        self.assertEqual(asked, [3, 100, 2, 3, "f16", 2])
        pairs = 2 * (100 + 99 + 98)
        other = 2 * 3 * 3 * (576 + 512 + 1) * 4
        self.assertEqual(out["flops"], 2 * 3 * (2 * 512 + 64) * pairs)
        self.assertEqual(out["bytes"], pairs * 576 * 2 + other)
        self.assertEqual(out["unique_bytes"], 2 * 100 * 576 * 2 + other)
        self.assertGreaterEqual(out["runs"], 7)
        self.assertAlmostEqual(out["gflops"] * out["us"] * 1e3 / out["flops"], 1, places=6)
        self.assertAlmostEqual(out["cache_gbps"] * out["us"] * 1e3 / (2 * 100 * 576 * 2), 1, places=6)

    def test_rows_without_vectors_have_no_peak(self):
        out = record("--heads", 1, "--context", 16, "--kernel", "ref.mla_decode", env={"LATTE_ISA": "ref"})
        self.assertEqual(out["kernel"], "ref.mla_decode")
        self.assertEqual([out["peak_gflops"], out["fraction"], out["peak_bf16_gflops"]], [None] * 3)

    def test_without_json_the_same_keys_are_a_table(self):
        done = bench("--heads", 1, "--context", 16)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([line.split()[0] for line in done.stdout.splitlines()], KEYS)

    def test_refusals_name_the_flag(self):
        for args, words in ((("--phase", "prefill"), ("--phase", "'prefill'")),
                            (("--heads", 0), ("--heads", "1024")),
                            (("--context", 4, "--q-len", 5), ("--q-len", "1 to 4")),
                            (("--threads", 0), ("--threads",)),
                            (("--cache-dtype", "f8"), ("--cache-dtype", "'f8'")),
                            (("--kernel", "no.such"), ("ref.mla_decode", "'no.such'")),
                            (("--batch", 1024, "--context", 1 << 20), ("lower --batch",))):
            done = bench(*args)
            self.assertNotEqual(done.returncode, 0, args)
            self.assertEqual(done.stdout, "")
            for word in words:
                self.assertIn(word, done.stderr)
        lacks = bench("--kernel", "avx2.mla_decode", env={"LATTE_ISA": "ref"})
        self.assertEqual(lacks.returncode, 2)
        self.assertIn("avx2", lacks.stderr)

    def test_products_count_their_work(self):
        def run(*args):
            done = subprocess.run([LATTE, "bench", *map(str, args), "--json"], text=True, capture_output=True,
                                  timeout=300, env={**os.environ, "LATTE_ISA": "avx2"})
            assert done.returncode == 0, done.stderr
            return json.loads(done.stdout)

        out = run("linear", "--m", 65, "--n", 24, "--k", 64, "--dtype", "int4", "--threads", 2)
        self.assertEqual(out["flops"], 2 * 65 * 24 * 64)
        weights = 24 * 32 + 24 * 2 * 4
        self.assertEqual(out["bytes"], weights + 65 * (64 + 24 * 4))
        self.assertEqual([out["act"], out["kernel"]], ["i8", "avx2.linear"])
        self.assertAlmostEqual(out["weight_gbps"] * out["us"] * 1e3 / weights, 1, places=6)

    def test_products_refuse_by_flag(self):
        for args, words in ((("linear", "--dtype", "int3"), ("--dtype", "'int3'")),
                            (("linear", "--m", 0), ("--m", "65536")),
                            (("linear", "--act", "fp8"), ("--act", "'fp8'")),
                            (("linear", "--kernel", "no.such"), ("ref.linear", "'no.such'")),
                            (("projections", "--shape", "v9"), ("--shape", "'v9'")),
                            (("moe", "--skew", -1), ("--skew", "-1"))):
            done = subprocess.run([LATTE, "bench", *map(str, args)], text=True, capture_output=True, timeout=300)
            self.assertEqual(done.returncode, 2, args)
            for word in words:
                self.assertIn(word, done.stderr)


if __name__ == "__main__":
    LATTE = sys.argv.pop(1)
    unittest.main()
