"""The examples that people paste, the server and pull. Usage: examples_test.py BUILD_DIR LATTE_BINARY."""
import csv
import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import support

EXAMPLES = support.ROOT / "examples/python"


class Examples(unittest.TestCase):
    def run_example(self, name, *arguments):
        done = subprocess.run([sys.executable, EXAMPLES / name, *map(str, arguments)], text=True, capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_stream_chat(self):
        self.assertGreater(len(self.run_example("stream_chat.py")), 20)

    def test_openai_server(self):
        url, answer = self.run_example("openai_server.py").split("\n", 1)
        self.assertRegex(url, r"^http://127\.0\.0\.1:\d+/v1$")
        self.assertGreater(len(answer), 5)

    def test_absorbed_einsum(self):
        if importlib.util.find_spec("numpy") is None:
            self.skipTest("not installed: numpy")
        error = re.match(r"largest error (\S+) of", self.run_example("absorbed_einsum.py"))
        self.assertLess(float(error[1]), 1e-5)

    def test_the_page_prints_the_error(self):
        if importlib.util.find_spec("numpy") is None:
            self.skipTest("not installed: numpy")
        page = (support.ROOT / "docs/python.md").read_text()
        code = next(block for block in re.findall(r"```python\n(.*?)```", page, re.S) if "largest error" in block)
        done = support.python(code)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLess(float(done.stdout.removeprefix("largest error")), 1e-4)

    def test_batch_csv(self):
        with tempfile.TemporaryDirectory(prefix="latte_python_") as folder:
            rows, out = pathlib.Path(folder) / "in.csv", pathlib.Path(folder) / "out.csv"
            rows.write_text('text\n"The sun, it shines."\nRain again.\n')
            done = subprocess.run([sys.executable, EXAMPLES / "batch_csv.py", rows, out], text=True, capture_output=True, timeout=120)
            if "xgrammar" in done.stderr:
                self.skipTest("not built with xgrammar")
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(out, newline="") as file:
                table = list(csv.DictReader(file))
        self.assertEqual([row["text"] for row in table], ["The sun, it shines.", "Rain again."])
        self.assertTrue(all(row["mood"] in ("happy", "sad", "neutral") and 0 <= int(row["length"]) <= 99 for row in table))

    def test_a_server_that_does_not_start(self):
        import latte_mla
        with self.assertRaises(latte_mla.LatteError) as caught:
            latte_mla.Server("no/such")
        self.assertEqual(caught.exception.code, "invalid_argument")
        self.assertIn("no/such", str(caught.exception))

    def test_pull_of_nothing(self):
        done = support.python("import latte_mla; latte_mla.pull('no such name')")
        self.assertIn("LatteError: latte pull no such name ended with 2", done.stderr)


if __name__ == "__main__":
    support.main()
