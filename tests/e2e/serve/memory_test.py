"""The memory that one request to latte serve may take. Usage: memory_test.py LATTE_BINARY [--long]; needs only Python's standard library.

The largest body that each endpoint takes, in the forms that cost most, alone and two at once: with plenty of memory the server
takes at most MULTIPLE times the body's bytes above the body; with little, it refuses the request and goes on.
"""
import json
import os
import resource
import sys
import threading
import unittest

from server import Server

LATTE = None
LONG = "--long" in sys.argv
MIB = 1 << 20
BODY = 32 * MIB  # the defaults of --max-body-bytes
TOKENIZE_BODY = 4 * MIB  # and --max-tokenize-bytes
TOKENIZE = ("/tokenize", "/detokenize", "/apply-template", "/v1/messages/count_tokens")
MULTIPLE = 16  # docs/limits.md
SLACK = 8 * MIB  # what the first request of a kind allocates once
FLAGS = ["--cache-bytes", "16M"]
ORDINARY = {"prompt": "Once upon a time", "max_tokens": 2, "temperature": 0}


class Body:
    """The largest body for `path`: `piece` between `begin` and `end` as often as it fits."""
    def __init__(self, begin, piece, end):
        self.begin, self.piece, self.end = begin.encode(), piece.encode(), end.encode()

    def text(self, path):
        size = TOKENIZE_BODY if path in TOKENIZE else BODY
        return self.begin + self.piece * ((size - len(self.begin) - len(self.end)) // len(self.piece)) + self.end


filled = Body


def listed(begin, piece, end):
    return Body(begin, piece + ",", piece + end)


# Those that take most of each kind; --long tries all.
QUICK = ("tokenize words with pieces", "tokenize chat", "tokenize messages", "detokenize long", "completion words", "completion ids", "chat a",
         "chat tools", "chat parts padded", "messages results", "responses items", "count_tokens")


def bodies():
    """Name, path and Body."""
    return [row for row in all_bodies() if LONG or row[0] in QUICK]


def all_bodies():
    message = '{"role":"user","content":"%s"}'
    for name, text in (("a", "a"), ("words", "a1"), ("letters", "é"), ("spaces", "  \\n"), ("escapes", "\\u0001"), ("emoji", "😀")):
        yield f"tokenize {name}", "/tokenize", filled('{"prompt":"', text, '"}')
        yield f"tokenize {name} with pieces", "/tokenize", filled('{"with_pieces":true,"prompt":"', text, '"}')
        yield f"completion {name}", "/v1/completions", filled('{"max_tokens":1,"prompt":"', text, '"}')
        yield f"chat {name}", "/v1/chat/completions", filled('{"max_tokens":1,"messages":[{"role":"user","content":"', text, '"}]}')
    yield "tokenize chat", "/tokenize", filled('{"with_pieces":true,"messages":[{"role":"user","content":"', "a1", '"}]}')
    yield "tokenize messages", "/tokenize", listed('{"messages":[', message % "a", "]}")
    yield "apply-template", "/apply-template", filled('{"messages":[{"role":"user","content":"', "a1", '"}]}')
    yield "detokenize", "/detokenize", listed('{"tokens":[', "9", "]}")
    yield "detokenize long", "/detokenize", listed('{"tokens":[', "999", "]}")
    yield "completion ids", "/v1/completions", listed('{"max_tokens":1,"prompt":[', "9", "]}")
    yield "completion prompts", "/v1/completions", listed('{"max_tokens":1,"prompt":[', '"a"', "]}")
    yield "completion stops", "/v1/completions", listed('{"prompt":"a","stop":[', '"a"', "]}")
    yield "completion bias", "/v1/completions", listed('{"prompt":"a","logit_bias":{', '"9":1', "}}")
    yield "nested", "/v1/completions", filled('{"prompt":', "[", "")
    yield "objects", "/v1/completions", listed('{"prompt":[', "{}", "]}")
    yield "chat messages", "/v1/chat/completions", listed('{"max_tokens":1,"messages":[', message % "a", "]}")
    yield "chat parts", "/v1/chat/completions", listed('{"max_tokens":1,"messages":[{"role":"user","content":[',
                                                         '{"type":"text","text":"a"}', "]}]}")
    tool = '{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}'
    wide = tool.replace('"f"', '"f","description":"%s"' % ("a" * 90))
    yield "chat tools padded", "/v1/chat/completions", listed('{"max_tokens":1,"messages":[' + message % "a" + '],"tools":[', wide, "]}")
    schema = '{"type":"object","properties":{'
    yield "schema", "/v1/completions", listed('{"prompt":"a","response_format":{"type":"json_schema","json_schema":{"name":"s","schema":' + schema,
                                              '"%s":{"type":"string"}' % ("a" * 20), "}}}}")
    yield "pattern", "/v1/completions", filled('{"prompt":"a","guided_regex":"', "(a|b){1,3}", '"}')
    yield "grammar", "/v1/completions", filled('{"prompt":"a","guided_grammar":"root ::= ', '(\\"a\\" | \\"b\\") ', '"}')
    yield "chat tools", "/v1/chat/completions", listed('{"max_tokens":1,"messages":[' + message % "a" + '],"tools":[', tool, "]}")
    padded = '{"role":"user","content":"%s"}' % ("a" * 30)  # fewer values than JSON may have
    yield "chat messages padded", "/v1/chat/completions", listed('{"max_tokens":1,"messages":[', padded, "]}")
    yield "messages padded", "/v1/messages", listed('{"model":"tiny","max_tokens":1,"messages":[', padded, "]}")
    yield "responses padded", "/v1/responses", listed('{"input":[', padded, "]}")
    result = '{"type":"tool_result","tool_use_id":"x","content":"%s"}' % ("a" * 30)
    yield "messages results", "/v1/messages", listed('{"model":"tiny","max_tokens":1,"messages":[{"role":"user","content":[', result, "]}]}")
    part = '{"type":"text","text":"%s"}' % ("a" * 30)
    yield "chat parts padded", "/v1/chat/completions", listed('{"max_tokens":1,"messages":[{"role":"user","content":[', part, "]}]}")
    yield "responses", "/v1/responses", filled('{"max_output_tokens":1,"input":"', "a1", '"}')
    yield "responses items", "/v1/responses", listed('{"max_output_tokens":1,"input":[', message % "a", "]}")
    yield "messages", "/v1/messages", filled('{"model":"tiny","max_tokens":1,"messages":[{"role":"user","content":"', "a1", '"}]}')
    yield "messages many", "/v1/messages", listed('{"model":"tiny","max_tokens":1,"messages":[', message % "a", "]}")
    yield "count_tokens", "/v1/messages/count_tokens", filled('{"model":"tiny","messages":[{"role":"user","content":"', "a1", '"}]}')


def status(process, key):
    with open(f"/proc/{process.pid}/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith(key + ":"))


def reset_peak(process):
    with open(f"/proc/{process.pid}/clear_refs", "w") as file:
        file.write("5")


def post_all(server, path, body, times):
    """The statuses; None: the connection ended without an answer."""
    found = []

    def post():
        try:
            connection = server.connect(300)
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            found.append(answer.status)
            connection.close()
        except OSError:
            found.append(None)
    threads = [threading.Thread(target=post) for _ in range(times)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def growth(server, path, body, times):
    before = status(server.process, "VmRSS")
    reset_peak(server.process)
    found = post_all(server, path, body, times)
    return status(server.process, "VmHWM") - before, found


class Memory(unittest.TestCase):
    def run_all(self, times):
        for name, path, made in bodies():
            # A server each: memory that an earlier request has left would hide what this one takes.
            with self.subTest(name), Server(LATTE, *FLAGS) as server:
                self.assertEqual(server.post("/v1/completions", ORDINARY)[0], 200)
                body = made.text(path)
                taken, found = growth(server, path, body, times)
                if os.environ.get("VERBOSE"):
                    print(f"{name:32} {found[0]} {taken / len(body) / times:6.1f}", flush=True)
                self.assertTrue(set(found) <= {200, 400, 503}, found)
                self.assertLessEqual(taken, (MULTIPLE + 1) * len(body) * times + SLACK)
                self.assertEqual(server.post("/v1/completions", ORDINARY)[0], 200)

    def test_bodies_to_tokenise_have_their_own_limit(self):
        with Server(LATTE, "--max-tokenize-bytes", "2000", "--max-answer-bytes", "1500") as server:
            for path in TOKENIZE:
                status, _, body = server.post(path, {"prompt": "a" * 2000})
                self.assertEqual(status, 413)
                self.assertIn("--max-tokenize-bytes", body["error"]["message"])
            self.assertEqual(server.post("/tokenize", {"prompt": "a" * 400})[0], 200)
            status, _, body = server.post("/tokenize", {"prompt": "a" * 400, "with_pieces": True})
            self.assertEqual(status, 400)
            self.assertIn("--max-answer-bytes", body["error"]["message"])
            status, _, body = server.post("/detokenize", {"tokens": [999] * 300})
            self.assertEqual(status, 400)
            many = {**ORDINARY, "logprobs": 5, "max_tokens": 20, "ignore_eos": True}
            status, _, body = server.post("/v1/completions", many)
            self.assertEqual(status, 400)
            self.assertIn("1500 bytes", body["error"]["message"])
            self.assertEqual(server.post("/v1/completions", {**many, "stream": True})[0], 200)
            self.assertEqual(server.post("/v1/completions", ORDINARY)[0], 200)

    def test_alone(self):
        self.run_all(1)

    def test_two_at_once(self):
        self.run_all(2)

    def test_little_memory(self):
        """Enough for the server and a part of what a request wants: it answers or ends that connection, and goes on."""
        with Server(LATTE, *FLAGS) as server:
            server.post("/v1/completions", ORDINARY)
            size = status(server.process, "VmSize")
        for spare in (8, 24, 64) if LONG else (24,):
            limit = size + spare * MIB
            with Server(LATTE, *FLAGS, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))) as server:
                for name, path, made in bodies():
                    with self.subTest(name, spare=spare):
                        post_all(server, path, made.text(path), 2)
                        self.assertIsNone(server.process.poll(), "the server has ended:\n" + "\n".join(server.lines[-5:]))
                code, _, body = server.post("/v1/completions", ORDINARY)
                self.assertEqual(code, 200, body)


if __name__ == "__main__":
    LATTE = sys.argv.pop(1)
    if LONG:
        sys.argv.remove("--long")
    unittest.main()
