"""latte synth and latte quantize, read back by a reader of its own. Usage: quantize_test.py LATTE_BINARY; needs nothing
but Python's standard library.
"""
import array
import json
import math
import os
import pathlib
import re
import resource
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import unittest

LATTE = None
ROOT = pathlib.Path(__file__).resolve().parents[2]
TINY = ROOT / "models/tiny"
sys.path.insert(0, str(ROOT / "tools"))
import kl

STORY = json.loads((ROOT / "tests/data/story_cases.json").read_text())[0]["text"]
# A dense and an expert MLP with whole groups of 32, attention with latents, and what is never quantised.
MATRICES = ["model.layers.0.self_attn.q_a_proj", "model.layers.0.self_attn.kv_a_proj_with_mqa",
            "model.layers.0.self_attn.kv_b_proj", "model.layers.0.self_attn.o_proj", "model.layers.0.mlp.down_proj",
            "model.layers.1.mlp.experts.3.up_proj", "model.layers.4.mlp.experts.0.gate_proj"]
KEPT = ["model.embed_tokens", "lm_head", "model.norm", "model.layers.1.mlp.gate", "model.layers.4.eh_proj",
        "model.layers.0.input_layernorm"]


def latte(*args, **how):
    return subprocess.run([LATTE, *map(str, args)], capture_output=True, text=True, timeout=300, **how)


class Reader:
    """The tensors of a folder with one or several safetensors files."""

    def __init__(self, folder):
        self.entries = {}
        for path in sorted(pathlib.Path(folder).glob("*.safetensors")):
            blob = path.read_bytes()
            size = struct.unpack("<Q", blob[:8])[0]
            header = json.loads(blob[8:8 + size])
            header.pop("__metadata__", None)
            for name, entry in header.items():
                begin, end = entry["data_offsets"]
                self.entries[name] = (entry["dtype"], entry["shape"], blob[8 + size + begin:8 + size + end])

    def dtype(self, name):
        return self.entries[name][0]

    def values(self, name):
        """-> (shape, flat array of numbers)"""
        dtype, shape, raw = self.entries[name]
        if dtype == "BF16":
            return shape, array.array("f", b"".join(b"\0\0" + raw[i:i + 2] for i in range(0, len(raw), 2)))
        if dtype == "F8_E4M3":
            return shape, array.array("d", [E4M3[code] for code in raw])
        kind = {"F32": "f", "I8": "b", "I32": "i", "I64": "q"}[dtype]
        return shape, array.array(kind, raw)


def e4m3(code):
    exponent, mantissa = code >> 3 & 15, code & 7
    if code & 127 == 127:
        return math.nan
    size = mantissa * 2.0 ** -9 if exponent == 0 else (8 + mantissa) * 2.0 ** (exponent - 10)
    return -size if code & 128 else size


E4M3 = [e4m3(code) for code in range(256)]


