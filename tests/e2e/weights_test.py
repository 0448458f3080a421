"""Weights that go bad: a file truncated while it is mapped, and values that are not finite. Usage: weights_test.py
LATTE_BINARY; needs nothing but Python's standard library.
"""
import ctypes
import fcntl
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

LATTE = None
ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests/goldens/v3_noaux"


class Folder(unittest.TestCase):
    def copy(self, source):
        parent = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, parent)
        return pathlib.Path(shutil.copytree(source, pathlib.Path(parent) / "model"))


class Opens:
    """Counts how often each file of a folder is opened while the block runs (inotify(7))."""
    OPEN, CLOSE_NOWRITE, NONBLOCK = 0x20, 0x10, 0o4000

    def __init__(self, folder):
        self.folder, self.counts = folder, {}

    def __enter__(self):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(self.NONBLOCK)
        # With closes too: equal events in a row are merged into one.
        if self.fd < 0 or libc.inotify_add_watch(self.fd, str(self.folder).encode(), self.OPEN | self.CLOSE_NOWRITE) < 0:
            raise OSError(ctypes.get_errno(), "inotify")
        return self.counts

    def __exit__(self, *_):
        data, at = os.read(self.fd, 1 << 20), 0
        os.close(self.fd)
        while at < len(data):
            _, mask, _, size = struct.unpack_from("iIII", data, at)
            name = data[at + 16:at + 16 + size].rstrip(b"\0").decode()
            at += 16 + size
            if mask & self.OPEN and name:
                self.counts[name] = self.counts.get(name, 0) + 1


class SmallFiles(Folder):
    def test_each_is_read_once_by_a_command(self):
        folder = self.copy(ROOT / "models/tiny")
        requests = folder.parent / "in.jsonl"
        requests.write_text(json.dumps({"custom_id": "a", "method": "POST", "url": "/v1/completions",
                                        "body": {"prompt": "Once", "max_tokens": 2}}) + "\n")
        commands = {"run": ["-p", "Once", "-n", 2], "chat": ["-n", 2], "score": ["--text", "Once"],
                    "batch": ["-i", requests, "-o", folder.parent / "out.jsonl"],
                    "eval": ["--count", 1, "--skills", "addition"], "inspect": ["--kernels", "--path"]}
        for command, flags in commands.items():
            with self.subTest(command):
                with Opens(folder) as counts:
                    done = subprocess.run([LATTE, command, folder, *map(str, flags)], input="hello\n", text=True,
                                          capture_output=True, timeout=300)
                self.assertEqual(done.returncode, 0, done.stderr)
                small = {name: count for name, count in counts.items() if name.startswith(("config", "tokenizer", "chat"))}
                self.assertIn("config.json", small)
                self.assertEqual({name: count for name, count in small.items() if count != 1}, {})


