"""latte --device cuda from a user's view, over the emulated driver. Usage: cuda_test.py LATTE_BINARY DRIVER_LIBRARY; needs only Python's
standard library."""
import json
import math
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

LATTE = None
DRIVER = None
STORY = ["run", "tiny", "-p", "Once upon a time", "--seed", "0", "-n", "4", "--dtype", "f32"]


def latte(*args, driver=None, stdin="", **env):
    """Runs latte with a driver library (default: the emulated one) and variables."""
    variables = {k: v for k, v in os.environ.items() if not k.startswith("LATTE_")}
    return subprocess.run([LATTE, *map(str, args)], input=stdin, text=True, capture_output=True, timeout=300,
                          env={**variables, "LATTE_CUDA_DRIVER": driver or DRIVER, **env})


def write_wide_tiny(folder, latents):
    """The model `tiny` with wider latents, and zeros for weights."""
    tiny = pathlib.Path(__file__).resolve().parents[2] / "models/tiny"
    config = json.loads((tiny / "config.json").read_text())
    old, rope = config["kv_lora_rank"], config["qk_rope_head_dim"]
    (folder / "config.json").write_text(json.dumps({**config, "kv_lora_rank": latents}))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(tiny / name, folder)
    with open(tiny / "model.safetensors", "rb") as file:
        tensors = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    at = 0
    for name, tensor in tensors.items():
        if name == "__metadata__":
            continue
        if "kv_" in name:
            tensor["shape"] = [latents + {old: 0, old + rope: rope}[n] if n in (old, old + rope) else n for n in tensor["shape"]]
        end = at + math.prod(tensor["shape"]) * {"BF16": 2, "F32": 4}[tensor["dtype"]]
        tensor["data_offsets"], at = [at, end], end
    header = json.dumps(tensors).encode()
    header += b" " * (-len(header) % 8)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(at))


class SameAnswers(unittest.TestCase):
    def test_run_writes_what_the_cpu_writes(self):
        cpu = latte(*STORY)
        gpu = latte(*STORY, "--device", "cuda")
        self.assertEqual((gpu.returncode, gpu.stdout), (0, cpu.stdout), gpu.stderr)
        self.assertNotIn("emulated GPU:", gpu.stderr)

    def test_sampled_text_of_the_sparse_model(self):
        args = ["run", "tiny-sparse", "-p", "The dog", "--seed", "3", "--temperature", "0.8", "-n", "3", "--dtype", "f32"]
        cpu, gpu = latte(*args), latte(*args, "--device", "cuda:0")
        self.assertEqual((gpu.returncode, gpu.stdout), (0, cpu.stdout), gpu.stderr)

    def test_quantised_caches(self):
        for cache in ("int8", "fp8"):
            args = ["run", "tiny-sparse", "-p", "The dog", "--seed", "0", "-n", "2", "--dtype", "f32", "--cache-dtype", cache]
            cpu, gpu = latte(*args), latte(*args, "--device", "cuda")
            self.assertEqual((gpu.returncode, gpu.stdout), (0, cpu.stdout), gpu.stderr)

    def test_drafts(self):
        gpu = latte(*STORY, "--device", "cuda", "--draft-tokens", "2", "--stats")
        self.assertEqual((gpu.returncode, gpu.stdout), (0, latte(*STORY).stdout), gpu.stderr)
        self.assertRegex(gpu.stderr, r"drafted +[1-9]")

    def test_score(self):
        args = ["score", "tiny", "-p", "Once upon a time", "--json", "--dtype", "f32"]
        cpu, gpu = (json.loads(latte(*args, *more).stdout) for more in ([], ["--device", "cuda"]))
        self.assertEqual(cpu["tokens"], gpu["tokens"])
        self.assertAlmostEqual(cpu["total_logprob"], gpu["total_logprob"], delta=1e-3)

    def test_score_of_quantised_weights(self):
        goldens = pathlib.Path(__file__).parents[1] / "goldens"
        for name in ("fp8", "pack4_zeros", "gguf_v2"):
            args = ["score", goldens / name, "--ids", "1,2,3,4", "--json"]
            cpu, gpu = (json.loads(latte(*args, *more).stdout) for more in ([], ["--device", "cuda"]))
            self.assertAlmostEqual(cpu["total_logprob"], gpu["total_logprob"], delta=0.05, msg=name)

    def test_batch_by_the_variable(self):
        line = json.dumps({"custom_id": "a", "method": "POST", "url": "/v1/completions",
                           "body": {"model": "tiny", "prompt": "Once", "max_tokens": 2, "temperature": 0}})
        with tempfile.TemporaryDirectory() as folder:
            texts = []
            for device in ("cpu", "cuda"):
                lines, out = pathlib.Path(folder, "in.jsonl"), pathlib.Path(folder, device + ".jsonl")
                lines.write_text(line + "\n")
                done = latte("batch", "tiny", "-i", lines, "-o", out, "--dtype", "f32", LATTE_DEVICE=device)
                self.assertEqual(done.returncode, 0, done.stderr)
                texts.append(json.loads(out.read_text())["response"]["body"]["choices"][0]["text"])
            self.assertEqual(*texts)

    def test_order_of_lanes_blocks_and_copies_changes_nothing(self):
        args = [*STORY, "--cache-dtype", "q6", "--draft-tokens", "1"]
        texts = {latte(*args, "--device", "cuda", LATTE_EMULATOR_SEED=seed, LATTE_EMULATOR_LANDING=landing).stdout
                 for seed, landing in (("1", "late"), ("2", "early"), ("3", "random"))}
        self.assertEqual(texts, {latte(*args).stdout})


