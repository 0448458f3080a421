#!/usr/bin/env python3
"""packaging/wheel_backend.py and packaging/bundled.py without a compiler: an installed tree with a program that is a shell script.

Usage: wheel_backend_test.py SOURCE
"""
import base64
import hashlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import unittest
import unittest.mock
import zipfile

SOURCE = pathlib.Path(sys.argv.pop()).resolve()
sys.path.insert(0, str(SOURCE / "packaging"))
import bundled  # noqa: E402
import make_tarball  # noqa: E402
import make_wheel  # noqa: E402
import wheel_backend  # noqa: E402

VERSION = (SOURCE / "VERSION").read_text().strip()
SONAME = f"liblatte.so.{VERSION.rpartition('.')[0]}"
PROGRAM = """#!/bin/sh
if [ "$1" = wait ]; then echo $$; exec sleep 60; fi
echo "$$ $*"; exit 7
"""


class Wheel(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="latte_wheel_test_")))
        self.tree = self.folder / "tree"
        for name, text in (("bin/latte", PROGRAM), (f"lib/liblatte.so.{VERSION}", "library"), ("share/latte/models/tiny/config.json", "{}"),
                           ("share/latte/models/tiny-sparse/config.json", "{}"), ("share/man/man1/latte.1", "page"),
                           ("share/bash-completion/completions/latte", "words"), ("include/latte/latte.h", "header")):
            path = self.tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (self.tree / "lib" / SONAME).symlink_to(f"liblatte.so.{VERSION}")
        os.environ["LATTE_TREE"] = str(self.tree)
        self.addCleanup(os.environ.pop, "LATTE_TREE")

    def build(self, name="wheels"):
        folder = self.folder / name
        folder.mkdir()
        return folder / wheel_backend.build_wheel(folder)

    def test_has_what_python_and_the_program_look_for(self):
        with zipfile.ZipFile(self.build()) as wheel:
            names = wheel.namelist()
            mode = wheel.getinfo("latte_mla/bin/latte").external_attr >> 16
        for name in ("latte_mla/bin/latte", f"latte_mla/lib/{SONAME}", "latte_mla/share/latte/models/tiny/config.json",
                     f"latte_mla-{VERSION}.data/scripts/latte", f"latte_mla-{VERSION}.data/data/share/man/man1/latte.1",
                     f"latte_mla-{VERSION}.dist-info/licenses/THIRD_PARTY.md"):
            self.assertIn(name, names)
        self.assertFalse([name for name in names if "tiny-sparse" in name or name.endswith(".h") or "_test.py" in name])
        self.assertEqual(mode & 0o111, 0o111)
        package = [path for path in (SOURCE / "python/latte_mla").glob("*.py") if not path.name.endswith("_test.py")]
        self.assertLessEqual({f"latte_mla/{path.name}" for path in package}, set(names))

    def test_record_has_the_digest_of_every_file(self):
        with zipfile.ZipFile(self.build()) as wheel:
            lines = wheel.read(f"latte_mla-{VERSION}.dist-info/RECORD").decode().splitlines()
            listed = {}
            for line in lines[:-1]:
                name, digest, size = line.rsplit(",", 2)
                listed[name] = (digest, int(size))
            self.assertEqual(set(listed), set(wheel.namelist()) - {f"latte_mla-{VERSION}.dist-info/RECORD"})
            for name, (digest, size) in listed.items():
                data = wheel.read(name)
                expected = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                self.assertEqual((digest, size), (f"sha256={expected}", len(data)))

    def test_pip_learns_the_name_without_a_build(self):
        info = self.folder / wheel_backend.prepare_metadata_for_build_wheel(self.folder)
        with zipfile.ZipFile(self.build()) as wheel:
            for name in ("METADATA", "WHEEL"):
                self.assertEqual((info / name).read_bytes(), wheel.read(f"{info.name}/{name}"))

    def test_two_builds_make_the_same_bytes(self):
        first = self.build("first").read_bytes()
        for path in self.tree.rglob("*"):
            if not path.is_symlink():
                os.utime(path, (1, 1))
        self.assertEqual(self.build("second").read_bytes(), first)

    def script(self):
        """The script `latte` in a folder of packages, as pip installs it."""
        with zipfile.ZipFile(self.build()) as wheel:
            wheel.extractall(self.folder / "site")
        (self.folder / "site/latte_mla/bin/latte").chmod(0o755)
        script = self.folder / "latte"
        text = (self.folder / f"site/latte_mla-{VERSION}.data/scripts/latte").read_text()
        script.write_text(re.sub("^#!python\n", f"#!{sys.executable}\n", text))
        script.chmod(0o755)
        return script, {**os.environ, "PYTHONPATH": str(self.folder / "site")}

    def test_the_script_becomes_the_program(self):
        script, environment = self.script()
        started = subprocess.Popen([script, "run", "a b"], env=environment, text=True, stdout=subprocess.PIPE)
        said = started.communicate(timeout=60)[0]
        self.assertEqual(said, f"{started.pid} run a b\n")
        self.assertEqual(started.returncode, 7)

    def test_signals_reach_the_program(self):
        script, environment = self.script()
        with subprocess.Popen([script, "wait"], env=environment, text=True, stdout=subprocess.PIPE) as started:
            self.assertEqual(int(started.stdout.readline()), started.pid)
            started.send_signal(signal.SIGTERM)
            self.assertEqual(started.wait(60), -signal.SIGTERM)

    def test_the_source_archive_builds_again(self):
        needed = {"pyproject.toml", "CMakeLists.txt", "packaging/wheel_backend.py", "VERSION", "README.md"}
        listed = wheel_backend.source_files()
        self.assertEqual(needed - set(listed), set())
        self.assertFalse([name for name in listed if name.startswith(("build/", ".git/"))])
        folder = self.folder / "sources"
        folder.mkdir()
        with unittest.mock.patch.object(wheel_backend, "source_files", lambda: sorted(needed)), tarfile.open(folder / wheel_backend.build_sdist(folder)) as archive:
            names = {name.partition("/")[2] for name in archive.getnames()}
        self.assertEqual(names, {"PKG-INFO", *needed})

    def test_a_second_copy_of_the_engine_is_noticed(self):
        for name, text in (("library", "int engine(void) { return 1; }"), ("good", "int engine(void); int main(void) { return engine(); }"),
                           ("bad", "int engine(void) { return 2; } int main(void) { return engine(); }")):
            (self.folder / f"{name}.c").write_text(text)
        library = self.folder / "libengine.so"
        subprocess.run(["cc", "-shared", "-fPIC", self.folder / "library.c", "-o", library], check=True)
        for name in ("good", "bad"):
            subprocess.run(["cc", self.folder / f"{name}.c", library, "-o", self.folder / name], check=True)
        wheel_backend.check_one_engine(self.folder / "good", library)
        with self.assertRaisesRegex(SystemExit, "found 1 in both, such as engine"):
            wheel_backend.check_one_engine(self.folder / "bad", library)

    def test_needs_cmake_only_where_the_system_has_none(self):
        del os.environ["LATTE_TREE"]
        self.addCleanup(os.environ.__setitem__, "PATH", os.environ["PATH"])
        os.environ["PATH"] = str(self.folder)
        self.assertEqual(wheel_backend.get_requires_for_build_wheel(), ["cmake", "ninja"])
        for name in ("cmake", "ninja"):
            (self.folder / name).write_text("#!/bin/sh\n")
            (self.folder / name).chmod(0o755)
        self.assertEqual(wheel_backend.get_requires_for_build_wheel(), [])
        os.environ["LATTE_TREE"] = ""


