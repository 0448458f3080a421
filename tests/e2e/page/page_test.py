"""The web page of latte serve in a browser. Usage: page_test.py LATTE_BINARY [FOLDER]; screenshots go to FOLDER. Needs
Debian's chromium and chromium-driver (tools/install_packages.sh browser); skipped where they are absent."""
import json
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "serve"))

from browser import Browser, missing  # noqa: E402
from server import Server, until  # noqa: E402

LATTE = None
SCREENSHOTS = None
TINY = HERE.parents[2] / "models" / "tiny"

LAST = "const all = document.querySelectorAll('.message'); const last = all[all.length - 1];"
READY = "return document.getElementById('state').textContent === 'ready'"


@unittest.skipIf(missing(), f"not installed: {', '.join(missing())}")
class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.browser = Browser(folder.name)
        cls.addClassCleanup(cls.browser.close)

    def serve(self, *flags, model="tiny", headers=None):
        server = Server(LATTE, *flags, model=model)
        self.addCleanup(server.__exit__)
        self.browser.open(f"http://127.0.0.1:{server.port}/")
        self.browser.run("sessionStorage.clear(); localStorage.clear()")
        self.browser.open(f"http://127.0.0.1:{server.port}/")
        self.browser.console()
        return server

    def ready(self):
        self.browser.until(READY)

    def set(self, name, value):
        self.browser.run("const e = document.getElementById(arguments[0]); e.value = arguments[1];"
                         "e.dispatchEvent(new Event('input', {bubbles: true}))", name, value)

    def say(self, text):
        """Sends it and waits for the end of the answer, which it returns."""
        before = self.count()
        self.browser.type("#input", text + "{enter}")
        self.browser.until("return document.querySelectorAll('.message').length === arguments[0]", before + 2)
        return self.answer()

    def answer(self):
        self.browser.until(READY + "&& document.getElementById('messages').ariaBusy === 'false'")
        return self.browser.run(LAST + "return last.querySelector('.text').textContent")

    def count(self):
        return self.browser.run("return document.querySelectorAll('.message').length")

    def note(self):
        return self.browser.text(".message:last-child .note")

    def no_complaints(self):
        """Nothing was refused by the policy, failed, or came from elsewhere."""
        self.assertEqual([m for m in self.browser.console() if m[0] in ("SEVERE", "WARNING")], [])
        loaded = self.browser.run("return performance.getEntriesByType('resource').map((e) => e.name)")
        origin = self.browser.run("return location.origin")
        self.assertEqual([url for url in loaded if not url.startswith(origin + "/")], [])

    def shot(self, name):
        if SCREENSHOTS:
            self.browser.screenshot(os.path.join(SCREENSHOTS, name + ".png"))

    def test_a_conversation(self):
        server = self.serve("--deterministic", "strict")
        self.ready()
        self.assertIn("tiny", self.browser.text("#model"))
        self.set("max_tokens", "100")
        self.set("seed", "1")
        system = ("Be kind. " * 40).strip()  # some pages of the cache
        self.set("system", system)
        first = self.say("Tell me a story about a cat.")
        messages = [{"role": "system", "content": system}, {"role": "user", "content": "Tell me a story about a cat."}]
        same = server.post("/v1/chat/completions", {"messages": messages, "max_tokens": 100, "seed": 1})[2]
        self.assertEqual(first.split(), same["choices"][0]["message"]["content"].split())
        self.assertTrue(first)
        self.assertRegex(self.note(), r"\d+ tokens · .*prompt \d+ tokens, \d+ from the cache · seed \d+")
        self.assertEqual(self.browser.run("return document.getElementById('input').value"), "")
        self.say("And{shift}{enter}{shift}a dog?")
        self.assertEqual(self.browser.text(".message:nth-child(3) .text"), "And\na dog?")
        self.assertEqual(self.count(), 4)
        self.browser.until("return document.getElementById('hits').textContent.includes('tokens')")
        self.browser.until("return document.getElementById('mha').textContent.includes('×')")
        props = server.get("/props")[2]["engine"]
        ratio = props["mha_bytes_per_token"] * props["page_tokens"] / server.metric("latte:cache_page_bytes")
        self.assertIn(f"({ratio:.1f}×)", self.browser.text("#mha"))
        self.browser.until("return document.getElementById('running').textContent === '0'")
        self.no_complaints()

    def test_settings_and_seeds(self):
        self.serve()
        self.ready()
        for name, value in (("max_tokens", "5"), ("temperature", "1"), ("seed", "7"), ("system", "Be brief.")):
            self.set(name, value)
        first = self.say("Hello")
        self.assertIn("cut at the limit of tokens · 5 tokens", self.note())
        self.assertIn("seed 7", self.note())
        self.browser.click(".message:last-child button")
        self.assertEqual(self.answer(), first)
        self.set("seed", "")
        self.browser.click(".message:last-child button")
        self.answer()
        self.assertNotRegex(self.note(), r"seed 7$")
        self.browser.open(self.browser.run("return location.href"))
        self.assertEqual(self.browser.run("return document.getElementById('system').value"), "Be brief.")

    def test_edit_a_message(self):
        self.serve()
        self.ready()
        self.set("max_tokens", "5")
        self.say("One")
        self.say("Two")
        edit = ".message:first-child footer button"
        self.browser.click(edit)
        self.browser.type(".message:first-child textarea", " more{escape}")
        self.assertEqual(self.browser.text(".message:first-child .text"), "One")
        self.browser.click(edit)
        self.browser.type(".message:first-child textarea", " more{enter}")
        self.browser.until("return document.querySelectorAll('.message').length === 2")
        self.answer()
        self.assertEqual(self.browser.text(".message:first-child .text"), "One more")
        self.browser.click("#new")
        self.assertEqual(self.count(), 0)

    def test_stop(self):
        server = self.serve("--max-sequences", "2")
        self.ready()
        # No answer ends before the context does.
        self.browser.run("const send = window.fetch; window.fetch = (url, options) => send(url, options?.body ?"
                         "{...options, body: JSON.stringify({...JSON.parse(options.body), ignore_eos: true})} : options)")
        for stop in (lambda: self.browser.press("escape"), lambda: self.browser.click("#stop")):
            self.browser.type("#input", "Go on{enter}")
            self.browser.until(LAST + "return last.querySelector('.text').textContent.length > 20")
            stop()
            self.assertTrue(self.answer())
            self.assertIn("stopped", self.note())
            self.assertTrue(until(lambda: server.metric("vllm:num_requests_running") == 0))
            self.assertTrue(self.browser.run("return document.activeElement.id === 'input'"))
            self.browser.click("#new")
        self.no_complaints()

    def test_errors_are_shown(self):
        server = self.serve()
        self.ready()
        self.set("top_p", "0")
        self.say("Hello")
        self.assertIn("top_p", self.browser.text(".message:last-child .error"))
        self.assertTrue(self.browser.run("return document.querySelector('.message:last-child .error').checkVisibility()"))
        self.shot("error")
        self.set("top_p", "1")
        self.set("max_tokens", "5")
        self.browser.click(".message:last-child button")
        self.answer()
        self.assertRegex(self.note(), r"\d tokens")
        self.assertTrue(self.browser.run("return document.querySelector('.message:last-child .error').hidden"))
        self.set("max_tokens", "0.5")
        self.browser.type("#input", "Again{enter}")
        self.assertEqual(self.count(), 2)
        server.stop()
        self.browser.until("return document.getElementById('state').textContent.includes('cannot be reached')")
        self.assertTrue(self.browser.run("return document.getElementById('send').disabled"))

    def test_text_is_never_markup(self):
        self.serve()
        self.ready()
        # The answer comes from the test, in pieces, with reasoning.
        self.browser.run(r"""
            const real = window.fetch;
            window.fetch = (path, options) => {
              if (!path.endsWith("chat/completions")) return real(path, options);
              window.sent = options.body;
              const chunk = (delta) => `data: ${JSON.stringify({choices: [{index: 0, delta, finish_reason: null}]})}\n\n`;
              const all = new TextEncoder().encode(": wait\n\n" + chunk({reasoning_content: "<b>ö</b> hm"}) +
                  chunk({content: "<img src=x onerror='window.evil = 1'>\n\n```html\n<script>"}) +
                  chunk({content: "window.evil = 2</script>\n```\nUse `a < b`. 😀"}) + "data: [DONE]\n\n");
              let at = 0;
              const body = new ReadableStream({pull(c) {
                if (at === all.length) c.close(); else c.enqueue(all.slice(at, ++at));
              }});
              return Promise.resolve(new Response(body));
            };""")
        self.say("<i>Hi</i> `code`")
        last = ".message:last-child "
        self.assertEqual(self.browser.text(".message:first-child .text"), "<i>Hi</i> code")
        self.assertEqual(self.browser.text(last + "pre"), "<script>window.evil = 2</script>")
        self.assertEqual(self.browser.run("return document.querySelector(arguments[0]).textContent", last + ".text"),
                         "<img src=x onerror='window.evil = 1'><script>window.evil = 2</script>Use a < b. 😀")
        self.assertEqual(self.browser.run("return document.querySelectorAll('main img, main script, main b, main i').length"), 0)
        self.assertFalse(self.browser.run("return document.querySelector('.message:last-child .reasoning').open"))
        self.browser.click(last + ".reasoning summary")
        self.assertEqual(self.browser.text(last + ".reasoning div"), "<b>ö</b> hm")
        self.say("More")
        self.assertIn('"reasoning_content":"<b>ö</b> hm"', self.browser.run("return window.sent"))
        self.assertIsNone(self.browser.run("return window.evil"))
        with self.assertRaisesRegex(AssertionError, "TrustedHTML"):
            self.browser.run("document.body.innerHTML = '<p>x</p>'")
        self.shot("reasoning")

    def test_an_api_key(self):
        self.serve("--api-key", "secret")
        self.set("max_tokens", "5")
        self.browser.until("return !document.getElementById('key-form').hidden")
        self.browser.type("#key", "wrong{enter}")
        self.browser.until("return document.getElementById('state').textContent.includes('not one of')")
        self.browser.type("#key", "secret{enter}")
        self.ready()
        self.assertTrue(self.browser.run("return document.getElementById('key-form').hidden"))
        self.say("Hello")
        self.assertRegex(self.note(), r"\d tokens")
        self.assertEqual(self.browser.run("return [sessionStorage['latte-key'], localStorage.length]"), ["secret", 0])

    def test_a_model_without_chat_format(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(TINY, folder, dirs_exist_ok=True)
            # No template, and a family without a format that Latte knows.
            for name, change in (("tokenizer_config.json", {"chat_template": ""}),
                                 ("config.json", {"model_type": "glm4_moe_lite", "architectures": ["Glm4MoeLiteForCausalLM"]})):
                path = pathlib.Path(folder) / name
                path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
            server = self.serve("--deterministic", "strict", model=folder)
            self.ready()
            self.assertIn("no chat format", self.browser.text("#notice"))
            self.set("max_tokens", "8")
            self.set("seed", "1")
            self.say("Once upon a time")
            self.assertIn("8 tokens", self.note())
            same = server.post("/v1/completions", {"prompt": "Once upon a time", "max_tokens": 8, "seed": 1})[2]
            self.assertEqual(self.browser.text(".message:last-child .text").split(), same["choices"][0]["text"].split())
            self.shot("completion")

    def test_themes(self):
        self.serve()
        self.ready()
        self.set("max_tokens", "120")
        self.set("system", "Be kind. " * 40)
        self.say("Tell me a story about a bird.")
        self.browser.until("return document.getElementById('mha').textContent.includes('×')")
        background = "return getComputedStyle(document.body).backgroundColor"
        colors = {}
        for scheme in ("light", "dark"):
            self.browser.prefer(scheme)
            colors[scheme] = self.browser.run(background)
            self.shot(scheme)
        self.assertNotEqual(colors["light"], colors["dark"])
        for theme in ("light", "dark"):
            self.browser.run("const e = document.getElementById('theme'); e.value = arguments[0];"
                             "e.dispatchEvent(new Event('change'))", theme)
            for scheme in ("light", "dark"):
                self.browser.prefer(scheme)
                self.assertEqual(self.browser.run(background), colors[theme])
        self.browser.open(self.browser.run("return location.href"))
        self.assertEqual(self.browser.run(background), colors["dark"])

    def test_the_keyboard_reaches_everything(self):
        self.serve()
        self.ready()
        self.browser.run("document.getElementById('theme').focus()")
        seen = []
        for _ in range(11):
            self.browser.press("tab")
            seen.append(self.browser.run("const e = document.activeElement; return e.id || e.tagName"))
        expected = ["new", "messages", "input", "send", "SUMMARY", "SUMMARY", "system", "temperature", "top_p", "max_tokens", "seed"]
        self.assertEqual(seen, expected)
        unnamed = self.browser.run("return [...document.querySelectorAll('input, textarea, select')]"
                                   ".filter((e) => !e.labels.length).map((e) => e.id)")
        self.assertEqual(unnamed, [])


if __name__ == "__main__":
    LATTE = sys.argv[1]
    if len(sys.argv) > 2 and not sys.argv[2].startswith("-"):
        SCREENSHOTS = sys.argv.pop(2)
        os.makedirs(SCREENSHOTS, exist_ok=True)
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
