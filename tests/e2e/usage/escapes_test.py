"""No text of a checkpoint, a server, a repository or a file reaches a terminal as it is: sequences that a terminal obeys, controls of
C1, and marks that change the order of text are in every text that a command may print. Usage: escapes_test.py LATTE_BINARY; needs
only Python's standard library.
"""
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(HERE / "client"), str(HERE / "hub")]
from hub import COMMIT, Fault, Hub  # noqa: E402
from scripted_server import ScriptedServer  # noqa: E402

LATTE = None
TINY = HERE.parents[1] / "models/tiny"
# The title of a window, the clipboard, an erased screen; CSI of C1; text from right to left; a second line that looks like Latte's.
EVIL = "\x1b]0;t\x07\x1b]52;c;ZXZpbA==\x07\x1b[2J\u009b2J\u202egnp\rx\nlatte: note: all is well\x7f"
FORGED = re.compile(r"^latte: note: all is well", re.M)
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
OURS = re.compile(r"\r\n|\r|\x1b\[(?:\d*[ABK]|0m|2m|1;32m|3[425]m|90m|\?2004[hl])")  # what Latte itself sends to a terminal


def environment(**more):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("HF_") and not key.endswith("_API_KEY")}
    return clean | {"NO_PROXY": "*", "TERM": "xterm", "LC_ALL": "C.UTF-8"} | more


def in_terminal(command, env, stdin):
    """Both outputs of a command, as its terminal gets them. With input, the kernel edits the lines: it keeps them until they
    are read."""
    env = env | {"TERM": "dumb"} if stdin else env
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(command[0], command, env)
    os.write(fd, stdin.encode() + b"\x04")
    out = b""
    while True:
        if not select.select([fd], [], [], 120)[0]:
            os.kill(pid, signal.SIGKILL)
        try:
            data = os.read(fd, 65536)
        except OSError:  # the other side is gone
            break
        if not data:
            break
        out += data
    os.waitpid(pid, 0)
    os.close(fd)
    return out


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def copy(self, name="model", **changes):
        """A copy of tiny; changes are {name of a JSON file without its end: function of the document}."""
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(TINY, folder)
        for file, change in changes.items():
            path = folder / f"{file}.json"
            document = json.loads(path.read_text())
            change(document)
            path.write_text(json.dumps(document))
        return folder

    def check(self, *command, stdin="", shows=True, terminal=True, env=None):
        """Runs a command through pipes and in a terminal."""
        command, env = [LATTE, *map(str, command)], environment(HOME=str(self.folder), **(env or {}))
        done = subprocess.run(command, input=stdin.encode(), capture_output=True, timeout=120, env=env)
        both = [done.stdout, done.stderr]
        if terminal:
            both.append(OURS.sub("\n", in_terminal(command, env, stdin).decode(errors="surrogateescape")).encode(errors="surrogateescape"))
        for output in both:
            text = output.decode(errors="surrogateescape")
            found = HIDDEN.search(text) or re.search("[\udc80-\udcff]", text)
            self.assertIsNone(found, f"{command}: {text!r}")
            self.assertIsNone(FORGED.search(text), f"{command}: a line was added: {text!r}")
        self.assertNotIn(done.returncode, (3, -6, -11), done.stderr)
        if shows:
            self.assertRegex(done.stdout + done.stderr, rb"\\x1b|u009b|u202e", f"{command}: the text is not shown at all: {done.stderr!r}")
        return done


