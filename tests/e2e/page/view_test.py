"""How the web page looks and is used: phone, zoom, keyboard, themes, contrast, names for readers of screens. With LATTE_AXE=axe.min.js (for
example of the package axe-selenium-python), axe-core looks at the page too."""
import json
import os
import pathlib
import unittest

from fake_server import pieces
from page_case import PageCase, main

LONG = "\n\n".join(f"Paragraph {i} of an answer that is long enough to fill the window of a phone several times." for i in range(40))
IN_VIEW = """const e = document.querySelector(arguments[0]); const r = e.getBoundingClientRect();
    const top = document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2);
    return e.checkVisibility() && r.top >= 0 && r.bottom <= innerHeight && r.left >= 0 && r.right <= innerWidth && (e === top || e.contains(top));"""
AT_END = "const m = document.getElementById('messages'); return m.scrollTop + m.clientHeight >= m.scrollHeight - 50"
STREAMS = "return document.getElementById('messages').ariaBusy === 'true' && document.querySelector('.answer')?.textContent.length > 1500"

# What axe-core calls serious, for what this page has: names, contrast, labels, ids, roles.
CHECKS = r"""
const found = [];
const shown = (e) => e.checkVisibility() && !e.closest('.off-screen');
const rgba = (text) => { const c = document.createElement('canvas').getContext('2d', {willReadFrequently: true}); c.fillStyle = text; c.fillRect(0, 0, 1, 1); return c.getImageData(0, 0, 1, 1).data; };
const light = ([r, g, b]) => { const f = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
const behind = (e) => { for (; e; e = e.parentElement) { const c = rgba(getComputedStyle(e).backgroundColor); if (c[3] === 255) return c; } return [255, 255, 255]; };
const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);
found.push(...ids.filter((id, i) => ids.indexOf(id) !== i).map((id) => `id twice: ${id}`));
for (const e of document.querySelectorAll('button, a[href], input, textarea, select, summary, meter, [role=img], [role=region]')) {
  const name = e.ariaLabel || e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.[0]?.textContent.trim();
  if (shown(e) && !name) found.push(`no name: ${e.outerHTML.slice(0, 80)}`);
}
for (const e of document.querySelectorAll('[aria-describedby], label[for]')) for (const name of ['aria-describedby', 'for'])
  if (e.hasAttribute(name) && !document.getElementById(e.getAttribute(name))) found.push(`no target: ${e.outerHTML.slice(0, 80)}`);
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
  const e = walk.currentNode.parentElement;
  if (!walk.currentNode.data.trim() || !shown(e) || e.closest('option, noscript, :disabled')) continue;
  const [a, b] = [light(rgba(getComputedStyle(e).color)), light(behind(e))].sort((x, y) => y - x);
  const ratio = (a + 0.05) / (b + 0.05);
  if (ratio < 4.5) found.push(`contrast ${ratio.toFixed(2)}: ${e.outerHTML.slice(0, 100)}`);
}
if (document.querySelectorAll('h1').length !== 1) found.push('h1');
for (const e of document.querySelectorAll('pre, .table')) if (e.scrollWidth > e.clientWidth && e.tabIndex < 0) found.push('scrolls without a key: ' + e.className);
return [...new Set(found)];
"""


