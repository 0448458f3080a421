"""latte batch from a user's view. Usage: batch_test.py LATTE_BINARY; needs only Python's standard library."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

LATTE = None
CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
ENGINE = ["--cache-bytes", "64M", "--deterministic", "strict"]


def latte(*args):
    return subprocess.run([LATTE, *map(str, args)], text=True, capture_output=True, timeout=300)


def line(custom_id, url=COMPLETIONS, **body):
    return json.dumps({"custom_id": custom_id, "method": "POST", "url": url, "body": body})


def ask(text):
    return [{"role": "user", "content": text}]


def story(number, tokens=20, **more):
    return line(f"story-{number}", prompt="Once upon a time", max_tokens=tokens, seed=number, **more)


GOOD = [
    *(story(i, temperature=0.8) for i in range(6)),
    story(6, temperature=0),
    line("chat", CHAT, messages=ask("Hi"), max_tokens=8, model="any"),
    line("parts", CHAT, messages=[{"role": "user", "content": [{"type": "text", "text": "Hi"}]}], max_tokens=8),
    line("ids", prompt=[0, 5, 6, 7], max_tokens=4, temperature=0),
    line("two", prompt=["Once upon a time"], max_tokens=4, n=2, temperature=1.0, seed=3),
    line("several", prompt=["Once upon a time", "The cat"], max_tokens=4, n=2, temperature=1.0, seed=3),
    line("stop", prompt="Once upon a time", max_tokens=60, temperature=0, stop="."),
    line("nulls", prompt="Once", max_tokens=3, stop=None, logit_bias=None, user="me"),
]
# custom_id -> what the message must name
BAD = {
    "unknown": (line("unknown", prompt="a", best=1), "best"),
    "type": (line("type", prompt="a", temperature="hot"), "temperature"),
    "range": (line("range", prompt="a", top_p=0), "top_p"),
    "stream": (line("stream", prompt="a", stream=True), "stream"),
    "vocabulary": (line("vocabulary", prompt=[99999]), "99999"),
    "url": (line("url", "/v1/embeddings", prompt="a"), "/v1/embeddings"),
    "long": (line("long", prompt=[5] * 5000), "5000"),
    "empty": (line("empty", CHAT, messages=[]), "messages"),
    None: ("{broken", "line"),
}


class Batch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.input = pathlib.Path(folder.name, "in.jsonl")
        self.output = pathlib.Path(folder.name, "out.jsonl")

    def write(self, lines):
        self.input.write_text("\n".join(lines) + "\n")

    def args(self, *more, output=None):
        return ["batch", "tiny", "-i", self.input, "-o", output or self.output, *ENGINE, *more]

    def run_batch(self, *more, output=None):
        done = latte(*self.args(*more, output=output))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def results(self, output=None):
        lines = (output or self.output).read_text().splitlines()
        results = {result["custom_id"]: result for result in map(json.loads, lines)}
        self.assertEqual(len(results), len(lines))
        return results

    def choices(self, output=None):
        return {key: result["response"]["body"]["choices"] for key, result in self.results(output).items()}

    def test_every_line_gets_its_result_and_bad_ones_only_theirs(self):
        bad = [text for text, _ in BAD.values()]
        self.write([text for pair in zip(bad, GOOD) for text in pair] + [""] + GOOD[len(bad):])
        done = self.run_batch()
        self.assertIn(f"{len(BAD)} of them failed", done.stderr)
        self.assertIn("cache: 1310 pages", done.stderr)
        self.assertIn("prefill workspace: 4096 tokens", done.stderr)
        results = self.results()
        self.assertEqual(set(results), {json.loads(text)["custom_id"] for text in GOOD} | set(BAD))
        for custom_id, result in results.items():
            response = result["response"]
            if custom_id in BAD:
                self.assertEqual(response["status_code"], 400, custom_id)
                self.assertIn(BAD[custom_id][1], result["error"]["message"])
                self.assertEqual(response["body"]["error"]["message"], result["error"]["message"])
            else:
                self.assertEqual((response["status_code"], result["error"]), (200, None))
                self.assertEqual(response["body"]["usage"]["total_tokens"],
                                 response["body"]["usage"]["prompt_tokens"] +
                                 response["body"]["usage"]["completion_tokens"])
        several = results["several"]["response"]["body"]
        self.assertEqual([choice["index"] for choice in several["choices"]], [0, 1, 2, 3])
        self.assertEqual(several["usage"]["completion_tokens"], 16)
        self.assertEqual(len(results["two"]["response"]["body"]["choices"]), 2)
        self.assertEqual(results["chat"]["response"]["body"]["object"], "chat.completion")
        self.assertEqual(results["chat"]["response"]["body"]["model"], "any")
        self.assertEqual(results["stop"]["response"]["body"]["choices"][0]["finish_reason"], "stop")
        self.assertEqual([result["id"] for result in results.values() if result["custom_id"] is None], ["batch_req_17"])

    def test_texts_are_those_of_latte_run(self):
        self.write(GOOD)
        self.run_batch()
        choices = self.choices()
        for number, temperature in ((0, 0.8), (1, 0.8), (6, 0)):
            alone = json.loads(latte("run", "-p", "Once upon a time", "-n", 20, "--seed", number, "--temperature",
                                     temperature, "--deterministic", "strict", "--json").stdout)
            choice = choices[f"story-{number}"][0]
            self.assertEqual((choice["text"], choice["finish_reason"]), (alone["text"], alone["finish_reason"]))
        self.assertEqual(choices["chat"][0]["message"], choices["parts"][0]["message"])
        self.assertNotEqual(choices["story-0"], choices["story-1"])

    def test_logprobs_of_both_endpoints(self):
        self.write([line("text", prompt="Once upon a time", max_tokens=3, logprobs=2, echo=True, temperature=0),
                    line("chat", CHAT, messages=ask("Hi"), max_tokens=3, logprobs=True, top_logprobs=2, temperature=0,
                         prompt_logprobs=0)])
        self.run_batch()
        choices = self.choices()
        text = choices["text"][0]
        found = text["logprobs"]
        self.assertTrue(text["text"].startswith("Once upon a time"))
        self.assertEqual({len(found[key]) for key in found}, {8})
        self.assertEqual((found["token_logprobs"][0], found["text_offset"][:3]), (None, [0, 0, 4]))
        for token, offset in list(zip(found["tokens"], found["text_offset"]))[1:]:
            self.assertTrue(text["text"][offset:].startswith(token))
        scored = json.loads(latte("score", "--text", "Once upon a time", "--json").stdout)["logprobs"]
        for ours, theirs in zip(found["token_logprobs"][1:5], scored[1:5]):
            self.assertAlmostEqual(ours, theirs, delta=1e-3)
        content = choices["chat"][0]["logprobs"]["content"]
        self.assertEqual([len(token["top_logprobs"]) for token in content], [2, 2, 2])
        self.assertEqual(bytes(byte for token in content for byte in token["bytes"]).decode(),
                         choices["chat"][0]["message"]["content"])
        prompt = choices["chat"][0]["prompt_logprobs"]
        self.assertEqual((prompt[0], [len(entry) for entry in prompt[1:]]), (None, [1] * (len(prompt) - 1)))

    def test_special_tokens_are_no_text_but_are_listed(self):
        draws_bos = {"max_tokens": 3, "temperature": 0, "logit_bias": {"0": 100}}
        bos = "<｜begin▁of▁sentence｜>"
        self.write([line("chat", CHAT, messages=ask("Hi"), logprobs=True, **draws_bos),
                    line("kept", CHAT, messages=ask("Hi"), skip_special_tokens=False, **draws_bos),
                    line("text", prompt="Once", logprobs=0, **draws_bos),
                    line("stop", prompt="Once", stop=bos, **draws_bos)])
        self.run_batch()
        choices = self.choices()
        self.assertEqual(choices["chat"][0]["message"]["content"], "")
        self.assertEqual([token["token"] for token in choices["chat"][0]["logprobs"]["content"]], [bos] * 3)
        self.assertEqual(choices["kept"][0]["message"]["content"], bos * 3)
        self.assertEqual((choices["text"][0]["text"], choices["text"][0]["finish_reason"]), ("", "length"))
        self.assertEqual(choices["text"][0]["logprobs"]["text_offset"], [0, 0, 0])
        self.assertEqual((choices["stop"][0]["text"], choices["stop"][0]["finish_reason"]), ("", "stop"))

    def test_messages_reach_the_model_or_are_refused_by_role(self):
        verse, hi = {"content": "In verse.", "role": "developer"}, ask("Hi")
        few = {"max_tokens": 4, "temperature": 0}
        self.write([line("developer", CHAT, messages=[verse, *hi], **few),
                    line("system", CHAT, messages=[{**verse, "role": "system"}, *hi], **few),
                    line("middle", CHAT, messages=[*hi, {**verse, "role": "system"}, *hi], **few),
                    line("tool", CHAT, messages=[*hi, {"role": "tool", "tool_call_id": "1", "content": "rain"}]),
                    line("calls", CHAT, messages=[*hi, {"role": "assistant", "content": "so", "tool_calls": [
                        {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}]),
                    line("image", CHAT, messages=[{"role": "user", "content": [{"type": "image_url"}]}]),
                    line("named", CHAT, messages=[{**hi[0], "name": "Ann"}], **few)])
        done = self.run_batch()
        results = self.results()
        tokens = {key: result["response"]["body"]["usage"]["prompt_tokens"]
                  for key, result in results.items() if result["error"] is None}
        self.assertEqual(tokens["developer"], tokens["system"])
        self.assertGreater(tokens["system"], tokens["named"])
        self.assertGreater(tokens["middle"], tokens["system"])
        for key, words in {"tool": ("message 1", "'tool'"), "calls": ("message 1", "tool calls"),
                           "image": ("messages.0.content.0", "'image_url'")}.items():
            for word in words:
                self.assertIn(word, results[key]["error"]["message"])
        self.assertIn("without effect in 1 of them: the chat format template leaves out the name", done.stderr)

    def test_each_api_says_in_its_words_that_a_prompt_is_too_long(self):
        long = "a b " * 5000
        self.write([line("chat", CHAT, messages=ask(long)), line("completion", prompt=long),
                    line("responses", "/v1/responses", input=long),
                    line("messages", "/v1/messages", messages=ask(long), max_tokens=3)])
        self.run_batch()
        for key, result in self.results().items():
            response = result["response"]
            error = response["body"]["error"]
            self.assertEqual((response["status_code"], error["type"]), (400, "invalid_request_error"))
            if key == "messages":
                self.assertRegex(error["message"], r"^prompt is too long: \d+ tokens > \d+ maximum$")
                self.assertEqual(response["body"]["type"], "error")
            else:
                self.assertRegex(error["message"], r"maximum context length is \d+ tokens")
                self.assertEqual(error["code"], "context_length_exceeded")

    def test_clients_may_send_what_changes_nothing(self):
        few = {"max_tokens": 6, "temperature": 0}
        back = {"role": "assistant", "content": "Yes.", "refusal": None, "annotations": [], "audio": None,
                "function_call": None, "tool_calls": None}
        talk = [*ask("Hi"), {"role": "assistant", "content": "Yes."}, *ask("And?")]
        self.write([line("plain", CHAT, messages=talk, **few),
                    line("dumped", CHAT, messages=[talk[0], back, talk[2]], tools=[], tool_choice="none",
                         response_format={"type": "text"}, parallel_tool_calls=True, modalities=["text"], store=False,
                         metadata={"a": "b"}, service_tier="auto", stream=False, stop=[], reasoning_effort=None,
                         chat_template_kwargs={"enable_thinking": False}, thinking={"type": "disabled"}, **few),
                    line("effort", CHAT, messages=talk, reasoning_effort="low", **few),
                    line("thinking", CHAT, messages=talk, thinking={"type": "enabled"}, **few)])
        done = self.run_batch()
        results = self.results()
        body = {key: result["response"]["body"] for key, result in results.items()}
        for key in ("dumped", "effort"):
            self.assertIsNone(results[key]["error"], results[key]["error"])
            self.assertEqual(body[key]["choices"], body["plain"]["choices"])
            self.assertEqual(body[key]["usage"]["prompt_tokens"], body["plain"]["usage"]["prompt_tokens"])
        self.assertIn("reasoning_effort", done.stderr)
        self.assertIn("no switch", results["thinking"]["error"]["message"])

    def slow(self):
        """Enough work to interrupt."""
        return [story(i, tokens=150, temperature=0.8, ignore_eos=True) for i in range(24)]

    def interrupt(self, how):
        """Sends a signal after the first few results."""
        process = subprocess.Popen([LATTE, *map(str, self.args("--max-sequences", 4, "--threads", 1))],
                                   stderr=subprocess.PIPE, text=True)
        while not self.output.exists() or self.output.read_bytes().count(b"\n") < 4:
            self.assertIsNone(process.poll(), "it ended before it could be interrupted")
            time.sleep(0.002)
        process.send_signal(how)
        _, stderr = process.communicate(timeout=60)
        left = self.output.read_bytes()
        self.assertLess(left.count(b"\n"), 24)
        return process.returncode, stderr, left

    def test_killed_and_gone_on_with_it_gives_the_results_of_one_run(self):
        self.write(self.slow())
        code, _, left = self.interrupt(signal.SIGKILL)
        self.assertEqual(code, -signal.SIGKILL)
        whole = left[:left.rindex(b"\n") + 1]
        self.output.write_bytes(whole + whole.splitlines()[0][:100])  # what a torn write leaves
        done = self.run_batch()
        self.assertIn(f"{whole.count(10)} of 24 requests have results already", done.stderr)
        self.assertTrue(self.output.read_bytes().startswith(whole))
        undisturbed = self.output.with_name("undisturbed.jsonl")
        self.run_batch(output=undisturbed)
        self.assertEqual(self.choices(), self.choices(undisturbed))
        self.assertEqual(len(self.choices()), 24)

    def test_signals_end_it_after_a_step_with_whole_lines(self):
        self.write(self.slow())
        for how in (signal.SIGINT, signal.SIGTERM):
            self.output.unlink(missing_ok=True)
            code, stderr, left = self.interrupt(how)
            self.assertEqual(code, 1, stderr)
            self.assertIn("interrupted: ", stderr)
            self.assertTrue(left.endswith(b"\n"))
            self.results()
        self.run_batch()
        self.assertEqual(len(self.choices()), 24)

    def test_failures_are_tried_again_and_the_rest_is_left(self):
        self.write([story(1), line("later", prompt="Once", max_tokens=2, best=1)])
        self.run_batch()
        kept = [text for text in self.output.read_text().splitlines() if "story-1" in text]
        self.write([story(1), line("later", prompt="Once", max_tokens=2)])
        self.run_batch()
        self.assertEqual(self.output.read_text().splitlines()[0], kept[0])
        self.assertEqual({key: result["error"] for key, result in self.results().items()},
                         {"story-1": None, "later": None})
        before = self.output.read_bytes()
        self.run_batch()
        self.assertEqual(self.output.read_bytes(), before)
        self.run_batch("--overwrite")
        self.assertEqual(len(self.results()), 2)

    def test_files_that_do_not_go_together_are_refused_and_left_alone(self):
        self.write([story(1)])
        self.run_batch()
        for lines, named in (([story(2)], "story-1"), ([story(1), story(1)], "stands in line 1 too")):
            self.write(lines)
            before = self.output.read_bytes()
            done = latte(*self.args())
            self.assertEqual(done.returncode, 2)
            self.assertIn(named, done.stderr)
            self.assertEqual(self.output.read_bytes(), before)
        self.write([story(1)])
        for text in ("a poem\n", "a poem", '{"id": "x"}\n'):
            self.output.write_text(text)
            done = latte(*self.args())
            self.assertEqual((done.returncode, self.output.read_text()), (2, text))
            self.assertIn("give another output file", done.stderr)
        done = latte(*self.args(output=self.input))
        self.assertEqual(done.returncode, 2)

    def test_standard_input_is_refused_with_the_reason(self):
        done = latte("batch", "-i", "-", "-o", "results.jsonl")
        self.assertEqual(done.returncode, 2)
        self.assertIn("write them to a file", done.stderr)
        self.assertFalse(os.path.exists("results.jsonl"))

    def test_a_mistake_leaves_results_that_were_to_be_overwritten(self):
        self.write([story(1)])
        self.run_batch()
        before = self.output.read_bytes()
        wrong_model = self.args("--overwrite")
        wrong_model[1] = "no/such-model"
        for args in (wrong_model, self.args("--overwrite", "--dtype", "f8")):
            self.assertEqual(latte(*args).returncode, 2)
            self.assertEqual(self.output.read_bytes(), before)

    def test_a_small_queue_is_waited_for(self):
        self.write([story(i) for i in range(12)])
        self.run_batch("--max-queued-requests", 2, "--max-sequences", 2)
        self.assertEqual(len(self.choices()), 12)

    def test_engine_flags_are_checked(self):
        self.write([story(1)])
        for flag, value in (("--cache-bytes", "many"), ("--cache-bytes", "-1"), ("--page-tokens", 17), ("--act", "int2"),
                            ("--dtype", "f8"), ("--deterministic", "maybe"), ("--max-sequences", 0),
                            ("--max-queued-tokens", 0), ("--aging-steps", 0), ("--numa", "here"),
                            ("--cache-dir-bytes", 0), ("--max-batch-tokens", 1), ("--attention", "none")):
            done = latte(*self.args(flag, value))
            self.assertEqual(done.returncode, 2, flag)
            self.assertIn(flag.lstrip("-"), done.stderr.replace("_", "-"))

    def test_prefixes_are_kept_in_a_folder(self):
        self.write([line("a", prompt="Once upon a time " * 40, max_tokens=2)])
        folder = self.output.with_name("prefixes")
        self.run_batch("--cache-dir", folder, "--cache-dir-bytes", "1G")
        self.run_batch("--cache-dir", folder, "--overwrite")
        usage = self.results()["a"]["response"]["body"]["usage"]
        self.assertGreater(usage["prompt_tokens_details"]["cached_tokens"], 63)


if __name__ == "__main__":
    LATTE = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