class Checkpoints(Case):
    def test_values_of_config(self):
        def put(key, value=EVIL):
            return {"config": lambda document: document.__setitem__(key, value)}
        for changes in (put("model_type"), put("architectures", [EVIL]), put("hidden_act"), put("torch_dtype"), put("scoring_func"),
                        put("topk_method"), put("rope_scaling", {"type": EVIL, "rope_type": EVIL, "factor": 2}),
                        put("quantization_config", {"quant_method": EVIL}), put("hidden_size"), put("quantization_config", {"quant_method": "gptq", "bits": EVIL})):
            model = self.copy(**changes)
            for command in (("run", model, "-p", "a", "-n", "1"), ("inspect", model)):
                with self.subTest(changes=changes, command=command[0]):
                    self.check(*command, shows=False)

    def test_tokenizers(self):
        def twice(document):
            document["added_tokens"] += [{"id": 1, "content": EVIL, "special": True}, {"id": 2, "content": EVIL, "special": True}]

        def type_of(document):
            document["model"]["type"] = EVIL

        def decoder(document):
            document["decoder"] = {"type": EVIL}

        def merges(document):
            document["model"]["merges"] = [[EVIL, EVIL]]

        def vocabulary(document):
            document["model"]["vocab"][EVIL] = 10 ** 9

        def pattern(document):
            split = {"type": "Split", "pattern": {"Regex": "(" + EVIL}, "behavior": "Isolated", "invert": False}
            document["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [split, {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}]}
        for change in (twice, type_of, decoder, merges, vocabulary, pattern):
            with self.subTest(change=change.__name__):
                self.check("tokenize", self.copy(tokenizer=change), "-p", "a")

    def test_chat_templates(self):
        for template in ("{{ raise_exception(" + json.dumps(EVIL) + ") }}", "{{ " + EVIL, "{% " + EVIL + " %}", "{{ x.y | " + EVIL + " }}",
                         "{{ '" + EVIL + "' + 1 }}", "{% macro " + EVIL, "{{ messages['" + EVIL + "'].a.b }}"):
            with self.subTest(template=template):
                model = self.copy(tokenizer_config=lambda document, text=template: document.update(chat_template=text))
                self.check("chat", model, "-p", "a", "-n", "1", shows="+ 1" not in template)
        several = self.copy(tokenizer_config=lambda document: document.update(
            chat_template=[{"name": EVIL, "template": "x"}, {"name": EVIL + "2", "template": "y"}]))
        self.check("chat", several, "-p", "a", "-n", "1")

    def test_tensors_and_names_of_files(self):
        model = self.copy()
        (model / "model.safetensors").unlink()
        (model / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {EVIL: EVIL}}))
        self.check("run", model, "-p", "a", "-n", "1")
        self.check("inspect", model, shows=False)
        model = self.copy()
        header = json.dumps({EVIL: {"dtype": EVIL, "shape": [1], "data_offsets": [0, 4]}}).encode()
        (model / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
        for command in (("run", model, "-p", "a", "-n", "1"), ("inspect", model), ("quantize", model, self.folder / "out", "--to", "int8")):
            self.check(*command, shows=command[0] == "run")
        model = self.copy(EVIL.replace("/", ""))
        (model / "config.json").write_text("{")
        for command in (("run", model, "-p", "a"), ("inspect", model), ("score", model, "-p", "a b")):
            self.check(*command)
        (model / "config.json").unlink()
        self.check("list", shows=False)

    def test_what_tokens_say(self):
        """Text of tokens is data: it goes to a pipe as it is, and is shown in a terminal."""
        model = self.copy(tokenizer=lambda document: document["added_tokens"].append({"id": 5, "content": EVIL, "special": False}))
        for command in (("tokenize", model, "-p", EVIL, "--json"), ("tokenize", model, "-p", EVIL, "--special", "--json")):
            self.check(*command)
        ids = subprocess.run([LATTE, "tokenize", "tiny", "-p", EVIL], capture_output=True, text=True, timeout=60).stdout.strip()
        plain = subprocess.run([LATTE, "tokenize", "tiny", "--decode", ids], capture_output=True, timeout=60).stdout
        self.assertEqual(plain.decode(), EVIL + "\n")
        shown = in_terminal([LATTE, "tokenize", "tiny", "--decode", ids], environment(), "").decode()
        self.assertIsNone(HIDDEN.search(OURS.sub("\n", shown)), shown)


class Cache(Case):
    def test_names_in_the_cache(self):
        repo = self.folder / "hub/models--org--name"
        for name in (EVIL, "a" + EVIL):
            (repo / "snapshots" / name.replace("/", "")).mkdir(parents=True)
        (repo / "refs").mkdir()
        (self.folder / "hub" / ("models--org--" + EVIL.replace("/", ""))).mkdir()
        env = {"HF_HUB_CACHE": str(self.folder / "hub")}
        self.check("run", "org/name", "-p", "a", env=env)
        (repo / "refs/main").write_text(EVIL)
        for command in (("run", "org/name", "-p", "a"), ("inspect", "org/name"), ("chat", "org/name", "-p", "a")):
            self.check(*command, env=env)
        for command in (("list",), ("list", "--json"), ("run", "org/nam", "-p", "a")):
            self.check(*command, env=env, shows=False)

    def test_pull(self):
        def listed(hub, **sibling):
            hub.edit_listing = lambda listing: listing | {"siblings": listing["siblings"] + [{"rfilename": "x.json", "size": 1, "blobId": "0" * 40} | sibling]}

        def changed(hub, **entries):
            hub.edit_listing = lambda listing: listing | entries
        name = "name\u009b2J\u202egnp.json"
        weights = {"config.json": b'{"model_type": "deepseek_v3"}', "model.safetensors": b"w" * 100}
        for change, flags, shows in (
                (lambda hub: listed(hub, rfilename=EVIL), (), True), (lambda hub: listed(hub, rfilename=name), ("--dry-run",), True),
                (lambda hub: listed(hub, rfilename=name), ("--dry-run", "--json"), True), (lambda hub: listed(hub, rfilename=name), ("--retries", 0), True),
                (lambda hub: listed(hub, blobId=EVIL), (), True), (lambda hub: changed(hub, sha=EVIL), (), True),
                (lambda hub: hub.faults.append(Fault("model", headers={"Content-Encoding": "\x9b2J\x1b[2J"}, times=9)), ("--retries", 0), False),
                (lambda hub: hub.linked.update({"model.safetensors": {"X-Linked-Etag": '"\x9b2J\x1b[2J"'}}), ("--retries", 0), False),
                (lambda hub: hub.files.update({"config.json": json.dumps({"model_type": EVIL}).encode()}), (), True)):
            with Hub(weights) as hub:
                change(hub)
                self.check("pull", "org/model", *flags, shows=shows, env={"HF_ENDPOINT": hub.url, "HF_HOME": str(self.folder)})
            shutil.rmtree(self.folder / "hub", ignore_errors=True)


class Servers(Case):
    def test_models_errors_and_notes(self):
        evil_page = {"/v1/models": {"data": [{"id": EVIL}]}}

        def error(handler, body):
            handler.json({"error": {"message": EVIL, "code": EVIL, "type": EVIL}}, 400)

        def broken(handler, body):
            handler.begin()
            handler.event({"error": {"message": EVIL}})
            handler.end()

        def nonsense(handler, body):
            handler.begin()
            handler.event(EVIL.replace("\n", " "))
            handler.end()

        def finish(handler, body):
            handler.stream(["x"], EVIL)
        for script in (None, error, broken, nonsense, finish):
            with ScriptedServer(script, evil_page) as server:
                for command in (("chat", "--url", server.url), ("chat", "--url", server.url, "-p", "a"), ("chat", "--url", server.url, "-p", "a", "--json"),
                                ("chat", "--url", server.url, "--model", "other", "--stats"),
                                ("bench", "serve", "--url", server.url, "--requests", "1"), ("bench", "serve", "--url", server.url, "--requests", "1", "--json")):
                    with self.subTest(script=script, command=command):
                        self.check(*command, stdin="hello\n/set\n", shows=False)
        with ScriptedServer(None, {"/v1/models": {"data": EVIL, "error": EVIL}}) as server:
            self.check("chat", "--url", server.url, "-p", "a", shows=False)


class Files(Case):
    def test_batches(self):
        output = self.folder / "out.jsonl"

        def batch(*lines):
            (self.folder / "in.jsonl").write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines) + "\n")
            output.unlink(missing_ok=True)
            return ("batch", "tiny", "-i", self.folder / "in.jsonl", "-o", output, "--cache-bytes", "64M")
        good = {"custom_id": EVIL, "method": "POST", "url": "/v1/completions", "body": {"prompt": "a", "max_tokens": 1}}
        for lines in ((good, good), (good | {"url": EVIL},), (good | {"method": EVIL},), ("{" + EVIL,), (good | {"body": {"prompt": "a", EVIL: 1}},),
                      (good | {"body": {"prompt": "a", "max_tokens": 1, "model": EVIL}},), ({EVIL: 1},)):
            with self.subTest(lines=lines):
                self.check(*batch(*lines), shows=False, terminal=lines[0] != lines[-1] or len(lines) > 1)
        output.write_text(EVIL)
        self.check(*batch(good)[:-1], "64M", "--overwrite", shows=False)

    def test_other_files(self):
        path = self.folder / "file"
        path.write_text(EVIL)
        toml = self.folder / "latte.toml"
        for text in (f'"{EVIL}" = 1'.replace("\n", " "), 'model = "\\u009b\\u202e"', "\u009b = 1", '[models]\n"a\u202e" = 1'):
            toml.write_text(text)
            self.check("serve", "--config", toml, "--dry-run", shows=False)
        for command in (("serve", "tiny", "--trace", path, "--dry-run"), ("simulate", "--trace", path), ("run", "tiny", "--logit-bias", EVIL, "-p", "a"),
                        ("tokenize", "--decode", EVIL), ("run", "tiny", "--" + EVIL.replace("=", ""), "1"), (EVIL,), ("run", EVIL), ("help", EVIL),
                        ("serve", "tiny", "--ssl-certfile", path, "--ssl-keyfile", path), ("serve", "tiny", "--api-key-file", path),
                        ("serve", "tiny", "--served-model-name", EVIL, "--dry-run"), ("run", "tiny", "-p", "a", "-n", "1", "--isa", EVIL),
                        ("eval", "tiny", "--grammar", path), ("bench", "--compare", path), ("inspect", "--rates", path)):
            with self.subTest(command=command):
                self.check(*command, shows=False)
        for name in ("LATTE_ISA", "LATTE_CONTEXT", "LATTE_RATES", "LATTE_" + "X", "HF_ENDPOINT", "LATTE_DTYPE"):
            with self.subTest(variable=name):
                self.check("run", "tiny", "-p", "a", "-n", "1", env={name: EVIL}, shows=False)


if __name__ == "__main__":
    LATTE = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
