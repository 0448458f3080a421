"""`latte bench` from a user's view: keys, counts and refusals, never times. Usage: bench_test.py LATTE_BINARY"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
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

    def test_prefill_counts_pairs_under_the_diagonal(self):
        out = record("--phase", "prefill", "--heads", 3, "--context", 100, "--q-len", 7, "--batch", 2)
        pairs = 2 * sum(range(94, 101))
        queries = 2 * 7 * 3 * (128 + 64 + 128 + 1) * 4
        self.assertEqual(out["flops"], 2 * 3 * (128 + 64 + 128) * pairs)
        self.assertEqual(out["bytes"], pairs * 3 * 320 * 4 + queries)
        self.assertEqual(out["unique_bytes"], 2 * 100 * (3 * 256 + 64) * 4 + queries)
        self.assertEqual([out["phase"], out["dtype"], out["q_len"]], ["prefill", "bf16", 7])
        self.assertAlmostEqual(out["gflops"] * out["us"] * 1e3 / out["flops"], 1, places=6)
        whole = record("--phase", "prefill", "--heads", 1, "--context", 20, "--dtype", "f32", "--kernel", "ref.mha")
        self.assertEqual(whole["flops"], 2 * 320 * 20 * 21 // 2)
        self.assertEqual(whole["kernel"], "ref.mha")

    def test_pool(self):
        done = subprocess.run([LATTE, "bench", "pool", "--threads", "2", "--json"], text=True, capture_output=True,
                              timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        out = json.loads(done.stdout)
        self.assertEqual(list(out), ["bench", "threads", "calls", "empty", "barrier", "wake", "idle_processor_share"])
        self.assertLessEqual(out["empty"]["median_us"], out["empty"]["p99_us"])
        refused = subprocess.run([LATTE, "bench", "pool", "--threads", "1025"], text=True, capture_output=True)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--threads", refused.stderr)

    def test_refusals_name_the_flag(self):
        for args, words in ((("--phase", "fill"), ("--phase", "'fill'")),
                            (("--phase", "prefill", "--dtype", "i8"), ("--dtype", "'i8'")),
                            (("--phase", "prefill", "--heads", 1024, "--context", 1 << 20), ("lower --heads",)),
                            (("--phase", "prefill", "--kernel", "ref.mla_decode"), ("ref.mha",)),
                            (("--heads", 0), ("--heads", "1024")),
                            (("--context", 4, "--q-len", 5), ("--q-len", "1 to 4")),
                            (("--threads", 1025), ("--threads",)),
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

        out = run("gemm", "--m", 65, "--n", 24, "--k", 64, "--dtype", "int4", "--threads", 2)
        self.assertEqual(out["flops"], 2 * 65 * 24 * 64)
        weights = 24 * 32 + 24 * 2 * 4
        self.assertEqual(out["bytes"], weights + 65 * (64 + 24 * 4))
        self.assertEqual([out["act"], out["kernel"]], ["i8", "avx2.gemm_s8_packed64"])
        self.assertAlmostEqual(out["weight_gbps"] * out["us"] * 1e3 / weights, 1, places=6)

    def test_products_refuse_by_flag(self):
        for args, words in ((("gemm", "--dtype", "int3"), ("--dtype", "'int3'")),
                            (("gemm", "--m", 0), ("--m", "65536")),
                            (("gemm", "--act", "fp8"), ("--act", "'fp8'")),
                            (("gemm", "--kernel", "no.such"), ("ref.gemm", "'no.such'")),
                            (("projections", "--shape", "v9"), ("--shape", "'v9'")),
                            (("moe", "--skew", -1), ("--skew", "-1"))):
            done = subprocess.run([LATTE, "bench", *map(str, args)], text=True, capture_output=True, timeout=300)
            self.assertEqual(done.returncode, 2, args)
            for word in words:
                self.assertIn(word, done.stderr)


# Arguments that make each bench short. `serve` needs a server; report_test.cc covers its table.
QUICK = {"attention": ["--heads", 1, "--context", 16], "gemm": ["--n", 64, "--k", 64], "projections": ["--shape", "v2-lite"],
         "moe": ["--shape", "v2-lite"], "pool": [], "sampler": ["--vocab", 1000], "dispatch": ["--heads", 1],
         "calibrate": ["--heads", 1], "absorption": ["--heads", 2, "--context", 100], "model": ["--prompt", 16, "--gen", 2],
         "batch": ["--batches", "1,2", "--gen", 2],
         "prefix": ["--requests", 2, "--prefix", 64, "--own", 8, "--gen", 2, "--long-prompt", 0],
         "determinism": ["--requests", 2, "--gen", 4, "--rounds", 1], "steps": ["--quick"],
         "simulation": ["--requests", 2, "--rate", 0, "--prompt-mean", 20, "--output-mean", 4, "--runs", 1]}


class Tables(unittest.TestCase):
    def test_every_bench_has_a_case(self):
        lines = (pathlib.Path(__file__).parent / "outside.txt").read_text().splitlines()
        benches = {line.split()[2] for line in lines if line.startswith("command bench ")}
        self.assertEqual(benches - {"serve", "linear"}, set(QUICK))  # linear: the former name of gemm

    def test_no_bench_prints_json_unless_asked(self):
        for name, args in QUICK.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                env = {**os.environ, "LATTE_RATES": f"{folder}/rates.json"}
                done = subprocess.run([LATTE, "bench", name, *map(str, args)], text=True, capture_output=True,
                                      timeout=300, env=env)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertGreater(len(done.stdout.splitlines()), 4)
                for line in done.stdout.splitlines():
                    self.assertLessEqual(len(line), 120, line)
                    self.assertNotRegex(line, r'^\s*[{\[]|"', line)


    def test_a_model_begins_with_its_speed_in_words(self):
        done = subprocess.run([LATTE, "bench", "model", "--prompt", "16", "--gen", "2", "--batch", "2"], text=True, capture_output=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        prefill, decode, *rest = done.stdout.splitlines()
        self.assertRegex(prefill, r"^prefill +[0-9.]+ tokens/s: 16 tokens in [0-9.]+ ms")
        self.assertRegex(decode, r"^decode +[0-9.]+ tokens/s: a step of 2 sequences in [0-9.]+ ms")
        self.assertNotIn("_bytes", done.stdout)
        self.assertIn("operations of decode", rest)


class Paths(unittest.TestCase):
    def run_bench(self, *args, env=None):
        return subprocess.run([LATTE, "bench", *map(str, args)], text=True, capture_output=True, timeout=300,
                              env={**os.environ, **(env or {})})

    def test_absorption_counts_bytes(self):
        done = self.run_bench("absorption", "--heads", 2, "--context", 100, "--batch", 3, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        forms = {form["form"]: form for form in json.loads(done.stdout)["forms"]}
        self.assertEqual(list(forms), ["CD", "CC", "A_CC", "A_CC_ME", "AM_CC_ME"])
        around = 2 * (2 * 192 * 1536 + 5120 * 2 * 128)
        self.assertEqual(forms["CD"]["weight_bytes"], around)
        self.assertEqual(forms["CD"]["cache_bytes"], 3 * 100 * 2 * 320 * 2)
        self.assertEqual(forms["A_CC_ME"]["weight_bytes"], around + 2 * 2 * 256 * 512)
        self.assertEqual(forms["A_CC_ME"]["cache_bytes"], 3 * 100 * 576 * 2)
        self.assertEqual(forms["AM_CC_ME"]["weight_bytes"], 2 * (2 * 64 * 1536 + 2 * 512 * 1536 + 5120 * 2 * 512))
        self.assertEqual(forms["CD"]["times_faster_than_cd"], 1)

    def test_calibrated_rates_are_what_paths_are_priced_with(self):
        with tempfile.TemporaryDirectory() as folder:
            rates = pathlib.Path(folder) / "deep" / "rates.json"
            env = {"LATTE_RATES": str(rates)}
            done = self.run_bench("calibrate", "--heads", 1, "--json", env=env)
            self.assertEqual(done.returncode, 0, done.stderr)
            written = json.loads(rates.read_text())
            self.assertEqual(written, json.loads(done.stdout))
            table = self.path_table(env)
            self.assertEqual(table["rates"], written)
            written["decode"] = [[1, 1e9]]
            written["absorb"] = [[1, 1e9]]
            written["memory_gbps"] = 1e9
            rates.write_text(json.dumps(written))
            self.assertEqual(self.path_table(env)["chosen"], "absorbed")
            # The file is optional: a damaged one is ignored with a note.
            typical = self.path_table({"LATTE_RATES": ""})["rates"]
            for text in ("{}", "", "[1]"):
                rates.write_text(text)
                done = self.inspect(env)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(str(rates), done.stderr)
                self.assertEqual(json.loads(done.stdout)["path"]["rates"], typical)

    def test_no_rates_are_needed_from_a_home_that_cannot_be_read(self):
        with tempfile.TemporaryDirectory() as folder:
            home = pathlib.Path(folder)
            (home / "loop").symlink_to("loop")
            (home / "file").write_text("x")
            for cache in (home / "loop", home / "file", home / "none", "/" + "x" * 300, "/" * 5000 + "x", "/dev/null"):
                for name in ("XDG_CACHE_HOME", "HOME"):
                    env = {"XDG_CACHE_HOME": "", "HOME": folder, name: str(cache)}
                    done = self.inspect(env)
                    self.assertEqual((done.returncode, done.stderr), (0, ""), (name, str(cache)[:60]))

    def inspect(self, env):
        return subprocess.run([LATTE, "inspect", "tiny", "--path", "--q", "300", "--kv", "8", "--json"], text=True,
                              capture_output=True, timeout=60, env={**os.environ, **env})

    def path_table(self, env):
        done = self.inspect(env)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["path"]

    def test_refusals_name_the_flag(self):
        for args, word in ((("absorption", "--heads", 0), "--heads"), (("absorption", "--context", 0), "--context"),
                           (("dispatch", "--heads", 129), "--heads"), (("dispatch", "--threads", 1025), "--threads"),
                           (("calibrate", "--threads", 1025), "--threads")):
            done = self.run_bench(*args)
            self.assertEqual(done.returncode, 2, args)
            self.assertIn(word, done.stderr)


if __name__ == "__main__":
    LATTE = sys.argv.pop(1)
    unittest.main()
