"""Commands of latte on an emulated GPU: conversations, a server with many kinds of requests, benches. Usage: commands_test.py LATTE_BINARY
DRIVER_LIBRARY; needs only Python's standard library."""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e/serve"))
from server import Server, events, until  # noqa: E402

LATTE = None
DRIVER = None
COMPLETIONS = "/v1/completions"


def variables():
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LATTE_")}
    return {**clean, "LATTE_CUDA_DRIVER": DRIVER}


def latte(*args, stdin=""):
    return subprocess.run([LATTE, *map(str, args)], input=stdin, text=True, capture_output=True, timeout=300, env=variables())


class Commands(unittest.TestCase):
    def same(self, *args, stdin=""):
        """The command's output on the GPU, which equals the CPU's."""
        cpu, gpu = latte(*args, stdin=stdin), latte(*args, "--device", "cuda", stdin=stdin)
        self.assertEqual((gpu.returncode, gpu.stdout), (0, cpu.stdout), gpu.stderr)
        self.assertNotIn("emulated GPU:", gpu.stderr)
        return gpu.stdout

    def test_chat_keeps_the_turns_before(self):
        flags = ["--dtype", "f32", "--temperature", 0, "-n", 3]
        said = self.same("chat", "tiny", *flags, stdin="Once upon\na time\n")
        self.assertGreater(len(said.split()), 3)

    def test_eval(self):
        flags = ["--skills", "addition", "--count", 1, "--dtype", "f32", "--json"]
        cpu, gpu = (json.loads(latte("eval", "tiny", *flags, *more).stdout) for more in ([], ["--device", "cuda"]))
        self.assertEqual(cpu, gpu)

    def test_benches_of_models(self):
        for args in (["model", "--prompt", 2, "--gen", 1, "--depth", 65], ["batch", "--batches", "1,2", "--prompt", 2, "--gen", 1]):
            done = latte("bench", args[0], "tiny", *args[1:], "--device", "cuda", "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            out = json.loads(done.stdout)
            decode = out["decode"] if args[0] == "model" else out["batches"][1]
            self.assertGreater(decode["tokens_per_s"], 0)
            self.assertIsNone(decode["memory_fraction"])  # no ceiling of a GPU is measured
            self.assertNotIn("dram_gbps", decode)

    def test_rooms_that_no_gpu_has(self):
        for args in (["serve", "tiny", "--port", 0, "--tp", 2], ["serve", "tiny", "--port", 0, "--dp", 2], ["run", "tiny", "--tp", 2],
                     ["bench", "model", "tiny", "--tp", 2], ["score", "tiny", "-p", "a", "--tp", 2]):
            done = latte(*args, "--device", "cuda")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("--device: expected cpu with --tp or --dp", done.stderr)
        done = latte("simulate", "tiny", "--device", "cuda")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("--device: expected cpu", done.stderr)


# Every client's request. All are greedy in f32, so that an answer does not depend on the others. A token takes a fifth of a second.
STORY = {"prompt": "Once upon a time", "max_tokens": 5}
OTHER = {"prompt": "The dog", "max_tokens": 5}
PREFIX = {"prompt": "Once upon a time, a brave duck named Wendy lived in a small village.", "max_tokens": 2}  # more than a page
GRAMMAR = {"prompt": "The dog", "max_tokens": 6, "guided_regex": "yes|no"}
PAGE, BYTES_PER_TOKEN = 16, 1280  # of the cache of tiny, in f32
ROOM = ["--context", 64, "--page-tokens", PAGE]


class Serve(unittest.TestCase):
    def start(self, *flags, room=ROOM):
        return Server(LATTE, "--device", "cuda", "--dtype", "f32", *room, *flags, env={"LATTE_CUDA_DRIVER": DRIVER})

    def answer(self, server, body):
        status, _, out = server.post(COMPLETIONS, {"model": "tiny", "temperature": 0, "ignore_eos": True, **body}, timeout=300)
        self.assertEqual(status, 200, out)
        return out["choices"][0]["text"]

    def cpu(self, *bodies):
        with Server(LATTE, "--dtype", "f32", *ROOM) as server:
            return [self.answer(server, body) for body in bodies]

    def test_clients_at_once_get_the_answers_of_each_alone(self):
        has_grammar = "xgrammar" in latte("--version").stdout
        bodies = [STORY, OTHER, PREFIX] + ([GRAMMAR] if has_grammar else [])
        expected = self.cpu(*bodies)
        with tempfile.TemporaryDirectory() as folder:
            flags = ["--cache-dir", folder, "--draft-tokens", 2]
            with self.start(*flags) as server:
                with concurrent.futures.ThreadPoolExecutor() as clients:
                    answers = [clients.submit(self.answer, server, body) for body in bodies]
                    connection, stream = server.stream(COMPLETIONS, {"model": "tiny", "prompt": "The", "max_tokens": 100})
                    next(events(stream))
                    connection.close()  # a client that goes away
                    self.assertEqual([answer.result() for answer in answers], expected)
                self.assertTrue(until(lambda: server.metric("vllm:num_requests_running") == 0))
                self.assertGreater(server.metric("vllm:spec_decode_num_accepted_tokens_total"), 0)
                hits = server.metric("vllm:prefix_cache_hits_total")
                self.assertEqual(self.answer(server, PREFIX), expected[2])
                self.assertGreater(server.metric("vllm:prefix_cache_hits_total"), hits)  # from memory
                self.assertEqual(server.stop(), 0, server.lines)
            with self.start(*flags) as server:
                self.assertEqual(self.answer(server, PREFIX), expected[2])
                self.assertGreater(server.metric("vllm:prefix_cache_hits_total"), 0)  # from disk

    def test_a_preempted_answer_begins_again(self):
        body = {"prompt": "Once upon a time, a brave duck", "max_tokens": 10}
        expected = self.cpu(body)
        three_pages = ["--cache-bytes", 3 * PAGE * BYTES_PER_TOKEN, "--context", 2 * PAGE, "--page-tokens", PAGE]
        with self.start("--no-prefix-cache", "--draft-tokens", 0, room=three_pages) as server:
            with concurrent.futures.ThreadPoolExecutor() as clients:
                answers = [clients.submit(self.answer, server, body) for _ in range(2)]
                self.assertEqual([answer.result() for answer in answers], expected * 2)
            self.assertGreater(server.metric("vllm:num_preemptions_total"), 0)

    def test_the_engine_apart(self):
        with self.start("--isolate") as server:
            self.assertEqual(self.answer(server, STORY), self.cpu(STORY)[0])
            self.assertEqual(server.stop(), 0, server.lines)


if __name__ == "__main__":
    LATTE, DRIVER = sys.argv.pop(1), sys.argv.pop(1)
    unittest.main(verbosity=1)
