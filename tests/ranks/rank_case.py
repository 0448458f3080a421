"""A test that runs commands in a folder of its own."""
import pathlib
import subprocess
import tempfile
import unittest


def call(command, **others):
    return subprocess.run(list(map(str, command)), capture_output=True, timeout=300, **{"stdin": subprocess.DEVNULL, **others})


class RankCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)

    def done(self, command, **others):
        """The output of a command that succeeds."""
        done = call(command, **others)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done.stdout
