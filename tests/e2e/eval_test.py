"""`latte eval` from a user's view. Usage: eval_test.py LATTE_BINARY; needs only Python's standard library."""
import json
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from build_copy import install  # noqa: E402

LATTE = None
ROOT = pathlib.Path(__file__).resolve().parents[2]
SKILLS = ["stories", "recall", "recall4", "addition", "mtp", "loss"]
DISTANCES = ["250", "500", "1000", "1500", "2000"]


def latte(*args):
    return subprocess.run([LATTE, *map(str, args)], text=True, capture_output=True, timeout=300)


class Eval(unittest.TestCase):
    def test_json_is_one_object_with_every_skill(self):
        done = latte("eval", "tiny", "--json", "--count", 5)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"^(\w+ +\d+%.*\n)*$")
        out = json.loads(done.stdout)
        self.assertEqual(list(out), ["model", "attention", "dtype", "seed", "tokens", "skills"])
        self.assertEqual([out["model"], out["attention"], out["dtype"], out["seed"]], ["tiny", "auto", "bf16", 1])
        self.assertEqual(list(out["skills"]), SKILLS)
        self.assertEqual(out["tokens"], sum(skill["tokens"] for skill in out["skills"].values()))
        for name, skill in out["skills"].items():
            self.assertEqual(skill["seed"], 1)
            self.assertEqual(skill["items"], 25 if "recall" in name else 5)
            if name == "loss":
                self.assertEqual(skill["count"], skill["tokens"] - skill["items"])
                self.assertTrue(0.1 < skill["nats_per_token"] < 1, skill)
                continue
            self.assertEqual(skill["count"], skill["tokens"] - skill["items"] if name == "mtp" else skill["items"])
            self.assertEqual(skill["share"], skill["passed"] / skill["count"])
        self.assertGreaterEqual(out["skills"]["stories"]["passed"], 3)  # of 5; more than 9 in 10 of many
        self.assertGreater(out["skills"]["mtp"]["share"], 0.8)
        for name in ("recall", "recall4"):
            buckets = out["skills"][name]["buckets"]
            self.assertEqual([bucket["name"] for bucket in buckets], DISTANCES)
            self.assertEqual([bucket["count"] for bucket in buckets], [5] * 5)
            self.assertEqual(sum(bucket["passed"] for bucket in buckets), out["skills"][name]["passed"])

    def test_engine_flags_and_the_seed_are_used(self):
        def run(*flags):
            done = latte("eval", "--skills", "stories,loss", "--count", 2, "--json", *flags)
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(done.stdout)

        base = run()
        self.assertEqual(list(base["skills"]), ["stories", "loss"])
        self.assertEqual(run("--threads", 1, "--max-batch-tokens", 16), base)
        other = run("--seed", 2)
        self.assertNotEqual(other["skills"]["loss"]["count"], base["skills"]["loss"]["count"])
        exact = run("--dtype", "f32", "--attention", "decompressed")
        self.assertEqual([exact["attention"], exact["dtype"]], ["decompressed", "f32"])
        one, two = (out["skills"]["loss"]["nats_per_token"] for out in (base, exact))
        self.assertNotEqual(one, two)
        self.assertAlmostEqual(one, two, delta=0.01)

    def test_the_table_goes_to_standard_output_and_progress_to_standard_error(self):
        done = latte("eval", "--skills", "loss", "tiny", "--count", 2)  # MODEL may follow the flag
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("nats/token", done.stdout)
        self.assertEqual(done.stderr, "")  # it is short

    def test_ctrl_c_keeps_the_skills_that_are_done(self):
        process = subprocess.Popen([LATTE, "eval", "--skills", "loss,stories", "--count", "100000", "--json"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 1, err)
        self.assertIn("stopped", err)
        self.assertNotIn("stories", json.loads(out)["skills"])

    def refused(self, *args, words):
        done = latte("eval", *args)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stdout, "")
        for word in words:
            self.assertIn(word, done.stderr)

    def test_bad_input(self):
        self.refused("--skills", "chess", words=("'chess'", "recall4"))
        self.refused("--count", 0, words=("--count", "found 0"))
        self.refused("--attention", "mha", words=("absorbed", "'mha'"))
        self.refused(ROOT / "tests/goldens/v3_noaux", words=("v3_noaux/story_grammar.json", "tiny"))
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "story_grammar.json").write_text('{"rules": 7}')
            self.refused(folder, words=("story_grammar.json", "tables"))


CASES = json.loads((ROOT / "tests/data/story_cases.json").read_text())  # groups of a story and four with an error
BOS, EOS = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"


