"""The limits of a container, and models larger than memory. Usage: limits_test.py LATTE_BINARY; needs only Python's standard
library. Tests of control groups create real groups if that is allowed, and otherwise report why not."""
import contextlib
import json
import os
import pathlib
import re
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest

LATTE = None
ROOT = pathlib.Path(__file__).resolve().parents[2]
TINY = ROOT / "models/tiny"
MIB = 1 << 20


def latte(*args, stdin="", group=None):
    return subprocess.run(command(args, group), input=stdin, text=True, capture_output=True, timeout=300)


def command(args, group):
    """The process joins its group before it executes latte, as in a container."""
    enter = ["sh", "-c", f"echo $$ > '{group}/cgroup.procs' && exec \"$0\" \"$@\""] if group else []
    return [*enter, LATTE, *map(str, args)]


def hierarchy(controller):
    """The folder where groups of a controller can be created -> (folder, version)"""
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        left, _, right = line.partition(" - ")
        mount, kind, options = left.split()[4], right.split()[0], right.split()[-1]
        if kind == "cgroup" and controller in options.split(","):
            return mount, 1
        if kind == "cgroup2" and controller in pathlib.Path(mount, "cgroup.controllers").read_text().split():
            return mount, 2
    raise unittest.SkipTest(f"no control groups of {controller} here")


