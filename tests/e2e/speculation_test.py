"""Drafts from a user's view. Usage: speculation_test.py LATTE_BINARY; needs only Python's standard library."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

LATTE = None
PROMPTS = ["Once upon a time there was a little girl named Lily. She", "One day, a boy named Tim went to the park. He saw a"]


def latte(*args, **more):
    return subprocess.run([LATTE, *map(str, args)], text=True, capture_output=True, timeout=300, **more)


def run(prompt, *flags):
    length = [] if "-n" in flags else ["-n", 60]
    done = latte("run", "tiny", "-p", prompt, "--json", *length, *flags)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Run(unittest.TestCase):
    def test_the_answer_is_the_same(self):
        for prompt in PROMPTS:
            for temperature in (0, 1):
                sampling = ("--temperature", temperature, "--seed", 7)
                plain = run(prompt, *sampling, "--draft-tokens", 0)
                self.assertEqual(plain["stats"]["drafted_tokens"], 0)
                for drafts in (("1",), ("4",), ("auto",), ("4", "--drafter", "lookup")):
                    drafted = run(prompt, *sampling, "--draft-tokens", *drafts)
                    for key in ("tokens", "text", "finish_reason"):
                        self.assertEqual(drafted[key], plain[key], drafts)

    def test_statistics_count_drafts(self):
        stats = run(PROMPTS[0], "--temperature", 0, "--draft-tokens", 2)["stats"]
        self.assertGreater(stats["accepted_tokens"], 0)
        self.assertLess(stats["accepted_tokens"], stats["drafted_tokens"] + 1)
        for drafts, check in ((0, self.assertNotRegex), (1, self.assertRegex)):
            shown = latte("run", "-p", PROMPTS[0], "-n", 9, "--draft-tokens", drafts, "--stats").stderr
            check(shown, r"drafted +\d+ tokens, \d+ accepted")

    def test_lookup_finds_what_the_prompt_repeats(self):
        text = "The cat sat on the mat. " * 12
        stats = run(text, "-n", 250, "--ignore-eos", "--temperature", 0, "--draft-tokens", 4, "--drafter", "lookup")["stats"]
        self.assertGreater(stats["accepted_tokens"], 8)

    def test_what_is_refused(self):
        for flags in (["--draft-tokens", "5"], ["--draft-tokens", "-1"], ["--drafter", "magic"]):
            done = latte("run", "tiny", "-p", "a", *flags)
            self.assertEqual(done.returncode, 2, flags)
            self.assertIn(flags[0], done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


class Batch(unittest.TestCase):
    def answers(self, *flags):
        lines = [json.dumps({"custom_id": f"{i}", "method": "POST", "url": "/v1/completions",
                             "body": {"prompt": PROMPTS[i % 2], "max_tokens": 30 + i, "seed": i, "temperature": i % 3 / 2,
                                      "n": 1 + i % 2, "logprobs": 2}}) for i in range(8)]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "in.jsonl"
            path.write_text("\n".join(lines) + "\n")
            out = pathlib.Path(folder) / "out.jsonl"
            done = latte("batch", "-i", path, "-o", out, "--cache-bytes", "64M", *flags)
            self.assertEqual(done.returncode, 0, done.stderr)
            rows = {row["custom_id"]: row["response"]["body"] for row in map(json.loads, out.read_text().splitlines())}
        return {i: row["choices"] for i, row in rows.items()}, [row["usage"] for row in rows.values()]

    def test_the_answers_are_the_same(self):
        plain, usage = self.answers("--draft-tokens", "0")
        self.assertTrue(all("completion_tokens_details" not in u for u in usage))
        drafted, usage = self.answers("--draft-tokens", "3")
        self.assertEqual(drafted, plain)
        for u in usage:
            details = u["completion_tokens_details"]
            self.assertGreater(details["accepted_prediction_tokens"] + details["rejected_prediction_tokens"], 0)
            self.assertLessEqual(details["accepted_prediction_tokens"], u["completion_tokens"])


if __name__ == "__main__":
    LATTE = sys.argv.pop(1)
    unittest.main()
