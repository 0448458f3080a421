"""Every method of latte_mla.LLM and Tokenizer. Usage: llm_test.py BUILD_DIR LATTE_BINARY."""
import inspect
import json
import pathlib
import sys
import tempfile
import threading
import typing
import unittest

import support

sys.path.insert(0, str(support.ROOT / "tests/e2e/serve"))
from reciter import template, write_reciter  # noqa: E402
from server import Server  # noqa: E402

STORY = "Once upon a time"
HELLO = [{"role": "user", "content": "Hello"}]


def without_names(body):
    """A body without what differs between two equal answers; how many drafts are made depends on the time that they take."""
    body["usage"].pop("completion_tokens_details", None)
    return {name: value for name, value in body.items() if name not in ("id", "created")}


class WithTiny(support.WithTiny):
    def raises(self, code, call, *arguments, **named):
        with self.assertRaises(self.latte.LatteError) as caught:
            call(*arguments, **named)
        self.assertEqual(caught.exception.code, code, caught.exception)
        return str(caught.exception)


class Generate(WithTiny):
    def test_one_prompt_and_a_list(self):
        one = self.llm.generate(STORY, self.params())
        many = self.llm.generate([STORY, "The cat", self.llm.tokenizer.encode(STORY)], self.params())
        self.assertEqual(len(one.token_ids), 8)
        self.assertEqual([one.text, one.text], [many[0].text, many[2].text])
        self.assertNotEqual(many[0].text, many[1].text)
        self.assertEqual((one.finish_reason, one.usage.completion_tokens), ("length", 8))
        self.assertEqual(one.text, self.llm.tokenizer.decode(one.token_ids))
        self.assertEqual(self.llm.generate([]), [])

    def test_more_prompts_than_the_queue_holds(self):
        with self.latte.LLM("tiny", max_queued_requests=2, max_sequences=2, **support.SMALL) as small:
            found = small.generate([f"{i} cats" for i in range(20)], self.params(max_tokens=2), progress=False)
        self.assertEqual([one.prompt for one in found], [f"{i} cats" for i in range(20)])
        self.assertTrue(all(len(one.token_ids) == 2 for one in found))

    def test_choices_and_logprobs(self):
        out = self.llm.generate(STORY, self.params(n=3, temperature=1.0, logprobs=2, prompt_logprobs=0))
        self.assertEqual(len(out.choices), 3)
        self.assertEqual([one.token_id for one in out.logprobs], out.token_ids)
        self.assertTrue(all(len(one.top) == 2 and one.logprob <= 0 for one in out.logprobs))
        self.assertEqual(len(out.prompt_logprobs), out.usage.prompt_tokens - 1)

    def test_seeds(self):
        hot = {"temperature": 1.5, "max_tokens": 24}
        same = {self.llm.generate(STORY, self.params(seed=5, **hot)).text for _ in range(2)}
        other = {self.llm.generate(STORY, self.params(seed=None, **hot)).text for _ in range(4)}
        self.assertEqual(len(same), 1)
        self.assertGreater(len(other), 1)

    def test_stops_and_bias(self):
        text = self.llm.generate(STORY, self.params(max_tokens=32)).text
        stop = text[10:14]
        cut = self.llm.generate(STORY, self.params(max_tokens=32, stop=stop))
        self.assertEqual((cut.text, cut.finish_reason, cut.choices[0].stop_string), (text[:text.index(stop)], "stop", stop))
        forced = self.llm.generate(STORY, self.params(max_tokens=2, logit_bias={7: 100.0}))
        self.assertEqual(forced.token_ids, [7, 7])

    def test_wrong_values_are_named(self):
        self.assertIn("temperature", self.raises("invalid_argument", self.llm.generate, STORY, self.params(temperature=-1.0)))
        self.assertIn("logprobs", self.raises("invalid_argument", self.llm.generate, STORY, self.params(logprobs=2**40)))
        self.raises("invalid_argument", self.llm.generate, [[1 << 30]], self.params())
        self.raises("not_found", self.latte.LLM, "no/such/model")
        self.assertRaisesRegex(TypeError, "no option 'thread'", self.latte.LLM, "tiny", thread=1)
        self.assertRaisesRegex(ValueError, "expected one, or 2", self.llm.generate, ["a", "b"], [self.params()])

    def test_threads_share_an_engine(self):
        wanted = [self.llm.generate(f"{i} dogs", self.params()).text for i in range(8)]
        found = [None] * 8

        def ask(i):
            found[i] = self.llm.generate(f"{i} dogs", self.params()).text

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, wanted)


