"""Groups of ranks with requests of their own, as processes: the same bytes as one. Usage: groups_test.py LATTE MPIRUN SOURCE_DIR."""
import itertools
import json
import os
import pathlib
import sys
import unittest

import launcher
from rank_case import RankCase, call

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e" / "serve"))
from server import Server  # noqa: E402

LATTE = MPIRUN = None
SOURCE = pathlib.Path()

# Ranks, groups, ranks with whole experts.
LAYOUTS = [(2, 2, 1), (2, 2, 2), (4, 4, 4), (4, 2, 1), (4, 2, 4)]


def mpirun(ranks, *words):
    return launcher.command(MPIRUN, ranks, LATTE, *words, "--threads", 1)


def layout(ranks, groups, whole):
    return ["--tp", ranks, "--dp", groups, "--ep", whole]


class Groups(RankCase):
    def test_logits_are_those_of_one_rank(self):
        ids = ",".join(str(7 * i % 190) for i in range(60))
        models = [SOURCE / "models/tiny"] + [SOURCE / "tests/goldens" / name for name in ("v3_noaux", "fp8", "int8", "v32_sparse")]
        for model in models:
            words = ["score", model, "--ids", ids, "--max-batch-tokens", 16, "--logits"]
            one = self.dir / "one.npy"
            self.done([LATTE, *words, one, "--threads", 1])
            for sizes in LAYOUTS if model.name == "tiny" else LAYOUTS[-2:]:
                many = self.dir / "many.npy"
                self.done(mpirun(sizes[0], *words, many, *layout(*sizes)))
                self.assertEqual(one.read_bytes(), many.read_bytes(), f"{model.name}, {sizes}")

    def test_text_is_continued_alike(self):
        words = ["run", "tiny", "-n", 60, "-p", "Once upon a time", "--temperature", "0.8", "--seed", 5, "--draft-tokens", 2]
        one = self.done([LATTE, *words])
        self.assertEqual(self.done(mpirun(4, *words, *layout(4, 2, 4))), one)
        # Without mpirun, the process starts the ranks itself: as many as groups.
        self.assertEqual(self.done([LATTE, *words, "--dp", 2]), one)

    def answers(self, command, requests):
        out = self.dir / "out.jsonl"
        self.done([*command, "-i", requests, "-o", out, "--overwrite"])
        lines = [json.loads(line) for line in out.read_text().splitlines()]
        return {line["custom_id"]: line["response"]["body"]["choices"] for line in lines}

    def test_a_file_of_requests(self):
        requests = self.dir / "in.jsonl"
        with requests.open("w", encoding="utf-8") as file:
            for i in range(24):
                body = {"model": "tiny", "prompt": "Once upon a time " * (1 + i % 3), "max_tokens": 20 + i, "seed": i, "n": 1 + i % 2}
                print(json.dumps({"custom_id": str(i), "method": "POST", "url": "/v1/completions", "body": body}), file=file)
        # A group finds other prefixes in its cache than a single engine does.
        words = ["batch", "tiny", "--cache-bytes", "4M", "--context", 256, "--deterministic", "strict", "--draft-tokens", 2]
        one = self.answers([LATTE, *words], requests)
        self.assertEqual(len(one), 24)
        others = itertools.cycle((["--dp-policy", "round-robin"], ["--expert-exchange", "padded"], []))
        for sizes, more in zip(LAYOUTS, others):
            many = self.answers(mpirun(sizes[0], *words, *layout(*sizes), *more), requests)
            self.assertEqual(many, one, f"{sizes}, {more}")

    def test_a_server(self):
        body = {"model": "tiny", "prompt": "Once upon a time", "max_tokens": 40, "seed": 3, "temperature": 0.8}
        texts = []
        for flags in ([], ["--dp", 2]):
            with Server(LATTE, "--cache-bytes", "4M", "--context", 256, "--threads", 1, *flags) as server:
                for _ in range(3):  # in turn to each group
                    status, _, answer = server.post("/v1/completions", body)
                    self.assertEqual(status, 200, answer)
                    texts.append(answer["choices"][0]["text"])
                server.stop()
        self.assertEqual(set(texts), {texts[0]})

    def test_one_rank_says_how_flags_were_read(self):
        words = ["batch", "tiny", "-i", self.dir / "none", "-o", self.dir / "out", "--data-parallel-size", 2]
        done = call(mpirun(2, *words))
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stderr.decode().count("read as --dp 2"), 1, done.stderr.decode())

    def test_groups_that_do_not_divide_the_ranks_are_refused(self):
        done = call([LATTE, "batch", "tiny", "-i", "x", "-o", "y", "--tp", 8, "--dp", 3])
        self.assertEqual(done.returncode, 2)
        self.assertIn("dp: expected a divisor of tp (8): 1, 2, 4, 8, found 3", done.stderr.decode())

    def test_ranks_that_were_told_otherwise_are_refused(self):
        command = mpirun(1, "run", "tiny", "-p", "x", "--tp", 2, "--dp", 2)
        command += [":", "-n", "1", LATTE, "run", "tiny", "-p", "x", "--tp", "2"]
        done = call(command)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("dp: expected the same on all ranks", done.stderr.decode())


if __name__ == "__main__":
    LATTE, MPIRUN = sys.argv[1:3]
    SOURCE = pathlib.Path(sys.argv[3])
    launcher.skip_if_it_fails(MPIRUN)
    os.environ["LATTE_ISA"] = "avx2"  # other kernels may be chosen by the number of heads, which ranks divide
    unittest.main(argv=sys.argv[:1], verbosity=2)