def limits(controller, version, value):
    """-> {file: text}"""
    if controller == "memory":
        return {"memory.max" if version == 2 else "memory.limit_in_bytes": str(value)}
    quota = int(value * 100_000)
    if version == 2:
        return {"cpu.max": f"{quota} 100000"}
    return {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": str(quota)}


def remove(group):
    for _ in range(50):  # the kernel needs a moment to remove ended processes
        try:
            return os.rmdir(group)
        except OSError:
            time.sleep(0.1)


@contextlib.contextmanager
def group_of(controller, *values):
    """The innermost of nested groups, each with a limit; None: no limit of its own."""
    parent, version = hierarchy(controller)
    with contextlib.ExitStack() as stack:
        try:
            for depth, value in enumerate(values):
                if version == 2 and depth > 0:
                    pathlib.Path(parent, "cgroup.subtree_control").write_text(f"+{controller}")
                parent = f"{parent}/latte-test-{os.getpid()}-{depth}"
                os.mkdir(parent)
                stack.callback(remove, parent)
                for name, text in limits(controller, version, value).items() if value else ():
                    pathlib.Path(parent, name).write_text(text)
        except OSError as error:
            raise unittest.SkipTest(f"control groups cannot be made here: {error}")
        yield parent


class Processors(unittest.TestCase):
    def threads(self, group, *args):
        chat = subprocess.Popen(command(["chat", "tiny", "-n", 1, *args], group), stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            chat.stdin.write("hi\n")
            chat.stdin.flush()
            self.assertTrue(chat.stdout.readline())
            status = pathlib.Path(f"/proc/{chat.pid}/status").read_text()
        finally:
            chat.stdin.close()
            chat.stdout.close()
            chat.wait(60)
        return int(re.search(r"^Threads:\s*(\d+)", status, re.M)[1])

    def setUp(self):
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("one processor")

    def test_threads_are_no_more_than_the_quota_allows(self):
        for quota, threads in ((0.5, 1), (1, 1), (1.5, 2)):
            with self.subTest(quota), group_of("cpu", quota) as group:
                self.assertEqual(self.threads(group), threads)

    def test_a_quota_of_an_outer_group_counts(self):
        with group_of("cpu", 0.5, None) as group:
            self.assertEqual(self.threads(group), 1)

    def test_threads_that_are_asked_for_are_taken(self):
        with group_of("cpu", 0.5) as group:
            self.assertEqual(self.threads(group, "--threads", 2), 2)

    def test_without_a_quota_there_is_one_per_processor(self):
        with group_of("cpu", None) as group:
            within = len(os.sched_getaffinity(0))
            self.assertEqual(self.threads(group), within)


class Memory(unittest.TestCase):
    def test_inspect_knows_the_limit(self):
        with group_of("memory", 100 * MIB) as group:
            report = json.loads(latte("inspect", "tiny", "--json", group=group).stdout)
        self.assertEqual(report["machine_memory_bytes"], 100 * MIB)
        self.assertLess(report["available_memory_bytes"], 100 * MIB)

    def test_the_cache_fits_the_group_whether_or_not_weights_were_read_before(self):
        with tempfile.TemporaryDirectory() as folder, group_of("memory", 150 * MIB) as group:
            folder = pathlib.Path(folder)
            shutil.copytree(TINY, folder / "model")
            request = {"custom_id": "a", "method": "POST", "url": "/v1/completions",
                       "body": {"prompt": "Once", "max_tokens": 4}}
            (folder / "in.jsonl").write_text(json.dumps(request) + "\n")
            sizes = []
            for run in range(3):
                done = latte("batch", folder / "model", "-i", folder / "in.jsonl", "-o", folder / f"{run}.jsonl",
                             "--context", 512, "--max-sequences", 512, "--max-batch-tokens", 513, group=group)
                self.assertEqual(done.returncode, 0, done.stderr)
                sizes.append(int(re.search(r"tokens, (\d+) bytes; longest", done.stderr)[1]))
        self.assertLess(max(sizes), 150 * MIB)
        self.assertGreater(min(sizes), 50 * MIB)
        self.assertGreater(min(sizes), 0.9 * max(sizes))

    def test_a_model_larger_than_the_group_is_said_to_be(self):
        with tempfile.TemporaryDirectory() as folder, group_of("memory", 100 * MIB) as group:
            model = large_model(folder, 200 * MIB)
            self.assertIn("memory", latte("inspect", model, group=group).stderr)
            self.assertEqual(latte("inspect", model).stderr, "")


def large_model(folder, more_bytes):
    """The model tiny with an unused tensor: a hole in the file, which takes no disk space."""
    model = pathlib.Path(folder, "large")
    shutil.copytree(TINY, model)
    file = model / "model.safetensors"
    data = file.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    end = len(data) - 8 - size
    header["model.layers.0.self_attn.rotary_emb.inv_freq"] = {
        "dtype": "U8", "shape": [more_bytes], "data_offsets": [end, end + more_bytes]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    file.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + size:])
    os.truncate(file, 8 + len(text) + end + more_bytes)
    return model


class AddressSpace(unittest.TestCase):
    """`ulimit -v` counts mapped weights as soon as they are mapped: they need no second room."""

    LIMIT = 3 << 30

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.model = large_model(folder.name, 2 << 30)

    def limited(self, *args):
        limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (self.LIMIT, self.LIMIT))
        return subprocess.run(command(args, None), input="", text=True, capture_output=True, timeout=300,
                              preexec_fn=limit)

    def test_weights_that_fit_are_not_said_to_be_too_large(self):
        report = self.limited("inspect", self.model, "--json")
        self.assertEqual((report.returncode, report.stderr), (0, ""))
        available = json.loads(report.stdout)["available_memory_bytes"]
        self.assertLess(available, self.LIMIT)
        self.assertGreater(available, 2.2 * (1 << 30))
        done = self.limited("run", "-m", self.model, "-p", "Once", "-n", 2)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("warning", done.stderr)

    def test_the_plan_of_the_server_counts_them_once(self):
        done = self.limited("serve", self.model, "--dry-run", "--json", "--max-sequences", 1)
        self.assertEqual(done.returncode, 0, done.stderr)
        plan = json.loads(done.stdout)
        self.assertGreater(plan["available_bytes"], 2.2 * (1 << 30))
        self.assertEqual(plan["max_tokens"], plan["model_tokens"])

    def test_the_context_is_what_fits(self):
        config = self.model / "config.json"
        longer = json.loads(config.read_text()) | {"max_position_embeddings": 1 << 24}
        config.write_text(json.dumps(longer))
        done = self.limited("serve", self.model, "--dry-run", "--json")
        plan = json.loads(done.stdout)
        self.assertGreater(plan["max_tokens"], 1 << 18)
        self.assertLess(plan["left_bytes"], 0.15 * (1 << 30))
        here = json.loads(self.limited("inspect", self.model, "--json").stdout)["largest_context_here"]
        self.assertAlmostEqual(here / plan["max_tokens"], 1, delta=0.05)
        done = self.limited("chat", "-m", self.model, "-p", "Once", "-n", 2)
        self.assertEqual(done.returncode, 0, done.stderr)


