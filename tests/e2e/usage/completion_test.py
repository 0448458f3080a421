#!/usr/bin/env python3
"""Completions in real shells. Usage: completion_test.py LATTE_BINARY. A shell that is not installed is skipped."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

LATTE = None


def latte(*args):
    return subprocess.run([LATTE, *args], text=True, capture_output=True, timeout=60, stdin=subprocess.DEVNULL)


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
             ("latte serve org/g", {"org/gguf:Q2_K", "org/gguf:Q4_K_M"}, {"org/name"}),
             ("latte completion ", {"bash", "zsh", "fish"}, {"tiny"}),
             ("latte help ser", {"serve"}, {"run", "some.txt"}),
             ("latte --vers", {"--version"}, {"--help"}),
             ("latte bench --he", {"--help"}, {"model"}),
             ("latte chat --ca-file some", {"some.txt"}, {"tiny"}))

    def setUp(self):
        self.dir = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="latte_completion_")))
        (self.dir / "some.txt").write_text("x")
        (self.dir / "hub/models--org--name/snapshots").mkdir(parents=True)
        (self.dir / "hub/models--org--gguf/snapshots/a").mkdir(parents=True)
        for quant in ("Q2_K", "Q4_K_M"):
            (self.dir / f"hub/models--org--gguf/snapshots/a/X-{quant}.gguf").write_text("GGUF")
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
        # It takes org/gguf:Q for three words, too, and replaces the last.
        for typed in ("org/gguf :", "org/gguf : Q"):
            found = self.words("bash", "-c", program.replace("latte run --dtype = b", f"latte run {typed}"), "bash", script, "")
            self.assertEqual(found, {"Q2_K", "Q4_K_M", "complete -F _latte latte"})

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
        self.assertIn("bf16", complete("latte run --dtype=b"))

    def test_another_shell_is_refused(self):
        done = latte("completion", "tcsh")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("bash, zsh or fish", done.stderr)
        self.assertEqual(latte("completion").returncode, 2)


if __name__ == "__main__":
    LATTE = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
