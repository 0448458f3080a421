"""Programs outside the tree, built against an installed and then moved Latte.

Usage: package_test.py BUILD_DIR CMAKE C_COMPILER CXX_COMPILER [FLAGS]; FLAGS are those that the library was compiled and
linked with (sanitizers).
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from build_copy import install  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
STD_OR_OURS = re.compile(r"<[a-z_0-9]+(\.h)?>|\"latte/([a-z_]+\.h)\"|<tl/expected\.hpp>")
BUILD = CMAKE = CC = CXX = None
FLAGS = ""
NO_EXPECTED = "-DCMAKE_DISABLE_FIND_PACKAGE_tl-expected=ON"


def run(*command, cwd, **env):
    done = subprocess.run([str(word) for word in command], cwd=cwd, text=True, capture_output=True, timeout=300,
                          env={**os.environ, **env})
    if done.returncode != 0:
        raise AssertionError(f"{command}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="latte_package_")
        cls.dir = pathlib.Path(cls.scratch.name)
        install(BUILD, cls.dir / "installed")
        cls.prefix = cls.dir / "moved" / "prefix"
        cls.prefix.parent.mkdir()
        (cls.dir / "installed").rename(cls.prefix)
        cls.lib = next(cls.prefix.rglob("liblatte.so")).parent
        cls.headers = sorted((cls.prefix / "include/latte").iterdir())

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def build_with_cmake(self, example, *definitions):
        source = pathlib.Path(tempfile.mkdtemp(dir=self.dir)) / example
        shutil.copytree(ROOT / "examples" / example, source)
        run(CMAKE, "-S", source, "-B", source / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}",
            f"-DCMAKE_C_COMPILER={CC}", f"-DCMAKE_CXX_COMPILER={CXX}", f"-DCMAKE_C_FLAGS={FLAGS}",
            f"-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror {FLAGS}", *definitions, cwd=self.dir)
        run(CMAKE, "--build", source / "build", cwd=self.dir)
        return source / "build" / example

    def pkg_config(self, *words):
        path = f"{self.lib}/pkgconfig"
        return run("pkg-config", *words, "latte", cwd=self.dir, PKG_CONFIG_PATH=path).split()

    def build_with_pkg_config(self, compiler, standard, source):
        program = self.dir / f"{source.stem}_{source.parent.name}"
        libdir = self.pkg_config("--variable=libdir")[0]
        run(compiler, f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-pedantic", *FLAGS.split(), source, "-o", program,
            *self.pkg_config("--cflags", "--libs"), f"-Wl,-rpath,{libdir}", cwd=self.dir)
        return program

    def test_hello_engine_by_find_package(self):
        program = self.build_with_cmake("hello_engine")
        text = run(program, cwd=self.dir)
        self.assertTrue(text.startswith("Once upon a time"), text)
        self.assertGreater(len(text.split()), 20, text)

    def test_programs_need_no_other_library(self):
        """Every name of a library that the binary or liblatte loads; a new one needs a row in THIRD_PARTY.md and a package."""
        known = {"fmt", "spdlog", "prometheus-cpp-core", "pcre2-8", "xxhash", "ssl", "crypto", "edit", "stdc++", "m", "gcc_s", "c", "latte"}
        for path in (self.prefix / "bin/latte", self.lib / "liblatte.so"):
            needed = re.findall(r"\(NEEDED\).*\[(?:lib)?([^\]]*?)\.so", run("readelf", "-d", path, cwd=self.dir))
            self.assertIn("fmt", needed)
            self.assertEqual({name for name in needed if not name.endswith("san") and not name.startswith("ld-linux")} - known, set(), path)
            self.assertNotIn("libcurl", run("ldd", path, cwd=self.dir))

    def test_hello_engine_says_what_is_wrong(self):
        program = self.build_with_pkg_config(CXX, "c++20", ROOT / "examples/hello_engine/main.cc")
        done = subprocess.run([program, "no/model"], cwd=self.dir, text=True, capture_output=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no/model", done.stderr)

    def test_hello_c_by_pkg_config_and_the_plain_compiler(self):
        program = self.build_with_pkg_config(CC, "c11", ROOT / "examples/hello_c/main.c")
        answers = re.fullmatch(r"1\. (Once upon a time.+?)\n2\. (Once upon a time.+)", run(program, cwd=self.dir), re.S)
        self.assertTrue(answers)
        self.assertGreater(len(answers[1].split()), 20)

    def test_hello_c_by_find_package(self):
        for definitions in ([], [NO_EXPECTED]):
            with self.subTest(definitions):
                self.assertIn("Once upon a time", run(self.build_with_cmake("hello_c", *definitions), cwd=self.dir))

    def test_a_cpp_program_is_told_what_it_lacks(self):
        with self.assertRaisesRegex(AssertionError, r"(?s)C\+\+\s+headers\s+need\s+tl-expected\s+\(Debian:\s+libexpected-dev\)"):
            self.build_with_cmake("hello_engine", NO_EXPECTED)
        source = self.dir / "without_component"
        source.mkdir()
        (source / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.16)\nproject(without_component LANGUAGES CXX)\nfind_package(latte REQUIRED)\n")
        self.assertIn("need tl-expected", run(CMAKE, "-S", source, "-B", source / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}",
                                              NO_EXPECTED, cwd=self.dir))

    def test_another_minor_version_is_not_found(self):
        major, minor, _ = map(int, (ROOT / "VERSION").read_text().strip().split("."))
        for wanted in ("99", f"{major}.{minor + 1}", f"{major}.{minor - 1}"):
            source = self.dir / f"refused_{wanted}"
            source.mkdir()
            (source / "CMakeLists.txt").write_text(
                f"cmake_minimum_required(VERSION 3.16)\nproject(refused LANGUAGES NONE)\nfind_package(latte {wanted} QUIET)\n"
                f"if(latte_FOUND OR NOT latte_CONSIDERED_VERSIONS)\n  message(FATAL_ERROR \"{wanted} found\")\nendif()\n")
            run(CMAKE, "-S", source, "-B", source / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}", cwd=self.dir)

    def test_versions_agree(self):
        version = (ROOT / "VERSION").read_text().strip()
        self.assertEqual(self.pkg_config("--modversion"), [version])
        self.assertTrue((self.lib / f"liblatte.so.{version}").exists())
        minor = ".".join(version.split(".")[:2])
        self.assertTrue((self.lib / f"liblatte.so.{minor}").is_symlink())
        self.assertIn(f"[liblatte.so.{minor}]", run("readelf", "-d", self.lib / "liblatte.so", cwd=self.dir))
        for example in ("hello_engine", "hello_c"):
            self.assertIn(f"find_package(latte {minor} ", (ROOT / "examples" / example / "CMakeLists.txt").read_text())

    def test_the_namespace_carries_the_version(self):
        major, minor, _ = (ROOT / "VERSION").read_text().strip().split(".")
        for header in self.headers:
            if not header.name.startswith("latte"):  # the headers for C have none
                self.assertEqual(re.findall(r"^inline namespace (\w+) \{$", header.read_text(), re.M), [f"v{major}_{minor}"], header)
        listed = run("nm", "-DC", "--defined-only", self.lib / "liblatte.so", cwd=self.dir)
        self.assertIn(f" latte::v{major}_{minor}::Engine::Create(", listed)
        self.assertIn(f" latte::v{major}_{minor}::CodeName(", listed)

    def test_every_header_compiles_alone(self):
        self.assertEqual([path.name for path in self.headers], sorted(os.listdir(ROOT / "include/latte")))
        for header in self.headers:
            with self.subTest(header=header.name):
                source = self.dir / "alone.cc"
                source.write_text(f'#include "latte/{header.name}"\n#include "latte/{header.name}"\n')
                run(CXX, "-std=c++20", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only", f"-I{self.prefix}/include",
                    source, cwd=self.dir)
        source = self.dir / "alone.c"
        source.write_text('#include "latte/latte.h"\n#include "latte/latte.h"\n')
        run(CC, "-std=c11", "-Wall", "-Wextra", "-pedantic", "-Werror", "-Wstrict-prototypes", "-fsyntax-only",
            f"-I{self.prefix}/include", source, cwd=self.dir)

    def test_headers_include_only_std_themselves_and_expected(self):
        names = {path.name for path in self.headers}
        for header in self.headers:
            for included in re.findall(r"^\s*#\s*include\s+(\S+)", header.read_text(), re.M):
                match = STD_OR_OURS.fullmatch(included)
                self.assertTrue(match, f"{header.name} includes {included}")
                self.assertTrue(match[2] is None or match[2] in names, f"{header.name} includes {included}")

    def test_the_library_shows_nothing_but_its_interface(self):
        listed = run("nm", "-DC", "--defined-only", self.lib / "liblatte.so", cwd=self.dir)
        shown = [line.split(" ", 2)[2].split("@")[0] for line in listed.splitlines()]
        other = [name for name in shown if not re.match(r"latte::v\d+_\d+::[A-Z]|latte_[a-z]|LATTE_0$", name) or "Impl" in name]
        self.assertEqual(other, [])
        texts = [path.read_text() for path in self.headers if path.name.startswith("latte")]
        declared = re.findall(r"^\w[\w *]*?\b(latte_\w+)\(", "\n".join(texts), re.M)
        self.assertGreater(len(declared), 10)
        self.assertEqual(sorted(name for name in shown if name.startswith("latte_")), sorted(declared))


if __name__ == "__main__":
    BUILD = pathlib.Path(sys.argv[1]).resolve()
    CMAKE, CC, CXX = sys.argv[2:5]
    FLAGS = " ".join(sys.argv[5:])
    unittest.main(argv=sys.argv[:1])
