"""What comes from a package index runs nothing before its hash is known: an index whose archive is poisoned, in a folder and behind
HTTP. Usage: fetch_archive_test.py SOURCE_DIR; needs only Python's standard library, and skips the part with pip where venv lacks it.
"""
import base64
import hashlib
import http.server
import importlib.util
import io
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import threading
import unittest

ROOT = None


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.marker = self.folder / "code of the archive ran"
        self.index = self.folder / "simple"

    def poisoned(self, name, version):
        """The bytes of a source archive whose every script leaves a mark."""
        mark = f"open({str(self.marker)!r}, 'w').close()\n"
        files = {"pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "back_end"\nbackend-path = ["."]\n',
                 "back_end.py": mark + "raise SystemExit(1)\n", "setup.py": mark,
                 "CMakeLists.txt": f"file(TOUCH {json.dumps(str(self.marker))})\n",
                 "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", "LICENSE": "", "NOTICE": ""}
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w:gz") as archive:
            for path, text in files.items():
                entry = tarfile.TarInfo(f"{name}-{version}/{path}")
                entry.size = len(text.encode())
                archive.addfile(entry, io.BytesIO(text.encode()))
        return out.getvalue()

    def publish(self, name, version):
        """Puts an archive into the index folder; returns its SHA-256."""
        data, file = self.poisoned(name, version), f"{name}-{version}.tar.gz"
        page = self.index / name.replace("_", "-")
        page.mkdir(parents=True)
        (page / file).write_bytes(data)
        (page / "index.html").write_text(f'<a href="other-{version}.tar.gz">x</a><a href="{file}">{file}</a>')
        return hashlib.sha256(data).hexdigest()

    def environment(self, **more):
        clean = {key: value for key, value in os.environ.items() if not key.startswith("PIP_")}
        return clean | {"HOME": str(self.folder), "XDG_CONFIG_HOME": str(self.folder / "config"), "no_proxy": "*"} | more

    def run_it(self, *command, **more):
        return subprocess.run([str(word) for word in command], text=True, capture_output=True, timeout=100, env=self.environment(**more))

    def fetch(self, *arguments, **more):
        out = self.folder / "out"
        out.mkdir(exist_ok=True)
        return self.run_it(ROOT / "tools/fetch_archive.py", *arguments, out, **more)

    def assert_nothing_ran(self):
        self.assertFalse(self.marker.exists())


class XGrammar(Case):
    def test_a_wrong_archive_of_xgrammar_runs_nothing(self):
        self.publish("xgrammar", "0.2.8")
        done = self.run_it(ROOT / "tools/get_xgrammar.sh", self.folder / "xgrammar", PIP_INDEX_URL=self.index.as_uri())
        self.assertNotEqual(done.returncode, 0)
        self.assert_nothing_ran()
        self.assertIn("expected the SHA-256", done.stderr)
        self.assertEqual(list((self.folder / "xgrammar").iterdir()), [], "something is left")