class Streams(WithTiny):
    def test_deltas_are_the_answer(self):
        deltas = list(self.llm.stream(STORY, self.params(logprobs=0)))
        whole = self.llm.generate(STORY, self.params())
        self.assertEqual("".join(d.text for d in deltas), whole.text)
        self.assertEqual([d.token_id for d in deltas if d.token_id is not None], whole.token_ids)
        self.assertEqual((deltas[-1].finish_reason, deltas[-1].usage.completion_tokens), ("length", 8))
        self.assertIsNotNone(deltas[0].logprob)

    def test_closing_cancels(self):
        before = self.llm.stats()["requests_cancelled"]
        stream = self.llm.stream(STORY, self.params(max_tokens=100000))
        next(stream)
        stream.close()
        self.assertEqual(list(stream), [])
        with self.llm.stream(STORY, self.params(max_tokens=100000)) as second:
            next(second)
        for _ in self.llm.stream(STORY, self.params(max_tokens=100000)):
            break  # the iterator is dropped
        self.llm.generate(STORY, self.params())
        self.assertEqual(self.llm.stats()["requests_cancelled"] - before, 3)


class Chats(WithTiny):
    def test_a_chat_equals_the_server(self):
        server = Server(support.BINARY)
        try:
            for body in ({"messages": HELLO}, {"messages": HELLO, "n": 2, "logprobs": True, "top_logprobs": 2}):
                body = {**body, "seed": 3, "max_tokens": 12, "temperature": 0.7}
                status, _, wanted = server.post("/v1/chat/completions", body)
                self.assertEqual(status, 200, wanted)
                self.assertEqual(without_names(self.llm.post("/v1/chat/completions", body)), without_names(wanted))
            status, _, wanted = server.post("/v1/chat/completions", {"messages": HELLO, "top_p": 9})
            self.assertEqual(self.raises("invalid_argument", self.llm.chat, HELLO, top_p=9), wanted["error"]["message"])
        finally:
            server.stop()

    def test_chunks_are_the_answer(self):
        params = self.params()
        whole = self.llm.chat(HELLO, params)["choices"][0]["message"]["content"]
        chunks = list(self.llm.chat(HELLO, params, stream=True))
        text = "".join(c["choices"][0]["delta"].get("content") or "" for c in chunks if c["choices"])
        deltas = list(self.llm.stream(HELLO, params))
        self.assertEqual([text, "".join(d.text for d in deltas)], [whole, whole])
        self.assertEqual(deltas[-1].usage["completion_tokens"], 8)
        with self.llm.stream(HELLO, self.params(max_tokens=100000)) as long:
            next(long)

    def test_other_urls(self):
        found = self.llm.post("/v1/completions", {"prompt": STORY, "max_tokens": 4, "seed": 1})
        self.assertEqual((found["object"], found["usage"]["completion_tokens"]), ("text_completion", 4))
        self.assertEqual(self.llm.post("/v1/messages", {"messages": HELLO, "max_tokens": 4, "model": "tiny"})["type"], "message")
        self.raises("not_found", self.llm.post, "/v1/embeddings", {})

    def test_reasoning_and_calls_are_split(self):
        call = ('<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get<｜tool▁sep｜>{"city": "Rome"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>')
        texts = {"think": "<think>why not</think>Because.", "call": call}
        tools = [{"type": "function", "function": {"name": "get", "parameters": {
            "type": "object", "properties": {"city": {"type": "string"}}}}}]
        with tempfile.TemporaryDirectory(prefix="latte_python_") as folder:
            model = write_reciter(pathlib.Path(folder) / "m", texts, template(texts, "<｜tool▁calls▁begin｜>"))
            with self.latte.LLM(model, dtype="f32", **support.SMALL) as llm:
                say = lambda name: [{"role": "user", "content": name}]  # noqa: E731
                thought = llm.chat(say("think"))["choices"][0]["message"]
                called = llm.chat(say("call"), tools=tools)["choices"][0]
                deltas = list(llm.stream(say("call"), tools=tools))
        self.assertEqual(thought["content"], "Because.")
        self.assertEqual(thought.get("reasoning_content", thought.get("reasoning")), "why not")
        self.assertEqual(called["finish_reason"], "tool_calls")
        self.assertEqual(json.loads(called["message"]["tool_calls"][0]["function"]["arguments"]), {"city": "Rome"})
        self.assertTrue(any(delta.tool_calls for delta in deltas))


