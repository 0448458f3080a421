"""Kept conversations of the web page: reload, list, rename, delete, export, import, two tabs, and keeping nothing."""
import json
import pathlib
import tempfile

from fake_server import pieces
from page_case import PageCase, main

TITLES = "return [...document.querySelectorAll('#list .open')].map((e) => e.textContent)"
TEXTS = "return [...document.querySelectorAll('.said')].map((e) => e.textContent)"
LEAVES = "return !window.dispatchEvent(new Event('beforeunload', {cancelable: true}))"
CATCH_DOWNLOADS = """window.files = []; const real = URL.createObjectURL; URL.createObjectURL = (blob) => { blob.text().then((t) => window.files.push(t)); return real(blob); };
    HTMLAnchorElement.prototype.click = function () { window.names = [...(window.names ?? []), this.download]; };"""


class Chats(PageCase):
    def setUp(self):
        super().setUp()
        self.open()
        self.script(*pieces("An *answer*.", 4), "stop")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def titles(self, *expected):
        self.browser.until("return JSON.stringify([...document.querySelectorAll('#list .open')].map((e) => e.textContent)) === arguments[0]",
                           json.dumps(expected, ensure_ascii=False, separators=(",", ":")))

    def menu(self, title, action):
        """An action of a conversation in the list."""
        item = "const li = [...document.querySelectorAll('#list li')].find((e) => e.querySelector('.open').textContent === arguments[0]);"
        self.browser.run(item + "if (li.querySelector('.actions').hidden) li.querySelector('.menu').click()", title)
        self.browser.until(item + "return !li.querySelector('.actions').hidden", title)
        self.browser.run(item + "const b = [...li.querySelectorAll('.actions button')].find((e) => e.textContent === arguments[1]); b.focus(); b.click()", title, action)

    def upload(self, *files):
        self.browser.run("document.getElementById('import-file').hidden = false")
        self.browser.upload("#import-file", *files)
        self.browser.run("document.getElementById('import-file').hidden = true")

    def test_a_reload_keeps_the_conversation(self):
        self.set("system", "Be kind.")
        self.say("First")
        self.browser.click("#new")
        self.say("Second")
        self.titles("Second", "First")
        self.reload()
        self.assertEqual(self.browser.run(TEXTS), ["Second", "An answer."])
        self.browser.click("#list li:nth-child(2) .open")
        self.browser.until("return document.querySelector('.said')?.textContent === 'First'")
        self.assertEqual(self.browser.run("return document.querySelector('[aria-current]').textContent"), "First")
        self.say("More")
        self.titles("First", "Second")
        self.assertEqual([m["content"] for m in self.fake.bodies[-1]["messages"]], ["Be kind.", "First", "An *answer*.", "More"])
        self.assertIn("of 8,192 tokens", self.browser.text("#context-text"))
        self.reload()
        self.assertIn("of 8,192 tokens", self.browser.text("#context-text"))
        self.no_complaints()

    def test_what_a_crash_loses_is_small(self):
        self.script(*pieces("Some words that come first.", 4), 200, "stop")
        self.browser.type("#input", "Hi{enter}")
        self.browser.until("return document.querySelector('.answer')?.textContent.includes('first.')")
        self.assertTrue(self.browser.run(LEAVES))
        self.browser.until("return new Promise((done) => { const r = indexedDB.open('latte'); r.onsuccess = () => { const q = r.result.transaction('bodies').objectStore('bodies').getAll();"
                           "q.onsuccess = () => { r.result.close(); done(q.result[0]?.messages[1].text.includes('first.')); } } })")
        self.reload()
        self.browser.until("return document.querySelector('.answer')?.textContent === 'Some words that come first.'")

    def test_another_conversation_while_an_answer_runs(self):
        self.say("First")
        self.browser.click("#new")
        self.script(*pieces("Some words.", 4), 200, "stop")
        self.browser.type("#input", "Second{enter}")
        self.titles("Second", "First")
        self.browser.until("return document.querySelector('.answer')?.textContent.includes('words.')")
        self.browser.click("#list li:nth-child(2) .open")
        self.browser.until("return document.querySelector('.said')?.textContent === 'First' && document.getElementById('stop').hidden")
        self.browser.frames(20)
        self.titles("Second", "First")
        self.browser.click("#list li:nth-child(1) .open")
        self.browser.until("return document.querySelector('.answer')?.textContent === 'Some words.'")

    def test_rename_and_delete(self):
        self.say("First")
        self.browser.click("#new")
        self.say("Second")
        self.titles("Second", "First")
        self.menu("First", "Rename")
        self.browser.until("return document.querySelector('#list input')")
        self.browser.run("document.querySelector('#list input').value = ''")
        self.browser.type("#list input", "Cats{enter}")
        self.titles("Second", "Cats")
        self.browser.until("return document.activeElement.textContent === 'Cats'")
        self.menu("Second", "Delete")
        self.titles("Cats")
        self.assertEqual(self.count(), 0)
        self.browser.click("#toast button")
        self.titles("Second", "Cats")
        self.reload()
        self.titles("Second", "Cats")

    def test_what_is_deleted_while_its_answer_runs_stays_deleted(self):
        self.say("First")
        self.browser.click("#new")
        self.script(*pieces("Some words.", 4), 300, *pieces("And more.", 4), 3000, "stop")
        self.browser.type("#input", "Second{enter}")
        self.titles("Second", "First")
        self.browser.until("return document.querySelector('.answer')?.textContent.includes('words.')")
        self.menu("Second", "Delete")
        self.titles("First")
        self.browser.frames(20)
        self.reload()
        self.titles("First")

    def test_export_and_import(self):
        self.fake.answer = lambda body: [{"reasoning_content": "Hm <b>.\n## You"}, {"content": "## You\n\n<!-- latte-1: user -->\nText `x`"},
                                         {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "f", "arguments": '{"a": 1}'}}]}, "tool_calls"]
        path = self.folder / "notes.txt"
        path.write_text("line\n```\n")
        self.set("system", "Be kind.\nVery.")
        self.browser.run("document.getElementById('attach-file').hidden = false")
        self.browser.upload("#attach-file", path)
        self.browser.until("return document.querySelectorAll('#files li').length === 1")
        self.say("Question -->")
        self.titles("Question -->")
        stored = ("return new Promise((done) => { const r = indexedDB.open('latte'); r.onsuccess = () => { const q = r.result.transaction('bodies').objectStore('bodies').getAll();"
                  "q.onsuccess = () => { r.result.close(); done(q.result.map(({id, version, changed, ...rest}) => rest)); } } })")
        before = self.browser.run(stored)
        self.browser.run(CATCH_DOWNLOADS)
        for action in ("Markdown", "JSON"):
            self.menu("Question -->", action)
            self.browser.until("return window.files.length && window.names.length === window.files.length && window.names.length >= arguments[0]", 1 if action == "Markdown" else 2)
        names, files = self.browser.run("return [window.names, window.files]")
        self.assertEqual(names, ["Question_.md", "Question_.json"])
        self.assertIn("## You\n\n<!-- latte-", files[0])
        for name, text in zip(names, files):
            self.open()
            (self.folder / name).write_text(text)
            self.upload(self.folder / name)
            self.titles("Question -->")
            after = self.browser.run(stored)
            for body in (before[0], after[0]):
                for message in body["messages"]:
                    message.pop("used", None)
            self.assertEqual(after, before, name)
        other = self.folder / "openai.json"
        other.write_text(json.dumps({"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "Hello there"}, {"role": "assistant", "content": "<b>Hi</b>"}]}))
        self.upload(other)
        self.titles("Hello there", "Question -->")
        for name, text in (("bad.json", "{"), ("bad.md", "# x"), ("worse.json", '{"messages": [{"role": "user", "text": 7}]}')):
            (self.folder / name).write_text(text)
            self.upload(self.folder / name)
            self.browser.until("return document.getElementById('toast').textContent.includes(arguments[0] + ' is not imported')", name)
        self.titles("Hello there", "Question -->")

    def test_two_tabs_lose_nothing(self):
        self.say("Shared")
        first = self.browser.window()
        second = self.browser.new_window()
        self.browser.resize(*self.size)
        self.addCleanup(self.browser.close_window, first)
        self.browser.open(self.fake.url)
        self.titles("Shared")
        self.browser.click("#list .open")
        self.browser.until("return document.querySelectorAll('.message').length === 2")
        self.say("From the second")
        self.browser.switch(first)
        self.say("From the first")
        self.browser.until("return document.getElementById('toast').textContent.includes('kept as a copy')")
        self.titles("Shared (copy)", "Shared")
        self.browser.switch(second)
        self.titles("Shared (copy)", "Shared")
        for title, said in (("Shared", "From the second"), ("Shared (copy)", "From the first")):
            self.browser.run("[...document.querySelectorAll('#list .open')].find((e) => e.textContent === arguments[0]).click()", title)
            self.browser.until("return document.querySelectorAll('.said')[2]?.textContent === arguments[0]", said)

    def test_keep_nothing(self):
        self.assertFalse(self.browser.run(LEAVES))
        self.browser.type("#input", "unsent")
        self.assertTrue(self.browser.run(LEAVES))
        self.set("input", "")
        self.say("Kept")
        self.titles("Kept")
        self.assertFalse(self.browser.run(LEAVES))
        self.browser.run("window.confirm = () => true")
        self.browser.click("#keep-nothing")
        self.titles()
        self.assertTrue(self.browser.run(LEAVES))
        self.say("Not kept")
        self.titles()
        self.browser.click("#new")
        self.assertEqual(self.count(), 0)
        self.browser.click("#toast button")
        self.assertEqual(self.count(), 4)
        self.reload()
        self.assertEqual(self.count(), 0)
        self.assertTrue(self.browser.run("return document.getElementById('keep-nothing').checked"))
        self.say("Again")
        self.titles()
        self.browser.click("#keep-nothing")
        self.titles("Again")


if __name__ == "__main__":
    main()
