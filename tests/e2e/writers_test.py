"""What latte does to files and folders that are there: it replaces its own as a whole, and nothing else. Usage:
writers_test.py LATTE_BINARY; needs nothing but Python's standard library.
"""
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

LATTE = None
ROOT = pathlib.Path(__file__).resolve().parents[2]
TINY = ROOT / "models/tiny"
SYNTH = ("--layers", 3, "--vocab", 64, "--threads", 1)  # some 2.4 GB: there is time to interrupt it
MARKER = "latte: an unfinished copy; files of the one it replaces:\n"


def signals_as_usual():
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGXFSZ):
        signal.signal(each, signal.SIG_DFL)


def latte(*args, **how):
    return subprocess.run([LATTE, *map(str, args)], capture_output=True, text=True, timeout=300, **how)


def tree(folder):
    """-> {path below `folder`: bytes, or where a link leads}"""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        found[name] = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
    return found


class Folder(unittest.TestCase):
    def setUp(self):
        self.parent = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.parent, ignore_errors=True)
        self.model = self.parent / "model"
        shutil.copytree(TINY, self.model)

    def names(self):
        return sorted(path.name for path in self.parent.iterdir())

    def refused(self, *args, words=(), code=2, **how):
        """The command fails with one line, and not a byte changes."""
        before = tree(self.parent)
        done = latte(*args, **how)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (code, "", 1), (args, done.stderr))
        for word in words:
            self.assertIn(str(word), done.stderr)
        self.assertEqual(tree(self.parent), before, args)

    def start(self, *args, until, ignore=()):
        """Starts a command and waits until `until` is there."""
        def prepare():
            signals_as_usual()
            for each in ignore:
                signal.signal(each, signal.SIG_IGN)
        process = subprocess.Popen([LATTE, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   preexec_fn=prepare)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        end = time.monotonic() + 60
        while not until():
            self.assertLess(time.monotonic(), end)
            self.assertIsNone(process.poll(), "it ended before it could be interrupted")
            time.sleep(0.002)
        return process


class Sources(Folder):
    def quantize(self, out, *flags, source=None):
        return ("quantize", source or self.model, out, "--to", "int8", *flags)

    def test_a_source_is_never_replaced(self):
        (self.parent / "link").symlink_to("model")
        (self.model / "sub").mkdir()
        os.symlink("model/sub", self.parent / "deep")
        for out in ("model", "model/", "model/.", "link", "link/", "model/sub", "model/new", "link/new", "deep", "."):
            for flags in ((), ("--force",)):
                self.refused(*self.quantize(self.parent / out, *flags), words=("source", "model"))
        self.refused(*self.quantize("../model", "--force"), cwd=self.model, words=("the source itself",))
        self.refused(*self.quantize(self.model, "--force", source=self.parent / "link"), words=("the source itself",))

    def test_a_source_of_links_keeps_the_files_they_lead_to(self):
        copy = self.parent / "copy"
        self.assertEqual(latte("synth", copy, "--layers", 1, "--vocab", 64, "--dtype", "int4").returncode, 0)
        shutil.move(self.model / "model.safetensors", copy / "model.safetensors")
        (self.model / "model.safetensors").symlink_to(copy / "model.safetensors")
        self.refused(*self.quantize(copy, "--force"), words=(copy, "model.safetensors", "link"))

    def test_hard_links_to_a_source_keep_its_bytes(self):
        copy = self.parent / "copy"
        shutil.copytree(self.model, copy, copy_function=os.link)
        before = tree(self.model)
        done = latte(*self.quantize(copy, "--force"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(tree(self.model), before)
        self.assertEqual(self.names(), ["copy", "model"])

    def test_names_that_are_no_folder(self):
        (self.parent / "file").write_text("mine")
        (self.parent / "dangling").symlink_to("nowhere")
        for command in (lambda out: self.quantize(out, "--force"), lambda out: ("synth", out, "--force")):
            for out, word in (("", "none"), ("/", "name another"), (".", "name another"), ("..", "name another"), ("file", "found a file"),
                              ("dangling", "leads nowhere"), ("no/where", "expected a folder"), ("file/x", "folder")):
                self.refused(*command(out), cwd=self.parent, words=(word,))


class Force(Folder):
    def setUp(self):
        super().setUp()
        self.out = self.parent / "out"
        self.assertEqual(latte("quantize", self.model, self.out, "--to", "int8").returncode, 0)

    def quantize(self, *flags, out=None):
        return ("quantize", self.model, out or self.out, "--to", "fp8", "--force", *flags)

    def test_what_no_checkpoint_has_is_named_and_stays(self):
        for name in ("notes.txt", "adapter/adapter_model.bin", "adapter_model.safetensors", ".git/config", "README.md",
                     "tokenizer.model/x", "model.safetensors.bak", "training.json"):
            with self.subTest(name):
                path = self.out / name
                path.parent.mkdir(exist_ok=True)
                path.write_text("mine")
                self.refused(*self.quantize(), words=(self.out, f"'{name.split('/')[0]}'"))
                path.unlink()
                if path.parent != self.out:
                    path.parent.rmdir()
        (self.out / "training.json").write_bytes((self.model / "training.json").read_bytes())
        (self.out / "link").symlink_to(self.model)
        self.refused(*self.quantize(), words=("'link'",))
        self.refused("synth", self.out, "--force", words=("story_grammar.json",))

    def test_a_copy_is_replaced_as_a_whole_through_links_too(self):
        (self.parent / "link").symlink_to("out")
        self.out.chmod(0o750)
        done = latte(*self.quantize("--json", out=self.parent / "link"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        config = json.loads((self.out / "config.json").read_text())
        self.assertEqual(config["quantization_config"]["quant_method"], "fp8")
        self.assertEqual(self.names(), ["link", "model", "out"])
        self.assertTrue((self.parent / "link").is_symlink())
        self.assertEqual(self.out.stat().st_mode & 0o777, 0o750)

    def test_a_failure_leaves_the_earlier_copy(self):
        self.refused(*self.quantize("--json"), code=1, words=("File too large", "removed"),
                     preexec_fn=lambda: (signals_as_usual(), resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))))

    def test_leftovers_of_killed_runs_go_and_other_things_stay(self):
        killed = self.parent / "out.99.tmp"
        (killed / "new").mkdir(parents=True)
        (killed / "written-by-latte").write_text(MARKER)
        (killed / "new/model.safetensors").write_text("half")
        (self.parent / "out.98.tmp").mkdir()
        (self.parent / "out.98.tmp/precious").write_text("mine")
        (self.parent / "out.97.old").write_text("mine")
        done = latte(*self.quantize())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.names(), ["model", "out", "out.97.old", "out.98.tmp"])
        self.assertTrue((self.parent / "out.98.tmp/precious").exists())
        for name in ("out.98.tmp", "out.97.old"):
            self.assertIn(f"note: {self.parent / name}: may be what an interrupted run left", done.stderr)

    def test_a_copy_that_a_killed_run_had_moved_is_put_back(self):
        killed = self.parent / "out.99.tmp"
        killed.mkdir()
        before = tree(self.out)
        (killed / "written-by-latte").write_text(MARKER + "".join(f"{name}\n" for name in os.listdir(self.out)))
        self.out.rename(killed / "old")
        done = latte("quantize", self.model, self.out, "--to", "int4", "--threads", 1)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual((tree(self.out), self.names()), (before, ["model", "out"]))
        killed.mkdir()
        (killed / "written-by-latte").write_text(MARKER + "".join(f"{name}\n" for name in os.listdir(self.out)))
        self.out.rename(killed / "old")
        done = latte(*self.quantize())
        self.assertEqual((done.returncode, self.names()), (0, ["model", "out"]), done.stderr)
        self.assertIn("put back", done.stderr)
        self.assertNotEqual(tree(self.out), before)


class Interrupted(Folder):
    def setUp(self):
        super().setUp()
        self.out = self.parent / "out"

    def writing(self):
        return any(True for path in self.parent.glob("out.*.tmp") for _ in path.rglob("config.json"))

    def test_signals_leave_nothing_of_a_new_copy(self):
        for how in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process = self.start("synth", self.out, *SYNTH, until=self.writing)
            process.send_signal(how)
            _, stderr = process.communicate(timeout=60)
            self.assertEqual((process.returncode, stderr.count("\n")), (1, 1), stderr)
            self.assertIn("interrupted", stderr)
            self.assertIn(str(self.out), stderr)
            self.assertEqual(self.names(), ["model"])

    def test_a_copy_that_was_to_be_replaced_stays(self):
        self.assertEqual(latte("synth", self.out, "--layers", 1, "--vocab", 64, "--dtype", "int4").returncode, 0)
        before = {path.name: path.stat().st_ino for path in self.out.iterdir()}
        process = self.start("synth", self.out, "--force", *SYNTH, until=self.writing)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1)
        self.assertIn("as it was", stderr)
        self.assertEqual({path.name: path.stat().st_ino for path in self.out.iterdir()}, before)
        self.assertEqual(self.names(), ["model", "out"])

    def test_quantize_is_interrupted_like_that(self):
        source = self.parent / "source"
        self.assertEqual(latte("synth", source, "--layers", 1, "--vocab", 64).returncode, 0)
        process = self.start("quantize", source, self.out, "--to", "int4", "--threads", 1, until=self.writing)
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=60)
        self.assertEqual((process.returncode, stderr.count("\n")), (1, 1), stderr)
        self.assertEqual(self.names(), ["model", "source"])

    def test_what_kill_leaves_the_next_run_removes(self):
        process = self.start("synth", self.out, *SYNTH, until=self.writing)
        process.kill()
        process.wait(timeout=60)
        self.assertEqual([name for name in self.names() if name.endswith(".tmp")], [f"out.{process.pid}.tmp"])
        done = latte("synth", self.out, "--layers", 1, "--vocab", 64, "--dtype", "int4")
        self.assertEqual((done.returncode, self.names()), (0, ["model", "out"]), done.stderr)

    def test_a_run_under_way_is_no_leftover(self):
        process = self.start("synth", self.out, *SYNTH, until=self.writing)
        process.send_signal(signal.SIGSTOP)
        done = latte("synth", self.out, "--layers", 1, "--vocab", 64, "--dtype", "int4")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(self.writing())
        process.send_signal(signal.SIGCONT)
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
        self.assertEqual(self.names(), ["model", "out"])

    def test_nohup_is_obeyed(self):
        process = self.start("synth", self.out, "--layers", 1, "--vocab", 64, "--threads", 1, until=self.writing,
                             ignore=(signal.SIGHUP,))
        process.send_signal(signal.SIGHUP)
        _, stderr = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, stderr)


