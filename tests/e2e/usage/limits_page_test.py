"""docs/limits.md: the program writes it, its constants stand in the source, and its tests exist.
Usage: limits_page_test.py LATTE_BINARY."""
import functools
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs/limits.md"
BINARY = ""
UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
# Groups of docs/options.md whose options are limits, but for these, which are amounts of work.
GROUPS = ("### Limits", "### Queue")
NO_LIMITS = {"--workers", "--aging-steps"}


def rows():
    """(limit, most, set by, beyond it, shown by) of each row of the page."""
    for line in PAGE.read_text().splitlines():
        if line.startswith("| ") and not line.startswith("| Limit |"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def value_of(name, text):
    """The number that a constant or a member begins with, where `text` declares it."""
    text = re.sub(r"(?:u?int64_t|size_t)\{(\w+)\}", r"\1", text).replace("'", "")
    found = re.search(rf"\b{name}\s*[={{]\s*([\w\s.<*+-]+)", text)
    expression = re.sub(r"(?<=\d)[uUlLzZ]+\b", "", found[1]).strip() if found else "nothing"
    return eval(expression) if re.fullmatch(r"[\d\s.<*e+-]+", expression) else expression


def number(most):
    """"256 KiB" is 262144, "10^18" is 1e18, "1,000 bytes" is 1000."""
    digits, unit = re.fullmatch(r"([\d,.^]+)(?: (KiB|MiB|GiB)| bytes)?", most).groups()
    if "^" in digits:
        base, power = digits.split("^")
        return float(base) ** int(power)
    return int(digits.replace(",", "")) * UNITS[unit or ""]


@functools.cache
def unit_tests():
    names = set()
    for folder in ("src", "lab", "apps", "tests"):
        for path in (ROOT / folder).rglob("*_test.cc"):
            for suite, name in re.findall(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", path.read_text(), re.M):
                names.add(f"{suite}.{name}")
    return names


class LimitsPage(unittest.TestCase):
    def test_is_what_the_program_writes(self):
        written = subprocess.run([BINARY, "inspect", "--limits"], text=True, capture_output=True, timeout=60)
        self.assertEqual(written.stdout, PAGE.read_text(), "docs/limits.md is stale: latte inspect --limits > docs/limits.md")

    def test_constants_are_those_of_the_source(self):
        checked = 0
        for limit, most, place, _, _ in rows():
            found = re.fullmatch(r"`(\w+)` in `(\S+)`", place)
            if not found:
                continue
            with self.subTest(limit):
                self.assertEqual(number(most), value_of(found[1], (ROOT / found[2]).read_text()), place)
                checked += 1
        self.assertGreater(checked, 40)

    def test_every_test_exists(self):
        for limit, _, _, _, test in rows():
            with self.subTest(limit):
                if " " not in test:
                    self.assertIn(test, unit_tests())
                    continue
                program, function = test.split(" ")
                self.assertRegex((ROOT / program).read_text(), rf"def {function}\b|\"{function}\b")

    def test_every_option_that_is_a_limit_is_listed(self):
        page, options = PAGE.read_text(), (ROOT / "docs/options.md").read_text()
        for group in GROUPS:
            flags = re.findall(r"^\| `\w+` \| `(--[\w-]+)`", options.split(group + "\n")[1].split("\n#")[0], re.M)
            self.assertGreater(len(flags), 2)
            for flag in set(flags) - NO_LIMITS:
                self.assertIn(f"| `{flag}` |", page, "apps/flags/manual/limits_document.cc lacks this option")


if __name__ == "__main__":
    BINARY = sys.argv.pop(1)
    unittest.main()
