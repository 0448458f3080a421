"""Flags, environment variables and docs/options.md, which come from one list. Usage: options_test.py LATTE_BINARY."""
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/options.md"
BINARY = ""
RUN = ["run", "tiny", "-p", "x", "--temperature", "0"]


def latte(*args, env=None):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LATTE_")}
    return subprocess.run([BINARY, *map(str, args)], text=True, capture_output=True, timeout=300, env={**clean, **(env or {})})


def rows():
    """(name, flag, variable, values) of each row of the page's options."""
    for line in PAGE.read_text().split("\n## Other environment variables")[0].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `"):
            yield cells[0].split("`")[1], cells[1].strip("`"), cells[2].strip("`"), cells[4]


def members(header, struct):
    """Names of a struct's members, as its header declares them."""
    text = (ROOT / header).read_text()
    body = re.search(rf"^struct {struct} {{$(.*?)^}};", text, re.M | re.S)[1]
    fields = re.sub(r"//.*", "", body).split("[[nodiscard]]")[0]
    return re.findall(r"(\w+)(?:\s*=\s*[^;]*)?;", fields)


class Page(unittest.TestCase):
    def test_is_what_the_list_says(self):
        self.assertEqual(latte("inspect", "--options").stdout, PAGE.read_text(),
                         "docs/options.md is stale: latte inspect --options > docs/options.md")

    def test_every_member_of_the_structs_is_listed(self):
        listed = [name for name, *_ in rows()]
        expected = members("include/latte/options.h", "EngineOptions") + members("src/serve/options.h", "ServeOptions")
        for struct in ("SamplingParams", "StopConditions", "Request"):
            expected += [name for name in members("include/latte/request.h", struct)
                         if struct != "Request" or name not in ("prompt", "tokens", "sampling", "stop")]
        self.assertGreater(len(expected), 40)
        self.assertEqual(sorted(listed), sorted(expected), "VisitFields and the members differ")

    def test_every_flag_is_one_of_run_batch_or_serve(self):
        text = "".join(latte(command, "--help").stdout for command in ("run", "batch", "serve"))
        for _, flag, _, _ in rows():
            if flag:
                self.assertRegex(text, rf"(?m)^ {{2,6}}{flag.replace(',', ', ')}( |$)")

    def test_every_variable_that_the_source_reads_is_listed(self):
        listed = set(re.findall(r"`?\b([A-Za-z_]+)\b`?", PAGE.read_text().split("\n## Other environment variables")[1].split("\n## ")[0]))
        read = set()
        for folder in ("src", "lab", "apps"):
            for path in (ROOT / folder).rglob("*.cc"):
                if not path.name.endswith("_test.cc"):
                    read |= set(re.findall(r'(?:getenv|Env|IsSet|VariableOrEmpty)\("(\w+)"\)', path.read_text()))
        self.assertGreater(len(read), 8)
        own = {"HOME", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "TRANSFORMERS_OFFLINE", "CURL_CA_BUNDLE",
               "HF_HUB_DISABLE_IMPLICIT_TOKEN", "TERM"}
        self.assertEqual(read - listed - own, set())


