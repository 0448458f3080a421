#!/usr/bin/env python3
"""What the command line says: --help, the man page, docs/cli.md, errors of usage, usual names of options, seeds.

Usage: usage_test.py LATTE_BINARY.
"""
import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
LATTE = None


def latte(*args, env=None):
    return subprocess.run([LATTE, *map(str, args)], text=True, capture_output=True, timeout=60, stdin=subprocess.DEVNULL,
                          env={**os.environ, **(env or {})})


def in_a_terminal(columns, *args):
    """The lines that a terminal of this width gets."""
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.execv(LATTE, [LATTE, *args])
    text = b""
    with open(terminal, "rb", buffering=0) as file, contextlib.suppress(OSError):  # the other side is gone
        while data := file.read(65536):
            text += data
    os.waitpid(pid, 0)
    return text.decode().replace("\r\n", "\n").splitlines()


def commands():
    """The names of all commands that --help lists: "run", "bench model"."""
    out = []
    for above in ("", "bench"):
        text = latte(*above.split(), "--help").stdout.split("\nCommands:\n")[1].split("\n\n")[0]
        out += [f"{above} {name}".strip() for name in re.findall(r"^  (\w+) ", text, re.M)]
    return out


class Pages(unittest.TestCase):
    def test_the_page_of_commands_is_what_the_program_says(self):
        self.assertEqual(latte("inspect", "--commands").stdout, (ROOT / "docs/cli.md").read_text(),
                         "docs/cli.md is stale: latte inspect --commands > docs/cli.md")

    def test_the_list_of_variables_has_all_that_the_sources_read(self):
        files = [path for folder in ("src", "lab", "apps") for path in (ROOT / folder).rglob("*.cc") if not path.name.endswith("_test.cc")]
        read = {name for path in files for name in
                re.findall(r"(?:getenv|Env|IsSet|Environment|[vV]ariable(?:OrEmpty)?|is_set)\(\"([A-Z_]+)\"\)", path.read_text())}
        self.assertIn("LATTE_ISA", read)
        read -= {"HOME", "TERM", "PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "LATTE_MAX_TOKENS"}
        self.assertEqual([name for name in sorted(read) if name not in latte("inspect", "--options").stdout], [])

    def test_help_has_at_most_100_columns_and_one_form(self):
        names = commands()
        self.assertGreater(len(names), 25)
        for name in ["", *names]:
            with self.subTest(name):
                done = latte(*name.split(), "--help")
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertEqual([line for line in done.stdout.splitlines() if len(line) > 100], [])
                self.assertIn(f"\nUsage: latte {name}".rstrip(), done.stdout)
                self.assertEqual(done.stdout, latte("help", *name.split()).stdout)
                self.assertEqual(done.stdout, latte(*name.split(), "-h").stdout)

    def test_everyday_groups_come_first_and_expert_ones_last(self):
        groups = re.findall(r"^([A-Z][\w ]+):$", latte("run", "--help").stdout, re.M)
        self.assertEqual(groups, ["Arguments", "Prompt", "Sampling", "Stopping", "Output", "Structured answers", "Computation",
                                  "Memory", "Speculation", "Ranks", "Expert", "Other"])

    def test_help_and_speeds_keep_words_whole_in_a_terminal(self):
        for columns in (50, 69, 70):
            for words in ([*name.split(), "--help"] for name in ("", *commands())):
                lines = in_a_terminal(columns, *words)
                self.assertGreater(len(lines), 5)
                self.assertEqual([line for line in lines if len(line) > columns and " " in line.strip()], [], (columns, words))
        self.assertEqual(in_a_terminal(200, "run", "--help"), latte("run", "--help").stdout.splitlines())
        shown = in_a_terminal(50, "run", "-p", "Once", "-n", "5", "--stats")
        self.assertIn("MHA would need 4800 (6.0 times)", shown)
        self.assertEqual([line for line in shown if len(line) > 50], [])

    def test_the_man_page_has_every_command_and_no_warning(self):
        page = latte("help", "--man").stdout
        for name in commands():
            self.assertIn(f".SS latte {name}", page)
        self.assertNotRegex(page, r"(?m)^\.[^A-Za-z\\]")
        self.assertNotRegex(page, r"['`~^]", "roff prints these as other characters")
        if shutil.which("groff") is None:
            self.skipTest("groff is not installed")
        done = subprocess.run(["groff", "-Tutf8", "-man", "-ww"], input=page, text=True, capture_output=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        text = re.sub(r"\x1b\[\d+m|.\x08", "", done.stdout)
        self.assertIn("--max-new-tokens N", text)
        self.assertRegex(text, r"(?m)^ *latte completion fish \| source$")


class Usage(unittest.TestCase):
    def refused(self, *args, words):
        done = latte(*args)
        self.assertEqual((done.returncode, done.stdout), (2, ""), args)
        for word in words:
            self.assertIn(word, done.stderr)
        return done.stderr

    def test_typos_are_named_with_what_was_meant(self):
        for args, text in ((("rum",), "latte: unknown command rum; did you mean run? see latte --help\n"),
                           (("run", "--promt", "x"), "latte run: unknown option --promt; did you mean --prompt? see latte run --help\n"),
                           (("bench", "modle"), "latte bench: unknown command modle; did you mean model? see latte bench --help\n"),
                           (("run", "tiny", "hi"), "latte run: unexpected argument 'hi'; the prompt is given with -p; see latte run "
                                                   "--help\n"),
                           (("batch", "-i", "x"), "latte batch: --output is required; see latte batch --help\n"),
                           (("run", "-n", "many"), "latte run: --max-new-tokens: expected a number, found 'many'; see latte run --help\n")):
            self.assertEqual(self.refused(*args, words=()), text)
        self.refused("run", "tinny", "-p", "x", words=("did you mean tiny?",))
        self.refused("run", "-p", "x", "--dtype", "bf61", words=("--dtype: expected bf16", "did you mean bf16?"))
        self.refused("bench", "batch", "--batches", 0, words=("latte bench batch: --batches: expected 1 to 1024, found '0'",))
        self.refused("serve", "--cache-bytes", "1Q", words=("--cache-bytes: expected bytes, such as 1073741824 or 1G, found '1Q'",))
        self.refused("run", "-p", "x", "--top-p", 3, words=("latte run: --top-p: expected",))
        self.refused("run", ROOT / "models/tinny", "-p", "x", words=(f"did you mean {ROOT / 'models/tiny'}?",))

    def test_without_a_command_help_is_an_error(self):
        for args in ((), ("bench",)):
            done = latte(*args)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertEqual(done.stderr, latte(*args, "--help").stdout)

    def test_version_has_several_spellings(self):
        texts = {latte(*args).stdout for args in (["--version"], ["-V"], ["-v"], ["version"])}
        self.assertEqual(len(texts), 1)
        self.assertRegex(texts.pop(), r"\Alatte \d")

    def test_list_shows_what_is_here(self):
        with tempfile.TemporaryDirectory() as home:
            folder = pathlib.Path(home) / "hub/models--org--Small-Chat/snapshots/main"
            folder.parent.mkdir(parents=True)
            shutil.copytree(ROOT / "models/tiny", folder)
            env = {"HF_HOME": home, "HF_HUB_CACHE": ""}
            self.assertRegex(latte("list", env=env).stdout, r"(?m)^tiny +11\.\d+ MB  deepseek_v3$")
            self.assertRegex(latte("list", env=env).stdout, r"(?m)^org/Small-Chat +11\.\d+ MB  deepseek_v3$")
            models = json.loads(latte("list", "--json", env=env).stdout)["models"]
            self.assertEqual([model["model"] for model in models], ["tiny", "tiny-sparse", "org/Small-Chat"])
            (folder / "config.json").write_text("{}")
            self.assertIn("not a model that Latte runs", latte("list", env=env).stdout)
            self.assertIn("did you mean org/Small-Chat?", latte("run", "Small-Chat", "-p", "x", env=env).stderr)
            self.assertIn("`latte list`", latte("run", "elephant", "-p", "x", env=env).stderr)
        self.assertIn("a prompt is given with -p", latte("run", "Once upon a time").stderr)

    def test_the_former_variable_of_context_is_refused(self):
        done = latte("run", "-p", "x", "-n", 1, env={"LATTE_MAX_TOKENS": "100"})
        self.assertEqual(done.returncode, 2)
        self.assertIn("LATTE_CONTEXT", done.stderr)
        self.assertEqual(latte("run", "-p", "x", "-n", 1, env={"LATTE_MAX_TOKENS": "100", "LATTE_CONTEXT": "100"}).returncode, 0)

    def test_a_context_that_does_not_fit_is_refused(self):
        for flags in (["--dry-run"], []):
            self.refused("serve", "tiny", "--cache-bytes", "1M", "--context", 4096, "--port", 0, *flags,
                         words=("--context: expected at most", "4096", "--cache-dtype fp8", "--cache-bytes"))
        self.assertEqual(latte("serve", "tiny", "--cache-bytes", "1M", "--dry-run").returncode, 0)

    def test_usual_names_and_spellings(self):
        run = ["run", "-p", "Once upon a time", "--seed", 3]
        text = latte(*run, "-n", 8, "--temperature", 0.5).stdout
        for flags in (["-n=8", "--temp", 0.5], ["-n8", "--temp=0.5"], ["--max-tokens", 8, "--temperature=0.5"],
                      ["--max_new_tokens", 8, "--temp", 0.5], ["-n", 100, "-n", 8, "--temp", 2, "--temp", 0.5],
                      ["--n-predict", 8, "--temp", 0.5, "-t", 1, "-c", "1k", "-b", 8, "-m", "tiny"]):
            done = latte(*run, *flags)
            self.assertEqual((done.stdout, done.stderr, done.returncode), (text, "", 0), flags)

    def test_int8_activations_under_f32_are_told(self):
        run = ["run", "-p", "x", "-n", 1, "--seed", 0]
        self.assertIn("--act: int8 has no effect under --dtype f32", latte(*run, "--dtype", "f32", "--act", "int8").stderr)
        for flags in (["--dtype", "f32"], ["--act", "int8"], ["--dtype", "f32", "--act", "bf16"]):
            self.assertEqual(latte(*run, *flags).stderr, "")

    def test_a_file_of_rates_that_is_not_there_is_told(self):
        done = latte("run", "-p", "x", "-n", 1, env={"LATTE_RATES": "/nope"})
        self.assertEqual(done.returncode, 0)
        self.assertIn("latte: warning: /nope", done.stderr)


class Seeds(unittest.TestCase):
    RUN = ["run", "-p", "Once upon a time", "-n", 30]

    def test_a_seed_is_drawn_and_reported(self):
        first, second = latte(*self.RUN), latte(*self.RUN)
        self.assertNotEqual(first.stdout, second.stdout)
        for done in (first, second):
            seed = re.fullmatch(r"seed (\d+)\n", done.stderr)[1]
            again = latte(*self.RUN, "--seed", seed)
            self.assertEqual((again.stdout, again.stderr), (done.stdout, ""))

    def test_minus_one_draws_too(self):
        self.assertNotEqual(latte(*self.RUN, "--seed", -1).stdout, latte(*self.RUN, "-s", -1).stdout)

    def test_json_has_the_seed(self):
        self.assertIn('"seed": 7,', latte(*self.RUN, "--json", "--seed", 7).stdout)

    def test_greedy_answers_have_none_to_report(self):
        self.assertEqual(latte(*self.RUN, "--temperature", 0).stderr, "")

    def test_a_variable_gives_a_seed(self):
        env = {"LATTE_SEED": "7"}
        self.assertEqual(latte(*self.RUN, env=env).stdout, latte(*self.RUN, "--seed", 7).stdout)
        self.assertEqual(latte(*self.RUN, env=env).stderr, "")


if __name__ == "__main__":
    LATTE = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
