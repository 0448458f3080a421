"""Options of `latte serve` and `latte batch`: their sources, names of other servers, the memory plan. No server is started.
Usage: config_test.py LATTE_BINARY."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = ""


def latte(*args, env=None):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LATTE_")}
    return subprocess.run([BINARY, *map(str, args)], text=True, capture_output=True, timeout=300, env={**clean, **(env or {})})


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, text):
        path = self.folder / "latte.toml"
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        return path

    def config(self, *args, env=None):
        """Options and sources, as --print-config tells them."""
        done = latte("serve", *args, "--print-config", env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = tomllib.loads(done.stdout)
        values = {"model": found["model"], **found["engine"], **found["serve"]}
        sources = dict(re.findall(r"^(\w+) = .*?  *# (.*)$", done.stdout, re.M))
        return values, sources, done

    def refused(self, *args, words, env=None, command="serve"):
        # Options that are taken by mistake start no server.
        last = ["--print-config"] if command == "serve" and "--json" not in args else []
        done = latte(command, *args, *last, env=env)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


class Secrets(Case):
    """Who may read and write the files with keys."""

    def test_permissions(self):
        keys = self.folder / "keys"
        keys.write_text("secret\n")
        for flags in (["--api-key-file", keys], ["--ssl-certfile", keys, "--ssl-keyfile", keys]):
            for mode, code, said in ((0o600, 0, ""), (0o400, 0, ""), (0o640, 0, ""), (0o644, 0, "every user of this machine can read it (mode 644)"),
                                     (0o666, 2, "everybody may write to it (mode 666)"), (0o602, 2, "chmod 600")):
                with self.subTest(flags=flags, mode=oct(mode)):
                    keys.chmod(mode)
                    done = latte("serve", "tiny", *flags, "--dry-run", "--cache-bytes", "64M")
                    self.assertEqual(done.returncode, code, done.stderr)
                    self.assertEqual(f"{flags[-2]} {keys}: " in done.stderr, bool(said), done.stderr)
                    self.assertIn(said, done.stderr)

    @unittest.skipIf(os.geteuid() != 0, "needs a file of another user: run as root")
    def test_owners(self):
        keys = self.folder / "keys"
        keys.write_text("secret\n")
        for owner, group, mode, said in ((12345, 0, 0o600, "it may also be changed by user 12345"), (0, 12345, 0o660, "the members of group 12345")):
            keys.chmod(mode)
            os.chown(keys, owner, group)
            done = latte("serve", "tiny", "--api-key-file", keys, "--dry-run", "--cache-bytes", "64M")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(said, done.stderr)


class Sources(Case):
    def test_flag_variable_file_default(self):
        path = self.file('threads = 3\n[serve]\nport = 8003\n')
        env = {"LATTE_THREADS": "2", "LATTE_PORT": "8002"}
        for args, variables, threads, port, source in (
                ([], {}, 0, 8000, "default"),
                (["--config", path], {}, 3, 8003, f"{path}:3: port"),
                (["--config", path], env, 2, 8002, "LATTE_PORT"),
                (["--config", path, "--threads", 1, "--port", 8001], env, 1, 8001, "--port")):
            values, sources, _ = self.config(*args, env=variables)
            self.assertEqual((values["threads"], values["port"], sources["port"]), (threads, port, source))

    def test_model(self):
        path = self.file('model = "from/file"\n')
        self.assertEqual(self.config("--config", path)[0]["model"], "from/file")
        self.assertEqual(self.config("argument", "--config", path)[0]["model"], "argument")
        self.assertEqual(self.config()[0]["model"], "tiny")
        self.refused("a", "--model", "b", words=("--model: expected one model, found 'a' and 'b'",))

    def test_every_kind_of_value(self):
        path = self.file('cache-bytes = "16M"\nmax_tokens = 128\n[engine]\nprefix-cache = false\nint8_activations = "bf16"\n'
                         '[serve]\nserved_model_name = ["a", "b"]\napi_key = "secret"\nhead_timeout = 2\nidle_timeout = 2.5\n')
        values, _, done = self.config("--config", path)
        self.assertEqual((values["cache_bytes"], values["context"], values["prefix_cache"], values["act"]),
                         (16 << 20, 128, False, "bf16"))
        self.assertEqual((values["served_model_name"], values["head_timeout"], values["idle_timeout"]), (["a", "b"], 2, 2.5))
        self.assertNotIn("secret", done.stdout)

    def test_what_is_printed_is_read_again(self):
        flags = ["tiny", "--served-model-name", 'a"\\b', "--cache-bytes", "1G", "--act", "bf16", "--no-access-log"]
        first, _, done = self.config(*flags)
        again, _, _ = self.config("--config", self.file(done.stdout))
        self.assertEqual(first, again)

    def test_errors_name_file_line_key_expected_and_found(self):
        for text, words in (
                ('threads = "x"', ":1: threads: expected a whole number, found 'x'"),
                ("\nthreads = -3", ":2: threads: expected a number in [0, 1024], found -3"),
                ("threads = 4294967296", ":1: threads: expected a whole number, found 4294967296"),
                ("treads = 1", ":1: treads: expected the name of an option"),
                ("[engin]\nthreads = 1", ":2: [engin]: expected the table [engine] or [serve]"),
                ("[serve]\nthreads = 1", ":2: threads: expected in the table [engine], found in [serve]"),
                ("max_tokens = 1\n[engine]\ncontext = 2", ":3: context: expected once, found in line 1 too"),
                ("port = 99999", ":1: port: expected a number in [0, 65535], found 99999"),
                ("port = true", ":1: port: expected a whole number, found true"),
                ('cache_bytes = "1Q"', ":1: cache_bytes: expected bytes, such as 1073741824 or \"1G\", found '1Q'"),
                ("cache_bytes = 1.5", ":1: cache_bytes: expected bytes"),
                ('log_level = "loud"', ":1: log_level: expected debug, info, warning or error, found 'loud'"),
                ("dtype = 2024-01-01", ":1: dtype: expected a text in quotes, found a date"),
                ("api_key = [1]", ":1: api_key: expected a list of texts, found a list with 1"),
                ('access_log = "yes"', ":1: access_log: expected true or false, found 'yes'"),
                ("head_timeout = nan", ":1: head_timeout: expected a number in (0, 86400], found nan"),
                ("threads = {a = 1}", ":1: threads: expected a whole number, found a table"),
                ("threads = ", ":1: expected TOML"), ("threads = 1\nthreads = 2", ":2: expected TOML"),
                ("a = " + "[" * 10000, ":1: expected TOML"), ('a = "\udcff"', ":1: expected TOML")):
            with self.subTest(text[:40].encode("ascii", "replace")):
                path = self.file(text + "\n")
                self.refused("--config", path, words=(f"{path}{words}",))
        self.refused("--config", self.folder / "none", words=("--config: ", "none"))
        self.refused("--config", self.folder, words=("--config: ",))

    def test_a_wrong_value_counts_even_where_a_flag_goes_before_it(self):
        self.refused("--config", self.file('threads = "x"'), "--threads", 1, words=("threads: expected",))

    def test_options_that_do_not_go_together(self):
        self.refused("--host", "", words=("--host: expected an address, or --uds PATH, found neither",))
        self.refused("--ssl-certfile", "x", words=("--ssl-certfile: expected --ssl-certfile and --ssl-keyfile together",))
        self.refused("--config", self.file("max_sequences = 512"), words=("max-batch-tokens: expected a number in [513",))
        self.refused("--json", words=("--json: expected --dry-run",))

    def test_batch_reads_the_same_file(self):
        source = self.folder / "in.jsonl"
        source.write_text(json.dumps({"custom_id": "a", "method": "POST", "url": "/v1/completions",
                                      "body": {"prompt": "x", "max_tokens": 2}}) + "\n")
        flags = ["-i", source, "-o", self.folder / "out.jsonl"]
        path = self.file('model = "tiny"\ncache_bytes = "1M"\n[serve]\nport = 1\n')
        done = latte("batch", *flags, "--config", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("cache: 20 pages", done.stderr)
        self.refused(*flags, "--config", self.file("port = true"), command="batch", words=("port: expected",))


class Plan(Case):
    def plan(self, *args):
        done = latte("serve", "tiny", "--dry-run", "--json", *args)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_numbers_agree(self):
        plan = self.plan("--cache-bytes", "4M", "--page-tokens", 32)
        self.assertEqual(plan["pages"], (4 << 20) // plan["page_bytes"])
        self.assertEqual(plan["cache_bytes"], plan["pages"] * plan["page_bytes"])
        self.assertEqual(plan["total_bytes"], plan["weight_bytes"] + plan["workspace_bytes"] + plan["cache_bytes"])
        self.assertEqual(plan["left_bytes"], plan["available_bytes"] - plan["total_bytes"])
        self.assertEqual(plan["max_tokens"], plan["model_tokens"])
        self.assertEqual(plan["sequences_at_4096_tokens"], plan["pages"] * 32 // 4096)
        self.assertEqual(self.plan("--cache-bytes", "4M")["page_bytes"], 2 * plan["page_bytes"])
        self.assertLess(self.plan("--cache-dtype", "fp8")["page_bytes"], self.plan()["page_bytes"])

    def test_the_text_goes_to_standard_error(self):
        done = latte("serve", "tiny", "--dry-run")
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        for words in ("weights", "prefill workspace", "cache", "remains", "largest context", "sequences at once"):
            self.assertIn(words, done.stderr)

    def test_what_does_not_fit_is_refused(self):
        done = latte("serve", "tiny", "--dry-run", "--cache-bytes", "900T")
        self.assertEqual(done.returncode, 2)
        self.assertIn("memory: expected at most", done.stderr)
        done = latte("serve", "tiny", "--dry-run", "--cache-bytes", "1")
        self.assertEqual(done.returncode, 2)
        self.assertIn("expected at least two pages", done.stderr)
        done = latte("serve", "no/such", "--dry-run")
        self.assertEqual(done.returncode, 2)


class Aliases(Case):
    def test_the_command_that_vllm_documents(self):
        args = ["serve", "--model", "tiny", "--block-size", 64, "--max-model-len", 131072, "--trust-remote-code",
                "--kv-cache-dtype", "fp8_e4m3", "--dry-run"]
        done = latte(*args, "--tensor-parallel-size", 1)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("latte: read as --page-tokens 64 --context 131072 --cache-dtype fp8 --tp 1\n", done.stderr)
        self.assertIn("--trust-remote-code is ignored", done.stderr)
        done = latte(*args, "--tensor-parallel-size", 8)
        self.assertIn(" --tp 8\n", done.stderr)
        self.refused(*args[1:], "--pipeline-parallel-size", 8,
                     words=("--pipeline-parallel-size: expected 1, because only --tp, --dp and --ep divide a model among ranks, found 8",))

    def test_other_commands(self):
        values, _, _ = self.config("-m", "dir", "-c", "8192", "-np", "4", "-ub", "256", "-t", "-1", "-ngl", "99", "-fa", "on",
                                   "--jinja", "--mlock", "-a", "x,y", "--host", "/tmp/l.sock")
        self.assertEqual([values[k] for k in ("model", "context", "max_sequences", "max_batch_tokens", "threads", "uds", "host",
                                              "served_model_name")], ["dir", 8192, 4, 256, 0, "/tmp/l.sock", "", ["x", "y"]])
        values, _, _ = self.config("--model-path", "dir", "--context_length=8k", "--page-size", "32", "--disable-radix-cache",
                                   "--mem-fraction-static", "0.8", "--tp", "1", "--enable-dp-attention", "--dtype", "bfloat16")
        self.assertEqual([values[k] for k in ("context", "page_tokens", "prefix_cache", "dtype")], [8000, 32, False, "bf16"])
        values, _, _ = self.config("dir", "--served-model-name", "a", "b", "--port", 1, "--max-model-len", "auto")
        self.assertEqual([values[k] for k in ("model", "served_model_name", "port", "context")], ["dir", ["a", "b"], 1, 0])
        values, _, _ = self.config("--served-model-name", "a", "dir")
        self.assertEqual([values[k] for k in ("model", "served_model_name")], ["dir", ["a"]])

    def test_what_is_refused(self):
        for args, words in (
                (["--root-path", "/x"], "--root-path: not supported"), (["--max-model-len", "many"], "--max-model-len: expected a whole"),
                (["--max-model-len"], "--max-model-len: expected a value, found none"), (["-pp", "0"], "-pp: expected 1, found '0'"), (["-dp", "0"], "--dp: expected"),
                (["--kv-cache-dtype", "fp8_e5m2"], "--kv-cache-dtype: expected fp8"), (["--kv-cache-dtype", "q4_0"], "q4_0"),
                (["--chunked-prefill-size", "-1"], "--chunked-prefill-size"), (["--device", "gpu"], "--device: expected cpu"),
                (["--trust-remote-code=maybe"], "--trust-remote-code: expected no value"), (["--no-such-flag"], "--no-such-flag")):
            with self.subTest(args):
                done = latte("serve", *args, "--print-config")
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(words, done.stderr)

    def table(self):
        """(names, what it is, commands) of each row of the documented table."""
        text = (ROOT / "docs/options.md").read_text().split("\n## Names of other programs")[1]
        for line in text.splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if line.startswith("| `"):
                yield re.findall(r"`([^`]+)`", cells[0]), cells[2], cells[3]

    def test_every_row_of_the_table(self):
        """Each name does what the page says: the flag that it stands for exists, and what is refused is."""
        texts = {command: latte(command, "--help").stdout for command in ("serve", "batch", "run")}
        rows = list(self.table())
        self.assertGreater(len(rows), 60)
        for names, meaning, commands in rows:
            flag = re.match(r"`(--[\w-]+)", meaning)
            shared = commands.startswith("all with ")
            if flag:
                listed = rf"(?m)^ +(-\w, )?{flag[1]}[ \n]"
                for command in ("serve", "run") if shared else commands.split(", "):
                    if shared and re.search(listed, texts[command]):
                        break
                    self.assertTrue(shared or re.search(listed, texts[command]), flag[1])
                else:
                    self.assertFalse(shared, f"neither serve nor run has {flag[1]}")
                if not re.search(listed, texts["serve"]):
                    continue
            for name in names:
                with self.subTest(name):
                    done = latte("serve", name, "--print-config")
                    value = "expected a value, found none" in done.stderr
                    done = latte("serve", *([name, "1"] if value else [name]), "--print-config")
                    self.assertNotIn("unknown option", done.stderr)
                    if meaning in ("ignored", "1 is accepted"):
                        self.assertEqual(done.returncode, 0, done.stderr)
                    if meaning == "ignored":
                        self.assertIn(f"latte: {name} is ignored: ", done.stderr)
                    if meaning == "refused":
                        self.assertEqual(done.returncode, 2, done.stderr)
                        self.assertIn(f"{name}: not supported: ", done.stderr)

    def test_help_stays_short(self):
        text = latte("serve", "--help").stdout
        self.assertNotIn("--tensor-parallel-size", text)
        self.assertIn("docs/options.md", text)


if __name__ == "__main__":
    BINARY = sys.argv.pop(1)
    unittest.main()
