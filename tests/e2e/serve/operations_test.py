"""latte serve when the machine, its files or its operator misbehave. Usage: operations_test.py LATTE_BINARY; needs only
Python's standard library. docs/bad_input.md explains the numbers."""
import contextlib
import http.client
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

from server import Server, events, until

LATTE = None
COMPLETIONS = "/v1/completions"
SHORT = {"prompt": "Once upon a time", "max_tokens": 4, "ignore_eos": True, "temperature": 0}
LONG = {**SHORT, "max_tokens": 3000}


def fails(*flags, env=None, **more):
    """A server that cannot start: its exit code and its messages."""
    ran = subprocess.run([LATTE, "serve", "tiny", "--port", "0", *map(str, flags)], text=True, capture_output=True, timeout=60,
                         env={**os.environ, **(env or {})}, **more)
    return ran.returncode, ran.stderr


class Operations(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_o01_sigterm_with_200_streams(self):
        with Server(LATTE, "--max-sequences", "16") as server:
            ends = []

            def run():
                connection, answer = server.stream(COMPLETIONS, {**SHORT, "max_tokens": 60})
                ends.append(list(events(answer))[-1])
                connection.close()
            threads = [threading.Thread(target=run) for _ in range(200)]
            for thread in threads:
                thread.start()
            self.assertTrue(until(lambda: server.metric("vllm:num_requests_running") +
                                  server.metric("vllm:num_requests_waiting") + len(ends) >= 200))
            server.process.send_signal(signal.SIGTERM)
            for thread in threads:
                thread.join()
            self.assertEqual(ends, ["[DONE]"] * 200)
            self.assertEqual(server.process.wait(30), 0)

    def test_o02_the_port_is_free_after_a_kill(self):
        with Server(LATTE) as server:
            connection, answer = server.stream(COMPLETIONS, LONG)
            next(events(answer))
            port = server.port
            server.process.kill()
            server.process.wait(30)
        with Server(LATTE, "--port", port) as server:
            self.assertEqual(server.port, port)
            self.assertEqual(server.post(COMPLETIONS, SHORT)[0], 200)
        connection.close()

    def unheard(self, *flags, **files):
        """A server whose lines this test does not read, once it answers, and a connection to it. `files`: of Popen."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        process = subprocess.Popen([LATTE, "serve", "tiny", "--port", str(port), *flags], **files)
        self.addCleanup(process.kill)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

        def answers():
            try:
                return self.status(connection, "POST", COMPLETIONS, json.dumps(SHORT)) == 200
            except OSError:
                connection.close()
                return False
        self.assertTrue(until(answers))
        return process, connection

    @staticmethod
    def status(connection, method, path, body=None):
        connection.request(method, path, body, {"Content-Type": "application/json", "X-Request-Id": "x" * 100})
        answer = connection.getresponse()
        answer.read()
        return answer.status

    def test_o03_a_log_that_cannot_be_written(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            process, _ = self.unheard(stderr=full, stdout=full)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(30), 0)

    def test_o04_few_open_files(self):
        with Server(LATTE, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))) as server:
            self.assertTrue(any("open files" in line for line in server.lines), server.lines)
            idle = [server.socket() for _ in range(40)]
            for connection in idle:
                connection.close()
            self.assertTrue(until(lambda: server.get("/health")[0] == 200))
            self.assertEqual(server.post(COMPLETIONS, SHORT)[0], 200)
            self.assertEqual(server.stop(), 0)

    def test_o04_little_memory(self):
        code, text = fails(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (64 << 20, 64 << 20)))
        self.assertEqual(code, 1, text)
        self.assertIn("memory", text)

    def test_o05_a_cache_folder_that_cannot_be_made(self):
        code, text = fails("--cache-dir", "/proc/latte")
        self.assertIn(code, (1, 2), text)
        self.assertIn("/proc/latte", text)

    def test_o08_the_model_is_replaced_while_it_is_served(self):
        model = os.path.join(self.folder, "model")
        shutil.copytree(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../models/tiny"), model)
        with Server(LATTE, model=model) as server:
            before = server.post(COMPLETIONS, SHORT)[2]["choices"]
            for name in os.listdir(model):  # as a download does: a new file takes the name
                path = os.path.join(model, name)
                with open(path + ".new", "wb") as file:
                    file.write(b"other")
                os.replace(path + ".new", path)
            self.assertEqual(server.post(COMPLETIONS, SHORT)[2]["choices"], before)
            self.assertEqual(server.stop(), 0)

    def test_o09_flags_out_of_range(self):
        for flags in (("--port", 99999), ("--threads", 10**6), ("--context", -1), ("--no-such-flag",)):
            code, text = fails(*flags)
            self.assertEqual(code, 2, text)
            self.assertIn(flags[0].lstrip("-").replace("-", "_"), text.replace("-", "_"))

    def test_the_page_is_quiet_in_the_log(self):
        with Server(LATTE) as server:
            self.assertEqual(server.get("/")[0], 200)
            self.assertEqual(server.get("/page/main.js")[0], 200)
            self.assertEqual(server.get("/metrics", headers={"X-Latte-Page": "1"})[0], 200)
            self.assertEqual(server.get("/version", headers={"X-Latte-Page": "1"})[0], 200)
            self.assertEqual(server.get("/metrics")[0], 200)
            shown = lambda: [line.split("path=")[1].split()[0] for line in server.lines if " info request " in line]  # noqa: E731
            self.assertTrue(until(lambda: "/metrics" in shown()))
            self.assertEqual([path for path in shown() if path != "/ready"], ["/version", "/metrics"])

    def test_props_tell_defaults_and_memory(self):
        with Server(LATTE) as server:
            props = server.get("/props")[2]
            self.assertEqual(set(props["defaults"]), {"temperature", "top_k", "top_p", "min_p", "repetition_penalty"})
            self.assertGreater(props["engine"]["weight_bytes"], 1e6)
            self.assertGreater(props["engine"]["workspace_bytes"], 1e5)

    def test_o10_nobody_reads_the_log(self):
        reader, writer = os.pipe()
        process = subprocess.Popen([LATTE, "serve", "tiny", "--port", "0"], stderr=writer, stdin=subprocess.DEVNULL)
        self.addCleanup(process.kill)
        os.close(writer)
        with os.fdopen(reader) as lines:
            port = next(int(line.rsplit(":", 1)[1]) for line in lines if line.startswith("listening on"))
            next(line for line in lines if line.startswith("ready"))
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        for _ in range(3):
            connection.request("POST", COMPLETIONS, json.dumps(SHORT), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            self.assertEqual(answer.status, 200)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(30), 0)

    def ends_with_unread_lines(self, writer, *flags, **files):
        """SIGTERM ends a server after 2,000 lines that nobody reads."""
        process, connection = self.unheard(*flags, stderr=writer, **files)
        os.close(writer)
        for _ in range(2000):
            self.assertEqual(self.status(connection, "GET", "/v1/models"), 200)
        self.assertEqual(self.status(connection, "POST", COMPLETIONS, json.dumps(SHORT)), 200)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(20), 0)

    def test_o10_nobody_reads_thousands_of_lines(self):
        for flags in ((), ("--log-format", "json")):
            with self.subTest(flags):
                reader, writer = os.pipe()
                self.addCleanup(os.close, reader)
                self.ends_with_unread_lines(writer, *flags, stdout=writer)

    def test_o10_the_reader_of_the_log_is_stopped(self):
        reader, writer = os.pipe()
        cat = subprocess.Popen(["cat"], stdin=reader, stdout=subprocess.DEVNULL)
        os.close(reader)
        self.addCleanup(cat.wait)
        self.addCleanup(cat.kill)
        cat.send_signal(signal.SIGSTOP)
        self.ends_with_unread_lines(writer)

    def test_o10_the_pipe_is_full_before_the_start(self):
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        os.set_blocking(writer, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(writer, b"x" * 4096)
        os.set_blocking(writer, True)
        # With a flag of another program, of which the first line tells.
        self.ends_with_unread_lines(writer, "--max-model-len", "2048")

    def test_o10_other_writers_of_the_pipe_still_wait_for_its_reader(self):
        reader, writer = os.pipe()
        process, connection = self.unheard("--no-access-log", stderr=writer)
        self.addCleanup(process.wait)
        self.assertTrue(os.get_blocking(writer))
        os.close(writer)
        process.send_signal(signal.SIGTERM)
        with os.fdopen(reader) as lines:
            self.assertIn("shutting down", lines.read())
        connection.close()

    def test_o11_a_locale_with_a_decimal_comma(self):
        with Server(LATTE, env={"LC_ALL": "de_DE.UTF-8", "LATTE_IDLE_TIMEOUT": "1.5"}) as server:
            self.assertEqual(server.post(COMPLETIONS, {**SHORT, "top_p": 0.5})[0], 200)
            self.assertGreater(server.metric("vllm:e2e_request_latency_seconds_sum"), 0)

    def test_r40_many_equal_prompts(self):
        prompt = list(range(5, 5 + 200))
        with Server(LATTE, "--max-sequences", "8") as server:
            status, _, answer = server.post(COMPLETIONS, {**SHORT, "prompt": [prompt] * 1000})
            self.assertEqual(status, 200)
            self.assertEqual(len({choice["text"] for choice in answer["choices"]}), 1)
            self.assertEqual(len(answer["choices"]), 1000)
            cached = answer["usage"]["prompt_tokens_details"]["cached_tokens"]
            self.assertGreater(cached, 900 * 128)

    def test_r41_two_requests_with_one_id(self):
        with Server(LATTE) as server:
            first, answer = server.stream(COMPLETIONS, LONG, headers={"X-Request-Id": "mine"})
            next(events(answer))
            status, fields, _ = server.post(COMPLETIONS, SHORT, headers={"X-Request-Id": "mine"})
            self.assertEqual(status, 200)
            self.assertNotEqual(fields["X-Request-Id"], "mine")
            self.assertEqual(server.metric("vllm:num_requests_running"), 1)
            first.close()
            self.assertTrue(until(lambda: server.metric("vllm:num_requests_running") == 0))


if __name__ == "__main__":
    LATTE = sys.argv.pop(1)
    unittest.main()