class Truncated(Folder):
    def test_F33_a_file_truncated_while_it_is_mapped_is_named(self):
        folder = self.copy(ROOT / "models/tiny")
        weights = folder / "model.safetensors"
        process = subprocess.Popen([LATTE, "run", folder, "-n", "4"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        # The pipe holds one page: writing more returns only once the program reads its prompt, which it does after the
        # model has been opened.
        fcntl.fcntl(process.stdin.fileno(), fcntl.F_SETPIPE_SZ, 4096)
        prompt = b"Once upon a time " * 500
        written = 0
        while written < 4097:
            written += os.write(process.stdin.fileno(), prompt[:8192 - written])
        self.assertIn(str(weights), pathlib.Path(f"/proc/{process.pid}/maps").read_text())
        os.truncate(weights, 4096)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, err)
        for part in ("latte: unavailable: ", str(weights), "11121360 bytes", "truncated"):
            self.assertIn(part, err.decode())
        self.assertEqual(err.count(b"\n"), 1)
        # A folder whose file is short from the start is refused as any other.
        done = subprocess.run([LATTE, "run", folder, "-p", "x"], capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"model.safetensors", done.stderr)


class NotFinite(Folder):
    @staticmethod
    def poison(folder, tensor, element, value):
        path = folder / "model.safetensors"
        blob = bytearray(path.read_bytes())
        size = struct.unpack("<Q", blob[:8])[0]
        entry = json.loads(blob[8:8 + size])[tensor]
        at = 8 + size + entry["data_offsets"][0] + 4 * element
        blob[at:at + 4] = struct.pack("<f", value)
        path.write_bytes(blob)

    def run_latte(self, *args):
        return subprocess.run([LATTE, *map(str, args)], capture_output=True, text=True, timeout=60)

    def test_F35_check_weights_names_tensor_and_index(self):
        folder = self.copy(GOLDEN)
        commands = (("score", folder, "--ids", "1,2"), ("inspect", folder))
        for command in commands:
            self.assertEqual(self.run_latte(*command, "--check-weights").returncode, 0)
        self.poison(folder, "model.layers.1.mlp.experts.3.up_proj.weight", 56 + 7, float("nan"))
        for command in commands:
            done = self.run_latte(*command, "--check-weights")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual(done.stdout, "")
            for part in (folder / "model.safetensors", "'model.layers.1.mlp.experts.3.up_proj.weight'", "[1, 7]"):
                self.assertIn(str(part), done.stderr)
        self.assertEqual(self.run_latte("inspect", folder).returncode, 0)  # reads no weights unless asked to

    def test_F35_check_weights_before_a_text_is_written(self):
        folder = self.copy(ROOT / "models/tiny")
        self.assertEqual(self.run_latte("run", folder, "-p", "x", "-n", "1", "--check-weights").returncode, 0)
        self.poison(folder, "model.norm.weight", 0, float("inf"))  # BF16: the upper half is an infinity
        done = self.run_latte("run", folder, "-p", "x", "-n", "1", "--check-weights")
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertIn("'model.norm.weight'", done.stderr)
        self.assertIn("[1]", done.stderr)
        # Without the flag the logits tell, and the message says how to find out more.
        done = self.run_latte("run", folder, "-p", "x", "-n", "1")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("corrupt: numerical error", done.stderr)
        self.assertIn("--check-weights", done.stderr)

    def test_f16_arithmetic_that_overflows_says_what_to_use_instead(self):
        folder = self.copy(GOLDEN)
        command = ("score", folder, "--ids", "1,2,3,4", "--dtype")
        self.assertEqual(self.run_latte(*command, "f16").returncode, 0)
        for element in range(56):  # activations of some 60,000 in layer 0: several pass 65,504
            self.poison(folder, "model.layers.0.post_attention_layernorm.weight", element, 6e4)
        for dtype in ("f32", "bf16"):
            self.assertEqual(self.run_latte(*command, dtype).returncode, 0, dtype)
        done = self.run_latte(*command, "f16")
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        for part in ("latte: unsupported: f16 arithmetic", "65504", "use --dtype bf16 or f32"):
            self.assertIn(part, done.stderr)

    def test_F35_a_bad_value_in_any_tensor_ends_in_an_error_and_never_in_a_crash(self):
        size = struct.unpack("<Q", (GOLDEN / "model.safetensors").read_bytes()[:8])[0]
        header = json.loads((GOLDEN / "model.safetensors").read_bytes()[8:8 + size])
        # Every token passes through all of these; a single expert's weights may never be used.
        names = [n for n in header if n.startswith("model.layers.1.") and ".experts." not in n] + ["model.norm.weight"]
        self.assertGreater(len(names), 10)
        for name in names:
            for value, mode in ((float("nan"), "auto"), (float("-inf"), "absorbed"), (float("nan"), "decompressed")):
                folder = self.copy(GOLDEN)
                self.poison(folder, name, 0, value)
                done = self.run_latte("score", folder, "--ids", "1,2,3,4,5,6,7,8", "--attention", mode)
                # A router that never chooses the expert of an infinitely bad score goes on as it should.
                allowed = (0, 2) if "gate" in name else (2,)
                self.assertIn(done.returncode, allowed, (name, value, mode, done.stderr))
                if done.returncode == 2:
                    self.assertIn("--check-weights", done.stderr)
                shutil.rmtree(folder)


if __name__ == "__main__":
    LATTE = sys.argv.pop(1)
    unittest.main()