class LargeModel(unittest.TestCase):
    """Twice the memory of this machine."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        total = re.search(r"^MemTotal:\s*(\d+) kB", pathlib.Path("/proc/meminfo").read_text(), re.M)
        try:
            self.model = large_model(folder.name, 2 * 1024 * int(total[1]))
        except OSError as error:
            self.skipTest(f"no file of that size here: {error}")

    def expect_warning(self, done):
        self.assertEqual(done.returncode, 0, done.stderr)
        warnings = [line for line in done.stderr.splitlines() if line.startswith("latte: warning: ")]
        self.assertEqual(len(warnings), 1, done.stderr)
        self.assertRegex(warnings[0], r"weights need \d+\.\d\d GB of memory, \d+\.\d\d [MG]B are available")
        self.assertIn("read from disk", warnings[0])
        self.assertIn("latte quantize", warnings[0])

    def test_commands_say_so_before_they_begin(self):
        for args in (["run", self.model, "-p", "Once", "-n", 2],
                     ["chat", self.model, "-n", 2],
                     ["score", self.model, "--ids", "5,6"],
                     ["eval", self.model, "--skills", "addition", "--count", 2],
                     ["inspect", self.model]):
            with self.subTest(args[0]):
                done = latte(*args, stdin="hi\n")
                self.expect_warning(done)
                self.assertTrue(done.stderr.startswith("latte: warning: "), done.stderr)

    def test_json_stays_clean(self):
        for args in (["run", self.model, "-p", "Once", "-n", 2, "--json"],
                     ["score", self.model, "--ids", "5,6", "--json"],
                     ["eval", self.model, "--skills", "addition", "--count", 2, "--json"],
                     ["inspect", self.model, "--json"]):
            with self.subTest(args[0]):
                done = latte(*args)
                self.expect_warning(done)
                json.loads(done.stdout)

    def test_nothing_is_said_of_a_model_that_fits_or_of_a_config_alone(self):
        for args in (["score", "tiny", "--ids", "5,6"], ["inspect", "tiny"], ["inspect", TINY / "config.json"]):
            self.assertEqual(latte(*args).stderr, "")

    def test_batch_refuses_it_with_both_sizes_unless_the_cache_has_a_size(self):
        request = {"custom_id": "a", "method": "POST", "url": "/v1/completions",
                   "body": {"prompt": "Once", "max_tokens": 2}}
        (self.folder / "in.jsonl").write_text(json.dumps(request) + "\n")
        batch = ["batch", self.model, "-i", self.folder / "in.jsonl", "-o", self.folder / "out.jsonl"]
        refused = latte(*batch)
        self.assertEqual(refused.returncode, 1)
        self.assertEqual(len(refused.stderr.splitlines()), 1, refused.stderr)
        self.assertRegex(refused.stderr, r"weights \(\d+\.\d\d GB\).* found \d+\.\d\d [MG]B available")
        for words in ("latte quantize", "--cache-bytes"):
            self.assertIn(words, refused.stderr)
        for words in ("give it more", "0 bytes"):
            self.assertNotIn(words, refused.stderr)
        self.expect_warning(latte(*batch, "--cache-bytes", "8M"))


if __name__ == "__main__":
    LATTE = sys.argv.pop(1)
    unittest.main()