class Bundled(unittest.TestCase):
    def test_every_library_of_the_program_has_a_licence(self):
        for name in ("libbsd.so.0", "libcrypto.so.3", "libedit.so.2", "libfmt.so.9", "libmd.so.0", "libpcre2-8.so.0.11.2", "libspdlog.so.1.10.0",
                     "libprometheus-cpp-core.so.1.0", "libssl.so.3", "libtinfo.so.6", "libxxhash.so.0"):
            self.assertRegex(bundled.licence_of(name), r"^[A-Z][\w.-]+$", name)
        self.assertEqual(bundled.licence_of("libunknown.so.1"), "")

    def test_the_systems_own_libraries_stay_there(self):
        names = set(bundled.libraries_of(sys.executable))
        self.assertFalse([name for name in names if name.startswith(("libc.", "libm.", "libstdc++", "ld-linux"))])

    def test_the_original_of_a_grafted_library(self):
        self.assertEqual(bundled.original_of("libno-such-4f700944.so.9.1.0"), pathlib.Path("libno-such.so.9.1.0"))
        self.assertTrue(bundled.original_of("libc-4f700944.so.6").is_absolute())

    def test_the_bill_names_every_part_and_is_the_same_each_time(self):
        library = bundled.original_of("libc.so.6")
        text = bundled.bill("1.2.3", {"lib/libc.so.6": library})
        self.assertEqual(bundled.bill("1.2.3", {"lib/libc.so.6": library}), text)
        bill = json.loads(text)
        self.assertEqual((bill["bomFormat"], bill["metadata"]["component"]["version"]), ("CycloneDX", "1.2.3"))
        part = bill["components"][-1]
        self.assertEqual((part["name"], part["hashes"][0]["content"]), ("libc", hashlib.sha256(library.read_bytes()).hexdigest()))
        self.assertLessEqual(set(bundled.HEADERS), {part["name"] for part in bill["components"]})

    def test_the_newest_symbols(self):
        floor = bundled.symbol_floor([bundled.original_of("libm.so.6")])
        self.assertRegex(floor["GLIBC"][0], r"^2\.\d+")

    def test_parts_of_the_wheel(self):
        for name, part in (("latte_mla/bin/latte", "program"), (f"latte_mla/lib/{SONAME}", "liblatte"), ("latte_mla.libs/libfmt-1.so", "grafted libraries"),
                           ("latte_mla/share/latte/models/tiny/model.safetensors", "tiny"), ("latte_mla/types.py", "Python")):
            self.assertEqual(make_wheel.part_of(name), part)


class Tarball(unittest.TestCase):
    def test_two_archives_have_the_same_bytes_and_sums(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "tree/bin").mkdir(parents=True)
        (folder / "tree/bin/latte").write_text(PROGRAM)
        (folder / "tree/bin/latte").chmod(0o700)
        (folder / "tree/link").symlink_to("bin/latte")
        out = folder / "out"
        out.mkdir()
        make_tarball.write_tar(out / "a.tar.gz", folder / "tree", "latte-1")
        os.utime(folder / "tree/bin/latte", (1, 1))
        with unittest.mock.patch("time.time", return_value=5):
            make_tarball.write_tar(out / "b.tar.gz", folder / "tree", "latte-1")
        make_tarball.write_sums(out)
        first, second = [line.split() for line in (out / "SHA256SUMS").read_text().splitlines()]
        self.assertEqual((first[0], first[1], second[1]), (second[0], "a.tar.gz", "b.tar.gz"))
        with tarfile.open(out / "a.tar.gz") as archive:
            self.assertEqual(oct(archive.getmember("latte-1/bin/latte").mode), "0o755")
            self.assertTrue(archive.getmember("latte-1/link").issym())


if __name__ == "__main__":
    unittest.main()
