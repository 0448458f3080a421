"""What make does before it builds, on systems that this one only pretends to be: a PATH of its own with programs that tell
what they were asked. Usage: setup_test.py SOURCE_DIR; needs only Python's standard library and make."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = None
TOOLS = ("cat", "cut", "dirname", "env", "expr", "grep", "nproc", "sed", "sh", "sort", "test", "tr", "true")
BUILD_TOOLS = ("cmake", "ninja", "pkg-config", "c++")


class Machine:
    """A folder that is the whole PATH."""

    def __init__(self, folder, *programs):
        self.bin = pathlib.Path(folder) / "bin"
        self.bin.mkdir()
        self.log = pathlib.Path(folder) / "log"
        for tool in TOOLS + ("make",):
            (self.bin / tool).symlink_to(shutil.which(tool))
        for program in programs:
            self.add(program)

    def add(self, name, script="true"):
        path = self.bin / name
        path.write_text(f'#!/bin/sh\necho {name} "$@" >> {self.log}\n{script}\n')
        path.chmod(0o755)

    def run(self, *command, **how):
        return subprocess.run(command, env={"PATH": str(self.bin), "HOME": "/nonexistent"}, capture_output=True, text=True, timeout=60, **how)

    def install(self, *purposes):
        return self.run("sh", str(self.scripts / "install_packages.sh"), *purposes)

    def calls(self):
        return self.log.read_text().splitlines() if self.log.exists() else []


class Case(unittest.TestCase):
    def machine(self, *programs):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        machine = Machine(folder, *programs)
        machine.scripts = pathlib.Path(folder) / "source/tools"  # a clone that was never built
        machine.scripts.mkdir(parents=True)
        for name in ("install_packages.sh", "packages.txt"):
            shutil.copy(ROOT / "tools" / name, machine.scripts)
        return machine


class WithoutAptGet(Case):
    def test_names_the_packages_and_goes_on(self):
        done = self.machine(*BUILD_TOOLS).install("build")
        self.assertEqual(done.returncode, 0, done.stderr)
        for word in ("no apt-get", "libfmt-dev", "libboost1.81-dev", "libssl-dev", "docs/install.md"):
            self.assertIn(word, done.stderr)
        self.assertNotIn("|", done.stderr)
        self.assertNotIn("libgtest-dev", done.stderr)  # of another purpose

    def test_says_it_once(self):
        machine = self.machine(*BUILD_TOOLS)
        build = machine.scripts.parent / "build/release"
        build.mkdir(parents=True)
        (build / "build.ninja").touch()
        done = machine.install("build")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_tool_that_is_missing_ends_it(self):
        done = self.machine("ninja", "pkg-config").install("build")
        self.assertEqual(done.returncode, 1)
        self.assertIn("Not found: cmake c++.", done.stderr)
        self.assertIn("libfmt-dev", done.stderr)


class WithAptGet(Case):
    def debian(self, installed=(), offered=(), user=0):
        machine = self.machine(*BUILD_TOOLS, "apt-get")
        machine.add("dpkg-query", f'for last; do :; done; case " {" ".join(installed)} " in *" $last "*) printf installed;; *) exit 1;; esac')
        machine.add("apt-cache", f'case " {" ".join(offered)} " in *" $2 "*) echo "  Candidate: 1";; *) echo "  Candidate: (none)";; esac')
        machine.add("id", f"echo {user}")
        return machine

    def all(self, boost):
        listed = [line.split()[1] for line in (ROOT / "tools/packages.txt").read_text().splitlines() if line.startswith("build ")]
        return [name for name in listed if "|" not in name] + [boost]

    def test_nothing_is_done_if_all_is_there(self):
        for boost in ("libboost1.81-dev", "libboost1.83-dev"):
            machine = self.debian(self.all(boost))
            done = machine.install("build")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertFalse([call for call in machine.calls() if call.startswith("apt-get")])

    def test_the_name_that_the_system_offers_is_installed(self):
        for offered in ("libboost1.81-dev", "libboost1.83-dev"):
            machine = self.debian(self.all("libedit-dev"), [offered])
            self.assertEqual(machine.install("build").returncode, 0)
            self.assertEqual([call for call in machine.calls() if "install" in call and call.startswith("apt-get")],
                             [f"apt-get install -y -q --no-install-recommends {offered}"])

    def test_a_user_who_may_not_install_gets_the_command(self):
        machine = self.debian(self.all("libboost1.83-dev")[1:], user=1000)
        done = machine.install("build")
        self.assertEqual(done.returncode, 1)
        self.assertIn("apt-get install -y --no-install-recommends cmake\n", done.stderr)


class MakeRun(Case):
    def test_no_shell_reads_the_prompt(self):
        machine = self.machine(*BUILD_TOOLS)
        told = machine.bin / "told"
        latte = machine.bin / "latte"
        latte.write_text(f'#!/bin/sh\nfor word; do printf "%s\\n" "$word"; done > {told}\n')
        latte.chmod(0o755)
        prompt = "He said \"hi\" `false` $HOME $(HOME) 'x' \\ #"
        done = machine.run("make", "-C", str(ROOT), "run", f"LATTE={latte}", f"BUILD={machine.bin}", f"PROMPT={prompt}", "MODEL=a b")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(told.read_text().splitlines(), ["run", "a b", "-p", prompt, "--seed", "0", "--stats"])


class MakeBuild(Case):
    def tree(self, fetch):
        """A machine with a source tree whose scripts only tell that they ran; `fetch` is what get_xgrammar.sh does."""
        machine = self.machine("cmake", "ninja", "pkg-config", "c++", "mkdir", "touch")
        for name in ("mkdir", "touch"):
            (machine.bin / name).unlink()
            (machine.bin / name).symlink_to(shutil.which(name))
        shutil.copy(ROOT / "Makefile", machine.scripts.parent)
        for name, text in (("install_packages.sh", "true"), ("configure.sh", "true"), ("get_xgrammar.sh", fetch)):
            path = machine.scripts / name
            path.write_text(f'#!/bin/sh\necho {name} "$@" >> {machine.log}\n{text}\n')
            path.chmod(0o755)
        machine.make = lambda *words: machine.run("make", "--silent", "-C", str(machine.scripts.parent), *words)
        return machine

    def test_fetches_xgrammar_before_it_configures(self):
        machine = self.tree("true")
        done = machine.make("build")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        names = [call.split()[0] for call in machine.calls()]
        self.assertLess(names.index("get_xgrammar.sh"), names.index("configure.sh"))
        self.assertIn("cmake --build --preset release --target latte latte_shared", machine.calls())

    def test_goes_on_without_pypi_and_says_so(self):
        for absent in ("get_xgrammar.sh", "install_packages.sh"):
            machine = self.tree("exit 1" if absent == "get_xgrammar.sh" else "true")
            if absent == "install_packages.sh":
                script = machine.scripts / absent
                script.write_text(script.read_text() + '[ "$1" != grammar ]\n')
            done = machine.make("build")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("xgrammar is not there", done.stderr)
            self.assertIn("cmake --build --preset release --target latte latte_shared", machine.calls())

    def test_make_grammar_fails_then(self):
        machine = self.tree("exit 1")
        self.assertNotEqual(machine.make("grammar").returncode, 0)
        self.assertFalse([call for call in machine.calls() if call.startswith("cmake --build")])

    def test_does_not_ask_for_it_on_demand(self):
        machine = self.tree("exit 1")
        self.assertEqual(machine.make("build", "GRAMMAR=0").stderr, "")
        self.assertNotIn("get_xgrammar.sh build/xgrammar", machine.calls())

    def test_make_run_only_tells_how_to_get_it(self):
        machine = self.tree("exit 1")
        for name in ("printf", "echo"):
            (machine.bin / name).unlink(missing_ok=True)
        latte = machine.bin / "latte"
        latte.write_text("#!/bin/sh\n")
        latte.chmod(0o755)
        done = machine.make("run", f"LATTE={latte}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("get_xgrammar.sh build/xgrammar", machine.calls())
        self.assertIn("need xgrammar: make build fetches it", done.stderr.splitlines()[-1])
        (machine.scripts.parent / "build/xgrammar").mkdir(parents=True)
        (machine.scripts.parent / "build/xgrammar/installed").touch()
        self.assertNotIn("xgrammar", machine.make("run", f"LATTE={latte}").stderr)


if __name__ == "__main__":
    ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
