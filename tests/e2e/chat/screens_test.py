"""Whole screens of latte chat, compared with those in the folder screens. Usage: screens_test.py LATTE_BINARY [--record] [TEST];
needs only Python's standard library and tmux; without tmux, all tests are skipped.

--record writes the screens that are there into the folder instead: read the difference before you commit it. A screen is
recorded when it has not changed for two seconds; only a test that waits for a text first records the right one.
Nothing on these screens depends on the machine or on time: one instruction set, one seed, answers of a scripted server where
an answer is stopped, and no speeds.
"""
import difflib
import pathlib
import shutil
import sys
import tempfile
import threading
import time
import unittest

from tmux_screen import SECONDS, Screen

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "client"))
from scripted_server import ScriptedServer

LATTE = None
RECORDS = False
SCREENS = pathlib.Path(__file__).with_name("screens")
SHORT = ["-n", "24"]


@unittest.skipUnless(shutil.which("tmux"), "tmux is not installed (tools/packages.txt)")
class Screens(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def chat(self, *args, env=(), **how):
        model = [] if "--url" in args or how.pop("names_model", True) is False else ["tiny"]
        screen = Screen(self.folder, [LATTE, "chat", *model, "--seed", "0", *args], env={"LATTE_ISA": "avx2", **dict(env)}.items(), **how)
        self.addCleanup(screen.close)
        screen.until_prompts(1)
        return screen

    def served(self, script):
        server = ScriptedServer(script)
        server.__enter__()
        self.addCleanup(server.__exit__)
        return server

    def compare(self, screen, name, styles=False):
        """Waits until the screen is the recorded one, and stays so."""
        file = SCREENS / f"{name}.txt"
        if RECORDS:
            file.write_text(settled(lambda: screen.shown(styles), 2))
            return
        wanted = file.read_text()
        end = time.monotonic() + SECONDS
        while (shown := settled(lambda: screen.shown(styles), 0.2)) != wanted:
            if time.monotonic() > end:
                lines = difflib.unified_diff(wanted.splitlines(), shown.splitlines(), str(file), "the screen", lineterm="")
                self.fail("\n".join(["another screen:", *lines]))

    def test_help(self):
        screen = self.chat()
        screen.type("/help")
        screen.key("Enter")
        screen.until_prompts(2)
        self.compare(screen, "help")
        screen.close()
        narrow = self.chat(columns=50)
        narrow.type("/help")
        narrow.key("Enter")
        narrow.until_prompts(2)
        self.compare(narrow, "help_narrow")

    def test_without_a_model_the_first_lines_say_which_it_is(self):
        self.compare(self.chat(names_model=False), "no_model")

    def test_a_paste_of_20_kb_in_ten_lines(self):
        def count(handler, body):
            text = body["messages"][-1]["content"]
            handler.stream([f"That are {len(text.encode())} bytes", f" in {len(text.splitlines())} lines."])
        screen = self.chat("--url", self.served(count).url)
        screen.type("Count: ")
        screen.paste("\n".join(f"{i} " + "x" * 2045 for i in range(10)) + "\n")
        screen.until_text("[paste")
        self.compare(screen, "paste_mark")
        screen.key("Enter")
        screen.until_prompts(2)
        self.compare(screen, "paste_answer")

    def test_history_over_two_runs(self):
        first = self.chat(*SHORT)
        for count, text in enumerate(("Once upon a time", "And then?"), 2):
            first.type(text)
            first.key("Enter")
            first.until_prompts(count)
        self.compare(first, "history_first_run")
        first.end()
        first.close()
        screen = self.chat(*SHORT)
        for count, text in enumerate(("And then?", "Once upon a time"), 1):
            screen.key("Up")
            screen.until_text(f"> {text}")
            self.compare(screen, f"history_up_{count}")
        screen.key("Enter")
        screen.until_prompts(2)
        self.compare(screen, "history_sent")

    def test_ctrl_c_in_an_answer(self):
        def endless(handler, body):
            handler.begin()
            handler.chunk("Once upon a time there was a cat. " * 5)
            while True:  # until the client leaves
                handler.raw(": still here\n\n")
                time.sleep(0.1)
        screen = self.chat("--url", self.served(endless).url)
        screen.type("Tell me a story")
        screen.key("Enter")
        screen.until(lambda text: text.count("was a cat.") == 5, "an answer")
        self.compare(screen, "ctrl_c_before")
        screen.key("C-c")
        screen.until_prompts(2)
        self.compare(screen, "ctrl_c_after")
        screen.type("half a line")
        screen.until_text("> half a line")
        screen.key("C-c")
        screen.until_prompts(3)
        self.compare(screen, "ctrl_c_at_the_prompt")

    def test_ctrl_c_leaves_a_long_line_whole(self):
        screen = self.chat(columns=60)
        screen.type("alpha beta gamma delta " * 5)
        screen.key("Home")
        self.compare(screen, "a_long_line")  # Ctrl-C discards what has not been read
        screen.key("C-c")
        screen.until_prompts(2)
        self.compare(screen, "ctrl_c_in_a_long_line")

    def test_resize_at_the_prompt(self):
        screen = self.chat()
        screen.type("alpha beta gamma delta " * 5)
        screen.key("M-b")
        self.compare(screen, "resize_before")
        for columns, lines, name in ((40, 24, "narrower"), (100, 24, "wider"), (100, 12, "lower")):
            screen.resize(columns, lines)
            screen.type("z")  # latte has seen the new size before it reads this
            self.compare(screen, f"resize_{name}")

    def test_resize_and_ctrl_c_in_a_search(self):
        state = pathlib.Path(self.folder) / "state/latte"
        state.mkdir(parents=True)
        (state / "history").write_text('"Once upon a time there was a cat who had a hat"\n')
        screen = self.chat(columns=60)
        screen.key("C-r")
        screen.until_text("bck:")
        screen.type("wa")
        self.compare(screen, "search")
        screen.resize(30, 24)
        screen.type("s")
        self.compare(screen, "search_narrower")
        screen.key("C-c")
        screen.until_prompts(2)
        self.compare(screen, "search_ctrl_c")

    def test_resize_in_an_answer(self):
        parts = [threading.Event() for _ in range(3)]

        def in_parts(handler, body):
            handler.begin()
            for number, part in enumerate(parts, 1):
                part.wait(SECONDS)
                handler.chunk("Once upon a time there was a cat who had a hat. " * 2 + f"Part {number} ends. ")
            handler.chunk("", "stop")
            handler.event("[DONE]")
            handler.end()
        screen = self.chat("--url", self.served(in_parts).url)
        screen.type("Tell me a story")
        screen.key("Enter")
        for number, columns in ((1, 50), (2, 90), (3, None)):
            parts[number - 1].set()
            screen.until_text(f"Part {number} ends.")
            if columns:
                screen.resize(columns, 24)
        screen.until_prompts(2)
        screen.type("z")
        self.compare(screen, "resize_in_an_answer")

    def test_colours(self):
        def thinks(handler, body):
            handler.begin()
            for delta in ({"reasoning_content": "Two and two."}, {"content": "Four."}):
                handler.event({"choices": [{"index": 0, "delta": delta}]})
            handler.event("[DONE]")
            handler.end()
        for name, value in (("colours", ""), ("no_colour", "1")):
            screen = self.chat("--url", self.served(thinks).url, env={"NO_COLOR": value}.items())
            screen.type("2+2?")
            screen.key("Enter")
            screen.until_prompts(2)
            self.compare(screen, name, styles=True)
            screen.close()

    def test_keys_that_mean_nothing(self):
        screen = self.chat()
        screen.type("abc def")
        screen.key("F1", "F5", "F12", "IC", "PPage", "NPage", "M-x", "M-Enter", "C-Up", "S-Left", "C-F5", "M-[")
        for sequence in ("\x1b[[A", "\x1b[2$", "\x1bO5P", "\x1b[<0;1;1M", "\x1b[I", "\x1bü", "\u0080\u009b"):
            screen.type(sequence)
        screen.type("!")
        self.compare(screen, "keys")


def settled(read, seconds):
    """What `read` returns once it has been the same for some time."""
    seen, since = read(), time.monotonic()
    while time.monotonic() < since + seconds:
        time.sleep(0.05)
        if (now := read()) != seen:
            seen, since = now, time.monotonic()
    return seen


if __name__ == "__main__":
    if "--record" in sys.argv:
        sys.argv.remove("--record")
        RECORDS = True
    LATTE = sys.argv.pop(1)
    unittest.main()
