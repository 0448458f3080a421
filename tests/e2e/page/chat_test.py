"""The chat on the web page: settings, thinking, tool calls, files, errors, edits, and a server that goes away."""
import json
import pathlib
import tempfile

from fake_server import pieces
from page_case import READY, PageCase, main

MESSAGE = "return document.querySelectorAll('.message')[arguments[0]].querySelector('.said').textContent"


class Chat(PageCase):
    def setUp(self):
        super().setUp()
        self.fake.__dict__.update(answer=lambda body: [*pieces("Hello.", 3), "stop"], status=200, key=None)
        self.open()

    def attach(self, *files):
        self.browser.run("document.getElementById('attach-file').hidden = false")
        self.browser.upload("#attach-file", *files)
        self.browser.run("document.getElementById('attach-file').hidden = true")

    def test_all_settings_are_sent(self):
        self.assertEqual(self.browser.run("return ['temperature', 'top_p', 'top_k', 'presence_penalty', 'max_tokens', 'seed']"
                                          ".map((id) => document.getElementById(id).placeholder)"), ["0.6", "0.95", "model’s", "0", "all that fit", "a new one"])
        self.say("Hi")
        self.assertEqual(set(self.fake.bodies[-1]), {"messages", "stream", "stream_options", "seed"})
        values = {"temperature": 0.5, "top_p": 0.9, "max_tokens": 10, "seed": 3, "top_k": 4, "min_p": 0.1, "repetition_penalty": 1.1, "presence_penalty": -0.5,
                  "frequency_penalty": 0.25, "min_tokens": 1}
        for name, value in values.items():
            self.set(name, str(value))
        for name, text in (("system", "Be kind."), ("stop-texts", "END\\n\nX"), ("stop-ids", "1, 2"), ("logit-bias", "5: -100\n6: 1.5"), ("thinking", "off")):
            self.set(name, text)
        self.browser.run("document.getElementById('more-settings').open = true")
        self.browser.click("#ignore-eos")
        self.say("Hi")
        body = self.fake.bodies[-1]
        self.assertEqual(body.pop("messages")[0], {"role": "system", "content": "Be kind."})
        self.assertEqual(body, {**values, "stop": ["END\n", "X"], "stop_token_ids": [1, 2], "logit_bias": {"5": -100, "6": 1.5}, "ignore_eos": True, "enable_thinking": False,
                                "stream": True, "stream_options": {"include_usage": True}})
        self.reload()
        self.assertEqual(self.browser.run("return [document.getElementById('top_k').value, document.getElementById('ignore-eos').checked]"), ["4", True])
        self.set("logit-bias", "five")
        before = len(self.fake.bodies)
        self.browser.type("#input", "Hi{enter}")
        self.assertEqual(len(self.fake.bodies), before)
        self.assertTrue(self.browser.run("return document.getElementById('logit-bias').matches(':invalid') && document.getElementById('more-settings').open"))

    def test_it_says_when_the_same_answer_would_come(self):
        self.say("Hi")
        self.assertEqual(self.browser.text(".message:last-child .same"), "")
        self.set("temperature", "0")
        self.assertIn("the same answer comes again", self.browser.text(".message:last-child .same"))
        self.set("temperature", "")
        self.set("seed", "5")
        self.assertIn("fixed seed", self.browser.text(".message:last-child .same"))

    def test_reasoning_and_thinking(self):
        self.fake.answer = lambda body: [{"reasoning_content": "I *think*"}, {"reasoning_content": " so."}, {"content": "\n\n Yes."}, "stop"]
        self.assertEqual(self.say("Hi"), "Yes.")
        self.assertFalse(self.last("return last.querySelector('.reasoning').open"))
        self.browser.click(".message:last-child summary")
        self.assertEqual(self.tags(".reasoning em"), ["think"])
        self.say("More")
        self.assertEqual(self.fake.bodies[-1]["messages"][1], {"role": "assistant", "content": "\n\n Yes.", "reasoning_content": "I *think* so."})
        self.set("thinking", "on")
        self.say("More")
        self.assertIs(self.fake.bodies[-1]["enable_thinking"], True)
        self.assertEqual(self.browser.text(".message:last-child h2"), "fake-model")

    def test_calls_of_functions(self):
        def call(index, **part):
            return {"tool_calls": [{"index": index, **part}]}
        self.fake.answer = lambda body: [call(0, id="a", function={"name": "weather", "arguments": ""}), call(0, function={"arguments": '{"city": '}),
                                         call(0, function={"arguments": '"<b>Rome"}'}), call(1, id="b", function={"name": "time", "arguments": "{}"}), "tool_calls"]
        self.say("Hi")
        self.assertEqual(self.tags(".call p"), ["Calls weather", "Calls time"])
        self.assertEqual(self.tags(".call code"), ['{\n  "city": "<b>Rome"\n}', "{}"])
        self.assertIn("waits for the result of its call", self.note())
        self.fake.answer = lambda body: [*pieces("cut", 2), "length"]
        self.say("Hi")
        self.assertIn("cut at the limit of tokens", self.note())
        self.fake.answer = lambda body: [{"content": "x"}, {"error": {"message": "the engine has failed"}}]
        self.say("Hi")
        self.assertEqual(self.browser.text(".message:last-child .error"), "the engine has failed")

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            files = {"notes.md": b"# Notes\n```\ncode\n```\n", "data.bin": b"\x00\x01", "latin.txt": b"\xe4", "big.txt": b"x" * 300_000, "a.py": "ö = 1".encode()}
            for name, content in files.items():
                (folder / name).write_bytes(content)
            self.attach(*(folder / name for name in files))
            self.browser.until("return document.querySelectorAll('#files li').length === 2")
            told = self.browser.text("#toast")
            for name in ("data.bin is no text", "latin.txt is no text", "big.txt has 293 KiB"):
                self.assertIn(name, told)
            self.browser.click("#files li:nth-child(2) button")
            self.assertEqual(self.browser.run("return document.activeElement.id"), "input")
            self.say("Read it")
            expected = "notes.md:\n````\n# Notes\n```\ncode\n```\n````\n\nRead it"
            self.assertEqual(self.fake.bodies[-1]["messages"], [{"role": "user", "content": expected}])
            self.assertEqual(self.browser.run("return document.querySelectorAll('#files li').length"), 0)
            self.assertEqual(self.browser.run("return [...document.querySelectorAll('.message-files summary')].map((e) => e.textContent)"), ["notes.md"])
            self.browser.run("const d = new DataTransfer(); d.items.add(new File(['dropped'], 'd.txt')); document.dispatchEvent(new DragEvent('drop', {dataTransfer: d, cancelable: true}))")
            self.browser.until("return document.querySelectorAll('#files li').length === 1")
            self.browser.click("#send")
            self.answered()
            self.assertEqual(self.fake.bodies[-1]["messages"][-1]["content"], "d.txt:\n```\ndropped\n```\n\n")

    def test_edit_stop_and_focus(self):
        focus = "return document.activeElement.id || document.activeElement.textContent"
        self.say("One")
        self.say("Two")
        edit = ".message:first-child .copy-all + button"
        self.browser.click(edit)
        self.browser.type(".message:first-child textarea", " more{escape}")
        self.assertEqual(self.browser.run(focus), "Edit")
        self.browser.click(edit)
        self.browser.type(".message:first-child textarea", " more{enter}")
        self.browser.until("return document.querySelectorAll('.message').length === 2")
        self.answered()
        self.assertEqual(self.browser.run(MESSAGE, 0), "One more")
        self.assertEqual(self.browser.run(focus), "input")
        self.browser.click(".message:last-child .copy-all + button")
        self.answered()
        self.assertEqual(self.browser.run(focus), "input")
        self.script(*[part for _ in range(300) for part in ({"content": "word "}, 0.05)], "stop")
        for stop in (lambda: self.browser.press("escape"), lambda: self.browser.click("#stop")):
            self.browser.type("#input", "Go on{enter}")
            self.browser.until("return document.getElementById('messages').ariaBusy === 'true' && " + "document.querySelector('.message:last-child .answer')?.textContent.length > 20")
            stop()
            self.assertIn("word", self.answered())
            self.assertIn("stopped", self.note())
            self.assertEqual(self.browser.run(focus), "input")
        self.no_complaints()

    def test_a_server_that_goes_away(self):
        self.browser.until("return document.getElementById('waiting').textContent === '0'")
        self.fake.status = 503
        self.browser.until("return document.getElementById('panel').classList.contains('stale')")
        self.assertIn("these figures are old", self.browser.text("#stale"))
        self.assertTrue(self.browser.run("return document.getElementById('send').disabled && document.getElementById('state').textContent.includes('busy')"))
        self.browser.type("#input", "Kept{enter}")
        self.assertEqual(self.browser.run("return document.getElementById('input').value"), "Kept")
        self.shot("stale")
        self.fake.status = 200
        self.browser.until(READY)
        self.browser.until("return !document.getElementById('panel').classList.contains('stale')")

    def test_the_panel_draws(self):
        self.browser.until("return document.querySelector('.chart .line').points.length > 1")
        self.fake.metrics.update({"vllm:num_requests_running": 3, "vllm:generation_tokens_total": 500, "latte:cache_pages_used": 2000})
        self.browser.until("return document.querySelectorAll('.chart-head strong')[1].textContent === '3'")
        self.assertRegex(self.browser.run("return document.querySelector('.chart').getAttribute('aria-label')"), r"^Tokens per second over the last five minutes: now [\d.]+, most [\d.]+$")
        widths = "return [...document.querySelector('.memory-bar').children].map((r) => [r.className.baseVal, Number(r.getAttribute('width')) > 0])"
        self.assertEqual(self.browser.run(widths), [[f"memory-{kind}", True] for kind in ("weights", "workspace", "used", "free")])
        self.assertIn("8.0× as much", self.browser.text("#saving"))
        props = json.loads(json.dumps(self.fake.props))
        for name in ("weight_bytes", "workspace_bytes"):
            del self.fake.props["engine"][name]
        self.addCleanup(self.fake.__dict__.update, props=props)
        self.reload()
        self.browser.until("return document.querySelectorAll('.legend li').length === 3")
        self.no_complaints()


class Key(PageCase):
    def test_a_key(self):
        self.fake.key = "secret"
        self.browser.open(self.fake.url)
        self.browser.forget()
        self.browser.open(self.fake.url)
        self.browser.until("return document.activeElement.id === 'key'")
        self.assertIn("needs an API key", self.browser.text("#state"))
        self.browser.type("#key", "wrong{enter}")
        self.browser.until("return document.getElementById('state').textContent.includes('not one of')")
        self.browser.type("#key", "secret{enter}")
        self.browser.until(READY)
        self.browser.until("return document.activeElement.id === 'input'")
        self.say("Hello")
        self.assertEqual(self.browser.run("return [sessionStorage['latte-key'], Object.values(localStorage).includes('secret')]"), ["secret", False])


if __name__ == "__main__":
    main()
