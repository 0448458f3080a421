"""latte pull ORG/NAME:QUANT from repositories of GGUF files, and commands that take such a name. Usage: quant_test.py
LATTE_BINARY; needs only Python's standard library.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

import pull_test
from hub import COMMIT, Fault
from pull_test import PullCase, ROOT

sys.path.insert(0, str(ROOT / "tests/e2e/gguf"))
import gguf_test  # noqa: E402

LATTE = None
# Four parts of a model without a tokenizer, and the built-in model with one.
PARTS = {f"UD-Q4_K_XL/X-UD-Q4_K_XL-0000{i}-of-00004.gguf": (ROOT / f"tests/goldens/gguf_v3/model-0000{i}-of-00004.gguf").read_bytes()
         for i in (1, 2, 3, 4)}
TEXTS = {"README.md": b"# Model\n", "LICENSE": b"MIT\n"}
OTHERS = {"config.json": b'{"model_type": "llama"}', "tokenizer.json": b"{}", "mmproj-F16.gguf": b"GGUF", "mtp-X-BF16.gguf": b"GGUF",
          "imatrix_unsloth.gguf": b"GGUF"}
GREEDY = ("-p", "Once upon a time", "--temperature", "0", "--max-tokens", "12")


def tiny():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "tiny.gguf"
        gguf_test.write_gguf(path, gguf_test.renamed(gguf_test.stored(gguf_test.TINY)))
        return path.read_bytes()


WHOLE = {"X-BF16.gguf": tiny()}
FILES = TEXTS | OTHERS | PARTS | WHOLE


class QuantCase(PullCase):
    def hub(self, files=None, **how):
        return super().hub(FILES if files is None else files, large=(".gguf", ".safetensors", "of2"), **how)

    def latte(self, hub, *arguments, **more):
        return subprocess.run([LATTE, *map(str, arguments)], text=True, capture_output=True, timeout=120, stdin=subprocess.DEVNULL,
                              env=self.environment(hub, **more), cwd=self.home)

    def good(self, hub, *arguments, **more):
        done = self.latte(hub, *arguments, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def listed(self, hub):
        """{name: (bytes, kind)} of the cache."""
        models = json.loads(self.good(hub, "list", "--json").stdout)["models"]
        return {m["model"]: (m["weight_bytes"], m["kind"]) for m in models if m["model"].startswith("org/")}


class Pulls(QuantCase):
    def test_one_quant_and_nothing_else(self):
        hub = self.hub()
        done = self.good(hub, "pull", "org/model:bf16")
        self.assert_content(FILES, {*TEXTS, *WHOLE})
        self.assertEqual(done.stdout.strip(), str(self.repo / "snapshots" / COMMIT / "X-BF16.gguf"))
        self.assertIn("next: latte chat org/model:bf16", done.stderr)
        story = self.good(hub, "run", "tiny", *GREEDY).stdout
        for name in ("org/model:bf16", "org/model:BF16", f"org/model:BF16@{COMMIT}", "org/model", done.stdout.strip()):
            self.assertEqual(self.good(hub, "run", name, *GREEDY).stdout, story, name)
        ids = self.good(hub, "tokenize", "tiny", "--text", "twelve bears").stdout
        self.assertEqual(self.good(hub, "tokenize", "org/model:BF16", "--text", "twelve bears").stdout, ids)

    def test_all_parts_of_a_split_model(self):
        hub = self.hub()
        self.good(hub, "pull", "org/model:UD-Q4_K_XL")
        self.assert_content(FILES, {*TEXTS, *PARTS})
        report = json.loads(self.good(hub, "inspect", "org/model:ud-q4_k_xl", "--json").stdout)
        self.assertEqual(report["weight_format"], json.loads(self.good(
            hub, "inspect", ROOT / "tests/goldens/gguf_v3/model-00002-of-00004.gguf", "--json").stdout)["weight_format"])
        self.assertRegex(self.good(hub, "inspect", "org/model:UD-Q4_K_XL").stdout, r"weights .*Q6_K \(\d+ tensors, [\d.]+ MB\)")

    def test_a_missing_part_is_named_and_nothing_is_fetched(self):
        files = {name: data for name, data in FILES.items() if "00003-of" not in name}
        hub = self.hub(files)
        self.assert_refused(self.latte(hub, "pull", "org/model:UD-Q4_K_XL"), "'X-UD-Q4_K_XL-00003-of-00004.gguf' is missing", code=2)
        self.assertFalse(self.cache.exists())

    def test_the_exact_quant_wins(self):
        names = ("X-UD-Q4_K_M.gguf", "X-Q4_K_M.gguf", "X-Q4_K_M_L.gguf", "X.Q8_0.gguf", "Q6_K/X-Q6_K-00001-of-00001.gguf")
        hub = self.hub({name: name.encode() for name in names})
        for quant, name in (("Q4_K_M", names[1]), ("ud-q4_k_m", names[0]), ("q4_k_m_l", names[2]), ("Q8_0", names[3]), ("Q6_K", names[4])):
            report = json.loads(self.good(hub, "pull", f"org/model:{quant}", "--json", "--dry-run").stdout)
            self.assertEqual([file["path"] for file in report["files"]], [name])
            self.assertTrue(report["path"].endswith("/" + name))
        self.assertFalse(self.cache.exists())
        del hub.files["X-Q4_K_M.gguf"]
        self.assert_refused(self.latte(hub, "pull", "org/model:Q4_K_M"), "org/model: expected a GGUF model Q4_K_M, found ",
                            "UD-Q4_K_M (16 B)", "Q8_0 (11 B)", "as in org/model:Q4_K_M_L", code=2)

    def test_one_model_needs_no_quant(self):
        hub = self.hub(TEXTS | OTHERS | PARTS)
        self.good(hub, "pull", "org/model")
        self.assert_content(FILES, {*TEXTS, *PARTS})
        self.assertIn("Q6_K", self.good(hub, "inspect", "org/model").stdout)

    def test_several_models_are_listed_with_their_bytes(self):
        hub = self.hub()
        self.assert_refused(self.latte(hub, "pull", "org/model"), "org/model: expected one GGUF model, found 2: UD-Q4_K_XL (",
                            " kB), BF16 (", " MB); write one of them after the name, as in org/model:UD-Q4_K_XL", code=2)

    def test_safetensors_are_the_model_where_they_are(self):
        hub = self.hub(FILES | {"model.safetensors": b"x", "config.json": b'{"model_type": "deepseek_v3"}'})
        self.good(hub, "pull", "org/model")
        self.assertEqual(set(self.snapshot()), {*TEXTS, "config.json", "tokenizer.json", "model.safetensors"})
        self.good(hub, "pull", "org/model:BF16")
        self.assertEqual(set(self.listed(hub)), {"org/model", "org/model:BF16"})
        self.good(hub, "run", "org/model:BF16", *GREEDY)

    def test_what_cannot_be_meant(self):
        for files, name, texts in (
                (pull_test.FILES, "org/model:Q8_0", ("expected GGUF files", "*.safetensors", "org/model without ':'")),
                ({"a-Q8_0.gguf": b"1", "b-Q8_0.gguf": b"22"}, "org/model:Q8_0", ("a-Q8_0.gguf (1 B), b-Q8_0.gguf (2 B)", "org/model:a-Q8_0")),
                ({"X.Q8_0.gguf.part1of2": b"1", "X.Q8_0.gguf.part2of2": b"2"}, "org/model:Q8_0", ("X.Q8_0.gguf.part1of2", "a piece")),
                ({"mmproj-F16.gguf": b"1"}, "org/model:F16", ("expected GGUF files", "found none"))):
            with self.subTest(name=name, texts=texts):
                self.assert_refused(self.latte(self.hub(files), "pull", name), *texts, code=2)

    def test_types_that_are_not_read(self):
        hub = self.hub({"X-IQ2_M.gguf": b"GGUF", "X-IQ4_K.gguf": b"GGUF"})
        for quant, text in (("IQ2_M", "Q4_K"), ("IQ4_K", "ik_llama.cpp")):
            self.assert_refused(self.latte(hub, "pull", f"org/model:{quant}"), f"the types of {quant}", text, "--any-model", code=2)
        self.assertFalse(self.cache.exists())
        self.good(hub, "pull", "org/model:IQ2_M", "--any-model")
        self.assertEqual(self.listed(hub), {"org/model:IQ2_M": (4, "not a model that Latte runs")})

    def test_what_is_no_quant(self):
        hub = self.hub()
        for quant in ("", " ", "Q4 K", "a/b", "../x", "..", "a\\b", "*", "Q4\n"):
            for command in (("pull",), ("run", "-p", "x"), ("inspect",)):
                with self.subTest(quant=quant, command=command):
                    done = self.latte(hub, command[0], "org/model:" + quant, *command[1:])
                    self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
                    self.assertIn("expected a quant such as Q4_K_M after ':'", done.stderr)
        self.assertEqual(hub.requests, [])

    def test_patterns_choose_among_the_files(self):
        hub = self.hub({"a/X-Q8_0.gguf": b"1", "b/X-Q8_0.gguf": b"22", "README.md": b"x"})
        self.assert_refused(self.latte(hub, "pull", "org/model:Q8_0"), "a/X-Q8_0.gguf (1 B), b/X-Q8_0.gguf (2 B)", "--include", code=2)
        self.good(hub, "pull", "org/model:Q8_0", "--include", "b/*")
        self.assertEqual(set(self.snapshot()), {"b/X-Q8_0.gguf"})
        self.good(hub, "pull", "org/model", "--exclude", "b/*")
        self.assertEqual(set(self.snapshot()), {"a/X-Q8_0.gguf", "b/X-Q8_0.gguf", "README.md"})

    def test_revisions(self):
        hub = self.hub()
        self.good(hub, "pull", "org/model:BF16@v1")
        self.assertEqual((self.repo / "refs/v1").read_text(), COMMIT)
        self.assertFalse((self.repo / "refs/main").exists())
        self.good(hub, "inspect", "org/model:BF16@v1")
        self.assertIn("refs/main", self.latte(hub, "inspect", "org/model:BF16@main").stderr)

    def test_a_broken_pull_goes_on_and_a_wrong_file_is_refused(self):
        hub = self.hub()
        size = len(WHOLE["X-BF16.gguf"])
        hub.faults = [Fault("X-BF16.gguf", cut=3 << 20), Fault("X-BF16.gguf", times=100, cut=0)]
        done = self.latte(hub, "pull", "org/model:BF16", "--connections", 1, "--retries", 1)
        self.assert_refused(done, "X-BF16.gguf", "the same command continues", code=1)
        self.assertEqual(self.listed(hub), {"org/model": (0, "no complete snapshot")})
        hub.faults = []
        report = json.loads(self.good(hub, "pull", "org/model:BF16", "--json").stdout)
        self.assertEqual(report["downloaded_bytes"], size - (3 << 20))
        self.assert_content(FILES, {*TEXTS, *WHOLE})
        part = "X-UD-Q4_K_XL-00002-of-00004.gguf"
        hub.faults = [Fault(part, times=100, body=bytes(len(PARTS["UD-Q4_K_XL/" + part])))]
        done = self.latte(hub, "pull", "org/model:UD-Q4_K_XL")
        self.assertEqual(done.returncode, 2)
        self.assertIn(f"{part}: expected the checksum", done.stderr)
        self.assert_content(FILES, {*TEXTS, *WHOLE})
        self.assertEqual(set(self.listed(hub)), {"org/model:BF16"})

    def test_an_interrupted_pull_goes_on(self):
        hub = self.hub()
        hub.slow = 0.02
        process = subprocess.Popen([LATTE, "pull", "org/model:BF16"], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=self.environment(hub))
        self.wait_for(lambda: list(self.repo.glob("blobs/*.latte.state")))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 1)
        hub.slow = 0
        self.good(hub, "pull", "org/model:BF16")
        self.assert_content(FILES, {*TEXTS, *WHOLE})


class Names(QuantCase):
    def test_inspect_tells_what_was_assumed(self):
        key = gguf_test.text("deepseek2.rope.scaling.yarn_log_multiplier")
        before, after = WHOLE["X-BF16.gguf"].split(key)
        value = gguf_test.entry("", gguf_test.F32, 1.0)[8:]
        hub = self.hub({"X-BF16.gguf": before + key + value + after[len(value):]})
        self.good(hub, "pull", "org/model")
        self.assertRegex(self.good(hub, "inspect", "org/model:BF16").stdout, r"(?m)^note .*yarn_log_multiplier': 1 is taken as 0.1")

    def test_list_has_a_line_for_each_model(self):
        hub = self.hub()
        for quant in ("BF16", "UD-Q4_K_XL"):
            self.good(hub, "pull", f"org/model:{quant}")
        sizes = {"org/model:UD-Q4_K_XL": sum(map(len, PARTS.values())), "org/model:BF16": len(WHOLE["X-BF16.gguf"])}
        self.assertEqual({name: size for name, (size, _) in self.listed(hub).items()}, sizes)
        self.assertRegex(self.good(hub, "list").stdout, r"(?m)^org/model:BF16 +[\d.]+ MB  deepseek_v3$")
        models = self.good(hub, "completion", "--models").stdout.split()
        self.assertEqual(models[2:], list(sizes))
        (self.repo / "snapshots" / COMMIT / "UD-Q4_K_XL/X-UD-Q4_K_XL-00001-of-00004.gguf").unlink()
        size, kind = self.listed(hub)["org/model:UD-Q4_K_XL"]
        self.assertEqual(kind, "no complete snapshot")
        self.assertLess(size, sizes["org/model:UD-Q4_K_XL"])

    def test_several_models_need_a_quant(self):
        hub = self.hub()
        for quant in ("BF16", "UD-Q4_K_XL"):
            self.good(hub, "pull", f"org/model:{quant}")
        done = self.latte(hub, "run", "org/model", *GREEDY)
        self.assertEqual(done.returncode, 2)
        self.assertIn("found 2: UD-Q4_K_XL (", done.stderr)
        self.assertIn("as in org/model:UD-Q4_K_XL", done.stderr)

    def test_what_is_not_there_says_how_to_get_it(self):
        hub = self.hub()
        for name in ("org/model:BF16", "org/model:Q2_K"):
            done = self.latte(hub, "run", name, *GREEDY)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"`latte pull {name}`", done.stderr)
            self.good(hub, "pull", "org/model:BF16")
        self.assertIn("found BF16 (", done.stderr)
        done = self.latte(hub, "run", "model:BF16", *GREEDY)
        self.assertIn("did you mean org/model:BF16?", done.stderr)

    def test_offline(self):
        hub = self.hub()
        self.assertEqual(self.latte(hub, "pull", "org/model:BF16", HF_HUB_OFFLINE="1").returncode, 1)
        path = self.good(hub, "pull", "org/model:BF16").stdout
        self.assertEqual(self.good(hub, "pull", "org/model:BF16", HF_HUB_OFFLINE="1").stdout, path)
        done = self.latte(hub, "pull", "org/model:Q2_K", HF_HUB_OFFLINE="1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("org/model:Q2_K", done.stderr)

    def test_a_path_that_exists_wins(self):
        hub = self.hub()
        (self.home / "org").mkdir()
        (self.home / "org/model:BF16").symlink_to(ROOT / "models/tiny")
        self.assertEqual(self.good(hub, "run", "org/model:BF16", *GREEDY).stdout, self.good(hub, "run", "tiny", *GREEDY).stdout)


if __name__ == "__main__":
    LATTE = os.path.abspath(sys.argv.pop(1))
    unittest.main()