class Logits(Folder):
    def score(self, path, *more):
        return ("score", self.model, "--ids", "1,2,3", "--logits", path, *more)

    def test_other_files_are_named_and_stay(self):
        ids = self.parent / "ids.txt"
        ids.write_text("1,2,3\n")
        array = self.parent / "array.npy"
        array.write_bytes(b"\x93NUMPY\x01\x00v\x00{'descr': '<i8', 'fortran_order': False, 'shape': (3, 2), }")
        (self.parent / "link").symlink_to("ids.txt")
        os.link(ids, self.parent / "twin")
        for path in (ids, array, self.parent / "link", self.parent / "twin", self.model / "config.json",
                     self.model / "model.safetensors"):
            self.refused(*self.score(path), words=(path, "float32"))
        self.refused("score", self.model, "--ids-file", ids, "--logits", ids, words=(ids,))
        for path, code in (("", 2), (self.parent, 2), (self.parent / "no/where", 2), (ids / "x", 2)):
            self.refused(*self.score(path), code=code)

    def test_earlier_logits_stay_until_the_new_ones_are_whole(self):
        out = self.parent / "logits.npy"
        self.assertEqual(latte(*self.score(out)).returncode, 0)
        self.refused(*self.score(out), code=1, words=(out, "File too large"),
                     preexec_fn=lambda: (signals_as_usual(), resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))))
        before = out.read_bytes()
        (self.parent / "link").symlink_to("logits.npy")
        self.assertEqual(latte(*self.score(self.parent / "link")).returncode, 0)
        self.assertEqual(out.read_bytes(), before)
        self.assertEqual(self.names(), ["link", "logits.npy", "model"])

    def test_signals_leave_nothing(self):
        out = self.parent / "logits.npy"
        ids = self.parent / "ids.txt"
        ids.write_text(",".join("5" for _ in range(1024)))
        for how in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
            process = self.start("score", self.model, "--ids-file", ids, "--logits", out, "--max-batch-tokens", 1, "--threads", 1,
                                 until=lambda: list(self.parent.glob("logits.npy.*")))
            process.send_signal(how)
            _, stderr = process.communicate(timeout=60)
            if how == signal.SIGKILL:
                self.assertEqual(latte(*self.score(out)).returncode, 0)  # takes the leftover away
                self.assertEqual(self.names(), ["ids.txt", "logits.npy", "model"])
            else:
                self.assertEqual((process.returncode, self.names()), (1, ["ids.txt", "model"]), stderr)
                self.assertIn(f"{out} was not written", stderr)

    def test_devices_and_pipes_are_written_to(self):
        self.assertEqual(latte(*self.score("/dev/null")).returncode, 0)
        done = subprocess.run([LATTE, *map(str, self.score("/dev/stdout"))], capture_output=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout[:6]), (0, b"\x93NUMPY"))
        if os.path.exists("/dev/full"):
            done = latte(*self.score("/dev/full"))
            self.assertEqual(done.returncode, 1)
            self.assertIn("No space left", done.stderr)


