"""How latte serve starts, refuses, survives its clients and ends. Usage: life_test.py LATTE_BINARY; needs only
Python's standard library and the openssl program."""
import http.client
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import unittest
from urllib.parse import urlsplit

from server import Server, events, until

LATTE = None
COMPLETIONS = "/v1/completions"
# Longer than any test waits.
LONG = {"prompt": "Once upon a time", "max_tokens": 3000, "ignore_eos": True, "temperature": 1}


class Life(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_requests_without_a_seed_differ_unless_the_server_has_one(self):
        body = {"prompt": "Once upon a time", "temperature": 1, "max_tokens": 20}
        printed = subprocess.run([LATTE, "serve", "tiny", "--print-config"], check=True, capture_output=True, text=True).stdout
        config = pathlib.Path(self.folder) / "latte.toml"
        config.write_text(printed)
        for flags, least, most in (((), 2, 4), (("--seed", "-1"), 2, 4), (("--config", config), 2, 4), (("--seed", "3"), 1, 1)):
            with Server(LATTE, *flags) as server:
                texts = {server.post(COMPLETIONS, body)[2]["choices"][0]["text"] for _ in range(4)}
                self.assertTrue(least <= len(texts) <= most, texts)

    def test_the_command_that_it_prints_can_be_copied(self):
        with Server(LATTE) as server:
            self.assertTrue(until(lambda: len(server.lines) > 4 and "or open" in "".join(server.lines)))
            # A line of the log may fall between: another thread writes it.
            lines = [line for line in server.lines if not re.match(r"\d{4}-\d\d-", line)]
            lines = lines[lines.index("ready; try") + 1:][:2]
            self.assertTrue(lines[0].startswith("  curl ") and lines[0].endswith(" \\"), lines)
            done = subprocess.run(["bash", "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
            self.assertIn("choices", json.loads(done.stdout))

    def test_a_model_that_recommends_nothing_is_sampled_as_the_api_says(self):
        user = [{"role": "user", "content": "Once upon a time"}]
        asks = ((COMPLETIONS, {"prompt": "Once upon a time", "max_tokens": 40}),
                ("/v1/chat/completions", {"messages": user, "max_tokens": 40}),
                ("/v1/responses", {"input": "Once upon a time", "max_output_tokens": 40}),
                ("/v1/messages", {"messages": user, "max_tokens": 40}))
        model = pathlib.Path(self.folder) / "model"
        shutil.copytree(pathlib.Path(__file__).resolve().parents[3] / "models/tiny", model)
        recommended = model / "generation_config.json"

        def answers(server, path, body):
            """The answers of four requests: each gets a seed of its own."""
            found = [server.post(path, body)[2] for _ in range(4)]
            return {json.dumps(a.get("choices") or a.get("output") or a.get("content")).replace(a["id"].split("_")[-1], "")
                    for a in found}
        for text, differ in ((None, True), ('{"do_sample": false}', False), ('{"do_sample": true, "temperature": 1}', True)):
            recommended.unlink(missing_ok=True)
            if text:
                recommended.write_text(text)
            with Server(LATTE, model=str(model)) as server:
                for path, body in asks:
                    with self.subTest(recommended=text, path=path):
                        self.assertEqual(len(answers(server, path, body)) > 1, differ)
                        self.assertEqual(len(answers(server, path, {**body, "temperature": 0})), 1)
        recommended.unlink()
        requests = pathlib.Path(self.folder) / "requests.jsonl"
        requests.write_text("".join(json.dumps({"custom_id": str(i), "method": "POST", "url": COMPLETIONS, "body": {**asks[0][1], "seed": i}}) + "\n"
                                    for i in range(4)))
        results = pathlib.Path(self.folder) / "results.jsonl"
        subprocess.run([LATTE, "batch", str(model), "-i", requests, "-o", results], check=True, capture_output=True, timeout=120)
        texts = [json.loads(line)["response"]["body"]["choices"][0]["text"] for line in results.read_text().splitlines()]
        self.assertEqual((len(texts), len(set(texts))), (4, 1), "latte batch is greedy")

    def test_the_request_to_copy_names_an_address_of_this_machine(self):
        with Server(LATTE, "--host", "0.0.0.0") as server:
            until(lambda: any("in a browser" in line for line in server.lines))
            hints = [line for line in server.lines if "curl" in line or "in a browser" in line]
            self.assertEqual(len(hints), 2, server.lines)
            for hint in hints:
                self.assertIn(f"http://127.0.0.1:{server.port}/", hint)
            at = server.lines.index(hints[0])
            copied = shlex.split("\n".join(server.lines[at:at + 2]))
            self.assertEqual(server.post(urlsplit(copied[1]).path, copied[-1])[0], 200, copied)

    def test_sigterm_lets_running_requests_end(self):
        with Server(LATTE) as server:
            connection, answer = server.stream(COMPLETIONS, {**LONG, "max_tokens": 300})
            next(events(answer))
            server.process.send_signal(signal.SIGTERM)
            got = list(events(answer))
            connection.close()
            self.assertEqual(got[-1], "[DONE]")
            self.assertEqual(got[-2]["choices"][0]["finish_reason"], "length")
            self.assertEqual(server.process.wait(30), 0)

    def test_a_second_sigterm_ends_at_once(self):
        with Server(LATTE, "--context", "100000", "--drain-timeout", "600") as server:
            connection, answer = server.stream(COMPLETIONS, LONG)
            next(events(answer))
            server.process.send_signal(signal.SIGTERM)
            self.assertTrue(until(lambda: any("shutting down" in line for line in server.lines)))
            server.process.send_signal(signal.SIGTERM)
            got = list(events(answer))
            connection.close()
            self.assertEqual(got[-1], "[DONE]")
            self.assertIn("shutting down", got[-2]["error"]["message"])
            self.assertEqual(server.process.wait(30), 0)

    def test_the_drain_timeout_ends_streams_with_an_error(self):
        with Server(LATTE, "--drain-timeout", "0.2") as server:
            connection, answer = server.stream(COMPLETIONS, LONG)
            next(events(answer))
            server.process.send_signal(signal.SIGTERM)
            got = list(events(answer))
            connection.close()
            self.assertEqual(got[-1], "[DONE]")
            self.assertIn("shutting down", got[-2]["error"]["message"])
            self.assertEqual(server.process.wait(30), 0)

    def test_a_client_that_leaves_ends_its_request(self):
        with Server(LATTE) as server:
            for streams in (True, False):
                before = server.metric("latte:answers_cancelled_total")
                connection = server.connect()
                connection.request("POST", COMPLETIONS, json.dumps({**LONG, "stream": streams}),
                                   {"Content-Type": "application/json"})
                if streams:
                    next(events(connection.getresponse()))
                else:
                    self.assertTrue(until(lambda: server.metric("vllm:num_requests_running") == 1))
                steps = server.metric("latte:engine_steps_total")
                connection.close()
                self.assertTrue(until(lambda: server.metric("latte:answers_cancelled_total") == before + 1))
                self.assertLess(server.metric("latte:engine_steps_total") - steps, 2500, "it ran to its end")
                self.assertEqual(server.metric("vllm:num_requests_running"), 0)
                self.assertEqual(server.metric("vllm:kv_cache_usage_perc"), 0)
            self.assertEqual(server.stop(), 0)

    def test_a_client_that_resets_ends_its_request(self):
        with Server(LATTE) as server:
            connection = server.connect()
            connection.request("POST", COMPLETIONS, json.dumps(LONG), {"Content-Type": "application/json"})
            self.assertTrue(until(lambda: server.metric("vllm:num_requests_running") == 1))
            connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
            self.assertTrue(until(lambda: server.metric("latte:answers_cancelled_total") == 1))

    def test_a_client_that_half_closes_gets_its_answer(self):
        with Server(LATTE) as server, server.socket() as raw:
            body = json.dumps({"prompt": "Once", "max_tokens": 200, "ignore_eos": True})
            raw.sendall(f"POST {COMPLETIONS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                        f"Content-Length: {len(body)}\r\n\r\n{body}".encode())
            raw.shutdown(socket.SHUT_WR)
            answer = b""
            while part := raw.recv(65536):
                answer += part
            self.assertIn(b'"completion_tokens":200', answer)

    def test_keys(self):
        keys = os.path.join(self.folder, "keys")
        with open(keys, "w") as file:
            file.write("# comment\n\nfrom-file\n")
        with Server(LATTE, "--api-key", "one", "--api-key", "two", "--api-key-file", keys) as server:
            self.assertEqual(server.get("/health")[0], 200)
            self.assertEqual(server.get("/ready")[0], 200)
            self.assertEqual(server.get("/")[0], 200)
            for path in ("/v1/models", "/metrics", "/props", "/requests", "/version", "/nothing"):
                status, fields, answer = server.get(path)
                self.assertEqual((status, fields["WWW-Authenticate"]), (401, "Bearer"), path)
                self.assertEqual(answer["error"]["code"], "invalid_api_key")
            for key, status in (("one", 200), ("two", 200), ("from-file", 200), ("on", 401), ("onee", 401), ("", 401)):
                self.assertEqual(server.get("/v1/models", headers={"Authorization": f"Bearer {key}"})[0], status, key)
            for name in ("X-Api-Key", "api-key"):  # of Anthropic's clients, of Azure's
                self.assertEqual(server.get("/v1/models", headers={name: "two"})[0], 200, name)
                self.assertEqual(server.get("/v1/models", headers={name: "three"})[0], 401, name)
            self.assertNotIn("from-file", "\n".join(server.lines))

    def test_keys_share_prefixes_unless_they_have_salts(self):
        prompt = {"prompt": [list(range(5, 5 + 200))], "max_tokens": 1}

        def cached(server, key, **more):
            status, _, answer = server.post(COMPLETIONS, {**prompt, **more}, headers={"Authorization": f"Bearer {key}"})
            self.assertEqual(status, 200, answer)
            return answer["usage"]["prompt_tokens_details"]["cached_tokens"]
        keys = ("--api-key", "one", "--api-key", "two")
        with Server(LATTE, *keys) as server:
            self.assertEqual([cached(server, "one"), cached(server, "two")], [0, 192])
        folder = os.path.join(self.folder, "cache")
        with Server(LATTE, *keys, "--salt-by-key", "--cache-dir", folder) as server:
            self.assertEqual([cached(server, key) for key in ("one", "two", "one", "two")], [0, 0, 192, 192])
            # A salt of the request's own separates further; equal salts of two keys differ.
            self.assertEqual([cached(server, key, cache_salt="s") for key in ("one", "two", "one")], [0, 0, 192])
            self.assertEqual(server.stop(), 0)
        for path, _, names in os.walk(folder):
            for name in names:
                with open(os.path.join(path, name), "rb") as file:
                    self.assertNotIn(b"Bearer", file.read())
        with Server(LATTE, "--api-key", "one", "--api-key", "three", "--salt-by-key", "--cache-dir", folder) as server:
            self.assertEqual([cached(server, key) for key in ("three", "one")], [0, 192])
        ran = subprocess.run([LATTE, "serve", "tiny", "--salt-by-key"], text=True, capture_output=True, timeout=60)
        self.assertEqual(ran.returncode, 2, ran.stderr)
        self.assertIn("--api-key", ran.stderr)

    def test_priorities_have_a_floor(self):
        for flags, expected in (((), 0), (("--min-priority", "-10"), -10)):
            with Server(LATTE, *flags) as server:
                for path, body in ((COMPLETIONS, LONG),
                                   ("/v1/responses", {"input": "Hi", "max_output_tokens": 2000})):
                    connection, answer = server.stream(path, {**body, "priority": -1000})
                    self.assertEqual(answer.status, 200)
                    shown = [one["priority"] for key in ("requests", "finished") for one in server.get("/requests")[2][key]]
                    self.assertEqual(set(shown), {expected}, path)
                    connection.close()

    def test_cors(self):
        page = {"Origin": "https://page.example"}
        with Server(LATTE, "--cors-origin", "https://page.example") as server:
            status, fields, _ = server.request("OPTIONS", COMPLETIONS, headers={
                **page, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"})
            self.assertEqual((status, fields["Access-Control-Allow-Origin"]), (204, "https://page.example"))
            self.assertEqual(fields["Access-Control-Allow-Headers"], "content-type")
            for path, body in ((COMPLETIONS, {"prompt": "Once", "max_tokens": 1}), (COMPLETIONS, {"prompt": 1}),
                               ("/nothing", {})):
                _, fields, _ = server.post(path, body, headers=page)
                self.assertEqual(fields["Access-Control-Allow-Origin"], "https://page.example", path)
            connection, answer = server.stream(COMPLETIONS, {"prompt": "Once", "max_tokens": 1}, headers=page)
            self.assertEqual(answer.headers["Access-Control-Allow-Origin"], "https://page.example")
            connection.close()
            self.assertEqual(server.get("/health", headers={"Origin": "https://other.example"})[0], 403)

    def test_localhost_is_all_addresses_of_this_name(self):
        addresses = {found[4][0] for found in socket.getaddrinfo("localhost", 80, proto=socket.IPPROTO_TCP)}
        with Server(LATTE, "--host", "localhost") as server:
            for address in sorted(addresses):
                with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as free:
                    try:
                        free.bind((address, 0))
                    except OSError:
                        continue  # this machine lacks that family
                connection = http.client.HTTPConnection(address, server.port, timeout=60)
                connection.request("GET", "/health", headers={"Host": f"localhost:{server.port}"})
                self.assertEqual(connection.getresponse().status, 200, address)
                connection.close()

    def test_unix_socket(self):
        path = os.path.join(self.folder, "latte.sock")
        with Server(LATTE, "--uds", path) as server:
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
            connection = http.client.HTTPConnection("localhost")
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.connect(path)
            connection.request("GET", "/v1/models", headers={"Host": "any.example"})
            self.assertEqual(connection.getresponse().status, 200)
            connection.close()
            second = subprocess.run([LATTE, "serve", "tiny", "--port", "0", "--uds", path], text=True,
                                    capture_output=True, timeout=60)
            self.assertEqual(second.returncode, 1, second.stderr)
            self.assertIn("another program", second.stderr)
            self.assertEqual(server.stop(), 0)
        self.assertFalse(os.path.exists(path))

    def test_tls(self):
        certificate, key = (os.path.join(self.folder, name) for name in ("cert.pem", "key.pem"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate,
                        "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
                       check=True, capture_output=True)
        with Server(LATTE, "--ssl-certfile", certificate, "--ssl-keyfile", key) as server:
            context = ssl.create_default_context(cafile=certificate)
            raw = socket.create_connection(("127.0.0.1", server.port), timeout=60)
            with context.wrap_socket(raw, server_hostname="localhost") as tls:
                self.assertIn(tls.version(), ("TLSv1.2", "TLSv1.3"))
                tls.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                answer = b""
                while part := tls.recv(65536):
                    answer += part
            self.assertTrue(answer.startswith(b"HTTP/1.1 200"), answer)
            self.assertEqual(server.stop(), 0)

    def test_bad_flags_are_usage_errors(self):
        for flags, word in ((["--port", "99999"], "port"), (["--ssl-certfile", "x"], "ssl"), (["--workers", "0"], "workers"),
                            (["--host", "no.such.host.invalid"], "host"), (["--api-key", "a b"], "api-key")):
            ran = subprocess.run([LATTE, "serve", "tiny", *flags], text=True, capture_output=True, timeout=60)
            self.assertEqual(ran.returncode, 2, (flags, ran.stderr))
            self.assertIn(word, ran.stderr)

    def test_a_port_in_use_is_told(self):
        with Server(LATTE) as server:
            ran = subprocess.run([LATTE, "serve", "tiny", "--port", str(server.port)], text=True, capture_output=True,
                                 timeout=60)
            self.assertEqual(ran.returncode, 1, ran.stderr)
            self.assertIn("--port", ran.stderr)

    def test_a_full_queue_is_429(self):
        with Server(LATTE, "--max-sequences", "1", "--max-queued-requests", "1") as server:
            streams = []
            for _ in range(2):
                connection = server.connect()
                connection.request("POST", COMPLETIONS, json.dumps(LONG), {"Content-Type": "application/json"})
                streams.append(connection)
                self.assertTrue(until(lambda: server.metric("vllm:num_requests_running") +
                                      server.metric("vllm:num_requests_waiting") >= len(streams)))
            status, fields, answer = server.post(COMPLETIONS, LONG)
            self.assertEqual((status, answer["error"]["type"]), (429, "rate_limit_error"))
            self.assertGreaterEqual(int(fields["Retry-After"]), 1)
            for connection in streams:
                connection.close()

    def test_killed_it_finds_its_prefixes_again(self):
        prompt = {"prompt": [list(range(5, 5 + 640))], "max_tokens": 1}
        flags = ("--cache-dir", os.path.join(self.folder, "cache"))
        with Server(LATTE, *flags) as server:
            self.assertEqual(server.post(COMPLETIONS, prompt)[0], 200)
            # One file per page; the writer has a thread of its own.
            self.assertTrue(until(lambda: sum(not name.endswith(".tmp") for _, _, names in os.walk(flags[1])
                                              for name in names) >= 640 // 64 - 1))
            server.process.kill()
            server.process.wait(30)
        with Server(LATTE, *flags) as server:
            usage = server.post(COMPLETIONS, prompt)[2]["usage"]
            # The last token is always computed, and with it its page.
            self.assertGreaterEqual(usage["prompt_tokens_details"]["cached_tokens"], 640 - 64)
            self.assertGreater(server.metric("latte:prefix_cache_disk_tokens_total"), 0)

    def test_many_streams_at_once_are_all_whole(self):
        with Server(LATTE, "--max-sequences", "16") as server:
            ends = []

            def run(seed):
                connection, answer = server.stream(COMPLETIONS, {"prompt": "Once", "max_tokens": 20, "seed": seed,
                                                                 "temperature": 1, "ignore_eos": True})
                ends.append(list(events(answer))[-2:])
                connection.close()
            threads = [threading.Thread(target=run, args=(i,)) for i in range(40)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(len(ends), 40)
            for last, done in ends:
                self.assertEqual((last["choices"][0]["finish_reason"], done), ("length", "[DONE]"))


if __name__ == "__main__":
    LATTE = sys.argv.pop(1)
    unittest.main()