class View(PageCase):
    def setUp(self):
        super().setUp()
        self.browser.prefer("light")
        self.script(*pieces("An answer.", 4), "stop")

    def follows(self, name):
        """An answer is followed, Stop and the message stay in view, and a reader who scrolls is left alone."""
        self.open()
        self.script(*[part for piece in pieces(LONG, 40) for part in (piece, 0.02)], 1, "stop")
        self.browser.type("#input", "Hi{enter}")
        self.browser.until(STREAMS)
        for selector in ("#stop", "#input"):
            self.assertTrue(self.browser.run(IN_VIEW, selector), f"{selector} is out of view")
        self.browser.frames(2)
        self.assertTrue(self.browser.run(AT_END))
        self.assertFalse(self.browser.run("return document.getElementById('to-end').checkVisibility()"))
        self.shot(name)
        self.browser.run("document.getElementById('messages').scrollTop -= 300")
        self.browser.frames(20)
        place = self.browser.run("return document.getElementById('messages').scrollTop")
        self.browser.frames(20)
        self.assertEqual(self.browser.run("return document.getElementById('messages').scrollTop"), place)
        self.assertTrue(self.browser.run(IN_VIEW, "#to-end"))
        self.browser.click("#to-end")
        self.browser.frames(3)
        self.assertTrue(self.browser.run(AT_END))
        self.answered()
        self.assertTrue(self.browser.run(AT_END))
        self.assertTrue(self.browser.run("return document.documentElement.scrollWidth <= innerWidth && document.documentElement.scrollHeight <= innerHeight"))

    def test_phone(self):
        self.browser.resize(390, 844, touch=True)
        self.follows("phone_streaming")
        for opener, drawer in (("#open-chats", "#chats"), ("#open-side", "#side")):
            self.assertFalse(self.browser.run("return document.querySelector(arguments[0]).checkVisibility()", drawer))
            self.browser.click(opener)
            self.assertTrue(self.browser.run("return document.querySelector(arguments[0]).checkVisibility()", drawer))
            self.browser.frames(3)
            self.shot("phone_" + drawer[1:])
            self.browser.press("escape")
            self.assertFalse(self.browser.run("return document.querySelector(arguments[0]).checkVisibility()", drawer))
        self.browser.click("#open-chats")
        self.browser.click("#list .open")
        self.browser.until("return !document.querySelector('#chats').checkVisibility()")

    def test_zoom(self):
        self.browser.resize(1280, 900, zoom=2)
        self.follows("zoom")

    def test_a_low_window(self):
        self.browser.resize(844, 390, touch=True)
        self.follows("low")

    def test_the_key_form_on_a_phone(self):
        self.browser.resize(390, 844, touch=True)
        self.fake.key = "secret"
        self.addCleanup(self.fake.__dict__.update, key=None)
        self.browser.open(self.fake.url)
        self.browser.forget()
        self.browser.open(self.fake.url)
        self.browser.until("return document.activeElement.id === 'key'")
        self.assertTrue(self.browser.run(IN_VIEW, "#key"))
        self.shot("phone_key")

    def rich(self):
        """A conversation with one of everything."""
        self.open()
        self.script({"reasoning_content": "so"}, {"content": "# H\n\n[a](https://b.example) [c.example](https://d.example)\n\n> q\n\n```js\nlet a = '1'; // c\nfunction f() { return /x/ + 1 }\n```\n\n"
                    "| a | b |\n|-|-|\n| 1 | 2 |"}, {"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": "{}"}}]}, "tool_calls")
        self.say("Hi")
        self.set("temperature", "0")
        self.browser.click(".message:last-child .reasoning summary")
        self.browser.run("document.getElementById('more-settings').open = true; document.querySelector('#list .menu').click()")
        self.browser.until("return document.querySelector('.t-keyword')")

    @unittest.skipUnless(os.environ.get("LATTE_AXE"), "LATTE_AXE is not set")
    def test_axe(self):
        self.rich()
        self.browser.devtools("Runtime.evaluate", expression=pathlib.Path(os.environ["LATTE_AXE"]).read_text())
        for scheme in ("light", "dark"):
            self.browser.prefer(scheme)
            self.browser.frames(30)
            found = self.browser.devtools("Runtime.evaluate", awaitPromise=True, returnByValue=True, expression="axe.run(document).then((all) => "
                                          "JSON.stringify(all.violations.map((v) => [v.id, v.impact, v.nodes[0].html])))")["result"]["value"]
            self.assertEqual([v for v in json.loads(found) if v[1] in ("serious", "critical")], [], scheme)

    def test_a_reader_of_the_screen_and_contrast(self):
        self.rich()
        for scheme in ("light", "dark"):
            self.browser.prefer(scheme)
            self.browser.frames(30)
            self.assertEqual(self.browser.run(CHECKS), [], scheme)
        roles = self.browser.run("return ['messages', 'state', 'toast'].map((id) => document.getElementById(id).role)")
        self.assertEqual(roles, ["log", "status", "status"])
        self.assertEqual(self.browser.run("return document.querySelector('.error').getAttribute('role')"), "alert")

    def test_keyboard(self):
        self.open()
        self.say("Hi")
        self.assertEqual(self.browser.run("return document.activeElement.id"), "input")
        self.browser.run("document.getElementById('new').focus()")
        seen = []
        for _ in range(60):
            self.browser.press("tab")
            seen.append(self.browser.run("const e = document.activeElement; return e.id || e.className.split(' ')[0] || e.textContent.trim().slice(0, 12)"))
            if seen[-1] == "theme":
                break
        expected = ["open", "menu", "import", "export-all", "keep-nothing", "messages", "copy-all", "Edit", "copy-all", "Regenerate", "input", "attach", "send",
                    "Server", "Settings", "system", "thinking", "temperature", "top_p", "max_tokens", "seed", "More", "theme"]
        self.assertEqual(seen, expected)
        self.browser.run("document.querySelector('#list .menu').focus()")
        self.browser.press("enter")
        self.browser.until("return document.querySelector('#list .actions:not([hidden])')")
        self.assertEqual(self.browser.run("return document.activeElement.className"), "menu")
        for _ in range(2):
            self.browser.press("tab")
        self.browser.press("enter")
        self.browser.until("return document.querySelectorAll('#list li').length === 0 && document.activeElement.id === 'import'")

    def test_themes(self):
        self.open()
        background = "return getComputedStyle(document.body).backgroundColor"
        colors = {}
        for scheme in ("light", "dark"):
            self.browser.prefer(scheme)
            colors[scheme] = self.browser.run(background)
        self.assertNotEqual(colors["light"], colors["dark"])
        for theme in ("light", "dark"):
            self.set("theme", theme)
            for scheme in ("light", "dark"):
                self.browser.prefer(scheme)
                self.assertEqual(self.browser.run(background), colors[theme])
        self.reload()
        self.assertEqual(self.browser.run(background), colors["dark"])


if __name__ == "__main__":
    main()
