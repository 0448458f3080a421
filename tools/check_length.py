#!/usr/bin/env python3
"""Lines of C, C++ and CUDA files have at most 100 columns, comments too. Raw strings are data, and an address cannot be divided."""
import pathlib
import re
import subprocess
import sys

MOST = 100
RAW = re.compile(r'R"([^()\s\\]{0,16})\(')


def lines_of_code(text):
    """Number and text of each line that has no part of a raw string."""
    end = None  # of the raw string that the line before has begun
    for number, line in enumerate(text.split("\n"), 1):
        raw = end is not None
        rest = line
        while True:
            if end is not None:
                _, found, rest = rest.partition(end)
                if not found:
                    break
                end = None
            begin = RAW.search(rest)
            if not begin:
                break
            raw = True
            end = f'){begin.group(1)}"'
            rest = rest[begin.end():]
        if not raw:
            yield number, line


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.h", "*.cc", "*.c", "*.cuh", "*.cu"]
    files = subprocess.run(words, cwd=root, check=True, capture_output=True, text=True).stdout.split()
    too_long = [f"{file}:{number}: {len(line)} columns, at most {MOST}"
                for file in files if (root / file).exists()
                for number, line in lines_of_code((root / file).read_text(encoding="utf-8"))
                if len(line) > MOST and "http" not in line]
    for text in too_long:
        print(text)
    return 1 if too_long else 0


if __name__ == "__main__":
    sys.exit(main())
