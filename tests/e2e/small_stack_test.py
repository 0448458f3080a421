"""Every command under `ulimit -s 256`, which main threads and workers get then. Usage: small_stack_test.py LATTE_BINARY;
needs nothing but Python's standard library.
"""
import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import unittest

LATTE = None
TINY = pathlib.Path(__file__).resolve().parents[2] / "models/tiny"
STACK = 256 << 10


def small_stack():
    resource.setrlimit(resource.RLIMIT_STACK, (STACK, STACK))


def latte(*args, **how):
    return subprocess.run([LATTE, *map(str, args)], capture_output=True, text=True, timeout=300,
                          preexec_fn=small_stack, env={"PATH": "/usr/bin:/bin"}, **how)


class SmallStack(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return pathlib.Path(self.folder.name) / name

    def runs(self, *args, **how):
        done = latte(*args, **how)
        self.assertEqual(done.returncode, 0, (args[0], args[-2:], done.stderr[-300:]))
        return done.stdout

    def test_run_of_every_path(self):
        prompt = "Once upon a time " * 40
        for attention in ("auto", "decompressed", "latent", "absorbed"):
            for more in (["--dtype", "f32"], ["--dtype", "bf16"], ["--threads", 1]):
                self.runs("run", TINY, "-p", prompt, "-n", 4, "--attention", attention, *more)
        for cache in ("fp8", "fp8-dense", "int8", "q6"):
            self.runs("run", TINY, "-p", prompt, "-n", 4, "--cache-dtype", cache)

    def test_quantised_weights(self):
        for number, to in enumerate((["int4"], ["int8"], ["fp8"])):
            out = self.path(f"q{number}")
            self.runs("quantize", TINY, out, "--to", *to)
            for more in ([], ["--act", "bf16"], ["--dtype", "f32"]):
                self.runs("run", out, "-p", "Once upon a time " * 40, "-n", 4, *more)
            self.runs("inspect", out)

    def test_chat(self):
        self.assertIn("\n", self.runs("chat", TINY, "-n", 8, input="Tell me a story.\nAnother one.\n"))

    def test_score(self):
        self.runs("score", TINY, "--text", "Once upon a time " * 60, "--logits", self.path("logits.npy"))

    def test_batch(self):
        requests = [{"custom_id": str(i), "method": "POST", "url": "/v1/chat/completions",
                     "body": {"messages": [{"role": "user", "content": "Hi " * 50 * i}], "max_tokens": 6}}
                    for i in range(5)]
        source = self.path("in.jsonl")
        source.write_text("\n".join(map(json.dumps, requests)))
        out = self.path("out.jsonl")
        self.runs("batch", TINY, "-i", source, "-o", out, "--cache-bytes", "64M")
        self.assertEqual(len(out.read_text().splitlines()), 5)

    def test_tokenize_inspect_and_eval(self):
        self.runs("tokenize", TINY, "--text", "Once upon a time " * 1000)
        self.runs("inspect", TINY)
        self.runs("inspect", TINY, "--kernels")
        self.runs("eval", TINY, "--count", 2)


def sanitized():
    """Frames of such a binary are larger."""
    blob = pathlib.Path(LATTE).read_bytes()
    return b"__asan_init" in blob or b"__tsan_init" in blob


if __name__ == "__main__":
    LATTE = str(pathlib.Path(sys.argv.pop(1)).resolve())
    if sanitized():
        print("skipped: the binary has a sanitizer")
    else:
        unittest.main()