class Variables(unittest.TestCase):
    def story(self, *flags, **env):
        done = latte(*RUN, "--json", *flags, env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def refused(self, *args, words, **env):
        done = latte(*args, env=env)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_a_flag_goes_before_a_variable_and_that_before_the_default(self):
        self.assertEqual(self.story("-n", 1)["stats"]["dtype"], "bf16")
        self.assertEqual(self.story("-n", 1, LATTE_DTYPE="f32")["stats"]["dtype"], "f32")
        self.assertEqual(self.story("-n", 1, "--dtype", "f16", LATTE_DTYPE="f32")["stats"]["dtype"], "f16")
        self.assertEqual(self.story("-n", 1, LATTE_DTYPE="")["stats"]["dtype"], "bf16")
        # A default of the command itself, 256 tokens, and one of the checkpoint.
        self.assertEqual(len(self.story("--ignore-eos", LATTE_MAX_NEW_TOKENS="3")["tokens"]), 3)
        self.assertEqual(len(self.story("--ignore-eos", "-n", 2, LATTE_MAX_NEW_TOKENS="3")["tokens"]), 2)

    def test_every_kind_of_variable_is_read(self):
        plain = self.story("-n", 8)["tokens"]
        self.assertEqual(self.story("-n", 8, LATTE_LOGIT_BIAS="300:100")["tokens"], [300] * 8)
        self.assertNotEqual(self.story("-n", 8, LATTE_FREQUENCY_PENALTY="2", LATTE_PRESENCE_PENALTY="2")["tokens"], plain)
        self.assertEqual(self.story("-n", 8, LATTE_THREADS="1", LATTE_PAGE_TOKENS="16", LATTE_ACT="bf16")["tokens"], plain)
        self.assertEqual(len(self.story("-n", 300, LATTE_IGNORE_EOS="1")["tokens"]), 300)
        self.assertLess(len(self.story("-n", 300, LATTE_IGNORE_EOS="0")["tokens"]), 300)
        first = self.story("-n", 8)["text"][4:6]
        self.assertNotIn(first, self.story("-n", 8, LATTE_STOP=first)["text"])
        sampled = ["run", "tiny", "-p", "Once", "-n", "24", "--temperature", "1"]
        self.assertEqual(latte(*sampled, env={"LATTE_SEED": "5"}).stdout, latte(*sampled, "--seed", 5).stdout)
        self.assertNotEqual(latte(*sampled, env={"LATTE_SEED": "5"}).stdout, latte(*sampled).stdout)

    def test_engines_read_sizes(self):
        flags = ["simulate", "--requests", 1, "--rate", 0, "--threads", 1, "--cost", "no/such"]
        self.refused(*flags, words=("no/such",), LATTE_CACHE_BYTES="64M", LATTE_MAX_SEQUENCES="2")
        self.refused(*flags, words=("LATTE_CACHE_BYTES: expected bytes", "'much'"), LATTE_CACHE_BYTES="much")
        self.refused(*flags, words=("LATTE_MAX_SEQUENCES: expected a number in [1, 4096], found 0",), LATTE_MAX_SEQUENCES="0")

    def test_a_bad_value_is_an_error_that_names_the_variable(self):
        run = [*RUN, "-n", 1]
        self.refused(*run, words=("LATTE_THREADS: expected a whole number, found 'many'",), LATTE_THREADS="many")
        self.refused(*run, words=("LATTE_THREADS: expected a number in [0, 1024], found -3",), LATTE_THREADS="-3")
        self.refused(*run, words=("LATTE_PAGE_TOKENS: expected a power of two, found 48",), LATTE_PAGE_TOKENS="48")
        self.refused(*run, words=("LATTE_ATTENTION: expected auto", "'mha'"), LATTE_ATTENTION="mha")
        self.refused(*run, words=("LATTE_ACT: expected int8 or bf16, found '4'",), LATTE_ACT="4")
        self.refused(*run, words=("LATTE_IGNORE_EOS: expected 0 or 1, found 'maybe'",), LATTE_IGNORE_EOS="maybe")
        self.refused(*run, words=("LATTE_TOP_P: expected a number in (0, 1], found nan",), LATTE_TOP_P="nan")
        self.refused(*run, words=("LATTE_LOGIT_BIAS: expected ID:VALUE pairs", "'5=1'"), LATTE_LOGIT_BIAS="5=1")
        self.refused("run", "-p", "x", words=("LATTE_MAX_NEW_TOKENS: expected 1 or more, found 0",), LATTE_MAX_NEW_TOKENS="0")
        self.refused("simulate", words=("LATTE_PREFIX_CACHE: expected 0 or 1",), LATTE_PREFIX_CACHE="perhaps")
        self.refused("score", "--ids", 1, words=("LATTE_CHECK_WEIGHTS: expected 0 or 1",), LATTE_CHECK_WEIGHTS="2")
        self.refused("bench", "batch", words=("LATTE_DTYPE: expected bf16",), LATTE_DTYPE="f8")

    def test_a_bad_variable_does_not_matter_beside_the_flag(self):
        self.assertEqual(len(self.story("-n", 1, "--threads", 1, LATTE_THREADS="many")["tokens"]), 1)

    def test_every_variable_of_run_is_read(self):
        """A variable that nobody reads would be taken whatever it holds."""
        text = latte("run", "--help").stdout
        for name, flag, variable, values in rows():
            if not variable or variable == "LATTE_STOP" or not re.search(rf"^ {{2,6}}{flag.replace(',', ', ')}( |$)", text, re.M):
                continue
            with self.subTest(name):
                # A build without xgrammar refuses every grammar.
                begin = f"{variable}: " + ("" if variable == "LATTE_GRAMMAR" else "expected")
                self.refused("run", "tiny", "-p", "x", words=(begin,), **{variable: "no such value"})


if __name__ == "__main__":
    BINARY = sys.argv.pop(1)
    unittest.main()
