"""Ranks that divide the latent cache, as processes. Usage: dcp_test.py LATTE MPIRUN SOURCE_DIR."""
import array
import json
import math
import os
import pathlib
import sys
import unittest

import launcher
from rank_case import RankCase, call

LATTE = MPIRUN = None
SOURCE = pathlib.Path()
IDS = ",".join(str((7 * i + i * i // 3) % 190) for i in range(2100))  # two whole splits of 1,024 and a part


def mpirun(count, parts, command, *words):
    return launcher.command(MPIRUN, count, LATTE, command, "--tp", count, "--dcp", parts, "--threads", 1, *words)


def rows_of(path):
    """The rows of a file of f32 logits."""
    data = path.read_bytes()
    begin = 10 + int.from_bytes(data[8:10], "little")
    shape = data[10:begin].decode().partition("'shape': (")[2].partition(")")[0]
    width = int(shape.split(",")[1])
    values = array.array("f", data[begin:])
    return [values[i:i + width] for i in range(0, len(values), width)]


def log_softmax(row):
    most = max(row)
    total = most + math.log(sum(math.exp(x - most) for x in row))
    return [x - total for x in row]


def divergences(want, got):
    """The KL divergence of each row."""
    for a, b in zip(rows_of(want), rows_of(got), strict=True):
        p, q = log_softmax(a), log_softmax(b)
        yield sum(math.exp(x) * (x - y) for x, y in zip(p, q))


class Dcp(RankCase):
    def logits(self, name, command):
        out = self.dir / name
        self.done([*command, out])
        return out

    def test_split_by_split_the_logits_are_those_of_one_rank(self):
        for model, layout, flags in (("models/tiny", (2, 2), ["--attention", "absorbed"]), ("models/tiny", (4, 2), []),
                                     ("tests/goldens/v3_noaux", (4, 4), ["--attention", "absorbed", "--cache-dtype", "int8"])):
            words = ["score", SOURCE / model, "--ids", IDS, "--deterministic", "strict", *flags, "--logits"]
            one = self.logits("one.npy", [LATTE, *words])
            many = self.logits("many.npy", mpirun(*layout, *words))
            self.assertEqual(one.read_bytes(), many.read_bytes(), f"{model}, {layout}, {flags}")

    def test_in_parallel_they_are_close(self):
        for model, attention in (("tiny", "absorbed"), ("tiny-sparse", "auto")):
            words = ["score", SOURCE / "models" / model, "--ids", IDS, "--attention", attention, "--dtype", "f32", "--logits"]
            one = self.logits("one.npy", [LATTE, *words])
            many = self.logits("many.npy", mpirun(2, 2, *words))
            all_rows = list(divergences(one, many))
            self.assertLess(sum(all_rows) / len(all_rows), 1e-6)
            self.assertLess(max(all_rows), 1e-4)

    def test_requests_with_drafts_prefixes_and_little_room(self):
        requests = self.dir / "in.jsonl"
        with requests.open("w", encoding="utf-8") as file:
            for i in range(6):
                body = {"model": "tiny", "prompt": "Once upon a time " * (20 + 60 * i), "max_tokens": 20 + i, "seed": i}
                print(json.dumps({"custom_id": str(i), "method": "POST", "url": "/v1/completions", "body": body}), file=file)

        def answers(command):
            out = self.dir / "out.jsonl"
            self.done([*command, "-i", requests, "-o", out, "--overwrite"])
            lines = [json.loads(line) for line in out.read_text().splitlines()]
            return {line["custom_id"]: line["response"]["body"]["choices"] for line in lines}

        words = ["batch", "tiny", "--cache-bytes", "2M", "--draft-tokens", 2, "--deterministic", "strict", "--context", 3000]
        one = answers([LATTE, *words])
        self.assertEqual(len(one), 6)
        self.assertEqual(answers(mpirun(2, 2, *words)), one)

    def test_a_prompt_that_no_group_holds_is_spread_over_groups(self):
        requests = self.dir / "in.jsonl"
        with requests.open("w", encoding="utf-8") as file:
            for i, times in enumerate((3, 160, 250, 300, 20)):
                body = {"model": "tiny", "prompt": "Once upon a time " * times, "max_tokens": 20, "seed": i}
                print(json.dumps({"custom_id": str(i), "method": "POST", "url": "/v1/completions", "body": body}), file=file)

        def answers(*words):
            out = self.dir / "out.jsonl"
            self.done([LATTE, "batch", "tiny", "--threads", 1, "--deterministic", "strict", "--prefill-workspace-tokens", 1000,
                       *words, "-i", requests, "-o", out, "--overwrite"])
            lines = sorted((json.loads(line) for line in out.read_text().splitlines()), key=lambda line: line["custom_id"])
            bodies = [line["response"]["body"] for line in lines]
            return [body.get("choices") or body["error"]["message"] for body in bodies]

        one = answers()
        small = answers("--cache-bytes", "1200K")  # 24 pages of 64 tokens
        self.assertIn("maximum context length is 1536 tokens", small[3])
        self.assertEqual(small[:3] + small[4:], one[:3] + one[4:])
        for layout in (["--dp", 2], ["--tp", 4, "--dp", 2, "--ep", 4, "--draft-tokens", 2], ["--dp", 2, "--dp-spread-tokens", 100]):
            self.assertEqual(answers("--cache-bytes", "1200K", *layout), one, layout)

    def test_refusals(self):
        for words, text in ((["tiny", "--tp", 4, "--dcp", 3], "dcp: expected a divisor of the ranks of a group (4): 1, 2, 4, found 3"),
                            (["tiny", "--dcp", 2], "dcp: expected a divisor of the ranks of a group (1): 1, found 2"),
                            (["tiny", "--tp", 2, "--dcp", 2, "--attention", "decompressed"], "found decompressed"),
                            (["tiny", "--tp", 2, "--dcp", 2, "--device", "cuda"], "device: expected cpu with --dcp"),
                            ([SOURCE / "models/tiny-sparse", "--tp", 2, "--dcp", 2, "--deterministic", "strict"], "found strict")):
            done = call([LATTE, "run", *words, "-p", "x"])
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(text, done.stderr.decode())


if __name__ == "__main__":
    LATTE, MPIRUN = sys.argv[1:3]
    SOURCE = pathlib.Path(sys.argv[3])
    launcher.skip_if_it_fails(MPIRUN)
    os.environ["LATTE_ISA"] = "avx2"  # other kernels may be chosen by the number of heads, which ranks divide
    unittest.main(argv=sys.argv[:1], verbosity=2)
