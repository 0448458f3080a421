#!/usr/bin/env python3
"""Completions in real shells, the man page, docs/cli.md, and --help of every command.

Usage: completion_test.py LATTE_BINARY. A shell that is not installed is skipped.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LATTE = None


def latte(*args, env=None):
    return subprocess.run([LATTE, *map(str, args)], text=True, capture_output=True, timeout=60, stdin=subprocess.DEVNULL,
                          env={**os.environ, **(env or {})})


def commands():
    """The names of all commands that --help lists: "run", "bench model"."""
    out = []
    for above in ("", "bench"):
        text = latte(*above.split(), "--help").stdout.split("\nCommands:\n")[1].split("\n\n")[0]
        out += [f"{above} {name}".strip() for name in re.findall(r"^  (\w+) ", text, re.M)]
    return out


class Shell(unittest.TestCase):
    """Each case is a line that is typed up to the Tab key, with words that complete it and words that do not."""
    CASES = (("latte ru", {"run"}, {"serve"}),
             ("latte ", {"run", "serve", "bench", "completion"}, {"linear"}),
             ("latte bench mo", {"model", "moe"}, {"gemm", "run"}),
             ("latte run --tempe", {"--temperature"}, {"--top-p"}),
             ("latte serve --por", {"--port"}, {"--prompt"}),
             ("latte bench model --dep", {"--depth"}, {"--port"}),
             ("latte run --dtype ", {"bf16", "f16", "f32"}, {"tiny"}),
             ("latte run --prompt-file some", {"some.txt"}, {"tiny"}),
             ("latte run ti", {"tiny", "tiny-sparse"}, {"run"}),
             ("latte serve org/n", {"org/name"}, {"tiny"}),
             ("latte completion ", {"bash", "zsh", "fish"}, {"tiny"}))

    def setUp(self):
        self.dir = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="latte_completion_")))
        (self.dir / "some.txt").write_text("x")
        (self.dir / "hub/models--org--name/snapshots").mkdir(parents=True)
        self.env = {**os.environ, "HF_HUB_CACHE": str(self.dir / "hub"), "HOME": str(self.dir),
                    "PATH": f"{pathlib.Path(LATTE).parent}:{os.environ['PATH']}"}

    def script(self, shell):
        if shutil.which(shell) is None:
            self.skipTest(f"{shell} is not installed")
        done = latte("completion", shell)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        path = self.dir / ("_latte" if shell == "zsh" else "latte")
        path.write_text(done.stdout)
        return path

    def words(self, shell, *args):
        done = subprocess.run([shell, *args], text=True, capture_output=True, timeout=60, env=self.env, cwd=self.dir)
        self.assertEqual(done.stderr, "")
        return {line.split("\t")[0].strip() for line in done.stdout.splitlines()}

    def check(self, complete):
        for line, there, absent in self.CASES:
            with self.subTest(line):
                found = complete(line)
                self.assertEqual(there - found, set(), found)
                self.assertEqual(absent & found, set(), found)

    def test_bash(self):
        script = self.script("bash")
        program = ('source "$1"; read -ra COMP_WORDS <<< "$2"; [[ $2 == *" " ]] && COMP_WORDS+=("");'
                   'COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _latte; printf "%s\\n" "${COMPREPLY[@]}"; complete -p latte')
        self.check(lambda line: self.words("bash", "-c", program, "bash", script, line))
        # bash takes --dtype=b for three words.
        program = program.replace('read -ra COMP_WORDS <<< "$2";', "COMP_WORDS=(latte run --dtype = b);")
        self.assertIn("bf16", self.words("bash", "-c", program, "bash", script, ""))

    def test_fish(self):
        script = self.script("fish")
        self.check(lambda line: self.words("fish", "--no-config", "-c", f"source {script}; complete -C '{line}'"))

    def test_zsh(self):
        """zsh completes only in a terminal, so that it runs in one of its own; its lists go to a file."""
        self.script("zsh")
        program = r"""
            zmodload zsh/zpty
            zpty -b shell 'PS1=; cd $DIR; exec zsh -f -i'
            zpty -w shell 'PS1=; fpath=($DIR $fpath); autoload -Uz compinit; compinit -u -d $DIR/dump; setopt no_auto_menu'
            zpty -w shell 'zstyle ":completion:*" list-prompt ""; LISTMAX=1000; bindkey "^I" complete-word'
            zpty -w shell 'compadd() { builtin compadd -O _seen "$@"; print -rl -- $_seen >> $DIR/seen; builtin compadd "$@" }'
            zpty -w shell 'print rea''dy'
            zpty -r shell out '*ready*'
            zpty -n -w shell "$1"$'\t'
            sleep 0.7
            zpty -d shell
        """

        def complete(line):
            seen = self.dir / "seen"
            seen.unlink(missing_ok=True)
            self.env["DIR"] = str(self.dir)
            subprocess.run(["zsh", "-f", "-c", program, "zsh", line], capture_output=True, timeout=60, env=self.env, cwd=self.dir)
            return set(seen.read_text().split("\n")) if seen.exists() else set()
        self.check(complete)

    def test_another_shell_is_refused(self):
        done = latte("completion", "tcsh")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("bash, zsh or fish", done.stderr)
        self.assertEqual(latte("completion").returncode, 2)


class Pages(unittest.TestCase):
    def test_the_page_of_commands_is_what_the_program_says(self):
        self.assertEqual(latte("inspect", "--commands").stdout, (ROOT / "docs/cli.md").read_text(),
                         "docs/cli.md is stale: latte inspect --commands > docs/cli.md")

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

    def test_the_man_page_has_every_command_and_no_warning(self):
        page = latte("help", "--man").stdout
        for name in commands():
            self.assertIn(f".SS latte {name}", page)
        self.assertNotRegex(page, r"(?m)^\.[^A-Za-z\\]")
        if shutil.which("groff") is None:
            self.skipTest("groff is not installed")
        done = subprocess.run(["groff", "-Tutf8", "-man", "-ww"], input=page, text=True, capture_output=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("--max-new-tokens N", re.sub(r"\x1b\[\d+m|.\x08", "", done.stdout))


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

    def test_usual_names_and_spellings(self):
        run = ["run", "-p", "Once upon a time", "--seed", 3]
        text = latte(*run, "-n", 8, "--temperature", 0.5).stdout
        for flags in (["-n=8", "--temp", 0.5], ["-n8", "--temp=0.5"], ["--max-tokens", 8, "--temperature=0.5"],
                      ["--max_new_tokens", 8, "--temp", 0.5], ["-n", 100, "-n", 8, "--temp", 2, "--temp", 0.5],
                      ["--n-predict", 8, "--temp", 0.5, "-t", 1, "-c", "1k", "-b", 8, "-m", "tiny"]):
            done = latte(*run, *flags)
            self.assertEqual((done.stdout, done.stderr, done.returncode), (text, "", 0), flags)

    def test_max_tokens_is_ambiguous_where_sequences_have_a_limit(self):
        for command in (["serve"], ["batch", "-i", "x", "-o", "y"], ["simulate"]):
            self.refused(*command, "--max-tokens", 8, words=("--max-tokens: not supported", "--context", "-n"))

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
