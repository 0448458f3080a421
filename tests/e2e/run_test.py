"""latte run and the progress of long jobs from a user's view. Usage: run_test.py LATTE_BINARY; needs only Python's standard library."""
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

LATTE = None
GREEDY = ["--temperature", "0", "-n", "12"]
PROMPT = "Once upon a time"


def latte(*args, stdin="", env=()):
    return subprocess.run([LATTE, *map(str, args)], input=stdin, text=True, capture_output=True, timeout=300, env={**os.environ, **dict(env)})


def in_terminal(columns, *args, seconds=120, typed=b"", until=None, then=lambda pid: None, env=()):
    """Everything that a command writes to a terminal of this width, where `typed` is typed. Once it has written what matches `until`, `then`
    is called and the command killed."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(LATTE, [LATTE, *map(str, args)], {**os.environ, **dict(env), "TERM": "xterm"})
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    os.write(fd, typed)
    seen, end = b"", time.monotonic() + seconds
    while select.select([fd], [], [], max(0, end - time.monotonic()))[0]:
        try:
            data = os.read(fd, 65536)
        except OSError:  # the other side is gone
            break
        if not data:
            break
        seen += data
        if until and re.search(until, seen.decode(errors="replace")):
            then(pid)
            os.kill(pid, signal.SIGKILL)
            break
    else:
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(fd)
    return seen.decode(errors="replace")


class Prompts(unittest.TestCase):
    def test_one_newline_at_the_end_of_a_file_or_pipe_is_dropped(self):
        expected = latte("run", "-p", PROMPT, *GREEDY).stdout
        self.assertEqual(latte("run", *GREEDY, stdin=PROMPT + "\n").stdout, expected)
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(PROMPT + "\n")
            file.flush()
            self.assertEqual(latte("run", *GREEDY, "--prompt-file", file.name).stdout, expected)
        self.assertNotEqual(latte("run", *GREEDY, stdin=PROMPT + "\n\n").stdout, expected)
        self.assertNotEqual(latte("run", "-p", PROMPT + "\n", *GREEDY).stdout, expected)

    def test_chat_applies_the_template(self):
        done = latte("run", "--chat", "-p", PROMPT, *GREEDY)
        self.assertEqual(done.stdout, latte("chat", "-p", PROMPT, *GREEDY).stdout)
        told = json.loads(latte("run", "--chat", "-p", PROMPT, "--json", *GREEDY).stdout)
        self.assertEqual(told["text"] + "\n", done.stdout)
        whole = latte("run", "--chat", "-p", PROMPT, "--temperature", 0, "-n", 500, "--json")
        self.assertEqual(json.loads(whole.stdout)["finish_reason"], "stop")

    def test_the_answer_alone(self):
        text = json.loads(latte("run", "-p", PROMPT, "--json", *GREEDY).stdout)["text"]
        self.assertEqual(latte("run", "-p", PROMPT, "--no-echo", *GREEDY).stdout, text + "\n")

    def test_a_full_context_is_said(self):
        done = latte("run", "-p", PROMPT, "--ignore-eos", "-n", 5000, "--seed", 0)
        self.assertEqual(done.returncode, 0)
        self.assertIn("context is full", done.stderr)


class Interrupts(unittest.TestCase):
    def interrupted(self, *args):
        process = subprocess.Popen([LATTE, "run", "-p", PROMPT, "--ignore-eos", "-n", "4000", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, env={**os.environ, "LATTE_ISA": "ref"})
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 1, err)
        self.assertIn("stopped", err)
        return out, err

    def test_ctrl_c_ends_with_the_text_so_far(self):
        out, err = self.interrupted("--stats")
        self.assertTrue(out.endswith("\n"))
        self.assertIn("first token", err)
        told = json.loads(self.interrupted("--json")[0])
        self.assertEqual(told["finish_reason"], "cancelled")
        self.assertEqual(told["stats"]["generated_tokens"], len(told["tokens"]))

    def test_a_prompt_that_is_stopped_is_not_printed(self):
        with subprocess.Popen([LATTE, "run", "--temperature", "0", "--max-batch-tokens", "16"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, env={**os.environ, "LATTE_ISA": "ref"}) as process:
            process.stdin.write("the cat sat on the mat and\n" * 140)  # takes many seconds
            process.stdin.close()
            process.stdin = None
            time.sleep(1)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=120)
        self.assertEqual((process.returncode, out), (1, ""), err)
        self.assertIn("stopped", err)


class Terminals(unittest.TestCase):
    def test_progress_fits_the_terminal(self):
        for columns in (30, 100):
            seen = in_terminal(columns, "eval", "--skills", "recall", "--count", 100, until=r"recall +\d+%  .* left")
            updates = [part for part in re.split(r"[\r\n]+|\x1b\[K", seen) if re.match(r"recall +\d+%  ", part)]
            self.assertTrue(updates, seen)
            self.assertLess(max(map(len, updates)), columns)
            self.assertTrue(any(" left" in update for update in updates), updates)
            self.assertEqual(any(" items/s" in update for update in updates), columns == 100, updates)

    def test_progress_of_a_prompt_is_taken_off_before_the_text(self):
        prompt = PROMPT + ". Ann had a red ball." * 120
        seen = in_terminal(200, "run", "-p", prompt, "--no-echo", "-n", 4, "--max-batch-tokens", 64, "-t", 1, env=SLOW)
        self.assertRegex(seen, r"prompt +\d+%")
        last = seen.rindex("prompt ")
        self.assertIn("\r\x1b[K", seen[last:])

    def test_a_long_first_step_shows_progress_too(self):
        prompt = PROMPT + ". Ann had a red ball." * 400
        seen = in_terminal(200, "run", "-p", prompt, "--no-echo", "-n", 2, "--max-batch-tokens", 0, "-t", 1, env=SLOW, until="prompt +0%")
        self.assertRegex(seen, r"prompt +0%")

    def test_a_first_line_comes_after_seconds_where_no_terminal_is(self):
        prompt = PROMPT + ". Ann had a red ball." * 500
        args = [LATTE, "run", "-p", prompt, "--no-echo", "-n", "2", "--max-batch-tokens", "64", "-t", "1"]
        process = subprocess.Popen(args, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env={**os.environ, **SLOW})
        started = time.monotonic()
        with process:
            line = process.stderr.readline()
            process.kill()
        self.assertRegex(line, r"^prompt +\d+%")
        self.assertLess(time.monotonic() - started, 20)

    def test_one_ctrl_d_ends_a_typed_prompt(self):
        seen = in_terminal(80, "run", *GREEDY, typed=f"{PROMPT}\n\x04".encode(), seconds=30)
        self.assertIn(latte("run", "-p", PROMPT, *GREEDY).stdout.strip(), seen)

    def test_short_jobs_show_nothing(self):
        self.assertNotIn("prompt", in_terminal(80, "run", "-p", PROMPT, *GREEDY))

    def test_a_models_control_characters_are_pictures(self):
        escape = json.loads(latte("tokenize", "--text", "\x1b", "--json").stdout)["ids"]
        self.assertEqual(len(escape), 1)
        args = ["run", "-p", PROMPT, "-n", 3, "--logit-bias", f"{escape[0]}:100", "--no-echo"]
        self.assertIn("␛␛␛", in_terminal(80, *args))
        self.assertEqual(latte(*args).stdout, "\x1b\x1b\x1b\n")  # the bytes through a pipe


SLOW = {"LATTE_ISA": "ref"}  # for jobs of the model alone, which is small
# Jobs that take long: what their lines begin with, and what they count.
SMALL = ("--context", 128, "--max-batch-tokens", 64, "--max-sequences", 8, "--cache-bytes", 1 << 20, "--threads", 1)
LONG = {("score", "--ids", ",".join(["7"] * 300), "-b", 64, "-t", 1): ("scored", "tokens"),
        ("simulate", *SMALL, "--cost", "COST", "--requests", 300000, "--rate", 20, "--prompt-mean", 8, "--output-mean", 100): ("simulated", "requests"),
        ("simulate", "--requests", 2): ("prices of steps", "steps"),
        ("bench", "attention", "--q-len", 128): ("bench attention", "steps"),
        ("bench", "attention", "--phase", "prefill", "--heads", 16, "--context", 4096): ("bench attention", "steps"),
        ("bench", "gemm", "--m", 512): ("bench gemm", "steps"),
        ("bench", "projections", "--m", 128): ("bench projections", "steps"),
        ("bench", "moe", "--shape", "v2-lite", "--m", 16): ("bench moe", "steps"),
        ("bench", "pool", "--threads", 1000): ("bench pool", "steps"),
        ("bench", "sampler"): ("bench sampler", "steps"),
        ("bench", "dispatch"): ("bench dispatch", "steps"),
        ("bench", "calibrate", "--out", "RATES"): ("bench calibrate", "steps"),
        ("bench", "absorption"): ("bench absorption", "steps"),
        ("bench", "model", "--gen", 1000): ("bench model", "steps"),
        ("bench", "batch", "--gen", 1000): ("bench batch", "steps"),
        ("bench", "prefix", "--long-prompt", 0): ("bench prefix", "tokens"),
        ("bench", "determinism"): ("bench determinism", "tokens"),
        ("bench", "steps"): ("bench steps", "steps"),
        # On a fast machine the steps take too little time to be shown.
        ("bench", "simulation"): ("run 1 of 5, (?:steps|in real time)", "(?:steps|requests)"),
        ("bench", "simulation", *SMALL, "--cost", "COST", "--rate", 4): ("run 1 of 5, in real time", "requests")}


class LongJobs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.files = {name: f"{cls.folder.name}/{name.lower()}.json" for name in ("COST", "RATES")}
        done = latte("bench", "steps", *SMALL, "--quick", "--out", cls.files["COST"])
        assert done.returncode == 0, done.stderr

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def watch(self, columns, args, until, **more):
        began = time.monotonic()
        seen = in_terminal(columns, *(self.files.get(arg, arg) for arg in args), until=until, env=SLOW if args[0] == "score" else (), **more)
        if time.monotonic() < began + 5 and not re.search(until, seen):
            return  # on this machine the job is not long enough to show anything
        self.assertRegex(seen, until)
        lines = [part for part in re.split(r"[\r\n]+|\x1b\[K", seen) if re.search(r"\d%  ", part)]
        self.assertLess(max(map(len, lines)), columns, lines)

    def test_every_long_job_shows_how_much_is_done_and_left(self):
        for args, (line, noun) in LONG.items():
            with self.subTest(" ".join(map(str, args))[:60]):
                self.watch(110, args, rf"{line} +\d+%  \d+ of \d+ {noun}  [0-9.]+ {noun}/s  [0-9:]+ left")

    def test_every_bench_is_a_long_job(self):
        lines = (pathlib.Path(__file__).parent / "outside.txt").read_text().splitlines()
        benches = {line.split()[2] for line in lines if line.startswith("command bench ")}
        self.assertEqual(benches - {"serve", "linear"}, {args[1] for args in LONG if args[0] == "bench"})

    def test_a_narrow_terminal_shows_what_is_left_instead_of_the_counts(self):
        self.watch(34, ("bench", "gemm", "--m", 512), r"bench gemm +\d+%  [0-9:]+ left(  gemm)?\x1b")

    def test_no_thread_ticks_while_a_bench_measures(self):
        threads = []
        count = lambda pid: threads.append(len(os.listdir(f"/proc/{pid}/task")))
        self.watch(110, ("bench", "gemm", "--m", 64, "--threads", 1), r"bench gemm +\d+%.*  gemm\x1b", then=count)
        self.assertEqual(threads, [1])

    def test_progress_does_not_change_the_result(self):
        args = [LATTE, *map(str, next(iter(LONG)))]
        alone = subprocess.run([*args, "--json"], capture_output=True, env={**os.environ, **SLOW})
        self.assertRegex(alone.stderr, rb"^(scored .*\n)*$")
        main, side = pty.openpty()
        shown = subprocess.run([*args, "--json"], stdout=subprocess.PIPE, stderr=side, env={**os.environ, **SLOW, "TERM": "xterm"})
        os.close(side)
        self.assertIn(b"scored", os.read(main, 65536))
        os.close(main)
        self.assertEqual(shown.stdout, alone.stdout)


if __name__ == "__main__":
    LATTE = sys.argv.pop(1)
    unittest.main()
