"""The API of latte serve. Usage: api_test.py LATTE_BINARY; needs only Python's standard library."""
import json
import sys
import unittest

from server import Server, events

LATTE = None
CHAT, COMPLETIONS, RESPONSES = "/v1/chat/completions", "/v1/completions", "/v1/responses"
HI = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 6}
ONCE = {"prompt": "Once upon a time", "max_tokens": 8, "temperature": 0}


class Api(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(LATTE, "--served-model-name", "one", "--served-model-name", "two", "--deterministic", "strict", "--seed", "0")

    @classmethod
    def tearDownClass(cls):
        with cls.server as server:
            assert server.stop() == 0, server.lines

    def ok(self, path, body, **more):
        status, fields, answer = self.server.post(path, body, **more)
        self.assertEqual(status, 200, answer)
        return answer

    def refused(self, path, body, status, param=None, code=None, **more):
        found, _, answer = self.server.post(path, body, **more)
        self.assertEqual(found, status, answer)
        self.assertEqual(sorted(answer["error"]), ["code", "message", "param", "type"])
        if param is not None:
            self.assertEqual(answer["error"]["param"], param, answer)
        if code is not None:
            self.assertEqual(answer["error"]["code"], code, answer)
        return answer["error"]

    def test_models_have_all_names(self):
        status, _, answer = self.server.get("/v1/models")
        self.assertEqual((status, [m["id"] for m in answer["data"]]), (200, ["one", "two"]))
        self.assertEqual(answer["data"][0]["max_model_len"], 4096)
        self.assertEqual(self.server.get("/v1/models/two")[2]["id"], "two")
        self.assertEqual(self.server.get("/v1/models/three")[0], 404)
        self.assertEqual(self.ok(COMPLETIONS, {**ONCE, "model": "two"})["model"], "two")
        self.refused(COMPLETIONS, {**ONCE, "model": "three"}, 404, "model", "model_not_found")

    def test_paths_as_people_write_them(self):
        for path, body in ((CHAT, HI), (COMPLETIONS, ONCE), (RESPONSES, {"input": "Hi", "max_output_tokens": 2}),
                           ("/v1/messages", HI)):
            self.ok(path.removeprefix("/v1"), body)
            for wrong in (f"/{path}", f"/v1{path}", f"/api{path}", path.replace("/v1/", "/v1//"), path + path):
                status, _, answer = self.server.post(wrong, body)
                self.assertEqual(status, 404, wrong)
                self.assertIn(f"did you mean {path}?", answer["error"]["message"])
                self.assertEqual(answer.get("type"), "error" if path == "/v1/messages" else None, wrong)
        self.assertEqual(self.server.get("/models")[2], self.server.get("/v1/models")[2])
        self.assertEqual(self.server.get("/models/two")[2]["id"], "two")
        self.assertIn("embeddings are not available", self.refused("/embeddings", {"input": "x"}, 404)["message"])

    def test_a_stream_has_the_text_of_the_whole_answer(self):
        for path, body in ((CHAT, HI), (COMPLETIONS, ONCE), (COMPLETIONS, {**ONCE, "echo": True, "logprobs": 2}),
                           (COMPLETIONS, {**ONCE, "n": 3, "temperature": 1, "prompt": ["Once", "The"]}),
                           (COMPLETIONS, {**ONCE, "n": 2, "temperature": 1, "prompt": [[8], [5, 6, 7]]}),
                           (CHAT, {**HI, "logprobs": True, "top_logprobs": 2, "n": 2, "temperature": 1})):
            with self.subTest(path=path, body=body):
                whole = self.ok(path, body)
                connection, answer = self.server.stream(path, {**body, "stream_options": {"include_usage": True}})
                self.assertEqual(answer.status, 200)
                self.assertTrue(answer.headers["Content-Type"].startswith("text/event-stream"))
                got = list(events(answer))
                connection.close()
                self.assertEqual(got.pop(), "[DONE]")
                usage = got.pop()
                self.assertEqual(usage["choices"], [])
                # The prompt is known the second time, and the number of drafts depends on the clock.
                for u in (usage["usage"], whole["usage"]):
                    u.pop("prompt_tokens_details")
                    u.pop("completion_tokens_details", None)
                self.assertEqual(usage["usage"], whole["usage"])
                self.assertEqual(self.joined(got), [self.flat(choice) for choice in whole["choices"]])

    @staticmethod
    def flat(choice):
        message = choice.get("message", {})
        text = choice.get("text", "") + (message.get("content") or "")
        logprobs = choice["logprobs"] or {}
        return (text, message.get("reasoning_content", ""), choice["finish_reason"],
                json.dumps(logprobs.get("content") or [logprobs.get(k) for k in ("tokens", "token_logprobs", "text_offset")]))

    def joined(self, chunks):
        choices = {}
        for chunk in chunks:
            self.assertIsNone(chunk["usage"])
            (choice,) = chunk["choices"]
            all_of = choices.setdefault(choice["index"], {"text": "", "reasoning": "", "finish": None, "lists": {}})
            self.assertIsNone(all_of["finish"], "a chunk after the last")
            delta = choice.get("delta", {})
            all_of["text"] += choice.get("text", "") + delta.get("content", "")
            all_of["reasoning"] += delta.get("reasoning_content", "")
            all_of["finish"] = choice["finish_reason"]
            for key, values in (choice.get("logprobs") or {}).items():
                if isinstance(values, list):
                    all_of["lists"].setdefault(key, []).extend(values)
        out = []
        for _, c in sorted(choices.items()):
            lists = c["lists"].get("content") or [c["lists"].get(k) for k in ("tokens", "token_logprobs", "text_offset")]
            out.append((c["text"], c["reasoning"], c["finish"], json.dumps(lists)))
        return out

    def test_the_page(self):
        for path, kind in (("/", "text/html"), ("/page/main.js", "text/javascript")):
            status, fields, text = self.server.get(path)
            self.assertEqual((status, fields["Content-Type"]), (200, f"{kind}; charset=utf-8"))
            self.assertIn("default-src 'none'", fields["Content-Security-Policy"])
            status, head, nothing = self.server.request("HEAD", path)
            self.assertEqual((status, nothing, head["Content-Length"]), (200, "", str(len(text.encode()))))
            again = self.server.get(path, headers={"If-None-Match": fields["ETag"]})
            self.assertEqual((again[0], again[2], again[1]["ETag"]), (304, "", fields["ETag"]))
            self.assertEqual(self.server.post(path, {})[0], 405)
        self.assertEqual(self.server.get("/page/nothing.js")[0], 404)

    def test_no_answer_may_be_taken_for_another_type(self):
        for path in ("/", "/page/main.js", "/health", "/metrics", "/requests", "/v1/models", "/nothing"):
            self.assertEqual(self.server.get(path)[1].get_all("X-Content-Type-Options"), ["nosniff"], path)
        for body in (ONCE, {"prompt": 1}):
            self.assertEqual(self.server.post(COMPLETIONS, body)[1].get_all("X-Content-Type-Options"), ["nosniff"])
        connection, answer = self.server.stream(COMPLETIONS, {**ONCE, "max_tokens": 1})
        self.assertEqual(answer.headers.get_all("X-Content-Type-Options"), ["nosniff"])
        connection.close()

    def test_known_prompts_are_told(self):
        body = {"prompt": [list(range(5, 205))], "max_tokens": 2}
        self.ok(COMPLETIONS, body)
        usage = self.ok(COMPLETIONS, body)["usage"]
        self.assertEqual(usage["prompt_tokens_details"]["cached_tokens"], 192)
        salted = self.ok(COMPLETIONS, {**body, "cache_salt": "mine"})["usage"]
        self.assertEqual(salted["prompt_tokens_details"]["cached_tokens"], 0)

    def test_seeds_repeat_answers(self):
        body = {**ONCE, "temperature": 1, "seed": 7, "max_tokens": 20}
        self.assertEqual(self.ok(COMPLETIONS, body)["choices"], self.ok(COMPLETIONS, body)["choices"])

    def test_tokens_and_templates(self):
        tokens = self.ok("/tokenize", {"prompt": "Once upon", "return_token_strs": True})
        self.assertEqual(tokens["count"], len(tokens["tokens"]))
        self.assertEqual("".join(tokens["token_strs"][1:]), "Once upon")
        self.assertEqual(self.ok("/detokenize", {"tokens": tokens["tokens"][1:]})["prompt"], "Once upon")
        messages = HI["messages"]
        prompt = self.ok("/apply-template", {"messages": messages})["prompt"]
        self.assertIn("Hi", prompt)
        self.assertEqual(self.ok("/tokenize", {"messages": messages})["tokens"],
                         self.ok("/tokenize", {"prompt": prompt, "add_special_tokens": False, "parse_special": True})["tokens"])
        self.refused("/tokenize", {"promt": "x"}, 400, "promt")
        self.refused("/detokenize", {"tokens": [99999]}, 400)

    def test_responses_say_what_chats_say(self):
        chat = self.ok(CHAT, {**HI, "temperature": 0})
        body = {"input": "Hi", "max_output_tokens": HI["max_tokens"], "temperature": 0}
        whole = self.ok(RESPONSES, body)
        self.assertEqual(whole["output"][0]["content"][0]["text"], chat["choices"][0]["message"]["content"])
        self.assertEqual((whole["status"], whole["incomplete_details"]), ("incomplete", {"reason": "max_output_tokens"}))
        self.assertEqual(whole["usage"]["output_tokens"], chat["usage"]["completion_tokens"])
        connection, answer = self.server.stream(RESPONSES, body)
        text = answer.read().decode()
        connection.close()
        got = [json.loads(event.partition("\ndata: ")[2]) for event in text.split("\n\n") if event.startswith("event: ")]
        self.assertEqual([event["sequence_number"] for event in got], list(range(len(got))))
        self.assertEqual((got[0]["type"], got[-1]["type"]), ("response.created", "response.incomplete"))
        self.assertEqual("".join(e["delta"] for e in got if e["type"] == "response.output_text.delta"),
                         whole["output"][0]["content"][0]["text"])
        self.assertEqual(got[-1]["response"]["output"][0]["content"], whole["output"][0]["content"])

    def test_responses_are_not_stored(self):
        self.refused(RESPONSES, {"input": "Hi", "previous_response_id": "resp_1"}, 400, "previous_response_id", "unsupported")
        self.refused(RESPONSES, {"model": "one"}, 400, "input")
        self.refused(RESPONSES, {"input": "Hi", "model": "three"}, 404, "model", "model_not_found")
        self.refused(RESPONSES, {"input": "a b " * 5000}, 400, code="context_length_exceeded")
        for method in ("GET", "DELETE"):
            status, _, answer = self.server.request(method, "/v1/responses/resp_1")
            self.assertEqual(status, 404)
            self.assertIn("stores no responses", str(answer))
        self.assertEqual(self.server.get(RESPONSES)[0], 405)

    def test_bad_requests_name_the_field(self):
        self.refused(CHAT, "", 400)
        self.refused(CHAT, "[1]", 400)
        self.refused(CHAT, '{"messages": ' + "[" * 10000, 400)
        self.refused(CHAT, {**HI, "top_p": 3}, 400, "top_p")
        self.refused(CHAT, {**HI, "tools": [{"type": "function", "function": {"name": "f"}}]}, 400, "tools")
        self.refused(CHAT, {**HI, "n": 65}, 400, "n")
        self.refused(COMPLETIONS, {"prompt": [5] * 5000}, 400, code="context_length_exceeded")
        self.refused(COMPLETIONS, {**ONCE, "prompt": ["x"] * 1025}, 400, "prompt")
        self.refused(COMPLETIONS, ONCE, 415, headers={"Content-Type": "text/plain"})
        self.assertEqual(self.server.request("DELETE", CHAT)[0], 405)

    def test_request_ids_come_back(self):
        self.assertEqual(self.server.get("/health", headers={"X-Request-Id": "mine-1"})[1]["X-Request-Id"], "mine-1")
        refused = self.server.get("/v1/nothing", headers={"X-Request-Id": "mine-2"})
        self.assertEqual((refused[0], refused[1]["X-Request-Id"]), (404, "mine-2"))
        forged = self.server.get("/health", headers={"X-Request-Id": 'a b"c'})[1]["X-Request-Id"]
        self.assertRegex(forged, "^[0-9a-f]{32}$")

    def test_requests_and_metrics_count(self):
        before = self.server.metric("vllm:generation_tokens_total")
        self.ok(COMPLETIONS, {**ONCE, "user": "me", "prompt": "a secret text"})
        self.assertEqual(self.server.metric("vllm:generation_tokens_total"), before + 8)
        self.assertGreaterEqual(self.server.metric("latte:ignored_fields_total"), 1)
        view = self.server.get("/requests")[2]
        self.assertEqual(view["finished"][0]["generated_tokens"], 8)
        self.assertNotIn("secret", json.dumps(view) + "\n".join(self.server.lines))

    def test_origins_and_hosts(self):
        self.assertEqual(self.server.get("/health", headers={"Host": "evil.example"})[0], 403)
        self.assertEqual(self.server.get("/health", headers={"Host": "localhost:1"})[0], 200)
        self.assertEqual(self.server.get("/health", headers={"Origin": "http://evil.example"})[0], 403)


if __name__ == "__main__":
    LATTE = sys.argv.pop(1)
    unittest.main()