class Texts(unittest.TestCase):
    def judged(self, texts, *flags, model="tiny", code=0):
        lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "texts.jsonl"
            file.write_text(lines)
            done = latte("eval", model, "--texts", file, *flags)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def test_json_counts_texts_and_lists_the_refused_ones(self):
        out = json.loads(self.judged([case["text"] for case in CASES], "--json").stdout)
        self.assertEqual(list(out), ["model", "texts", "skills"])
        stories = out["skills"]["stories"]
        self.assertEqual([stories["items"], stories["passed"], stories["count"], stories["share"]],
                         [len(CASES), len(CASES) // 5, len(CASES), 0.2])
        self.assertEqual([(text["line"], text["byte"]) for text in stories["refused"]],
                         [(i + 1, case["at"]) for i, case in enumerate(CASES) if not case["accepted"]])
        self.assertIn("end of text", stories["refused"][0]["reason"])

    def test_the_table_shows_three_refused_texts(self):
        lines = self.judged([case["text"] for case in CASES[:8]]).stdout.splitlines()
        self.assertRegex(lines[0], r"^tiny: texts of /.*/texts\.jsonl$")
        self.assertRegex(lines[1], r"^stories +2 of 8 +25\.0 % ")
        self.assertEqual([line.split(":")[0] for line in lines[2:5]], ["line 2", "line 3", "line 4"])
        self.assertEqual(lines[5:], ["3 more texts are refused; --json lists the first 1000"])

    def test_sentence_marks_at_the_ends_are_removed(self):
        story = CASES[0]["text"]
        out = self.judged([story, BOS + story + EOS, story + EOS + EOS, EOS + BOS + story + BOS + EOS], "--json").stdout
        self.assertEqual(json.loads(out)["skills"]["stories"]["passed"], 4)

    def test_the_folder_needs_no_weights(self):
        story = CASES[0]["text"]
        with tempfile.TemporaryDirectory() as folder:
            for name in ("story_grammar.json", "tokenizer.json", "tokenizer_config.json"):
                shutil.copy(ROOT / "models/tiny" / name, folder)
            out = json.loads(self.judged([story, story + EOS], "--json", model=folder).stdout)
        self.assertEqual(out["skills"]["stories"]["passed"], 2)

    def test_standard_input(self):
        done = subprocess.run([LATTE, "eval", "--texts", "-"], text=True, capture_output=True, timeout=60,
                              input=json.dumps({"text": CASES[0]["text"]}))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("texts of standard input", done.stdout)
        self.assertIn("1 of 1", done.stdout)

    def test_bad_files(self):
        self.assertIn("texts.jsonl: expected", self.judged([], code=2).stderr)
        self.assertIn("texts.jsonl: line 2: 'text': expected a string, found 7", self.judged(["x", 7], code=2).stderr)
        done = latte("eval", "--texts", "/no/such")
        self.assertEqual(done.returncode, 2)
        self.assertIn("/no/such", done.stderr)

    def test_flags_of_a_run_are_refused(self):
        for flag, value in (("--skills", "stories"), ("--count", 2), ("--seed", 2), ("--threads", 1), ("--numa", "interleave")):
            done = self.judged(["x"], flag, value, code=2)
            self.assertEqual(done.stdout, "")
            self.assertIn(f"{flag}: expected no such flag together with --texts", done.stderr)


def negate(folder, suffix):
    """Changes the sign of every number of the bf16 tensors in `folder` whose names end with `suffix`."""
    path = pathlib.Path(folder) / "model.safetensors"
    data = bytearray(path.read_bytes())
    start = 8 + struct.unpack("<Q", data[:8])[0]
    tensors = json.loads(data[8:start])
    names = [name for name in tensors if name.endswith(suffix)]
    for name in names:
        assert tensors[name]["dtype"] == "BF16", name
        begin, end = tensors[name]["data_offsets"]
        for high_byte in range(start + begin + 1, start + end, 2):
            data[high_byte] ^= 0x80
    path.write_bytes(data)
    return len(names)


class SparseAttention(unittest.TestCase):
    """A token of tiny-sparse attends to 64 tokens; a key is asked for 250 to 2,000 tokens after it was told."""

    def recall(self, *flags, model="tiny-sparse"):
        done = latte("eval", model, "--skills", "recall", "--count", 5, "--json", *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [bucket["passed"] for bucket in json.loads(done.stdout)["skills"]["recall"]["buckets"]]

    def test_keys_are_found_as_with_dense_attention(self):
        self.assertEqual(self.recall("--attention", "absorbed"), [5] * 5)
        self.assertEqual(self.recall(), [5] * 5)

    def test_they_are_found_with_index_keys_in_8_bits(self):
        self.assertGreaterEqual(sum(self.recall("--cache-dtype", "fp8")), 24)  # of 25

    def test_they_are_lost_if_the_indexer_prefers_the_worst(self):
        with tempfile.TemporaryDirectory() as folder:
            model = shutil.copytree(ROOT / "models/tiny-sparse", pathlib.Path(folder) / "tiny-sparse")
            self.assertEqual(negate(model, ".indexer.weights_proj.weight"), 5)
            self.assertLessEqual(sum(self.recall(model=model)), 2)  # of 25


class Help(unittest.TestCase):
    def test_help_names_the_command_and_its_skills(self):
        self.assertIn("eval", latte("--help").stdout)
        self.assertIn(",".join(SKILLS), "".join(latte("eval", "--help").stdout.split()))


class Install(unittest.TestCase):
    def test_the_installed_model_has_its_grammar(self):
        with tempfile.TemporaryDirectory() as folder:
            prefix = f"{folder}/prefix"
            install(pathlib.Path(LATTE).parent, prefix)
            done = subprocess.run([f"{prefix}/bin/latte", "eval", "--skills", "addition", "--count", "1"],
                                  capture_output=True, text=True, cwd="/")
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    LATTE = sys.argv.pop(1)
    unittest.main()
