"""A program in a window of tmux, and its screen. For tests; needs only Python's standard library and tmux."""
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

SECONDS = 120
COLOURS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"]
ATTRIBUTES = {1: "bold", 2: "dim", 3: "italic", 4: "underlined", 7: "reverse"}


class Screen:
    """A program in a window of a tmux server of its own. `program` is a list; with `shell` it starts from a prompt of bash."""

    def __init__(self, folder, program, columns=80, lines=24, env=(), shell=False):
        self.socket = f"{tempfile.mkdtemp(dir=folder)}/tmux"
        self.folder = pathlib.Path(folder)
        self.size = (columns, lines)
        command = " ".join(f"'{word}'" for word in map(str, program))
        environment = {"XDG_STATE_HOME": f"{folder}/state", "HOME": folder, "NO_COLOR": "1", "TERM": "screen", **dict(env)}
        exports = " ".join(f"{name}='{value}'" for name, value in environment.items())
        run = f"env {exports} {command}; echo; echo ENDED $?; sleep {SECONDS}"
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(lines),
                  f"env {exports} PS1='$ ' bash --norc -i" if shell else run)
        if shell:
            self.until_text("$")
            self.type(command)
            self.key("Enter")

    def tmux(self, *args):
        return subprocess.run(["tmux", "-u", "-S", self.socket, *args], check=True, capture_output=True, timeout=SECONDS).stdout.decode()

    def text(self):
        """The text of the screen and above it; lines that the terminal wrapped are separate."""
        return self.tmux("capture-pane", "-p", "-S", "-2000")

    def lines(self):
        return [line for line in self.text().splitlines() if line.strip()]

    def shown(self, styles=False):
        """All rows as text, those that left the screen at its top too, and the cursor. With `styles`, {bold green} stands
        before text that is."""
        rows = self.tmux("capture-pane", "-p", "-S", "-2000", *(["-e"] if styles else []))
        rows = named_styles(rows) if styles else rows
        column, row, above = self.tmux("display-message", "-p", "#{cursor_x} #{cursor_y} #{history_size}").split()
        columns, lines = self.size
        return (rows.rstrip("\n") + f"\n\n(Screen of {columns} columns and {lines} rows; rows above it: {above}. "
                f"The cursor is in column {column} of its row {row}, from 0.)\n")

    def resize(self, columns, lines):
        """Until the program can see the new size: tmux waits a little before it tells it."""
        self.size = (columns, lines)
        self.tmux("resize-window", "-x", str(columns), "-y", str(lines))
        terminal = os.open(self.tmux("display-message", "-p", "#{pane_tty}").strip(), os.O_RDONLY | os.O_NOCTTY)
        self.until(lambda _: os.get_terminal_size(terminal) == self.size, "resized terminal around")
        os.close(terminal)

    @contextlib.contextmanager
    def stopped(self):
        """Within, the program does nothing."""
        shell = self.tmux("display-message", "-p", "#{pane_pid}").strip()
        program = int(pathlib.Path(f"/proc/{shell}/task/{shell}/children").read_text())
        os.kill(program, signal.SIGSTOP)
        yield
        os.kill(program, signal.SIGCONT)

    def until(self, condition, what):
        end = time.monotonic() + SECONDS
        while True:
            text = self.text()
            if condition(text):
                return text
            if time.monotonic() > end:
                raise AssertionError(f"no {what} in:\n{text}")
            time.sleep(0.05)

    def until_text(self, wanted):
        return self.until(lambda text: wanted in text, repr(wanted))

    def until_prompts(self, count):
        """Until `count` lines begin with the prompt, and the last line is an empty one."""
        def ready(text):
            lines = [line for line in text.splitlines() if line.strip()]
            return sum(line.startswith(">") for line in lines) >= count and lines[-1].strip() == ">"
        return self.until(ready, f"prompt number {count}")

    def type(self, text):
        self.tmux("send-keys", "-l", text)

    def key(self, *names):
        self.tmux("send-keys", *names)

    def paste(self, text):
        file = self.folder / "buffer"
        file.write_bytes(text.encode())
        self.tmux("load-buffer", str(file))
        self.tmux("paste-buffer", "-p")  # -p: marked as pasted, if the program asked for it

    def end(self):
        self.key("C-d")
        return self.until_text("ENDED")

    def close(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], capture_output=True)


def named_styles(rows):
    """Rows with control sequences for styles, with the names of the styles instead."""
    out, styles, written = "", set(), set()
    for text, codes in re.findall(r"([^\x1b\x0e\x0f]+)|\x1b\[([\d;]*)m", rows):
        if text:
            if styles != written:
                out += "{" + (" ".join(sorted(styles)) or "plain") + "}"
                written = set(styles)
            out += text
            continue
        for code in map(int, (codes or "0").split(";")):
            if code == 0:
                styles.clear()
            elif code in (39, 49):  # the usual colours of text and background
                styles -= set(COLOURS) if code == 39 else set()
            elif 30 <= code < 38:
                styles = styles - set(COLOURS) | {COLOURS[code - 30]}
            else:
                styles.add(ATTRIBUTES.get(code, str(code)))
    return out
