"""Helpers for the tests of the Python package. Usage of each: TEST.py BUILD_DIR LATTE_BINARY. BUILD_DIR -: the package that this Python
has installed, such as a wheel."""
import os
import pathlib
import resource
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = BINARY = None
SMALL = {"threads": 1, "cache_bytes": 32 << 20}  # engines of the tests


class WithTiny(unittest.TestCase):
    """Tests over one loaded tiny."""

    @classmethod
    def setUpClass(cls):
        import latte_mla
        cls.latte = latte_mla
        cls.llm = latte_mla.LLM("tiny", **SMALL)

    @classmethod
    def tearDownClass(cls):
        cls.llm.close()

    def params(self, **fields):
        return self.latte.SamplingParams(**{"seed": 1, "max_tokens": 8, "ignore_eos": True, **fields})


def use(build, binary):
    """The package of this tree over the library of a build, or the installed one."""
    global BUILD, BINARY
    BUILD, BINARY = pathlib.Path(build), binary
    os.environ["PATH"] = f"{pathlib.Path(binary).parent}:{os.environ['PATH']}"
    if build == "-":
        return
    os.environ["LATTE_LIBRARY"] = str(BUILD / "liblatte.so")
    sys.path.insert(0, str(ROOT / "python"))
    os.environ["PYTHONPATH"] = f"{ROOT / 'python'}:{os.environ.get('PYTHONPATH', '')}"


def python(code, **more):
    """Runs `code` in another process."""
    return subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, timeout=120, **more)


def memory_bytes():
    """Of this process now."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def main():
    use(*sys.argv[1:3])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