class Scores(WithTiny):
    def test_score(self):
        score = self.llm.score(STORY)
        self.assertIsNone(score.logprobs[0])
        self.assertEqual(len(score.logprobs), len(score.token_ids))
        self.assertAlmostEqual(sum(score.logprobs[1:]), score.total, 4)
        self.assertLess(score.total, 0)
        self.assertGreater(self.llm.score("zq xv jjj kk").perplexity, score.perplexity)
        self.assertEqual(self.llm.score([5]).logprobs, [None])

    def test_logits_agree_with_scores(self):
        try:
            import numpy as np
        except ImportError:
            self.skipTest("not installed: numpy")
        score = self.llm.score(STORY)
        logits = self.llm.logits(STORY)
        self.assertEqual((logits.shape, logits.dtype),
                         ((len(score.token_ids), self.llm.tokenizer.vocab_size), np.dtype("float32")))
        shifted = logits - logits.max(axis=1, keepdims=True)
        logprobs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        found = logprobs[np.arange(len(score.token_ids) - 1), score.token_ids[1:]]
        np.testing.assert_allclose(found, score.logprobs[1:], atol=1e-3)
        np.testing.assert_array_equal(self.llm.logits(score.token_ids, first=2), logits[2:])
        self.raises("invalid_argument", self.llm.logits, STORY, first=100)
        self.raises("invalid_argument", self.llm.logits, [1 << 30])


class Facts(WithTiny):
    def test_tokenizer(self):
        tokenizer = self.latte.Tokenizer("tiny")
        ids = tokenizer.encode("日本 <｜end▁of▁sentence｜>" * 200)
        self.assertEqual(ids, self.llm.tokenizer.encode("日本 <｜end▁of▁sentence｜>" * 200))
        self.assertEqual(tokenizer.decode(ids, skip_special_tokens=True), "日本 <｜end▁of▁sentence｜>" * 200)
        self.assertEqual(tokenizer.encode("a")[0], tokenizer.bos_token_id)
        self.assertNotIn(tokenizer.bos_token_id, tokenizer.encode("a", add_special_tokens=False))
        end = tokenizer.special_tokens["<｜end▁of▁sentence｜>"]
        self.assertEqual(tokenizer.encode("<｜end▁of▁sentence｜>", add_special_tokens=False, parse_special=True), [end])
        self.assertIn(end, tokenizer.eos_token_ids)
        prompt = tokenizer.apply_chat_template(HELLO)
        self.assertEqual(tokenizer.apply_chat_template(HELLO, tokenize=False), tokenizer.decode(prompt))
        self.assertIn("Hello", tokenizer.decode(prompt))
        self.raises("invalid_argument", tokenizer.decode, [1 << 30])
        self.raises("invalid_argument", tokenizer.apply_chat_template, [{"role": "nobody", "content": ""}])

    def test_info_and_stats(self):
        info = self.llm.info
        self.assertEqual((info["model"], info["options"]["threads"], info["version"]), ("tiny", 1, self.latte.version()))
        self.assertEqual(info["vocab_size"], self.llm.tokenizer.vocab_size)
        self.assertGreater(info["sizes"]["latent"], 0)
        before = self.llm.stats()["generated_tokens"]
        self.llm.generate(STORY, self.params())
        self.assertEqual(self.llm.stats()["generated_tokens"] - before, 8)

    def test_all_is_annotated(self):
        self.assertTrue((support.ROOT / "python/latte_mla/py.typed").is_file())
        for one in (self.latte.LLM, self.latte.Tokenizer, self.latte.Server):
            for name, method in inspect.getmembers(one, inspect.isfunction):
                if not name.startswith("_"):
                    self.assertIn("return", method.__annotations__, f"{one.__name__}.{name}")
                    self.assertTrue(method.__doc__ or name in ("chat_fields",), f"{one.__name__}.{name} has no docstring")
        self.assertTrue(typing.get_type_hints(self.latte.SamplingParams))


if __name__ == "__main__":
    support.main()