class Records(Folder):
    def test_benches_replace_their_own_records_only(self):
        for words in (("calibrate", "--threads", "1"), ("steps", self.model, "--quick")):
            self.refused("bench", *words, "--out", self.model / "config.json", words=("config.json", words[0]))
            self.refused("bench", *words, "--out", self.parent, words=("folder",))


class Results(Folder):
    def setUp(self):
        super().setUp()
        self.input = self.parent / "in.jsonl"
        body = {"prompt": "Once", "max_tokens": 1}
        self.input.write_text(json.dumps({"custom_id": "a", "method": "POST", "url": "/v1/completions", "body": body}) +
                              "\n")

    def batch(self, output, *more, source=None):
        return ("batch", self.model, "-i", source or self.input, "-o", output, "--cache-bytes", "16M", "--threads", 1,
                *more)

    def test_files_without_results_are_never_given_up(self):
        (self.parent / "link").symlink_to("in.jsonl")
        os.link(self.input, self.parent / "twin")
        (self.parent / "notes").write_text("mine\n")
        (self.parent / "torn").write_text("mine")
        for flags in ((), ("--overwrite",)):
            for output in (self.input, self.parent / "link", self.parent / "twin", self.parent / "notes",
                           self.parent / "torn", self.model / "config.json", self.model / "model.safetensors", "",
                           self.parent):
                self.refused(*self.batch(output, *flags), words=(output,))
            self.refused(*self.batch(self.input, *flags, source=self.parent / "link"))

    def test_overwritten_results_stay_until_the_engine_runs(self):
        output = self.parent / "out.jsonl"
        self.assertEqual(latte(*self.batch(output)).returncode, 0)
        before = output.read_bytes()
        done = latte(*self.batch(output, "--overwrite", "--cache-dir", self.input))
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(output.read_bytes(), before)
        self.input.write_text("")
        self.assertEqual(latte(*self.batch(output, "--overwrite")).returncode, 0)
        self.assertEqual(output.read_bytes(), b"")

    def test_a_link_to_results_goes_on_leading_there(self):
        (self.parent / "far").mkdir()
        output = self.parent / "far/out.jsonl"
        link = self.parent / "out.jsonl"
        self.assertEqual(latte(*self.batch(output)).returncode, 0)
        link.symlink_to("far/out.jsonl")
        whole = output.read_bytes()
        neighbour = self.parent / "far/out.jsonl.tmp"
        neighbour.write_text("mine")
        output.write_bytes(whole + whole[:40])  # torn: the file is replaced
        self.assertEqual(latte(*self.batch(link)).returncode, 0)
        self.assertTrue(link.is_symlink())
        self.assertEqual((output.read_bytes(), neighbour.read_text()), (whole, "mine"))
        self.assertEqual(sorted(os.listdir(self.parent / "far")), ["out.jsonl", "out.jsonl.tmp"])

    def test_a_limit_on_the_size_of_files_is_a_failure_to_write(self):
        output = self.parent / "out.jsonl"
        done = latte(*self.batch(output), preexec_fn=lambda: (
            signals_as_usual(), resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("goes on from there", done.stderr)
        self.assertEqual(latte(*self.batch(output)).returncode, 0)
        self.assertEqual(len(output.read_text().splitlines()), 1)


if __name__ == "__main__":
    LATTE = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
