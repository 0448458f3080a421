"""latte chat --url against a scripted server, through a pipe and in a terminal. Usage: remote_chat_test.py
LATTE_BINARY; needs only Python's standard library."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import unittest

from scripted_server import ScriptedServer

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "chat"))
import chat_test
from chat_test import Terminal

LATTE = None


def chat(server, *args, stdin="Hi\n", env=None):
    clean = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return subprocess.run([LATTE, "chat", "--url", server.url, *map(str, args)], input=stdin.encode(),
                          capture_output=True, timeout=120, env={**clean, **(env or {})})


class Pipe(unittest.TestCase):
    def test_every_question_carries_the_conversation(self):
        with ScriptedServer() as server:
            done = chat(server, "--system", "Be brief.", stdin="Hi\nAnd?\n/undo\n//x\n/reset\nNew\n")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"Hello there\n" * 4, b""))
        paths, _, bodies = zip(*server.posts())
        self.assertEqual(set(paths), {"/v1/chat/completions"})
        system = {"role": "system", "content": "Be brief."}
        asked = lambda text: {"role": "user", "content": text}
        answer = {"role": "assistant", "content": "Hello there"}
        self.assertEqual([body["messages"] for body in bodies],
                         [[system, asked("Hi")],
                          [system, asked("Hi"), answer, asked("And?")],
                          [system, asked("Hi"), answer, asked("/x")],
                          [system, asked("New")]])
        self.assertEqual(bodies[0]["model"], "scripted")
        self.assertTrue(bodies[0]["stream"])

    def test_only_what_is_given_is_sent(self):
        with ScriptedServer() as server:
            chat(server)
            chat(server, "--model", "other", "-n", 9, "--temperature", 0.5, "--top-p", 0.9, "--seed", 7, "--thinking",
                 "--logit-bias", "5:1.5", env={"LATTE_TOP_K": "3"})
        plain, full = [body for _, _, body in server.posts()]
        self.assertEqual(set(plain), {"model", "messages", "stream", "stream_options"})
        self.assertEqual({name: full[name] for name in set(full) - set(plain)},
                         {"max_tokens": 9, "temperature": 0.5, "top_p": 0.9, "top_k": 3, "seed": 7,
                          "logit_bias": {"5": 1.5},
                          "chat_template_kwargs": {"thinking": True, "enable_thinking": True}})
        self.assertEqual(full["model"], "other")

    def test_a_redirect_does_not_take_the_key_to_another_server(self):
        for status in (302, 307, 308):
            with self.subTest(status), ScriptedServer() as other:
                def redirect(handler, _, to=other.url, status=status):
                    handler.json({}, status, Location=to + "/v1/chat/completions")
                with ScriptedServer(redirect) as server:
                    done = chat(server, env={"LATTE_API_KEY": "right-key"})
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertEqual([fields["Authorization"] for _, fields, _ in server.requests], ["Bearer right-key"] * len(server.requests))
                self.assertEqual(other.requests, [])
                self.assertNotIn(b"right-key", done.stdout + done.stderr)

    def test_what_is_not_sent_is_shown_as_the_servers(self):
        with ScriptedServer() as server:
            done = chat(server, "--top-p", 0.9, "--stats", stdin="/set\n/set temperature 0.5\n/set\nHi\n/regenerate\n")
        shown = done.stderr.decode()
        self.assertIn("top_p                0.9\n", shown)
        self.assertEqual(shown.count("seed                 server's default\n"), 2)
        self.assertEqual(shown.count("temperature          server's default\n"), 1)
        self.assertEqual(shown.count("temperature          0.5\n"), 1)
        unknown, known = [line for line in shown.splitlines() if line.startswith("[prompt")]
        self.assertNotIn("seed", unknown)
        self.assertIn("; seed 1]", known)  # /regenerate sends it

    def test_an_object_has_the_seed_that_was_sent(self):
        for args, seed in (((), None), (("--seed", 7), 7)):
            with ScriptedServer() as server:
                done = chat(server, "--json", "-p", "Hi", *args)
            self.assertEqual(json.loads(done.stdout)["seed"], seed)

    def test_keys(self):
        for args, env, sent in (((), {}, None), (("--api-key", "a"), {"LATTE_API_KEY": "b"}, "Bearer a"),
                                ((), {"LATTE_API_KEY": "b", "OPENAI_API_KEY": "c"}, "Bearer b"),
                                ((), {"OPENAI_API_KEY": "c"}, "Bearer c")):
            with ScriptedServer() as server:
                chat(server, *args, env=env)
            self.assertEqual({headers["Authorization"] for _, headers, _ in server.requests}, {sent})

    def test_reasoning_is_shown_and_not_sent_again(self):
        def script(handler, body):
            handler.begin()
            for delta in ({"role": "assistant", "content": ""}, {"reasoning_content": "Let me"},
                          {"reasoning_content": " see."}, {"content": "Four."}):
                handler.event({"choices": [{"index": 0, "delta": delta}]})
            handler.event("[DONE]")
            handler.end()
        with ScriptedServer(script) as server:
            done = chat(server, stdin="2+2?\nSure?\n")
        self.assertEqual(done.stdout.decode(), "<think>\nLet me see.\n</think>\n\nFour.\n" * 2)
        self.assertEqual(server.posts()[1][2]["messages"][1], {"role": "assistant", "content": "Four."})

    def test_cut_answers_and_figures(self):
        usage = {"prompt_tokens": 30, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 10}}
        with ScriptedServer(lambda handler, body: handler.stream(["a", "b"], "length", usage)) as server:
            done = chat(server, "--stats")
        self.assertEqual(done.stdout, b"ab\n")
        self.assertIn("[cut after 2 tokens; -n", done.stderr.decode())
        self.assertIn("[prompt 30 tokens, 10 of them cached", done.stderr.decode())
        self.assertIn("generated 2,", done.stderr.decode())

    def test_servers_of_all_kinds(self):
        def without_done(handler, body):
            handler.begin()
            handler.raw(": waiting\r\n\r\n")
            handler.raw('data: {"choices":[{"delta":{"con')
            handler.raw('tent":"Hello there"}}]}\r\n\r\n')
            handler.end()

        def whole(handler, body):
            handler.json({"choices": [{"message": {"role": "assistant", "content": "Hello there"}}]})
        for script in (without_done, whole):
            with ScriptedServer(script) as server:
                done = chat(server, "--model", "m")
            self.assertEqual((done.returncode, done.stdout), (0, b"Hello there\n"), done.stderr)

    def test_a_base_address_with_the_version(self):
        with ScriptedServer() as server:
            server.url += "/v1"
            self.assertEqual(chat(server).stdout, b"Hello there\n")

    def test_errors_are_one_line(self):
        def failing(handler, body):
            handler.json({"error": {"message": "the queue\nis full", "code": "exhausted"}}, 429, **{"Retry-After": "1"})

        def amid(handler, body):
            handler.begin()
            handler.chunk("Hel")
            handler.event({"error": {"message": "out of pages"}})
            handler.event("[DONE]")
            handler.end()

        def broken(handler, body):
            handler.begin()
            handler.chunk("Hel")
            handler.wfile.write(b"5\r\nab")
            handler.close_connection = True
        for script, code, words in ((failing, 1, ("HTTP 429: the queue is full",)), (amid, 1, ("out of pages",)),
                                    (broken, 1, ("connection",))):
            with ScriptedServer(script) as server:
                done = chat(server)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertEqual(len(done.stderr.decode().splitlines()), 1, done.stderr)
            for word in (server.url, *words):
                self.assertIn(word, done.stderr.decode())
        self.assertIn(b"is the server running", chat(server).stderr)  # it has ended

    def test_bad_usage(self):
        with ScriptedServer() as server:
            for args in (("--threads", 2), ("--context", 100), ("tiny",), ("--max-batch-tokens", 5), ("--keep-special",)):
                done = chat(server, *args)
                self.assertEqual((done.returncode, done.stdout), (2, b""), args)
                self.assertIn(b"--url", done.stderr)
            server.url = "localhost:80"
            self.assertEqual(chat(server).returncode, 2)
        self.assertEqual(server.requests, [])
        done = subprocess.run([LATTE, "chat", "--api-key", "x"], input=b"Hi\n", capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"--api-key: expected --url", done.stderr)


class OnATerminal(unittest.TestCase):
    def test_ctrl_c_ends_the_answer_and_its_connection(self):
        def endless(handler, body):
            handler.begin()
            while True:
                handler.chunk("word ")
                time.sleep(0.01)
        with ScriptedServer(endless) as server:
            terminal = Terminal("chat", "--url", server.url)
            terminal.until("scripted: type a message")
            terminal.until("> ")
            terminal.type("Hi\n")
            terminal.until("word word")
            terminal.type("\x03")
            terminal.until("[stopped; the text so far is kept]")
            self.assertTrue(server.left.wait(30))
            server.script = lambda handler, body: handler.stream(["Yes."])
            terminal.until("> ")
            terminal.type("And?\n")
            terminal.until("Yes.")
            terminal.until("> ")
            terminal.type("\x04")
            self.assertEqual(terminal.close(), 0)
        self.assertEqual(len(server.posts()[1][2]["messages"]), 3)

    def test_the_same_answer_again_is_noted(self):
        def ask(server, *args):
            terminal = Terminal("chat", "--url", server.url, *args)
            terminal.until("> ")
            shown = ""
            for text in ("Hi\n", "/regenerate\n"):
                terminal.type(text)
                shown += terminal.until("Yes") + terminal.until("> ")
            terminal.type("\x04")
            self.assertEqual(terminal.close(), 0)
            return shown
        answers = lambda *texts: (lambda handler, body, left=list(texts): handler.stream([left.pop(0)]))
        with ScriptedServer(answers("Yes.", "Yes.", "Yes.", "Yes!", "Yes.", "Yes.")) as server:
            self.assertIn("[the answer is the same as before; perhaps the server's temperature is 0]", ask(server))
            self.assertNotIn("the same", ask(server))
            shown = ask(server, "--temperature", "0")
        self.assertIn("[temperature is 0: the answer will be the same]", shown)
        self.assertNotIn("as before", shown)

    def test_ctrl_c_ends_the_wait_for_a_server(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            terminal = Terminal("chat", "--url", f"http://127.0.0.1:{silent.getsockname()[1]}")
            connection, _ = silent.accept()
            terminal.type("\x03")
            terminal.until("stopped while waiting for http://127.0.0.1")
            self.assertEqual(terminal.close(), 1)
            connection.close()

    def test_ctrl_c_ends_an_answer_as_an_object(self):
        def silent(handler, body):
            handler.begin()
            while True:  # until the client leaves
                handler.raw(": waiting\n\n")
                time.sleep(0.01)
        with ScriptedServer(silent) as server:
            terminal = Terminal("chat", "--url", server.url, "--json", "-p", "Hi")
            while not server.posts():
                time.sleep(0.01)
            terminal.type("\x03")
            self.assertEqual(terminal.close(), -signal.SIGINT)

    def test_ctrl_c_before_the_first_token_forgets_the_question(self):
        def silent(handler, body):
            handler.begin()
            while True:  # until the client leaves
                handler.raw(": waiting\n\n")
                time.sleep(0.01)
        with ScriptedServer(silent) as server:
            terminal = Terminal("chat", "--url", server.url)
            terminal.until("> ")
            terminal.type("Hi\n")
            while not server.posts():
                time.sleep(0.01)
            terminal.type("\x03")
            terminal.until("[stopped before the answer began; not kept]")
            self.assertTrue(server.left.wait(30))
            server.script = lambda handler, body: handler.json({"error": {"message": "too busy"}}, 503)
            terminal.until("> ")
            terminal.type("And?\n")
            terminal.until("HTTP 503: too busy")  # an error does not end the conversation
            terminal.until("> ")
            terminal.type("\x04")
            self.assertEqual(terminal.close(), 0)
        self.assertEqual(len(server.posts()[1][2]["messages"]), 1)


if __name__ == "__main__":
    LATTE = chat_test.LATTE = os.path.abspath(sys.argv.pop(1))
    unittest.main()
