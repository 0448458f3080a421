#!/usr/bin/env python3
"""tools/configure.sh: when it configures, with what, and which build folders it refuses. cmake is replaced by a script that notes its
arguments and writes what the script reads of a build folder.

Usage: configure_test.py SOURCE
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv.pop())
CMAKE = """#!/bin/sh
echo "$*" >>"$NOTES"
mkdir -p build/release
echo "CMAKE_CACHEFILE_DIR:INTERNAL=$PWD/build/release" >build/release/CMakeCache.txt
touch build/release/build.ninja
"""


class Configure(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.tree = self.folder / "tree"
        (self.tree / "tools").mkdir(parents=True)
        shutil.copy2(SOURCE / "tools/configure.sh", self.tree / "tools")
        self.programs = self.folder / "bin"
        self.programs.mkdir()
        self.program("cmake", CMAKE)
        for name in ("sh", "sed", "cat", "dirname", "mkdir", "touch"):
            (self.programs / name).symlink_to(shutil.which(name))

    def program(self, name, text):
        (self.programs / name).write_text(text)
        (self.programs / name).chmod(0o755)

    def configure(self, *arguments, tree=None, status=0, **variables):
        """The arguments of each run of cmake."""
        notes = self.folder / "notes"
        notes.write_text("")
        done = subprocess.run([(tree or self.tree) / "tools/configure.sh", "release", *arguments], text=True, capture_output=True,
                              env={"PATH": str(self.programs), "NOTES": str(notes), **variables})
        self.assertEqual(done.returncode, status, done.stderr)
        self.said = done.stderr
        return notes.read_text().splitlines()

    def test_a_new_folder_is_configured_once(self):
        self.assertEqual(self.configure(), ["--preset release -DLATTE_BUILD_TESTS=OFF -DLATTE_DEVELOPER_MODE=OFF -DLATTE_XGRAMMAR=OFF"])
        self.assertEqual(self.configure(), [])

    def test_warnings_are_errors_on_demand(self):
        self.assertIn("-DLATTE_DEVELOPER_MODE=ON", self.configure(DEVELOPER="ON")[0])

    def test_arguments_always_configure(self):
        self.configure()
        self.assertEqual(self.configure("-DLATTE_BUILD_TESTS=ON"), ["--preset release -DLATTE_BUILD_TESTS=ON"])

    def test_the_arguments_of_a_new_folder_win(self):
        self.assertTrue(self.configure("-DLATTE_BUILD_TESTS=ON")[0].endswith("-DLATTE_BUILD_TESTS=ON"))

    def test_open_mpi_that_arrives_and_goes_is_looked_for_again(self):
        self.configure()
        self.program("mpicc", "")
        self.assertEqual(self.configure(), ["--preset release -U MPI_* -DLATTE_XGRAMMAR=OFF"])
        self.assertEqual(self.configure(), [])
        (self.programs / "mpicc").unlink()
        self.assertEqual(len(self.configure()), 1)

    def test_xgrammar_that_arrives_is_linked(self):
        self.configure()
        (self.tree / "build/xgrammar").mkdir()
        (self.tree / "build/xgrammar/installed").write_text("0.2.8 hash\n")
        self.assertEqual(self.configure(), ["--preset release -U MPI_* -DLATTE_XGRAMMAR=ON"])
        self.assertEqual(self.configure(), [])

    def test_a_copied_tree_is_refused(self):
        self.configure()
        copy = self.folder / "copy"
        shutil.copytree(self.tree, copy)
        self.assertEqual(self.configure(tree=copy, status=2), [])
        self.assertIn(f"build/release belongs to {self.tree}/build/release", self.said)
        self.assertIn("rm -r build/release", self.said)
        self.assertEqual(self.configure(), [])  # the original still works

    def test_a_moved_tree_is_refused(self):
        self.configure()
        moved = self.folder / "moved"
        self.tree.rename(moved)
        self.assertEqual(self.configure(tree=moved, status=2), [])

    def test_a_tree_behind_a_link_is_itself(self):
        self.configure()
        link = self.folder / "link"
        link.symlink_to(self.tree)
        self.assertEqual(self.configure(tree=link), [])


if __name__ == "__main__":
    unittest.main()
