"""The web page of latte serve, as the binary brings it, in a browser. Usage: page_test.py LATTE_BINARY [FOLDER]; screenshots go to FOLDER.
Needs Debian's chromium and chromium-driver (tools/install_packages.sh browser); skipped where they are absent. The other tests of this
folder use a scripted server; LATTE_PAGE_OF_TREE=1 lets this one use the page of the source tree too."""
import contextlib
import json
import os
import pathlib
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "serve"))

from page_case import READY, PageCase, main  # noqa: E402
from server import Server, until  # noqa: E402

LATTE = None
TINY = HERE.parents[2] / "models" / "tiny"


class Page(PageCase):
    def serve(self, *flags, model="tiny"):
        server = Server(LATTE, *flags, model=model)
        self.addCleanup(server.__exit__)
        server.url = f"http://127.0.0.1:{server.port}/"
        if os.environ.get("LATTE_PAGE_OF_TREE"):
            self.fake.upstream = server.port
            server.url = self.fake.url
        self.browser.open(server.url)
        self.browser.forget()
        self.browser.open(server.url)
        self.browser.console()
        return server

    def ready(self):
        self.browser.until(READY)

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
        # The text itself: numbers of a list, for example, are no text on the page.
        self.browser.run("navigator.clipboard.writeText = async (text) => (window.copied = text)")
        self.browser.click(".message:last-child .copy-all")
        self.assertEqual(self.browser.run("return window.copied"), same["choices"][0]["message"]["content"].strip())
        self.assertTrue(first)
        self.assertRegex(self.note(), r"\d+ tokens · .*prompt \d+ tokens, \d+ from the cache · seed \d+")
        self.assertEqual(self.browser.run("return document.getElementById('input').value"), "")
        self.say("And{shift}{enter}{shift}a dog?")
        self.assertEqual(self.browser.text(".message:nth-child(3) .said"), "And\na dog?")
        self.assertEqual(self.count(), 4)
        self.browser.until("return document.getElementById('hits').textContent.includes(' of ')")
        self.browser.until("return document.getElementById('saving').textContent.includes('×')")
        props = server.get("/props")[2]["engine"]
        ratio = props["mha_bytes_per_token"] * props["page_tokens"] / server.metric("latte:cache_page_bytes")
        self.assertIn(f"{ratio:.1f}× as much", self.browser.text("#saving"))
        self.browser.until("return document.querySelectorAll('.chart-head strong')[1].textContent === '0'")
        self.no_complaints()

    def test_stop(self):
        server = self.serve("--max-sequences", "2")
        self.ready()
        # No answer ends before the context does.
        self.browser.run("const send = window.fetch; window.fetch = (url, options) => send(url, options?.body ?"
                         "{...options, body: JSON.stringify({...JSON.parse(options.body), ignore_eos: true})} : options)")
        for stop in (lambda: self.browser.press("escape"), lambda: self.browser.click("#stop")):
            self.browser.type("#input", "Go on{enter}")
            self.browser.until("const all = document.querySelectorAll('.message'); const last = all[all.length - 1]; return last?.querySelector('.said').textContent.length > 20")
            stop()
            self.assertTrue(self.answered())
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
        self.browser.click(".message:last-child .copy-all + button")
        self.answered()
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
        self.assertEqual(self.browser.text(".message:first-child .said"), "<i>Hi</i> `code`")
        self.assertEqual(self.browser.text(last + "pre"), "<script>window.evil = 2</script>")
        self.assertEqual(self.browser.run("return document.querySelector(arguments[0]).textContent", last + ".said"),
                         "<img src=x onerror='window.evil = 1'>htmlCopy<script>window.evil = 2</script>Use a < b. 😀")
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
        self.assertEqual(self.browser.run("return [sessionStorage['latte-key'], Object.values(localStorage).includes('secret')]"), ["secret", False])

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
            self.assertEqual(self.browser.text(".message:last-child .said").split(), same["choices"][0]["text"].split())
            self.shot("completion")


if __name__ == "__main__":
    LATTE = sys.argv.pop(1)
    main()
