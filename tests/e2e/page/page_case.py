"""Shared by the tests of the page: a browser, a scripted server, and words for what a user does."""
import os
import sys
import tempfile
import unittest

from browser import Browser, missing
from fake_server import FakeServer

READY = "return document.getElementById('state').textContent === 'ready'"
LAST = "const all = document.querySelectorAll('.message'); const last = all[all.length - 1];"
SCREENSHOTS = None


def screenshots(folder):
    global SCREENSHOTS
    SCREENSHOTS = folder
    os.makedirs(folder, exist_ok=True)


def main():
    """Runs the tests of a file: FILE.py [LATTE_BINARY] [FOLDER] [names of tests and flags of unittest]."""
    words = sys.argv[1:]
    if words and os.path.isfile(words[0]):
        words.pop(0)
    if words and "/" in words[0]:
        screenshots(words.pop(0))
    unittest.main(argv=[sys.argv[0], *words], verbosity=2)


@unittest.skipIf(missing(), f"not installed: {', '.join(missing())}")
class PageCase(unittest.TestCase):
    size = (1280, 900)

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.browser = Browser(folder.name)
        cls.addClassCleanup(cls.browser.close)
        cls.fake = FakeServer(folder.name + "/libraries")
        cls.addClassCleanup(cls.fake.stop)

    def setUp(self):
        self.browser.resize(*self.size)

    def open(self, server=None):
        """The page as a new user sees it, ready."""
        url = (server or self.fake).url
        self.browser.open(url)
        self.browser.forget()
        self.browser.open(url)
        self.browser.until(READY)
        self.browser.console()

    def reload(self):
        self.browser.open(self.browser.run("return location.href"))
        self.browser.until(READY)

    def script(self, *parts):
        """The next answers: deltas, texts for finish_reason, numbers of seconds to wait."""
        self.fake.answer = lambda body: parts

    def set(self, name, value):
        self.browser.run("const e = document.getElementById(arguments[0]); e.value = arguments[1];"
                         "e.dispatchEvent(new Event('input', {bubbles: true})); e.dispatchEvent(new Event('change', {bubbles: true}))", name, value)

    def count(self):
        return self.browser.run("return document.querySelectorAll('.message').length")

    def say(self, text):
        """Sends it and waits for the end of the answer, whose text it returns."""
        before = self.count()
        self.browser.type("#input", text + "{enter}")
        self.browser.until("return document.querySelectorAll('.message').length === arguments[0]", before + 2)
        return self.answered()

    def answered(self):
        """Waits for the end of an answer, and until it is drawn."""
        self.browser.until(READY + "&& document.getElementById('messages').ariaBusy === 'false'")
        self.browser.frames(3)
        return self.browser.run(LAST + "return last.querySelector('.said').textContent")

    def last(self, script, *args):
        """Runs it with `last`, the last message."""
        return self.browser.run(LAST + script, *args)

    def tags(self, selector):
        """The texts of the elements in the last message."""
        return self.last("return [...last.querySelectorAll(arguments[0])].map((e) => e.textContent)", selector)

    def note(self):
        return self.browser.text(".message:last-child .note")

    def no_complaints(self):
        """Nothing was refused by the policy, failed, or came from elsewhere."""
        self.assertEqual(self.browser.console(), [])
        loaded = self.browser.run("return performance.getEntriesByType('resource').map((e) => e.name)")
        origin = self.browser.run("return location.origin")
        self.assertEqual([url for url in loaded if not url.startswith(origin + "/")], [])

    def shot(self, name):
        if SCREENSHOTS:
            self.browser.screenshot(os.path.join(SCREENSHOTS, name + ".png"))
