"""latte bench serve against a scripted server, and against latte serve. Usage: bench_serve_test.py LATTE_BINARY; needs
only Python's standard library."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from scripted_server import ScriptedServer

LATTE = None
LATTE_PAGES = {"/version": {"name": "latte", "version": "1"}, "/props": {"vocab_size": 50}}


def bench(server, *args, code=0):
    done = subprocess.run([LATTE, "bench", "serve", "--url", server.url, *map(str, args)], capture_output=True,
                          timeout=120)
    assert done.returncode == code, (done.returncode, done.stderr)
    return done


def report(server, *args, code=0):
    return json.loads(bench(server, "--json", *args, code=code).stdout)


class Scripted(unittest.TestCase):
    def test_figures(self):
        usage = {"prompt_tokens": 11, "completion_tokens": 4}
        def script(handler, body):
            handler.begin()
            for _ in range(4):
                time.sleep(0.02)
                handler.chunk("x")
            handler.event({"choices": [], "usage": usage})
            handler.event("[DONE]")
            handler.end()
        with ScriptedServer(script) as server:
            found = report(server, "--requests", 6, "--concurrency", 2, "--goodput", "ttft:60000,e2el:1")
        self.assertEqual((found["completed"], found["failed"], found["errors"]), (6, 0, []))
        self.assertEqual((found["total_input_tokens"], found["total_output_tokens"]), (66, 24))
        self.assertEqual((found["max_concurrent_requests"], found["model"]), (2, "scripted"))
        self.assertEqual(found["request_goodput"], 0)
        self.assertGreaterEqual(found["mean_ttft_ms"], 19)
        self.assertGreaterEqual(found["median_e2el_ms"], 79)
        self.assertAlmostEqual(found["mean_ttft_ms"] + 3 * found["mean_tpot_ms"], found["mean_e2el_ms"], 3)
        self.assertAlmostEqual(found["mean_itl_ms"], found["mean_tpot_ms"], 3)
        self.assertGreaterEqual(found["duration"], 3 * 0.08)

    def test_requests_are_those_of_the_flags(self):
        with ScriptedServer() as server:
            for seed in (1, 1, 2):
                bench(server, "--requests", 3, "--concurrency", 1, "--seed", seed, "--input-tokens", "2:4",
                      "--output-tokens", 5, "--ignore-eos", "--shared-prefix-tokens", 3, "--api-key", "k")
        bodies = [body for _, _, body in server.posts()]
        self.assertEqual(bodies[:3], bodies[3:6])
        self.assertNotEqual(bodies[:3], bodies[6:])
        words = [body["prompt"].split() for body in bodies[:3]]
        self.assertEqual(len({tuple(prompt[:3]) for prompt in words}), 1)
        for body, prompt in zip(bodies, words):
            self.assertIn(len(prompt), (5, 6, 7))
            self.assertEqual((body["max_tokens"], body["ignore_eos"], body["stream"]), (5, True, True))
        self.assertEqual({headers["Authorization"] for _, headers, _ in server.requests}, {"Bearer k"})
        self.assertEqual({path for path, _, _ in server.posts()}, {"/v1/completions"})

    def test_latte_gets_token_ids(self):
        with ScriptedServer(pages=LATTE_PAGES) as server:
            bench(server, "--requests", 5)
            bench(server, "--requests", 1, "--endpoint", "chat")
        *completions, chat = [body for _, _, body in server.posts()]
        for body in completions:
            self.assertEqual(len(body["prompt"]), 64)
            self.assertTrue(all(0 <= token < 50 for token in body["prompt"]))
        self.assertEqual(len(chat["messages"][0]["content"].split()), 64)

    def test_a_trace_is_replayed(self):
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as trace, ScriptedServer(pages=LATTE_PAGES) as server:
            for line in ({"arrival_s": 0.4, "tokens": [7, 8], "output_tokens": 3, "priority": -1},
                         {"arrival_s": 0, "prompt_tokens": 5, "output_tokens": 2}):
                trace.write(json.dumps(line) + "\n")
            trace.flush()
            found = report(server, "--trace", trace.name)
        first, second = [body for _, _, body in server.posts()]
        self.assertEqual((len(first["prompt"]), first["max_tokens"]), (5, 2))
        self.assertEqual((second["prompt"], second["max_tokens"], second["priority"]), ([7, 8], 3, -1))
        self.assertGreaterEqual(found["duration"], 0.4)

    def test_other_servers(self):
        def no_usage(handler, body):
            handler.begin()
            handler.raw(": keep-alive\n\n")
            handler.chunk("a")
            handler.chunk("b", "stop")
            handler.end()

        def whole(handler, body):
            handler.json({"choices": [{"text": "ab", "finish_reason": "stop"}],
                          "usage": {"prompt_tokens": 3, "completion_tokens": 2}})
        for script, args in ((no_usage, ()), (whole, ()), (whole, ("--no-stream",))):
            with ScriptedServer(script) as server:
                found = report(server, "--requests", 4, *args)
            self.assertEqual((found["completed"], found["total_output_tokens"]), (4, 8))
            self.assertEqual(found["mean_ttft_ms"] is None, script is whole)
            self.assertEqual(server.posts()[0][2]["stream"], not args)

    def test_errors_are_counted_by_kind(self):
        lock, seen = threading.Lock(), []

        def script(handler, body):
            with lock:
                seen.append(body)
                number = len(seen)
            if number % 4 == 1:
                handler.json({"error": {"message": "the queue is full"}}, 429)
            elif number % 4 == 2:
                handler.begin()
                handler.event({"error": {"message": "out of pages"}})
                handler.end()
            elif number % 4 == 3:
                handler.begin()
                handler.chunk("a")
                handler.close_connection = True
            else:
                handler.stream(["a"])
        with ScriptedServer(script) as server:
            done = bench(server, "--requests", 8, "--json")
        found = json.loads(done.stdout)
        self.assertEqual((found["completed"], found["failed"]), (2, 6))
        self.assertEqual({error["kind"]: error["count"] for error in found["errors"]},
                         {"HTTP 429": 2, "error in the stream": 2, "connection lost": 2})
        with ScriptedServer(lambda handler, body: handler.json({"error": {"message": "no"}}, 400)) as server:
            done = bench(server, "--requests", 2, code=1)
        self.assertIn(b"2 x HTTP 400: HTTP 400: no", done.stdout)
        self.assertIn(b"no request succeeded", done.stderr)

    def test_a_timeout_ends_a_request(self):
        released = threading.Event()

        def script(handler, body):
            handler.begin()
            released.wait(60)
        with ScriptedServer(script) as server:
            found = report(server, "--requests", 2, "--timeout", 0.2, code=1)
            released.set()
        self.assertEqual([(error["kind"], error["count"]) for error in found["errors"]], [("timeout", 2)])

    def test_ctrl_c_reports_what_is_done(self):
        released = threading.Event()

        def script(handler, body):
            if len(server.posts()) > 1:
                released.wait(60)
            handler.stream(["a"])
        with ScriptedServer(script) as server:
            process = subprocess.Popen([LATTE, "bench", "serve", "--url", server.url, "--requests", "5",
                                        "--concurrency", "1", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            while len(server.posts()) < 2:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
            released.set()
        found = json.loads(out)
        self.assertEqual((found["completed"], found["cancelled"], found["unsent"]), (1, 1, 3))
        self.assertEqual(process.returncode, 1)
        self.assertIn(b"stopped", err)

    def test_bad_usage(self):
        with ScriptedServer() as server:
            for args, word in ((("--rate", "0"), "--rate"), (("--input-tokens", "9:7"), "--input-tokens"),
                               (("--requests", 0), "--requests"), (("--goodput", "ttft"), "--goodput"),
                               (("--endpoint", "x"), "--endpoint"), (("--burstiness", 0), "--burstiness"),
                               (("--endpoint", "chat", "--token-ids"), "--token-ids"),
                               (("--concurrency", 10 ** 6, "--requests", 10 ** 6), "--concurrency")):
                done = bench(server, *args, code=2)
                self.assertIn(word, done.stderr.decode())
            self.assertEqual(server.posts(), [])
        self.assertIn(b"is the server running", bench(server, code=1).stderr)  # it has ended
        done = subprocess.run([LATTE, "bench", "serve"], capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"--url", done.stderr)


if __name__ == "__main__":
    LATTE = os.path.abspath(sys.argv.pop(1))
    unittest.main()
