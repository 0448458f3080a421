"""The command line from a user's view. Usage: cli_test.py LATTE_BINARY; needs only Python's standard library."""
import errno
import json
import math
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from build_copy import install  # noqa: E402

LATTE = None
ROOT = pathlib.Path(__file__).resolve().parents[2]
FIXTURE = ROOT / "tests/goldens/v3_noaux"
MODES = ["decompressed", "latent", "absorbed", "auto"]


def latte(*args, stdin="", env=None, cwd=None):
    full_env = {**os.environ, **(env or {})}
    return subprocess.run([LATTE, *map(str, args)], input=stdin, text=True, capture_output=True, timeout=300,
                          env=full_env, cwd=cwd)


def read_npy(path):
    """float32 matrix -> (shape, flat list)"""
    data = pathlib.Path(path).read_bytes()
    size = struct.unpack("<H", data[8:10])[0]
    header = data[10:10 + size].decode()
    shape = tuple(int(n) for n in header.split("(")[1].split(")")[0].split(",") if n.strip())
    return shape, struct.unpack(f"<{math.prod(shape)}f", data[10 + size:])


class Run(unittest.TestCase):
    def test_writes_a_story_from_any_folder(self):
        with tempfile.TemporaryDirectory() as elsewhere:
            done = latte("run", "-p", "Once upon a time", "-n", 40, "--seed", 3, cwd=elsewhere)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith("Once upon a time"))
        self.assertGreater(len(done.stdout.split()), 20)

    def test_greedy_text_is_the_same_on_every_attention_mode(self):
        texts = {latte("run", "tiny", "-p", "Once upon a time", "-n", 64, "--temperature", 0, "--dtype", "f32",
                       "--attention", mode).stdout for mode in MODES}
        self.assertEqual(len(texts), 1)
        self.assertGreater(len(texts.pop()), 100)

    def test_same_seed_same_text_whatever_the_threads_and_chunks(self):
        base = ["run", "-p", "Once upon a time there was a small", "-n", 40, "--temperature", 0.8, "--seed", 5]
        texts = {latte(*base, "--threads", threads, "--max-batch-tokens", chunk).stdout
                 for threads in (1, 2, 3) for chunk in (1, 4, 0)}
        self.assertEqual(len(texts), 1)
        self.assertNotIn(latte(*base[:-1], 6).stdout, texts)

    def test_prompt_from_standard_input_and_from_a_file(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("Once upon a time")
            file.flush()
            by_file = latte("run", "--prompt-file", file.name, "-n", 8, "--seed", 0)
        by_stdin = latte("run", "-n", 8, "--seed", 0, stdin="Once upon a time")
        self.assertEqual(by_file.returncode, 0, by_file.stderr)
        self.assertEqual(by_file.stdout, by_stdin.stdout)

    def test_numa_changes_no_text_and_is_checked(self):
        base = ["run", "-p", "Once upon a time", "-n", 4, "--temperature", 0]
        self.assertEqual(latte(*base, "--numa", "interleave").stdout, latte(*base).stdout)
        refused = latte(*base, "--numa", "here")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--numa", refused.stderr)

    def test_stop_strings_cut_the_text(self):
        base = ["run", "-p", "Once upon a time", "-n", 60, "--temperature", 0, "--json"]
        whole = json.loads(latte(*base).stdout)["text"]
        words = whole.split()
        later, sooner = " ".join(words[9:11]), " ".join(words[4:6])
        done = json.loads(latte(*base, "--stop", later, "--stop", sooner).stdout)
        self.assertEqual(done["text"], whole[:whole.index(sooner)])
        self.assertEqual(done["finish_reason"], "stop")
        printed = latte(*base[:-1], "--stop", sooner).stdout
        self.assertEqual(printed, "Once upon a time" + done["text"] + "\n")
        self.assertEqual(json.loads(latte(*base, "--stop", "[a,b]").stdout)["text"], whole)
        late = json.loads(latte(*base, "--stop", sooner, "--min-tokens", 59).stdout)
        self.assertTrue(late["text"].startswith(whole[:whole.index(sooner) + len(sooner)]))

    def test_the_end_of_sequence_can_be_ignored_or_put_off(self):
        base = ["run", "-p", "Once upon a time", "-n", 400, "--temperature", 0, "--json"]
        ended = json.loads(latte(*base).stdout)
        self.assertEqual(ended["finish_reason"], "stop")
        size = len(ended["tokens"])
        on = json.loads(latte(*base, "--ignore-eos").stdout)
        self.assertEqual(on["tokens"][:size], ended["tokens"])
        self.assertEqual((len(on["tokens"]), on["finish_reason"]), (400, "length"))
        put_off = json.loads(latte(*base, "--min-tokens", size + 1).stdout)
        self.assertEqual(put_off["tokens"][:size], ended["tokens"])
        self.assertGreater(len(put_off["tokens"]), size)
        self.assertNotEqual(put_off["tokens"][size], on["tokens"][size])

    def test_bias_and_penalties_change_what_is_drawn(self):
        base = ["run", "-p", "Once upon a time", "-n", 40, "--temperature", 0, "--json", "--ignore-eos"]
        plain = json.loads(latte(*base).stdout)["tokens"]
        self.assertEqual(json.loads(latte(*base, "--logit-bias", "300:100").stdout)["tokens"], [300] * 40)
        self.assertEqual(json.loads(latte(*base, "--logit-bias", f"{plain[0]}:-100").stdout)["tokens"].count(plain[0]), 0)
        for penalty in (["--repetition-penalty", 100], ["--presence-penalty", 2], ["--frequency-penalty", 2]):
            tokens = json.loads(latte(*base, *penalty).stdout)["tokens"]
            self.assertGreater(len(set(tokens)), len(set(plain)), penalty)

    def test_json_is_one_object_with_everything(self):
        done = latte("run", "-p", "Once upon a time", "-n", 8, "--json")
        out = json.loads(done.stdout)
        self.assertEqual(done.stderr, "")
        self.assertLessEqual(len(out["tokens"]), 8)
        self.assertIn(out["finish_reason"], ("stop", "length"))
        self.assertEqual(out["stats"]["generated_tokens"], len(out["tokens"]))
        config = json.loads((ROOT / "models/tiny/config.json").read_text())
        layers = config["num_hidden_layers"] + config["num_nextn_predict_layers"]
        self.assertEqual(out["stats"]["cache_bytes_per_token"],
                         (config["kv_lora_rank"] + config["qk_rope_head_dim"]) * layers * 2)
        self.assertEqual(out["stats"]["decompressed_bytes_per_token"], config["num_attention_heads"] * layers * 2 * (
            config["qk_nope_head_dim"] + config["qk_rope_head_dim"] + config["v_head_dim"]))

    def test_stats_table_goes_to_standard_error(self):
        done = latte("run", "-p", "Once upon a time", "-n", 8, "--stats")
        for word in ("prompt", "generated", "first token", "cache", "attention"):
            self.assertIn(word, done.stderr)
        self.assertNotIn("tokens/s", done.stdout)

    def test_a_story_ends_by_itself(self):
        out = json.loads(latte("run", "-p", "Once upon a time", "-n", 400, "--temperature", 0, "--json").stdout)
        self.assertEqual(out["finish_reason"], "stop")
        self.assertTrue(out["text"].rstrip().endswith("."))


class Score(unittest.TestCase):
    def test_logits_match_the_goldens_on_every_mode(self):
        ids = json.loads((FIXTURE / "tokens.json").read_text())
        shape, golden = read_npy(FIXTURE / "logits.npy")
        with tempfile.TemporaryDirectory() as folder:
            for mode in MODES:
                out = f"{folder}/{mode}.npy"
                done = latte("score", FIXTURE, "--ids", ",".join(map(str, ids)), "--logits", out, "--dtype", "f32",
                             "--attention", mode, "--max-batch-tokens", 7, "--json")
                self.assertEqual(done.returncode, 0, done.stderr)
                found_shape, found = read_npy(out)
                self.assertEqual(found_shape, shape)
                self.assertLess(max(abs(a - b) for a, b in zip(found, golden)), 2e-4)
                result = json.loads(done.stdout)
                row = golden[:shape[1]]
                expected = row[ids[1]] - math.log(math.fsum(map(math.exp, row)))
                self.assertIsNone(result["logprobs"][0])
                self.assertAlmostEqual(result["logprobs"][1], expected, delta=4e-4)
                self.assertAlmostEqual(result["total_logprob"], sum(result["logprobs"][1:]), delta=1e-6)

    def test_text_and_ids_file_agree(self):
        by_text = json.loads(latte("score", "--text", "Once upon a time", "--json").stdout)
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("\n".join(map(str, by_text["tokens"])))
            file.flush()
            by_file = json.loads(latte("score", "--ids-file", file.name, "--json").stdout)
        self.assertEqual(by_text["logprobs"], by_file["logprobs"])

    def test_a_text_may_come_from_standard_input_or_a_pipe(self):
        by_text = latte("score", "--text", "Once upon a time").stdout
        self.assertEqual(latte("score", "--text", "-", stdin="Once upon a time\n").stdout, by_text)
        ids = latte("score", "--ids", "1,2,3").stdout
        self.assertEqual(latte("score", "--ids-file", "/dev/stdin", stdin="1,2,3\n").stdout, ids)
        shell = ["bash", "-c", 'exec "$0" tokenize --file <(printf "Once upon")', LATTE]
        by_pipe = subprocess.run(shell, capture_output=True, text=True, timeout=60)
        self.assertEqual((by_pipe.stdout, by_pipe.stderr), (latte("tokenize", "--text", "Once upon").stdout, ""))


    def test_p_is_text(self):
        for text in ("Once upon a time", "naïve 日本", "two\nlines", "-"):
            given = {"stdin": "Once upon\n"} if text == "-" else {}
            short = latte("score", "-p", text, "--json", **given)
            self.assertEqual(short.returncode, 0, short.stderr)
            self.assertEqual(short.stdout, latte("score", f"--text={text}", "--json", **given).stdout)
        self.assertEqual(latte("tokenize", "-p", "Once upon").stdout, latte("tokenize", "--text", "Once upon").stdout)


class ScoreTextFile(unittest.TestCase):
    """Perplexity of a file, against the log-probabilities of each of its windows."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.file = f"{self.folder.name}/text"
        story = "Once upon a time, a brave duck named Wendy lived in a house with a blue door. "
        pathlib.Path(self.file).write_text(story * 20)
        self.ids = json.loads(latte("tokenize", "tiny", "--file", self.file, "--json").stdout)["ids"]
        self.start = json.loads(latte("tokenize", "tiny", "-p", "", "--bos", "--json").stdout)["ids"]

    def found(self, *flags):
        done = latte("score", "tiny", "--text-file", self.file, "--json", *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def expected(self, window):
        total, count, windows = 0, 0, 0
        for begin in range(0, len(self.ids), window - 1):
            part = self.start + self.ids[begin:begin + window - 1]
            done = json.loads(latte("score", "tiny", "--ids", ",".join(map(str, part)), "--json").stdout)
            total, count, windows = total + done["total_logprob"], count + len(part) - 1, windows + 1
        return total, count, windows

    def test_one_window(self):
        out = self.found()
        whole = json.loads(latte("score", "tiny", "-p", pathlib.Path(self.file).read_text(), "--json").stdout)
        self.assertEqual((out["windows"], out["scored_tokens"], out["token_count"]), (1, len(self.ids), len(self.ids)))
        self.assertEqual(out["total_logprob"], whole["total_logprob"])
        self.assertEqual(out["perplexity"], whole["perplexity"])

    def test_windows_count_every_token_once(self):
        for window in (len(self.ids) + 1, len(self.ids), 100, 64, 17):
            out = self.found("--context", window)
            total, count, windows = self.expected(window)
            self.assertEqual((out["window"], out["windows"], out["scored_tokens"]), (window, windows, count))
            self.assertEqual(count, len(self.ids))
            self.assertAlmostEqual(out["total_logprob"], total, delta=1e-6)
            self.assertAlmostEqual(out["perplexity"], math.exp(-total / count), delta=1e-6)

    def test_the_text_form_and_standard_input(self):
        done = latte("score", "tiny", "-f", self.file, "-c", 64)
        out = self.found("--context", 64)
        self.assertIn(f"{len(self.ids)} tokens in {out['windows']} windows of up to 64, {len(self.ids)} scored\n", done.stdout)
        self.assertTrue(done.stdout.endswith(f"perplexity {out['perplexity']:.4f}\n"), done.stdout)
        piped = latte("score", "tiny", "-f", "-", "-c", 64, stdin=pathlib.Path(self.file).read_text())
        self.assertEqual(piped.stdout, done.stdout)

    def test_refusals(self):
        empty = f"{self.folder.name}/empty"
        pathlib.Path(empty).write_text("")
        for flags, words in [(("--text-file", empty), "found nothing"), (("-f", self.file, "-p", "x"), "found 2"),
                             (("-f", self.file, "--context", 1), "expected 2 to"), (("-f", self.file, "--context", 10 ** 9), "expected 2 to"),
                             (("-p", "x", "--context", 8), "--context is the window of --text-file"),
                             (("-f", self.file, "--logits", f"{self.folder.name}/l.npy"), "--logits"),
                             (("--text-file", f"{self.folder.name}/none"), "none")]:
            done = latte("score", "tiny", *flags)
            self.assertEqual(done.returncode, 2, flags)
            self.assertIn(words, done.stderr)
        self.assertFalse(pathlib.Path(self.folder.name, "l.npy").exists())


class Tokenize(unittest.TestCase):
    def test_round_trip(self):
        text = "Once upon a time, 42 foxes naïvely sang 日本 🙂.\n"
        done = json.loads(latte("tokenize", "--text", text, "--json").stdout)
        ids = ",".join(map(str, done["ids"]))
        self.assertEqual(json.loads(latte("tokenize", "--decode", ids, "--json").stdout)["text"], text)
        self.assertEqual(done["count"], len(done["ids"]))
        self.assertEqual(latte("tokenize", stdin=text).stdout.strip(), ids)

    def test_json_loses_no_byte(self):
        text = "héllo 🙂"
        tokens = json.loads(latte("tokenize", "--text", text, "--json").stdout)["tokens"]
        parts = [re.sub(r"\\x(..)", lambda m: chr(int(m[1], 16)), t[6:]).encode("latin-1") if t.startswith("bytes:")
                 else t.encode() for t in tokens]
        self.assertEqual(b"".join(parts).decode(), text)

    def test_special_text_is_plain_unless_asked(self):
        text = "<｜begin▁of▁sentence｜>"
        plain = json.loads(latte("tokenize", "--text", text, "--json").stdout)["ids"]
        special = json.loads(latte("tokenize", "--text", text, "--json", "--special").stdout)["ids"]
        self.assertGreater(len(plain), 1)
        self.assertEqual(special, [0])


class Inspect(unittest.TestCase):
    def test_the_cache_is_that_of_a_run(self):
        out = json.loads(latte("inspect", "tiny", "--json").stdout)
        stats = json.loads(latte("run", "-p", "Once", "-n", 1, "--json").stdout)["stats"]
        for key in ("cache_bytes_per_token", "decompressed_bytes_per_token"):
            self.assertEqual(out[key], stats[key])
        text = latte("inspect", "tiny").stdout
        self.assertIn(f"{stats['cache_bytes_per_token']} B per token", text)

    def test_published_configs_by_config_alone(self):
        expected = {"v2_lite": (15.706e9, 31104), "v2": (235.74e9, 69120), "v3": (671.03e9, 70272),
                    "moonlight": (15.96e9, 31104)}
        for name, (params, cache) in expected.items():
            done = latte("inspect", ROOT / f"tests/data/configs/{name}.json", "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            out = json.loads(done.stdout)
            self.assertAlmostEqual(out["total_params"] / params, 1, delta=1e-3, msg=name)
            self.assertEqual(out["mla_bytes_per_token"], cache)

    def test_folder_and_kernels(self):
        out = json.loads(latte("inspect", "tiny", "--json", "--kernels").stdout)
        self.assertEqual(out["architecture"], "DeepseekV3ForCausalLM")
        names = {row["name"]: row for row in out["kernels"]}
        self.assertIn("ref.mla_decode", names)
        chosen = [row["op"] for row in out["kernels"] if row["chosen"]]
        self.assertEqual(len(chosen), len(set(chosen)))
        forced = json.loads(latte("inspect", "tiny", "--json", "--kernels", env={"LATTE_KERNEL": "ref.gemm"}).stdout)
        self.assertTrue(next(r for r in forced["kernels"] if r["name"] == "ref.gemm")["chosen"])


class BadInput(unittest.TestCase):
    """Expects exit code 2 and one line that says what is wrong, where, and what to do; never a signal."""

    def refused(self, *args, words=(), code=2, **kwargs):
        done = latte(*args, **kwargs)
        self.assertEqual(done.returncode, code, (args, done.stderr))
        self.assertEqual(done.stdout, "")
        for word in words:
            self.assertIn(word, done.stderr)

    def test_usage(self):
        self.refused("frobnicate")
        self.refused("run", "--no-such-flag")
        self.refused("run", "-p", "x", "-n", "0", words=("-n",))
        self.refused("run", "-p", "x", "--temperature", "-1", words=("temperature", "[0, 100]", "-1"))
        self.refused("run", "-p", "x", "--temperature", "nan", words=("temperature",))
        self.refused("run", "-p", "x", "--repetition-penalty", "0", words=("--repetition-penalty", "(0, 100]", "0"))
        self.refused("run", "-p", "x", "--presence-penalty", "2.5", words=("--presence-penalty", "[-2, 2]", "2.5"))
        self.refused("run", "-p", "x", "--frequency-penalty", "nan", words=("--frequency-penalty", "nan"))
        self.refused("run", "-p", "x", "--logit-bias", "5=1", words=("--logit-bias", "'5=1'"))
        self.refused("run", "-p", "x", "--logit-bias", "5:1,:", words=("--logit-bias", "':'"))
        self.refused("run", "-p", "x", "--logit-bias", "5:101", words=("--logit-bias", "[-100, 100]", "101"))
        self.refused("run", "-p", "x", "--logit-bias", "999999:1", words=("--logit-bias", "999999", "vocabulary"))
        self.refused("run", "-p", "x", "--stop", "", words=("--stop", "1 to 256 bytes"))
        self.refused("run", "-p", "x", "-n", "4", "--min-tokens", "5", words=("--min-tokens", "= 4]"))
        self.refused("run", "-p", "x", "--attention", "mha", words=("absorbed", "'mha'"))
        self.refused("run", "-p", "x", "--dtype", "int4", words=("bf16", "'int4'"))
        self.refused("run", "-p", "x", "--page-tokens", "48", words=("power of two",))
        self.refused("run", "-p", "x", "--threads", "-3", words=("threads",))
        self.refused("run", "-p", "x", "--max-batch-tokens", "-1", words=("--max-batch-tokens: expected a number in [0,",))
        self.refused("eval", "--prefill-workspace-tokens", "0", words=("prefill-workspace-tokens: expected",))
        self.refused("run", "-p", "x", "--prompt-file", "y", words=("once",))
        self.refused("score", "tiny", words=("--ids",))
        self.refused("score", "tiny", "--ids", "1,x", words=("'x'",))
        self.refused("score", "tiny", "--ids", "99999999999", words=("99999999999",))
        self.refused("score", "tiny", "--ids", "5,999999", words=("999999", "vocabulary"))
        self.refused("score", "tiny", "--ids", "", words=("empty",))
        self.refused("tokenize", "--decode", "-7", words=("-7",))

    def test_missing_model(self):
        self.refused("run", "no/such", "-p", "x", words=("no/such", "Hugging Face cache"))
        self.refused("inspect", "/no/such/folder", words=("/no/such/folder",))
        with tempfile.TemporaryDirectory() as empty:
            self.refused("run", empty, "-p", "x", words=("config.json", "*.safetensors"))

    def test_a_file_that_is_no_model(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text, words in (("m.gguf", "GGUF", ("version", "download it again")), ("model.safetensors", "x", ("give the folder",)),
                                      ("notes.txt", "x", ("config.json", "another file")), ("empty.gguf", "", ("an empty file",))):
                file = pathlib.Path(folder) / name
                file.write_text(text)
                for command in (("run", file, "-p", "x"), ("inspect", file), ("tokenize", file, "--text", "x")):
                    self.refused(*command, words=(name, *words))

    def test_the_messages_of_the_faq_are_messages(self):
        sources = (path.read_text() for folder in ("src", "lab", "apps", "tools") for path in (ROOT / folder).rglob("*") if path.suffix in (".cc", ".sh"))
        text = re.sub(r'"\s*"', "", "\n".join(sources)) + os.strerror(errno.EADDRINUSE)
        page = (ROOT / "docs" / "faq.md").read_text()
        rows = re.findall(r"^\| (`.*?) \|", page, re.M)
        quoted = [name for row in rows for name in re.findall(r"`(.*?)`", row)]
        quoted += re.findall(r"^\*\*`(.*?)`", page, re.M)
        self.assertGreater(len(quoted), 14)
        values = r"…|LATTE_ISA=|config.json: |127.0.0.1:8000: "
        for name in quoted:
            for part in re.split(values, name):
                self.assertIn(part.strip(), text, name)

    def test_environment(self):
        self.refused("run", "-p", "x", env={"LATTE_ISA": "sse"}, words=("LATTE_ISA", "avx2"))
        self.refused("run", "-p", "x", env={"LATTE_KERNEL": "no.such"}, words=("no.such", "inspect --kernels"))

    def test_a_mistyped_variable_is_said(self):
        env = {"LATTE_THREAD": "3", "LATTE_SERVICE_HOST": "10.0.0.1", "LATTE_TEST_THREADS": "1", "LATTE_THREADS": "1"}
        done = latte("run", "-p", "x", "-n", 1, "--seed", 1, env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "latte: note: the variable LATTE_THREAD has no meaning; did you mean LATTE_THREADS?\n")

    def test_documented_variables_are_known(self):
        page = (pathlib.Path(__file__).parents[2] / "docs" / "options.md").read_text()
        names = set(re.findall(r"^\|.*?`(LATTE_\w+)`", page, re.M)) - {"LATTE_ISA", "LATTE_KERNEL"}
        self.assertGreater(len(names), 40)
        done = latte("list", env=dict.fromkeys(names, ""))
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_closed_pipe_is_an_exit_code_not_a_signal_and_no_message(self):
        for command in (("run", "-p", "x", "-n", "200", "--ignore-eos", "--seed", "1"), ("inspect", "--commands")):
            process = subprocess.Popen([LATTE, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            process.stdout.close()
            err = process.stderr.read()
            process.stderr.close()
            self.assertEqual((process.wait(timeout=60), err), (1, b""), command)
        if os.path.exists("/dev/full"):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([LATTE, "list"], stdout=full, stderr=subprocess.PIPE)
            self.assertEqual((done.returncode, done.stderr), (1, b"latte: unavailable: standard output: cannot be written\n"))

    def test_broken_checkpoints(self):
        def broken(change):
            folder = tempfile.mkdtemp()
            self.addCleanup(shutil.rmtree, folder)
            copy = pathlib.Path(folder) / "model"
            shutil.copytree(FIXTURE, copy)
            change(copy)
            return copy

        def edit(key, value):
            def change(copy):
                config = json.loads((copy / "config.json").read_text())
                config[key] = value
                (copy / "config.json").write_text(json.dumps(config))
            return change

        def truncate(copy):
            file = copy / "model.safetensors"
            file.write_bytes(file.read_bytes()[:-100])

        self.refused("score", broken(edit("num_attention_heads", 0)), "--ids", "1", words=("num_attention_heads",))
        self.refused("score", broken(edit("vocab_size", 12345)), "--ids", "1",
                     words=("embed_tokens", "12345"))
        self.refused("score", broken(edit("model_type", "llama")), "--ids", "1", words=("llama", "deepseek_v3"))
        self.refused("score", broken(truncate), "--ids", "1", words=("model.safetensors",))
        self.refused("score", broken(lambda c: (c / "model.safetensors").unlink()), "--ids", "1",
                     words=("model.safetensors",))
        self.refused("score", broken(lambda c: (c / "config.json").write_text("[" * 100000)), "--ids", "1",
                     words=("config.json", "64"))
        self.refused("run", FIXTURE, "-p", "x", words=("tokenizer.json",))


class Install(unittest.TestCase):
    def test_installed_program_finds_its_models(self):
        with tempfile.TemporaryDirectory() as folder:
            prefix = f"{folder}/prefix"
            install(pathlib.Path(LATTE).parent, prefix)
            for model in ("tiny", "tiny-sparse"):
                done = subprocess.run([f"{prefix}/bin/latte", "inspect", model], capture_output=True, text=True, cwd="/")
                self.assertEqual(done.returncode, 0, done.stderr)
            shutil.rmtree(f"{prefix}/share/latte/models")
            lost = subprocess.run([f"{prefix}/bin/latte", "inspect", "tiny"], capture_output=True, text=True, cwd="/")
            self.assertEqual(lost.returncode, 2)
            self.assertIn("share/latte/models/tiny", lost.stderr)


class Help(unittest.TestCase):
    def test_version_and_help(self):
        version = (ROOT / "VERSION").read_text().strip()
        self.assertRegex(latte("--version").stdout,
                         rf"\Alatte {re.escape(version)}\n(commit: [0-9a-f]{{12,}}( with changes)?\n)?compiler: .*\d.*\n"
                         r"instruction sets: ref, avx2.*; here: \w+\n"
                         r"NVIDIA GPUs: kernels (not )?in this build.*\n"
                         r"constrained answers: (xgrammar [0-9.]+|not in this build .*)\n"
                         r"web page: Markdown (by marked [0-9.]+|as it is .*), code .*, math .*\n\Z")
        text = latte("--help").stdout
        for name in ("run", "chat", "score", "inspect", "tokenize", "tiny"):
            self.assertIn(name, text)
        for name in ("run", "chat", "score", "inspect", "tokenize"):
            self.assertEqual(latte(name, "--help").returncode, 0)


if __name__ == "__main__":
    LATTE = sys.argv.pop(1)
    unittest.main()
