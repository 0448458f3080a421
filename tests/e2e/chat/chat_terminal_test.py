"""latte chat in a real terminal: tmux. Usage: chat_terminal_test.py LATTE_BINARY; needs only Python's standard library and tmux; without
tmux, all tests are skipped."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from tmux_screen import SECONDS, Screen

LATTE = None
ENDLESS = ["--temperature", "100", "--seed", "1", "-n", "4000"]  # stories that hardly ever end
SLOW = {"LATTE_ISA": "ref"}.items()
SHORT = ["--temperature", "0", "-n", "8"]


def tokens(text):
    done = subprocess.run([LATTE, "tokenize", "--json", "--text", text], capture_output=True, check=True, timeout=SECONDS)
    return json.loads(done.stdout)["count"]


@unittest.skipUnless(shutil.which("tmux"), "tmux is not installed (tools/packages.txt)")
class InATerminal(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def chat(self, *args, **how):
        screen = Screen(self.folder, [LATTE, "chat", *args], **how)
        self.addCleanup(screen.close)
        screen.until_prompts(1)
        return screen

    def test_a_paste_of_20_kb_is_one_message(self):
        lines = [f"{i}: " + "lorem ipsum dolor sit amet " * 75 for i in range(10)]
        text = "\n".join(lines)
        self.assertGreater(len(text), 20000)
        save = pathlib.Path(self.folder) / "saved.json"
        screen = self.chat(*SHORT, "--stats", "--context", 4096)
        screen.paste(text)
        screen.until_text("[paste 1: 10 lines, 20")
        screen.key("Enter")
        screen.until_prompts(2)
        # tiny's context is too small for it: the message that says so counts the tokens of all of it.
        told = "".join(screen.text().split())
        self.assertIn(f"has{tokens(text) + 3}tokens", told)
        screen.paste("one\n  two\nthre")
        screen.until_text("> one⏎  two⏎thre")
        screen.key("BSpace")
        screen.type("ee and four")
        screen.key("Enter")
        screen.until_prompts(3)
        screen.type(f"/save {save}")
        screen.key("Enter")
        screen.until_text("saved in")
        self.assertEqual(json.loads(save.read_text())["messages"][0], {"role": "user", "content": "one\n  two\nthree and four"})

    def test_editing_and_history_over_two_runs(self):
        screen = self.chat(*SHORT)
        screen.type("Once upon a timX")
        screen.key("BSpace")
        screen.type("e")
        screen.key("Home")
        screen.type("grüß: ")
        screen.key("End", "Left", "Right", "Enter")
        screen.until_prompts(2)
        self.assertIn("> grüß: Once upon a time", screen.lines())
        screen.type("second")
        screen.key("Enter")
        screen.until_prompts(3)
        screen.end()
        self.assertIn("ENDED 0", screen.text())
        screen.close()
        again = self.chat(*SHORT)
        again.key("Up")
        again.until_text("> second")
        again.key("Up")
        again.until_text("> grüß: Once upon a time")
        self.assertNotIn("^[", again.text())
        again.key("C-c")
        again.until_text("/quit)")
        again.key("C-d")
        again.until_text("ENDED 0")
        history = pathlib.Path(self.folder) / "state/latte/history"
        self.assertEqual(history.stat().st_mode & 0o777, 0o600)
        self.assertEqual([json.loads(line) for line in history.read_text().splitlines()], ["grüß: Once upon a time", "second"])

    def test_a_history_that_cannot_be_used_is_warned_of_once(self):
        (pathlib.Path(self.folder) / "state/latte/history").mkdir(parents=True)
        screen = self.chat(*SHORT)
        for count in (2, 3):
            screen.type("Hi")
            screen.key("Enter")
            screen.until_prompts(count)
        self.assertIn("ENDED 0", screen.end())
        self.assertEqual(screen.text().count("latte: warning: the history in"), 1)

    def edited(self, keys, editrc=""):
        """The line after keys: names of tmux, bytes that begin with ESC, or text."""
        (pathlib.Path(self.folder) / ".editrc").write_text(editrc)
        screen = self.chat(*SHORT)
        for key in keys:
            if key.startswith("<"):
                screen.key(key.strip("<>"))
            else:
                screen.type(key)
        screen.type("END")
        text = screen.until_text("END")
        screen.close()
        return text.rstrip().splitlines()[-1].removeprefix("> ").replace("END", "|")

    def test_keys_of_every_terminal_edit_the_line(self):
        for home in ("<Home>", "\x1b[H", "\x1bOH", "\x1b[1~", "\x1b[7~", "<C-a>"):
            for end in ("<End>", "\x1b[F", "\x1bOF", "\x1b[4~", "\x1b[8~", "<C-e>"):
                self.assertEqual(self.edited(["bc", home, "a", end, "d"]), "abcd|", (home, end))

    def test_keys_move_over_words_and_delete_them(self):
        words = "one two three"
        for left in ("<C-Left>", "<M-b>", "\x1b[5D", "\x1bOd"):
            for right in ("<C-Right>", "<M-f>", "\x1b[5C", "\x1bOc"):
                self.assertEqual(self.edited([words, left, left, left, right]), "one| two three", (left, right))
        for delete, wanted in (("<C-w>", "one two |"), ("<M-BSpace>", "one two |"), ("<C-u>", "|")):
            self.assertEqual(self.edited([words, delete]), wanted, delete)
        for delete in ("<M-d>", "\x1b[3;5~"):
            self.assertEqual(self.edited([words, "<Home>", delete]), "| two three", delete)
        self.assertEqual(self.edited([words, "<Home>", "<DC>"]), "|ne two three")
        self.assertEqual(self.edited([words, "<C-l>"]), words + "|")

    def test_a_key_ends_a_search(self):
        screen = self.chat(*SHORT)
        screen.type("Once upon a time")
        screen.key("Enter")
        screen.until_prompts(2)
        screen.close()
        for keys, wanted in ((["<Left>"], "O|nce upon a time"), (["<M-f>"], "Once| upon a time"),
                             (["<F5>", "<Right>"], "Onc|e upon a time")):
            self.assertEqual(self.edited(["<C-r>", "ce", *keys]), wanted, keys)

    def test_editrc_binds_keys(self):
        self.assertEqual(self.edited(["bc", "<F5>", "a"], 'bind "\\e[15~" ed-move-to-beg\n'), "a|bc")
        self.assertEqual(self.edited(["bc", "<Up>", "a"], 'bind "\\e[A" ed-move-to-beg\n'), "a|bc")
        self.assertEqual(self.edited(["bc", "<M-x>", "a"], 'bind "\\ex" ed-move-to-beg\n'), "a|bc")

    def test_keys_of_vi_are_refused(self):
        self.assertEqual(self.edited(["bc", "<Home>", "a", "<End>", "<C-b>", "d"], "bind -v\n"), "abd|c")
        screen = self.chat(*SHORT)
        self.assertEqual(screen.text().count("latte: note: keys of vi"), 1)
        screen.close()
        # A key that asks for a command of the editor.
        self.assertEqual(self.edited(["<C-t>", "bind -v", "<Enter>", "bc", "<C-b>", "a"], "bind ^T ed-command\n"), "ba|c")

    def test_ctrl_c_ends_the_answer_alone(self):
        screen = self.chat(*ENDLESS, env=SLOW)
        screen.type("Once upon a time")
        screen.key("Enter")
        screen.until(lambda text: len(text.split()) > 60, "an answer")
        screen.key("C-c")
        screen.until_text("[stopped; the text so far is kept]")
        screen.until_prompts(2)
        screen.type("/undo")
        screen.key("Enter")
        screen.until_text("[removed the last question; 0 questions left]")
        screen.type("/quit")
        screen.key("Enter")
        screen.until_text("ENDED 0")

    def test_what_is_typed_during_an_answer_waits_for_its_end(self):
        screen = self.chat("--temperature", "100", "--seed", "1", "-n", "400", env=SLOW)
        screen.type("Once upon a time")
        screen.key("Enter")
        screen.until(lambda text: len(text.split()) > 40, "an answer")
        screen.type("/stats")
        screen.key("Enter")
        text = screen.until_text("[speeds follow every answer]")
        self.assertEqual(text.count("/stats"), 1)
        self.assertIn("> /stats", text.splitlines())

    def test_words_stay_whole_at_every_width(self):
        words = {word for line in self.answer(200) for word in line.split()}
        for columns in (40, 61):
            lines = self.answer(columns)
            self.assertTrue(all(len(line) <= columns for line in lines))
            self.assertGreater(len(lines), 5)
            self.assertEqual({word for line in lines for word in line.split()} - words, set())

    def answer(self, columns):
        screen = self.chat("--temperature", "0", "-n", "120", columns=columns, lines=60)
        screen.type("Once")
        screen.key("Enter")
        screen.until_prompts(2)
        lines = screen.lines()
        screen.close()
        return lines[lines.index("> Once") + 1:-1]

    def test_the_window_changes_its_size(self):
        screen = self.chat(*ENDLESS, columns=80, env=SLOW)
        line = "alpha beta gamma delta " * 12  # longer than the screen is wide
        screen.type(line)
        screen.until(lambda text: text.count("alpha") == 12, "the line")
        for columns, lines in ((40, 10), (100, 30), (24, 6), (80, 24)):
            screen.resize(columns, lines)
            screen.type("z")
        screen.key("Enter")
        screen.until(lambda text: len(text.split()) > 150, "an answer")
        screen.resize(40, 12)
        screen.key("C-c")
        screen.until_text("[stopped; the text so far")
        save = pathlib.Path(self.folder) / "saved.json"
        screen.type(f"/save {save}")
        screen.key("Enter")
        screen.until(lambda _: save.exists(), "the file")
        self.assertEqual(json.loads(save.read_text())["messages"][0]["content"], line + "zzzz")
        screen.key("C-d")
        screen.until_text("ENDED 0")

    def test_progress_leaves_nothing_in_a_narrower_window(self):
        screen = self.chat(*SHORT, "--max-batch-tokens", 16, columns=90, env=SLOW)
        screen.paste("the cat sat on the mat and\n" * 140)
        screen.until_text("[paste")
        screen.key("Enter")
        screen.until_text(" tokens/s ")
        for columns in (30, 20):
            with screen.stopped():  # tmux changes the screen before the program can see it
                screen.resize(columns, 24)
            screen.until(lambda text: text.rstrip().splitlines()[-1].startswith("prompt "), "progress on one row")
            self.assertEqual(screen.text().count("prompt "), 1)
        screen.key("C-c")
        self.assertNotIn("prompt ", screen.until_prompts(2))

    def test_ctrl_c_in_a_long_step_is_acknowledged(self):
        screen = self.chat(*SHORT, "--stats", "--max-batch-tokens", 128, env=SLOW)
        screen.paste("the cat sat on the mat and\n" * 140)
        screen.until_text("[paste")
        screen.key("Enter")
        screen.until_text(" tokens/s ")
        screen.key("C-c")
        screen.until_text("[stopping …]")
        text = screen.until_prompts(2)
        self.assertIn("[stopped before the answer began; not kept]", text)
        told = re.search(r"\[prompt (\d+) tokens, 0 of them cached, (\d+) computed\]", text)
        self.assertTrue(0 < int(told[2]) < int(told[1]), told[0])

    @unittest.skipUnless(shutil.which("bash"), "bash is not installed")
    def test_the_line_goes_on_after_ctrl_z(self):
        screen = self.chat(*SHORT, shell=True)
        screen.type("hello wrld")
        screen.until_text("> hello wrld")
        screen.key("C-z")
        screen.until_text("Stopped")
        screen.type("fg")
        screen.key("Enter")
        screen.until(lambda text: text.count("> hello wrld") == 2, "the line again")
        screen.key("Left", "Left", "Left")
        screen.type("o")
        screen.until_text("> hello world")

    def test_quotes_hold_several_lines_and_commands(self):
        save = pathlib.Path(self.folder) / "saved.json"
        screen = self.chat(*SHORT)
        for line in ('"""first', "/reset", 'last"""'):
            screen.type(line)
            screen.key("Enter")
        screen.until_prompts(2)
        screen.type(f"/save {save}")
        screen.key("Enter")
        screen.until(lambda _: save.exists(), "the file")
        self.assertEqual(json.loads(save.read_text())["messages"][0]["content"], "first\n/reset\nlast")

    def test_up_recalls_a_message_between_quotes(self):
        def ask(name, *lines):
            save = pathlib.Path(self.folder) / name
            screen = self.chat(*SHORT)
            for line in lines:
                if line == "<Up>":
                    screen.key("Up")
                    screen.until_text("> alpha⏎beta")
                else:
                    screen.type(line)
                screen.key("Enter")
            screen.until_prompts(2)
            screen.key("Up")
            screen.until_text("> alpha⏎beta")
            screen.key("Enter")
            screen.until_prompts(3)
            screen.type(f"/save {save}")
            screen.key("Enter")
            screen.until(lambda _: save.exists(), "the file")
            screen.close()
            return [m["content"] for m in json.loads(save.read_text())["messages"] if m["role"] == "user"]
        self.assertEqual(ask("first.json", '"""alpha', 'beta"""'), ["alpha\nbeta"] * 2)
        history = pathlib.Path(self.folder) / "state/latte/history"
        lines = [line for line in history.read_text().splitlines() if "/save" not in line]
        self.assertEqual([json.loads(line) for line in lines], ["alpha\nbeta"] * 2)
        history.write_text("".join(line + "\n" for line in lines))
        self.assertEqual(ask("second.json", "<Up>"), ["alpha\nbeta"] * 2)

    def test_pasted_lines_are_no_command(self):
        save = pathlib.Path(self.folder) / "saved.json"
        screen = self.chat(*SHORT)
        pasted = ('"""Doc."""\nimport os', "/reset\n/quit")
        for count, text in enumerate(pasted, 1):
            screen.paste(text)
            screen.until_text(text.replace("\n", "⏎"))
            screen.key("Enter")
            screen.until_prompts(count + 1)
        screen.type(f"/save {save}")
        screen.key("Enter")
        screen.until(lambda _: save.exists(), "the file")
        self.assertEqual([m["content"] for m in json.loads(save.read_text())["messages"] if m["role"] == "user"], list(pasted))

    def test_what_is_told_apart_by_colour(self):
        screen = self.chat(*SHORT, env={"NO_COLOR": ""}.items())
        self.assertIn("\x1b[1m\x1b[32m>", screen.tmux("capture-pane", "-p", "-e"))
        screen.close()
        plain = self.chat(*SHORT)
        self.assertNotIn("\x1b[", plain.tmux("capture-pane", "-p", "-e"))


if __name__ == "__main__":
    LATTE = sys.argv.pop(1)
    unittest.main()
