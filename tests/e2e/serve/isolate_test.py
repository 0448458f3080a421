"""latte serve --isolate: the engine as a separate process. Usage: isolate_test.py LATTE_BINARY; needs only Python's standard library.

LATTE_TEST_KILLS: how often the engine is killed under load; figures are printed.
"""
import concurrent.futures
import http.client
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import threading
import time
import unittest

from server import Server, events, until

LATTE = None
KILLS = int(os.environ.get("LATTE_TEST_KILLS", "2"))
COMPLETIONS = "/v1/completions"
FLAGS = ["--isolate", "--cache-bytes", "64M", "--context", 4096, "--threads", 1]
BODY = {"prompt": "Once upon a time", "temperature": 0.8}
LONG = {**BODY, "max_tokens": 3000, "ignore_eos": True}


def engine_of(server):
    """The number of the engine's process; None: there is none."""
    found = pathlib.Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
    numbers = [int(number) for task in found.parents[1].glob("*/children") for number in task.read_text().split()]
    return numbers[0] if len(numbers) == 1 else None


def is_there(number):
    """Whether the process runs. One that has ended may wait for its parent."""
    try:
        return pathlib.Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


class Stream(threading.Thread):
    """A request, the text that it gets, and how it ends."""

    def __init__(self, server, seed):
        super().__init__(daemon=True)
        self.server, self.body = server, {**LONG, "seed": seed}
        self.text, self.status, self.error, self.complete = "", None, None, False
        self.begun = threading.Event()
        self.start()

    def run(self):
        try:
            connection, answer = self.server.stream(COMPLETIONS, self.body)
            self.status = answer.status
            if answer.status != 200:
                self.error = answer.read().decode()
                return
            for event in events(answer):
                if event == "[DONE]":
                    continue
                if "error" in event:
                    self.error = event["error"]["message"]
                    continue
                self.text += event["choices"][0]["text"]
                self.complete = self.complete or event["choices"][0]["finish_reason"] == "length"
                self.begun.set()
            connection.close()
        except (OSError, http.client.HTTPException) as broken:
            self.error = f"broken: {broken}"
        finally:
            self.begun.set()


class Isolate(unittest.TestCase):
    def test_answers_are_those_of_one_process(self):
        bodies = [{**BODY, "max_tokens": 30, "seed": 1}, {**BODY, "max_tokens": 20, "n": 2, "seed": 2, "logprobs": 2},
                  {**BODY, "prompt": ["One day", "There was"], "max_tokens": 10, "seed": 3, "stop": ["."]},
                  {**BODY, "max_tokens": 5000, "seed": 4}, {**BODY, "temperature": -1}]

        def answers(*flags):
            with Server(LATTE, *flags) as server:
                found = [server.post(COMPLETIONS, body) for body in bodies]
                steps = server.metric("latte:engine_steps_total")
                self.assertEqual(server.stop(), 0)
            self.assertGreater(steps, 0)
            for _, _, body in found:  # how many drafts are tried depends on the times of steps
                body.get("usage", {}).pop("completion_tokens_details", None)
            return [(status, body.get("choices"), body.get("usage"), body.get("error")) for status, _, body in found]
        self.assertEqual(answers(*FLAGS), answers(*FLAGS[1:]))

    def test_an_engine_that_is_killed_under_load_comes_back(self):
        with Server(LATTE, *FLAGS) as server:
            right = {}
            times = []
            for turn in range(KILLS):
                streams = [Stream(server, seed) for seed in range(8)]
                for stream in streams:
                    self.assertTrue(stream.begun.wait(60))
                number = engine_of(server)
                os.kill(number, signal.SIGKILL)
                began = time.monotonic()
                self.assertTrue(until(lambda: server.get("/ready")[0] == 503, 10), "the loss is noticed")
                self.assertEqual(server.get("/health")[0], 200)
                status, _, refused = server.post(COMPLETIONS, {**BODY, "max_tokens": 1})
                self.assertIn(status, (200, 503))  # the next engine may be there already
                if status == 503:
                    self.assertIn("the engine is started again", refused["error"]["message"])
                self.assertTrue(until(lambda: server.get("/ready")[0] == 200, 60), "\n".join(server.lines))
                times.append(time.monotonic() - began)
                for stream in streams:
                    stream.join(60)
                    self.assertFalse(stream.is_alive())
                    self.assertFalse(stream.complete)
                    self.assertIn("the engine's process was ended by signal 9", stream.error)
                    longest = right.setdefault(stream.body["seed"], stream.text)
                    self.assertTrue(longest.startswith(stream.text) or stream.text.startswith(longest))
                    right[stream.body["seed"]] = max(longest, stream.text, key=len)
                self.assertEqual(server.metric("latte:engine_restarts_total"), turn + 1)
            self.assertEqual(server.post(COMPLETIONS, {**BODY, "max_tokens": 5})[0], 200)
            print(f"{KILLS} kills: ready again after {statistics.median(times):.2f} s (median), {max(times):.2f} s (most)")
            self.assertEqual(server.stop(), 0)

    def test_an_engine_that_is_stopped_counts_as_dead(self):
        with Server(LATTE, *FLAGS) as server:
            stream = Stream(server, 1)
            stream.begun.wait(60)
            number = engine_of(server)
            os.kill(number, signal.SIGSTOP)
            self.assertTrue(until(lambda: stream.error is not None, 60))
            self.assertIn("the engine's process is lost", stream.error)
            self.assertTrue(until(lambda: server.get("/ready")[0] == 200, 60))
            self.assertFalse(is_there(number))
            self.assertEqual(server.stop(), 0)

    def test_signals_to_both_let_requests_finish(self):
        with Server(LATTE, *FLAGS) as server, concurrent.futures.ThreadPoolExecutor() as pool:
            number = engine_of(server)
            asked = pool.submit(server.post, COMPLETIONS, {**LONG, "max_tokens": 500, "seed": 1})
            self.assertTrue(until(lambda: server.metric("vllm:num_requests_running") == 1))
            os.kill(number, signal.SIGTERM)
            os.kill(number, signal.SIGINT)
            self.assertEqual(server.stop(), 0)
            status, _, answer = asked.result()
            self.assertEqual((status, answer["choices"][0]["finish_reason"]), (200, "length"))
            self.assertFalse(is_there(number))

    def test_an_engine_ends_with_its_server(self):
        with Server(LATTE, *FLAGS) as server:
            number = engine_of(server)
            server.process.kill()
            server.process.wait(60)
            self.assertTrue(until(lambda: not is_there(number)))

    def test_an_engine_that_cannot_load_ends_the_server(self):
        done = subprocess.run([LATTE, "serve", "tiny", *map(str, FLAGS), "--port", "0", "--dtype", "bf16", "--cache-dir", "/dev/null/x"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("the engine's process: ", done.stderr)
        self.assertIn("/dev/null/x", done.stderr)


if __name__ == "__main__":
    LATTE = sys.argv[1]
    unittest.main(argv=sys.argv[:1], verbosity=2)
