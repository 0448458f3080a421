"""One binary for many processors: LATTE_ISA, and older processors in qemu. Usage: isa_test.py LATTE_BINARY"""
import json
import os
import shutil
import subprocess
import sys
import unittest

LATTE = None
QEMU = shutil.which("qemu-x86_64")
ISAS = ["ref", "avx2", "avx512", "avx512_vnni", "avx512_bf16", "amx"]
RUN = ["run", "-p", "Once upon a time", "-n", "4", "--temperature", "0", "--threads", "2"]


def latte(*args, isa=None, cpu=None):
    env = {k: v for k, v in os.environ.items() if k not in ("LATTE_ISA", "LATTE_KERNEL")}
    if isa is not None:
        env["LATTE_ISA"] = isa
    emulator = [QEMU, "-cpu", cpu] if cpu else []
    return subprocess.run([*emulator, LATTE, *args], text=True, capture_output=True, timeout=500, env=env)


class Isa(unittest.TestCase):
    def test_every_level_runs_or_says_what_is_missing(self):
        ran = []
        for isa in ISAS:
            done = latte(*RUN, isa=isa)
            if done.returncode == 0:
                self.assertTrue(done.stdout.startswith("Once upon a time"), isa)
                ran.append(isa)
            else:
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(f"LATTE_ISA={isa}", done.stderr)
        self.assertEqual(ran, ISAS[:len(ran)])  # each level includes the ones before it
        self.assertIn("ref", ran)

    def test_an_unknown_level_is_refused(self):
        done = latte(*RUN, isa="sse9")
        self.assertEqual(done.returncode, 2)
        self.assertIn("'sse9'", done.stderr)


@unittest.skipUnless(QEMU, "qemu-x86_64 is not installed (package qemu-user)")
class OldProcessors(unittest.TestCase):
    def test_haswell_runs_the_avx2_rows(self):
        done = latte(*RUN, cpu="Haswell")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith("Once upon a time"))
        rows = json.loads(latte("inspect", "--kernels", "--json", cpu="Haswell").stdout)
        self.assertIn("avx2.gemm", json.dumps(rows))
        self.assertEqual(latte(*RUN, isa="avx512", cpu="Haswell").returncode, 2)

    def test_nehalem_is_told_what_it_lacks(self):
        done = latte(*RUN, cpu="Nehalem")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stdout, "")
        for word in ("AVX2", "FMA", "F16C", "LATTE_ISA=ref"):
            self.assertIn(word, done.stderr)

    def test_nehalem_runs_the_reference_when_asked(self):
        done = latte("run", "-p", "Once", "-n", "1", "--threads", "1", isa="ref", cpu="Nehalem")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_nehalem_does_what_needs_no_kernels(self):
        done = latte("--version", cpu="Nehalem")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"instruction sets: ref, avx2, .*; here: .*lacks AVX2")

    def test_version_names_the_set_that_is_used(self):
        self.assertIn("; here: avx2\n", latte("--version", isa="avx2").stdout)
        self.assertIn("; here: ref\n", latte("--version", isa="ref").stdout)


if __name__ == "__main__":
    LATTE = sys.argv.pop(1)
    unittest.main()
