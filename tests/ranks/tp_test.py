"""Ranks that share the weights, as processes: the same bytes as one. Usage: tp_test.py LATTE MPIRUN SOURCE_DIR."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

import launcher
from rank_case import RankCase, call

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e" / "serve"))
from server import Server  # noqa: E402

LATTE = MPIRUN = None
SOURCE = pathlib.Path()


def mpirun(count, *words):
    return launcher.command(MPIRUN, count, LATTE, *words, "--tp", count, "--threads", 1)


class Tp(RankCase):
    def test_logits_are_those_of_one_rank(self):
        ids = ",".join(str(7 * i % 190) for i in range(60))
        models = [SOURCE / "models/tiny"] + [SOURCE / "tests/goldens" / name
                                             for name in ("v3_noaux", "v2_lite", "fp8", "int8", "gptq", "v32_sparse")]
        for model in models:
            words = ["score", model, "--ids", ids, "--max-batch-tokens", 16, "--logits"]
            one = self.dir / "one.npy"
            self.done([LATTE, *words, one, "--threads", 1])
            for count in (1, 2, 4):
                many = self.dir / f"{count}.npy"
                self.done(mpirun(count, *words, many))
                self.assertEqual(one.read_bytes(), many.read_bytes(), f"{model.name}, {count} ranks")

    def test_text_from_standard_input_is_continued_alike(self):
        words = ["run", "tiny", "-n", 60, "--temperature", "0.8", "--seed", 5, "--draft-tokens", 2]
        text = b"Once upon a time"
        one = self.done([LATTE, *words], stdin=None, input=text)
        self.assertEqual(self.done(mpirun(3, *words), stdin=None, input=text), one)
        # Without mpirun, the process starts the ranks itself.
        self.assertEqual(self.done([LATTE, *words, "--tp", 2], stdin=None, input=text), one)

    def test_a_file_of_requests(self):
        requests = self.dir / "in.jsonl"
        with requests.open("w", encoding="utf-8") as file:
            for i in range(12):
                body = {"model": "tiny", "prompt": "Once upon a time " * (1 + i % 3), "max_tokens": 20 + i, "seed": i}
                print(json.dumps({"custom_id": str(i), "method": "POST", "url": "/v1/completions", "body": body}), file=file)

        def answers(command):
            out = self.dir / "out.jsonl"
            self.done([*command, "-i", requests, "-o", out, "--overwrite"])
            lines = [json.loads(line) for line in out.read_text().splitlines()]
            return {line["custom_id"]: line["response"]["body"]["choices"] for line in lines}

        words = ["batch", "tiny", "--cache-bytes", "4M", "--context", 256]
        one = answers([LATTE, *words])
        self.assertEqual(len(one), 12)
        self.assertEqual(answers(mpirun(2, *words)), one)

    def test_a_server(self):
        body = {"model": "tiny", "prompt": "Once upon a time", "max_tokens": 40, "seed": 3, "temperature": 0.8}
        texts = []
        for flags in ([], ["--tp", 2]):
            with Server(LATTE, "--cache-bytes", "4M", "--context", 256, "--threads", 1, *flags) as server:
                status, _, answer = server.post("/v1/completions", body)
                self.assertEqual(status, 200, answer)
                texts.append(answer["choices"][0]["text"])
                server.stop()
        self.assertEqual(texts[0], texts[1])

    def test_a_model_that_is_missing_ends_all_ranks(self):
        done = call(mpirun(2, "run", self.dir / "no", "-p", "x"))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("found no such folder", done.stderr.decode())

    def test_another_number_of_ranks_is_refused(self):
        command = mpirun(2, "run", "tiny", "-p", "x")
        command[command.index("--tp") + 1] = "3"
        done = call(command)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("--tp: expected 2, the number of ranks that were started, found 3", done.stderr.decode())

    def test_a_rank_that_is_killed_ends_all(self):
        command = mpirun(2, "run", "tiny", "-p", "Once upon a time", "-n", 3000, "--ignore-eos")
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as started:
            try:
                follower = self.child_of_rank(started.pid, 1)
                os.kill(follower, signal.SIGKILL)
                self.assertNotEqual(started.wait(timeout=15), 0)
            finally:
                started.kill()

    def child_of_rank(self, launcher, rank):
        """The process of a rank below mpirun, once it computes."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            for entry in pathlib.Path("/proc").glob("[0-9]*"):
                try:
                    parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                    environment = (entry / "environ").read_bytes().split(b"\0")
                    state = (entry / "maps").read_text()
                except (OSError, ValueError):
                    continue
                if parent == launcher and f"OMPI_COMM_WORLD_RANK={rank}".encode() in environment and "model.safetensors" in state:
                    return int(entry.name)
            time.sleep(0.02)
        self.fail("the ranks did not start")


if __name__ == "__main__":
    LATTE, MPIRUN = sys.argv[1:3]
    SOURCE = pathlib.Path(sys.argv[3])
    launcher.skip_if_it_fails(MPIRUN)
    os.environ["LATTE_ISA"] = "avx2"  # other kernels may be chosen by the number of heads, which ranks divide
    unittest.main(argv=sys.argv[:1], verbosity=2)
