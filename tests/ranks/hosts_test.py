"""Ranks on two hosts, over TCP. Usage: hosts_test.py LATTE MPIRUN SOURCE_DIR."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import hosts as lab

LATTE = MPIRUN = None
SOURCE = pathlib.Path()


def processes(text):
    """Of ranks whose command line has `text`."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0] == LATTE.encode() and text.encode() in words:
            found.append(int(entry.name))
    return found


class TwoHosts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)
        self.hosts = lab.Hosts(MPIRUN)
        self.hosts.__enter__()
        self.addCleanup(self.hosts.__exit__)

    def test_logits_are_those_of_one_rank(self):
        ids = ",".join(str(7 * i % 190) for i in range(60))
        words = [LATTE, "score", SOURCE / "models/tiny", "--ids", ids, "--threads", 1, "--logits"]
        one, two = self.dir / "one.npy", self.dir / "two.npy"
        for command in (list(map(str, [*words, one])), self.hosts.command(*words, two, "--tp", 2)):
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(one.read_bytes(), two.read_bytes())

    def test_a_cut_link_ends_all_ranks_and_names_the_host(self):
        text = f"Once upon a time {os.getpid()}"
        command = self.hosts.command(LATTE, "run", SOURCE / "models/tiny", "-p", text, "-n", 3900, "--ignore-eos", "--tp", 2,
                                     "--threads", 1)
        with (self.dir / "errors").open("w+", encoding="utf-8") as errors:
            with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors) as started:
                try:
                    self.assertTrue(started.stdout.read(40))  # the ranks compute
                    self.assertEqual(len(processes(text)), 2)
                    self.hosts.cut()
                    begin = time.monotonic()
                    self.assertNotEqual(started.wait(timeout=30), 0)
                    while processes(text) and time.monotonic() < begin + 30:
                        time.sleep(0.1)
                    self.assertEqual(processes(text), [])
                finally:
                    for process in [started.pid, *processes(text)]:
                        try:
                            os.kill(process, signal.SIGKILL)
                        except ProcessLookupError:
                            pass
            errors.seek(0)
            # Open MPI names the host, unless the cut comes before it has noted that all daemons run.
            self.assertRegex(errors.read(), f"(?s)lost communication with a remote daemon.*on node {self.hosts.names[1]}"
                                            "|unable to reliably start one or more daemons")


if __name__ == "__main__":
    LATTE, MPIRUN = sys.argv[1:3]
    SOURCE = pathlib.Path(sys.argv[3])
    lab.skip_if_not_permitted(MPIRUN)
    os.environ["LATTE_ISA"] = "avx2"
    unittest.main(argv=sys.argv[:1], verbosity=2)