class Fetch(Case):
    def test_the_right_archive_and_wrong_ones(self):
        right = self.publish("some_thing", "1.0")
        done = self.fetch("Some.Thing", "1.0", "00," + right, PIP_INDEX_URL=self.index.as_uri())
        self.assertEqual(done.returncode, 0, done.stderr)
        path = pathlib.Path(done.stdout.strip())
        self.assertEqual(hashlib.sha256(path.read_bytes()).hexdigest(), right)
        path.unlink()
        for name, version, hashes, said in (("some-thing", "1.0", "00", "found " + right), ("some-thing", "2.0", right, "no source archive"),
                                            ("none", "1.0", right, "none")):
            with self.subTest(said=said):
                done = self.fetch(name, version, hashes, PIP_INDEX_URL=self.index.as_uri())
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertIn(said, done.stderr)
                self.assertNotIn("Traceback", done.stderr)
                self.assertEqual(list((self.folder / "out").iterdir()), [])
        self.assert_nothing_ran()

    def test_the_index_of_pips_configuration(self):
        right = self.publish("thing", "1.0")
        for place in ("config/pip/pip.conf", ".pip/pip.conf"):
            file = self.folder / place
            file.parent.mkdir(parents=True)
            file.write_text(f"[global]\nindex-url = {self.index.as_uri()}/\n")
            self.assertEqual(self.fetch("thing", "1.0", right).returncode, 0)
            file.unlink()
        (self.folder / "other.conf").write_text(f"[global]\nindex-url={self.index.as_uri()}\n")
        self.assertEqual(self.fetch("thing", "1.0", right, PIP_CONFIG_FILE=str(self.folder / "other.conf")).returncode, 0)

    def test_an_index_behind_http_with_a_password(self):
        data, seen = self.poisoned("thing", "1.0"), []

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                seen.append((self.path, self.headers.get("Authorization"), self.headers["Host"]))
                answers = {"/simple/thing/": (200, json.dumps({"files": [{"url": "/files/thing-1.0.tar.gz"}]}).encode()),
                           "/files/thing-1.0.tar.gz": (302, b""), "/stored": (200, data)}
                status, body = answers.get(self.path, (404, b""))
                self.send_response(status)
                self.send_header("Content-Type", "application/vnd.pypi.simple.v1+json")
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Location", f"http://localhost:{port}/stored")
                self.end_headers()
                self.wfile.write(body)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        port = server.server_port
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        done = self.fetch("thing", "1.0", hashlib.sha256(data).hexdigest(), PIP_INDEX_URL=f"http://me:pass%20word@127.0.0.1:{port}/simple")
        self.assertEqual(done.returncode, 0, done.stderr)
        sent = "Basic " + base64.b64encode(b"me:pass word").decode()
        self.assertEqual(seen[0][1], sent)
        self.assertEqual(seen[-1][:2], ("/stored", None), "the password went to the host of the redirect")
        done = self.fetch("gone", "1.0", "00", PIP_INDEX_URL=f"http://me:secret@127.0.0.1:{port}/simple")
        self.assertEqual(done.returncode, 1)
        self.assertNotIn("secret", done.stderr)


class Acceptance(Case):
    """pip, as the acceptance tests call it."""

    @unittest.skipIf(importlib.util.find_spec("ensurepip") is None, "not installed: venv")
    def test_pip_runs_no_archive_with_a_wrong_hash(self):
        sys.path.insert(0, str(ROOT / "tests/acceptance"))
        import environment  # pylint: disable=import-outside-toplevel
        self.publish("sqlitedict", "2.1.0")  # one of those that are built
        self.publish("other", "1.0")
        tools = environment.Environment(self.folder, False)
        try:
            environment.venv.create(self.folder / "venv", with_pip=True)
        except subprocess.CalledProcessError:
            self.skipTest("not installed: venv")
        wanted = self.folder / "list.txt"
        zeros = "0" * 64
        known = {"sqlitedict": ("2.1.0", [zeros]), "other": ("1.0", [zeros])}
        before = os.environ.copy()
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(before)))
        os.environ.clear()
        os.environ.update(self.environment(PIP_INDEX_URL=self.index.as_uri()))
        for name in ("sqlitedict==2.1.0", "other==1.0", "sqlitedict"):
            with self.subTest(name=name):
                wanted.write_text(name + "\n")
                with self.assertRaises(environment.SetUpFailed):
                    tools.install([wanted], known)
                self.assert_nothing_ran()

    def test_every_package_has_hashes(self):
        sys.path.insert(0, str(ROOT / "tests/acceptance"))
        import environment  # pylint: disable=import-outside-toplevel
        known = environment.locked()
        self.assertGreater(len(known), len(environment.locked(is_short=True)) + 20)
        self.assertEqual([name for name, (_, hashes) in known.items() if not hashes], [])
        for path in (ROOT / "tests/acceptance").glob("requirements*.txt"):
            for line in environment.with_hashes([path], known).splitlines():
                self.assertIn("--hash=sha256:", line)


if __name__ == "__main__":
    ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