def dequantise(reader, module, group):
    """-> (shape, values, allowed distance of each value from the original)"""
    packed = module + ".weight_packed" in reader.entries
    shape, codes = reader.values(module + (".weight_packed" if packed else ".weight"))
    f8 = not packed and reader.dtype(module + ".weight") == "F8_E4M3"
    scale_shape, scales = reader.values(module + (".weight_scale_inv" if f8 else ".weight_scale"))
    rows, columns = reader.values(module + ".weight_shape")[1] if packed else shape
    values, bound = [], []
    for i in range(rows):
        for j in range(columns):
            if f8:
                scale = scales[i // 128 * scale_shape[1] + j // 128]
                value = codes[i * columns + j] * scale
                allowed = max(abs(value) * 2 ** -4, scale * 2 ** -10)  # half a step of 3 bits, or of the subnormals
            elif packed:
                scale = scales[i * scale_shape[1] + j // group]
                value = ((codes[i * shape[1] + j // 8] >> 4 * (j % 8) & 15) - 8) * scale
                allowed = scale / 2
            else:
                scale = scales[i]
                value = codes[i * columns + j] * scale
                allowed = scale / 2
            values.append(value)
            bound.append(allowed * (1 + 1e-6))
    return [rows, columns], values, bound


def write_tensors(path, entries):
    """entries: {name: (dtype, shape, bytes)}, as Reader.entries has them."""
    header, at = {}, 0
    for name, (dtype, shape, raw) in entries.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(raw)]}
        at += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(raw for _, _, raw in entries.values()))


class Folder(unittest.TestCase):
    def setUp(self):
        self.parent = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.parent)

    def names(self):
        return sorted(path.name for path in self.parent.iterdir())


class Quantize(Folder):
    def test_an_fp8_matrix_that_is_kept_keeps_its_scales(self):
        fp8, out = self.parent / "fp8", self.parent / "int4"
        self.assertEqual(latte("quantize", TINY, fp8, "--to", "fp8").returncode, 0)
        entries, name = Reader(fp8).entries, "model.layers.4.eh_proj.weight"
        rows, columns = entries[name][1]
        scales = [math.ceil(rows / 128), math.ceil(columns / 128)]
        entries[name] = ("F8_E4M3", [rows, columns], bytes(i % 120 for i in range(rows * columns)))
        entries[name + "_scale_inv"] = ("F32", scales, struct.pack("<f", 0.25) * (scales[0] * scales[1]))
        write_tensors(fp8 / "model.safetensors", entries)

        done = latte("quantize", fp8, out, "--to", "int4", "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        made = Reader(out).entries
        for tensor in (name, name + "_scale_inv"):
            self.assertEqual(made.get(tensor), entries[tensor], tensor)

    def check(self, kind, group, matrices, *flags):
        out = self.parent / kind
        done = latte("quantize", TINY, out, "--to", kind, "--json", *flags)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        report = json.loads(done.stdout)
        source, made = Reader(TINY), Reader(out)
        for module in matrices:
            shape, original = source.values(module + ".weight")
            found_shape, values, bound = dequantise(made, module, group)
            self.assertEqual(found_shape, shape, module)
            error = size = 0.0
            for i, (a, b, allowed) in enumerate(zip(original, values, bound)):
                self.assertLessEqual(abs(a - b), allowed, (module, i))
                error, size = error + (a - b) ** 2, size + a * a
            self.assertLessEqual(math.sqrt(error / size), report["max_relative_error"] * (1 + 1e-6))
            self.assertGreater(math.sqrt(error / size), 0.2 * report["mean_relative_error"])
        for module in KEPT:
            self.assertEqual(made.entries[module + ".weight"], source.entries[module + ".weight"], module)
        for name, kept in (("before", source), ("after", made)):
            self.assertEqual(report["bytes_" + name], sum(len(entry[2]) for entry in kept.entries.values()))
        for file in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
            self.assertEqual((out / file).read_bytes(), (TINY / file).read_bytes())
        config = json.loads((out / "config.json").read_text())
        quant = config.pop("quantization_config")
        self.assertEqual(config, json.loads((TINY / "config.json").read_text()))
        self.assertEqual(self.names(), [kind])
        return report, made, quant

    def test_fp8_is_within_half_a_step(self):
        report, _, quant = self.check("fp8", 128, MATRICES)
        self.assertEqual(quant, {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8",
                                 "weight_block_size": [128, 128]})
        self.assertLess(report["max_relative_error"], 0.03)

    def test_int8_is_within_half_a_step(self):
        report, _, quant = self.check("int8", 0, MATRICES)
        self.assertEqual((quant["quant_method"], quant["format"]), ("compressed-tensors", "int-quantized"))
        scheme = quant["config_groups"]["group_0"]
        for key, value in {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": True}.items():
            self.assertEqual(scheme["weights"][key], value)
        self.assertTrue(scheme["input_activations"]["dynamic"])
        self.assertLess(report["max_relative_error"], 0.01)

    def test_int4_is_within_half_a_step_and_leaves_kv_b_alone(self):
        kv_b = "model.layers.0.self_attn.kv_b_proj"
        report, made, quant = self.check("int4", 32, [name for name in MATRICES if name != kv_b])
        self.assertEqual(made.entries[kv_b + ".weight"], Reader(TINY).entries[kv_b + ".weight"])
        self.assertEqual(quant["format"], "pack-quantized")
        self.assertIn("re:.*kv_b_proj$", quant["ignore"])
        scheme = quant["config_groups"]["group_0"]
        for key, value in {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32}.items():
            self.assertEqual(scheme["weights"][key], value)
        self.assertLess(report["max_relative_error"], 0.13)

    def test_errors_by_kind(self):
        kinds = ["attention", "dense MLP", "experts", "shared experts", "drafting layers"]
        for to in ("fp8", "int8", "int4"):
            report, made, _ = self.check(to, 32, [])
            self.assertEqual([row["kind"] for row in report["errors"]], kinds)
            self.assertEqual(sum(row["matrices"] for row in report["errors"]), report["quantized_matrices"])
            worst = max(report["errors"], key=lambda row: row["max_relative_error"])
            self.assertEqual(worst["max_relative_error"], report["max_relative_error"])
            self.assertEqual(worst["worst_matrix"], report["worst_matrix"])
            self.check_dense(report["errors"][1], made)
            shutil.rmtree(self.parent / to)
            text = latte("quantize", TINY, self.parent / to, "--to", to).stdout
            for row in report["errors"]:
                self.assertRegex(text, rf"(?m)^{row['kind']} +{row['matrices']} +{row['relative_error']:.5f} +"
                                       rf"{row['max_relative_error']:.5f}  {re.escape(row['worst_matrix'])}$")
            shutil.rmtree(self.parent / to)

    def check_dense(self, row, made):
        """The error of the three matrices of layer 0's MLP, from the written numbers."""
        source, errors, sizes = Reader(TINY), [], []
        for name in ("gate_proj", "up_proj", "down_proj"):
            module = f"model.layers.0.mlp.{name}"
            original = source.values(module + ".weight")[1]
            values = dequantise(made, module, 32)[1]
            errors.append(math.fsum((a - b) ** 2 for a, b in zip(original, values)))
            sizes.append(math.fsum(a * a for a in original))
        self.assertEqual(row["matrices"], 3)
        self.assertAlmostEqual(row["relative_error"], math.sqrt(sum(errors) / sum(sizes)), delta=1e-6)
        self.assertAlmostEqual(row["max_relative_error"], max(math.sqrt(e / s) for e, s in zip(errors, sizes)), delta=1e-6)

    def test_rows_that_do_not_divide_into_groups_are_kept_and_named(self):
        report, made, quant = self.check("int4", 128, ["model.layers.0.mlp.down_proj"], "--group", 128)
        for module in ("model.layers.0.self_attn.o_proj", "model.layers.1.mlp.experts.3.up_proj"):
            self.assertIn(module, report["not_divisible"])
            self.assertIn(module, quant["ignore"])
            self.assertEqual(made.dtype(module + ".weight"), "BF16")

    def test_threads_do_not_change_a_byte(self):
        for threads in (1, 3):
            latte("quantize", TINY, self.parent / str(threads), "--to", "int4", "--threads", threads)
        one, three = (self.parent / name / "model.safetensors" for name in "13")
        self.assertEqual(one.read_bytes(), three.read_bytes())

    def test_fp8_checkpoints_and_stacked_experts_become_int8(self):
        for name in ("fp8", "glm"):
            golden, out = ROOT / "tests/goldens" / name, self.parent / name
            done = latte("quantize", golden, out, "--to", "int8", "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            made = Reader(out)
            self.assertFalse([name for name in made.entries if name.endswith("_scale_inv") or "gate_up" in name])
            self.assertLess(json.loads(done.stdout)["max_relative_error"], 0.02)


class Logits(Folder):
    """KL of a text's tokens stays near what docs/formats/weights.md says: its mean below three times that, its median
    below twice. The mean is mostly that of a few tokens which go to other experts; the median tells a wrong scale."""

    def logits(self, model, *flags, attention="absorbed"):
        out = self.parent / "logits.npy"
        done = latte("score", model, "--text", STORY, "--attention", attention, "--logits", out, *flags)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return kl.read(out)

    def quantised(self, kind):
        out = self.parent / kind
        self.assertEqual(latte("quantize", TINY, out, "--to", kind).returncode, 0)
        return out

    def near(self, measured, found_logits, what):
        found, _ = kl.divergences(self.logits(TINY, "--dtype", "f32"), found_logits)
        self.assertEqual(len(found), 132)
        mean, median = measured
        for value, limit in ((statistics.fmean(found), 3 * mean), (statistics.median(found), 2 * median)):
            self.assertGreater(value, 0, what)
            self.assertLess(value, limit, what)

    def check(self, kind, exact, rounded):
        """Measured (mean, median) in f32 arithmetic, which leaves what weights do alone, and without flags."""
        out = self.quantised(kind)
        for measured, flags in ((exact, ("--dtype", "f32")), (rounded, ())):
            self.near(measured, self.logits(out, *flags), (kind, flags))

    def test_fp8_moves_them_as_little_as_measured(self):
        self.check("fp8", (1.5e-4, 3.1e-7), (1.5e-4, 2.8e-7))

    def test_int8_moves_them_as_little_as_measured(self):
        self.check("int8", (5.2e-5, 2.9e-8), (6.0e-5, 1.4e-7))

    def test_int4_moves_them_as_little_as_measured(self):
        self.check("int4", (1.5e-4, 4.1e-6), (1.9e-4, 5.0e-6))

    def test_int8_prompts_are_the_same_however_they_are_cut(self):
        out = self.quantised("int8")
        logits = self.logits(out, attention="latent")
        self.near((9.0e-5, 1.5e-7), logits, "latent")
        for flags in (("--max-batch-tokens", 16), ("--max-batch-tokens", 0, "--threads", 1)):
            same = logits == self.logits(out, *flags, attention="latent")
            self.assertTrue(same, flags)  # a listing of differences would take minutes


class Refusals(Folder):
    def refused(self, code, *args, words=(), **how):
        done = latte(*args, **how)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_bad_flags(self):
        out = self.parent / "out"
        self.refused(2, "quantize", TINY, out, "--to", "int3", words=("int3", "fp8, int8 or int4"))
        self.refused(2, "quantize", TINY, out, "--to", "int4", "--group", 48, words=("--group", "48"))
        self.refused(2, "synth", out, "--shape", "v9", words=("v9", "v2-lite"))
        self.refused(2, "synth", out, "--dtype", "int3", words=("int3",))
        self.refused(2, "synth", out, "--layers", 0, words=("num_hidden_layers",))
        self.assertEqual(self.names(), [])

    def test_folders_with_files_in_them_stay(self):
        notes = self.parent / "notes.txt"
        notes.write_text("keep")
        for command in (("quantize", TINY, self.parent, "--to", "int8"), ("synth", self.parent)):
            self.refused(2, *command, words=("--force",))
            self.refused(2, *command, "--force", words=("no config.json",))
        self.assertEqual(self.names(), ["notes.txt"])

    def test_force_replaces_a_checkpoint(self):
        out = self.parent / "out"
        for kind in ("int8", "fp8"):
            self.assertEqual(latte("quantize", TINY, out, "--to", kind, "--force").returncode, 0)
        self.assertEqual(Reader(out).dtype("model.layers.0.mlp.down_proj.weight"), "F8_E4M3")
        self.assertEqual(self.names(), ["out"])

    def test_weights_that_are_not_finite(self):
        folder = pathlib.Path(shutil.copytree(TINY, self.parent / "bad"))
        path = folder / "model.safetensors"
        blob = bytearray(path.read_bytes())
        size = struct.unpack("<Q", blob[:8])[0]
        entry = json.loads(blob[8:8 + size])["model.layers.2.mlp.experts.1.up_proj.weight"]
        at = 8 + size + entry["data_offsets"][0]
        blob[at:at + 2] = b"\x80\x7f"
        path.write_bytes(blob)
        self.refused(2, "quantize", folder, self.parent / "out", "--to", "int4",
                     words=("layers.2.mlp.experts.1.up_proj", "infinity"))
        self.assertEqual(self.names(), ["bad"])

    def test_a_full_disk_leaves_nothing_behind(self):
        def small_files():  # a stand-in for a disk: no file may pass 64 KiB
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))

        out = self.parent / "out"
        for command in (("quantize", TINY, out, "--to", "int8"), ("synth", out, "--layers", 1, "--vocab", 64)):
            self.refused(1, *command, words=("cannot be written", "File too large"), preexec_fn=small_files,
                         restore_signals=False)
            self.assertEqual(self.names(), [])

    def test_what_is_quantised_already(self):
        out = self.parent / "int8"
        latte("quantize", TINY, out, "--to", "int8")
        self.refused(2, "quantize", out, self.parent / "out", "--to", "int4", words=("quantised already",))


class Inspect(Folder):
    def test_formats_are_told_apart(self):
        original = latte("inspect", TINY).stdout
        self.assertRegex(original, r"(?m)^weights +11\.09 MB, BF16$")
        self.assertIn("the checkpoint's template", original)
        for to, text in (("int8", r"8 bits, compressed-tensors, a scale per row"), ("int4", "4 bits, compressed-tensors, a scale per 32 weights"),
                         ("fp8", "8 bits, fp8, a scale per 128 x 128 weights")):
            out = self.parent / to
            latte("quantize", TINY, out, "--to", to)
            done = latte("inspect", out)
            self.assertIn(text, done.stdout)
            self.assertRegex(done.stdout, r"(?m)^memory +\d+\.\d+ MB with 4,096 tokens")
            self.assertLess(max(map(len, done.stdout.splitlines())), 101)
            self.assertIn(text, json.loads(latte("inspect", out, "--json").stdout)["weight_format"])


class Synth(Folder):
    def test_inspect_counts_what_was_written(self):
        for dtype, size in (("bf16", 2), ("f32", 4)):
            out = self.parent / dtype
            done = latte("synth", out, "--layers", 2, "--experts", 6, "--vocab", 512, "--dtype", dtype, "--json")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            report = json.loads(done.stdout)
            found = json.loads(latte("inspect", out, "--json").stdout)
            self.assertEqual(found["total_params"], report["total_params"])
            self.assertEqual(found["weight_bytes"], report["total_params"] * size)
            self.assertEqual(found["layers"], 2)

    def test_its_tokenizer_serves_run_and_chat(self):
        out = self.parent / "small"
        latte("synth", out, "--layers", 2, "--experts", 6, "--vocab", 3000)
        told = json.loads(latte("run", out, "-p", "Hello, babe", "-n", 6, "--json").stdout)
        self.assertEqual(told["stats"]["prompt_tokens"], len(json.loads(latte(
            "tokenize", out, "--text", "Hello, babe", "--json").stdout)["ids"]))
        self.assertTrue(told["text"].strip())
        answer = latte("chat", out, "-n", 6, input="Hello\n")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertTrue(answer.stdout.strip())

    def test_quantised_formats_are_those_of_quantize(self):
        for dtype in ("fp8", "int8", "int4"):
            out = self.parent / dtype
            self.assertEqual(latte("synth", out, "--layers", 1, "--vocab", 64, "--dtype", dtype).returncode, 0)
            made = Reader(out)
            module = "model.layers.0.self_attn.kv_a_proj_with_mqa"
            shape, values, _ = dequantise(made, module, 32)
            self.assertEqual(shape, [576, 2048])
            mean = math.fsum(values) / len(values)
            deviation = math.sqrt(math.fsum(v * v for v in values) / len(values))
            self.assertAlmostEqual(mean, 0, delta=1e-4)
            self.assertAlmostEqual(deviation, 0.02, delta=1e-3)


if __name__ == "__main__":
    LATTE = sys.argv.pop(1)
    unittest.main()