class Refusals(unittest.TestCase):
    def refused(self, code, *words, args=STORY, device="cuda", **env):
        out = latte(*args, "--device", device, **env)
        self.assertEqual(out.returncode, code, out.stderr)
        self.assertEqual(out.stdout, "")
        for word in words:
            self.assertIn(word, out.stderr)

    def test_no_driver(self):
        self.refused(1, "no NVIDIA driver", "version 580", "without --device cuda", driver="/nowhere/libcuda.so.1")

    def test_a_library_that_is_no_driver(self):
        self.refused(1, "is no CUDA driver", driver="libm.so.6")

    def test_a_driver_that_is_too_old(self):
        self.refused(1, "too old", "13.0", "12.8", LATTE_EMULATOR_VERSION="12080")

    def test_no_gpu(self):
        self.refused(1, "no NVIDIA GPU", LATTE_EMULATOR_GPUS="0")

    def test_a_gpu_that_is_not_there(self):
        self.refused(2, "no GPU 4", "0 to 0", device="cuda:4")

    def test_names_of_devices(self):
        for name in ("cuda:x", "cuda:", "cuda1", "gpu"):
            self.refused(2, "--device: expected cpu", name, device=name)

    def test_too_little_memory(self):
        longer = ["run", "tiny", "-p", "Once upon a time", "-n", "4000", "--dtype", "f32"]
        total = f"of {12 << 20} on cuda:0 'emulated GPU'"
        for megabytes, args, words in (("2", STORY, ("bytes for the weights", "found 2097152 free on cuda:0", "a smaller copy")),
                                       ("12", longer, ("pages of the cache", total, "--context")),
                                       ("12", STORY, ("one piece", total, "--max-batch-tokens"))):
            self.refused(1, "GPU memory: expected", "end other programs", *words, args=args, LATTE_EMULATOR_MEMORY_MB=megabytes)

    def test_memory_that_another_program_takes(self):
        self.refused(1, "GPU memory: expected", "the weights of", "found 0 free",
                     LATTE_EMULATOR_MEMORY_MB="64", LATTE_EMULATOR_TAKEN_LATER_MB="64")

    def test_kernels_that_are_missing(self):
        with tempfile.TemporaryDirectory() as folder:
            write_wide_tiny(pathlib.Path(folder), latents=1032)
            self.refused(2, "no kernel for sm_90", "C = 1032", "without --device cuda", args=["run", folder, *STORY[2:]])

    def test_a_kernel_that_fails(self):
        self.refused(1, "the GPU failed while", "unspecified launch failure", LATTE_EMULATOR_FAIL_LAUNCH="90")
        self.refused(1, "kernel ", "unspecified launch failure", LATTE_EMULATOR_FAIL_LAUNCH="90", LATTE_CUDA_BLOCKING="1")


class Memory(unittest.TestCase):
    """What inspect says is the GPU's, not the host's."""

    def test_inspect(self):
        done = latte("inspect", "tiny", "--device", "cuda", LATTE_EMULATOR_MEMORY_MB="200")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("of GPU memory with 4,096 tokens of context: weights 11.09 MB, steps ", done.stdout)
        self.assertIn("of 209.72 MB of GPU memory are free on cuda:0 'emulated GPU': room for about 4,096 tokens", done.stdout)
        bar = next(line for line in done.stdout.splitlines() if "steps" in line and "free" in line and "weights" in line and "with" not in line)
        self.assertLessEqual(len(bar), 100)
        self.assertIn("\u2588 weights", bar)

    def test_inspect_json(self):
        host, gpu = (json.loads(latte("inspect", "tiny", "--json", *more, LATTE_EMULATOR_MEMORY_MB="200").stdout)
                     for more in ([], ["--device", "cuda"]))
        self.assertIsNone(host["gpu"])
        self.assertEqual(gpu["machine_memory_bytes"], 200 << 20)
        self.assertEqual(gpu["available_memory_bytes"], 200 << 20)
        self.assertEqual(gpu["gpu"]["name"], "cuda:0 'emulated GPU'")
        self.assertAlmostEqual(gpu["gpu"]["weight_bytes"], gpu["weight_bytes"], delta=256 * 200)
        self.assertGreater(gpu["gpu"]["needs"][0]["step_bytes"], 0)

    def test_plan_of_a_server(self):
        done = latte("serve", "tiny", "--dry-run", "--json", "--device", "cuda", LATTE_EMULATOR_MEMORY_MB="200")
        self.assertEqual(done.returncode, 0, done.stderr)
        plan = json.loads(done.stdout)
        self.assertEqual((plan["gpu"], plan["available_bytes"]), ("cuda:0 'emulated GPU'", 200 << 20))
        self.assertLessEqual(plan["total_bytes"], plan["available_bytes"])
        text = latte("serve", "tiny", "--dry-run", "--device", "cuda", LATTE_EMULATOR_MEMORY_MB="200").stderr
        self.assertIn("GPU memory plan, cuda:0 'emulated GPU'", text)
        self.assertIn("of 209.72 MB available", text)

    def test_inspect_where_the_model_does_not_fit(self):
        text = latte("inspect", "tiny", "--device", "cuda", LATTE_EMULATOR_MEMORY_MB="10").stdout
        self.assertIn("the model does not fit", text)


class Program(unittest.TestCase):
    def test_links_no_library_of_nvidia(self):
        libraries = subprocess.run(["ldd", LATTE], text=True, capture_output=True, check=True).stdout
        for name in ("cuda", "nvidia", "cublas", "nccl"):
            self.assertNotIn(name, libraries)


if __name__ == "__main__":
    LATTE, DRIVER = sys.argv.pop(1), sys.argv.pop(1)
    unittest.main(verbosity=1)
