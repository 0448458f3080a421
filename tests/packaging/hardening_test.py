#!/usr/bin/env python3
"""The binary and the library carry the checks that cmake/warnings.cmake turns on.

hardening_test.py LATTE LIBRARY ARCHIVE
"""
import subprocess
import sys
import unittest

LATTE, LIBRARY, ARCHIVE = sys.argv[1:4]


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], check=True, capture_output=True, text=True, timeout=100).stdout


class Hardening(unittest.TestCase):
    def test_every_symbol_is_bound_before_main_and_then_read_only(self):
        for path in (LATTE, LIBRARY):
            self.assertIn("NOW", readelf("-d", path), path)
            self.assertIn("GNU_RELRO", readelf("-l", path), path)

    def test_the_binary_has_no_fixed_address(self):
        self.assertIn("PIE", readelf("-d", LATTE))

    def test_no_stack_is_executable(self):
        for path in (LATTE, LIBRARY):
            stack = [line for line in readelf("-l", path).splitlines() if "GNU_STACK" in line]
            self.assertEqual(len(stack), 1, path)
            self.assertNotIn("E", stack[0].split()[-2], path)

    def test_no_section_is_writable_and_executable(self):
        for path in (LATTE, LIBRARY):
            for line in readelf("-l", path).splitlines():
                if line.split()[:1] == ["LOAD"]:
                    self.assertNotIn("WE", "".join(line.split()[6:-1]), path)

    def test_calls_that_write_to_buffers_know_their_size(self):
        for path in (LATTE, LIBRARY):
            names = {line.split()[7].split("@")[0] for line in readelf("--dyn-syms", path).splitlines()[3:] if len(line.split()) > 7}
            self.assertIn("__stack_chk_fail", names, path)
            self.assertTrue(any(name.startswith("__") and name.endswith("_chk") for name in names), f"{path} calls no checked function")

    @unittest.skipUnless(subprocess.run(["uname", "-m"], capture_output=True, text=True).stdout.strip() == "x86_64", "not x86-64")
    def test_indirect_branches_reach_marked_places_only(self):
        notes = readelf("-n", ARCHIVE)
        objects = notes.count("File: ")
        self.assertGreater(objects, 0)
        self.assertEqual(notes.count("IBT, SHSTK"), objects)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
