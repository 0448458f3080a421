"""`latte serve` with several ranks: the server is no rank, and outlives them.

Usage: serve_test.py LATTE MPIRUN SOURCE_DIR [TEST …]. LATTE_TEST_ROUNDS: how often a failure is tried, by default once. Prints how
long after the failure clients had their answer, the old processes were gone, and the server was ready again.
"""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import threading
import time
import unittest

import launcher

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e" / "serve"))
from server import Server, events, until  # noqa: E402

LATTE = MPIRUN = None
SOURCE = pathlib.Path()
ROUNDS = int(os.environ.get("LATTE_TEST_ROUNDS", "1"))
RANKS = 3
NAMED, GONE = 10, 15  # seconds after a failure
PROMPT = {"model": "tiny", "prompt": "Once upon a time", "max_tokens": 40, "seed": 3, "temperature": 0.8}
LONG = {"model": "tiny", "prompt": "Once upon a time", "max_tokens": 3900, "ignore_eos": True, "n": 8}
FLAGS = ["--cache-bytes", "64M", "--context", 4096, "--threads", 1]


def below(ancestor):
    """The processes below one: {number: (name, rank or None)}."""
    parents, found = {}, {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            name, _, rest = (entry / "stat").read_text().partition("(")[2].rpartition(")")
            if rest.split()[0] == "Z":
                continue
            environment = (entry / "environ").read_bytes().split(b"\0")
            ranks = [int(word.split(b"=")[1]) for word in environment if word.startswith(b"OMPI_COMM_WORLD_RANK=")]
            parents[int(entry.name)] = int(rest.split()[1])
            found[int(entry.name)] = (name, ranks[0] if ranks else None)
    out = {}
    for number, what in found.items():
        parent = parents[number]
        while parent in parents and parent != ancestor:
            parent = parents[parent]
        if parent == ancestor:
            out[number] = what
    return out


def is_there(number):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


class Serve(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)
        self.temporary = self.dir / "tmp"  # where the server makes its socket
        self.temporary.mkdir()

    def server(self, *flags, ranks=RANKS, **more):
        return Server(LATTE, *FLAGS, "--tp", ranks, *flags, env={"TMPDIR": str(self.temporary)}, **more)

    def answer(self, server):
        status, _, answer = server.post("/v1/completions", PROMPT)
        self.assertEqual(status, 200, answer)
        return answer["choices"][0]["text"]

    def processes(self, server):
        """mpirun and the ranks in their order."""
        found = below(server.process.pid)
        ranks = {rank: number for number, (name, rank) in found.items() if rank is not None}
        self.assertEqual(sorted(ranks), list(range(RANKS)), found)
        return next(number for number, (name, _) in found.items() if name == "mpirun"), [ranks[i] for i in range(RANKS)]

    def test_answers_are_those_of_one_rank(self):
        with Server(LATTE, *FLAGS) as server:
            one = self.answer(server)
            chat = {"model": "tiny", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 20, "logprobs": True,
                    "top_logprobs": 2, "n": 2, "seed": 1}
            expected = server.post("/v1/chat/completions", chat)[2]["choices"]
            server.stop()
        for words in (["--tp", 2], ["--tensor-parallel-size", 4]):
            with Server(LATTE, *FLAGS, *words) as server:
                self.assertEqual(self.answer(server), one)
                self.assertEqual(server.post("/v1/chat/completions", chat)[2]["choices"], expected)
                connection, answer = server.stream("/v1/completions", PROMPT)
                parts = [event["choices"][0]["text"] for event in events(answer) if event != "[DONE]" and event["choices"]]
                self.assertEqual("".join(parts), one)
                connection.close()
                self.assertEqual(server.post("/v1/completions", {**PROMPT, "temperature": -1})[0], 400)
                self.assertEqual(server.post("/v1/completions", {**PROMPT, "prompt": "once " * 9000})[0], 400)
                self.assertEqual(server.stop(), 0)

    def fail(self, server, culprit, fault):
        """One failure during two requests: what clients get, and how long things take."""
        launch, ranks = self.processes(server)
        old = [launch, *ranks]
        got = {}

        def ask():
            got["plain"] = server.post("/v1/completions", LONG)
            got["plain_at"] = time.monotonic()

        asking = threading.Thread(target=ask)
        asking.start()
        connection, stream = server.stream("/v1/completions", LONG)
        received = events(stream)
        next(received)  # it runs
        restarts = server.metric("latte:engine_restarts_total")
        began = time.monotonic()
        os.kill(launch if culprit is None else ranks[culprit], fault)
        rest = list(received)
        stream_at = time.monotonic()
        connection.close()
        asking.join()
        self.assertTrue(until(lambda: not any(is_there(number) for number in old)), "processes are left")
        gone_at = time.monotonic()
        status, _, text = server.get("/ready")
        name = "launcher" if culprit is None else f"rank {culprit}"
        self.assertEqual(got["plain"][0], 503, got["plain"])
        self.assertEqual(rest[-1], "[DONE]")
        for message in (got["plain"][2]["error"]["message"], rest[-2]["error"]["message"]):
            self.assertIn("the engine has failed: ", message)
            self.assertIn(name, message)
        if status != 200:  # not started again yet
            self.assertEqual(status, 503)
            self.assertIn(name, text["error"]["message"])
        self.assertTrue(until(lambda: server.get("/ready")[0] == 200, 60), "not ready again")
        ready_at = time.monotonic()
        self.assertEqual(server.metric("latte:engine_restarts_total"), restarts + 1)
        named = max(stream_at, got["plain_at"]) - began
        self.assertLess(named, NAMED)
        self.assertLess(gone_at - began, GONE)
        print(f"{fault.name} {name}: answered after {named:.2f} s, gone after {gone_at - began:.2f} s, "
              f"ready after {ready_at - began:.2f} s", file=sys.stderr, flush=True)

    def check_failures(self, faults, *flags):
        with self.server(*flags) as server:
            expected = self.answer(server)
            for _ in range(ROUNDS):
                for culprit, fault in faults:
                    with self.subTest(culprit=culprit, fault=fault.name):
                        self.fail(server, culprit, fault)
                        self.assertEqual(self.answer(server), expected)
            self.assertEqual(server.stop(), 0)
        self.assertEqual(list(self.temporary.glob("latte-*")), [])

    def test_a_rank_that_is_killed(self):
        self.check_failures([(rank, signal.SIGKILL) for rank in range(RANKS)])

    def test_a_launcher_that_is_killed(self):
        self.check_failures([(None, signal.SIGKILL)])

    def test_a_rank_that_is_stopped(self):
        self.check_failures([(rank, signal.SIGSTOP) for rank in range(RANKS)])

    def test_ranks_of_groups(self):
        self.check_failures([(0, signal.SIGKILL), (1, signal.SIGKILL), (2, signal.SIGSTOP)], "--dp", RANKS)

    def test_a_server_that_is_killed_leaves_no_rank(self):
        with self.server() as server:
            launch, ranks = self.processes(server)
            server.process.kill()
            began = time.monotonic()
            self.assertTrue(until(lambda: not any(is_there(number) for number in [launch, *ranks])))
            self.assertLess(time.monotonic() - began, GONE)
        self.assertEqual(list(self.temporary.glob("latte-*")), [])

    def test_a_signal_lets_requests_end(self):
        with self.server() as server:
            launch, ranks = self.processes(server)
            connection, stream = server.stream("/v1/completions", {**LONG, "n": 1, "max_tokens": 300})
            received = events(stream)
            next(received)
            server.process.send_signal(signal.SIGTERM)
            rest = list(received)
            self.assertEqual(rest[-1], "[DONE]")
            self.assertEqual([event["choices"][0]["finish_reason"] for event in rest[:-1] if event["choices"]][-1], "length")
            connection.close()
            self.assertEqual(server.stop(), 0)
            self.assertFalse([number for number in [launch, *ranks] if is_there(number)])
        self.assertEqual(list(self.temporary.glob("latte-*")), [])

    def test_prefixes_outlive_ranks(self):
        cache = self.dir / "cache"
        prompt = {**PROMPT, "prompt": "Once upon a time there was a frog. " * 40}

        def cached(server):
            return server.post("/v1/completions", prompt)[2]["usage"]["prompt_tokens_details"]["cached_tokens"]

        with self.server("--cache-dir", cache) as server:
            self.assertEqual(cached(server), 0)
            self.assertEqual(server.stop(), 0)
        with self.server("--cache-dir", cache) as server:
            self.assertGreater(cached(server), 100)
            os.kill(self.processes(server)[1][1], signal.SIGKILL)
            self.assertTrue(until(lambda: server.metric("latte:engine_restarts_total") == 1))
            self.assertTrue(until(lambda: server.get("/ready")[0] == 200))
            self.assertGreater(cached(server), 100)

    def test_a_rank_that_cannot_load_ends_the_server(self):
        model = self.dir / "model"
        shutil.copytree(SOURCE / "models/tiny", model)
        config = json.loads((model / "config.json").read_text())
        config["num_hidden_layers"] += 1
        (model / "config.json").write_text(json.dumps(config))
        began = time.monotonic()
        with self.server(model=str(model), wait=False) as server:
            self.assertEqual(server.process.wait(60), 2)
            server.stop()
            self.assertLess(time.monotonic() - began, GONE)
            self.assertRegex("\n".join(server.lines), r"latte: \w+: rank \d: .*")
        self.assertEqual(list(self.temporary.glob("latte-*")), [])

    def test_a_signal_while_ranks_load(self):
        for pause in (0.05, 0.3):
            with self.server(wait=False) as server:
                time.sleep(pause)
                self.assertEqual(server.stop(), 0)
            self.assertEqual(list(self.temporary.glob("latte-*")), [])


if __name__ == "__main__":
    LATTE, MPIRUN = sys.argv[1:3]
    SOURCE = pathlib.Path(sys.argv[3])
    launcher.skip_if_it_fails(MPIRUN)
    os.environ["LATTE_ISA"] = "avx2"  # other kernels may be chosen by the number of heads, which ranks divide
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2)
