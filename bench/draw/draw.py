#!/usr/bin/env python3
"""Draws the pictures of the documents from the records in bench/results.

  bench/draw/draw.py [FOLDER] [--only NAME]

FOLDER is docs/plots by default. Equal records make equal bytes. Needs only Python. Every module of PICTURES draws one
picture; record.py makes the records of models and of the dashboard, bench/run.py the others.
"""
import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import batches  # noqa: E402
import caches  # noqa: E402
import dashboard  # noqa: E402
import memory  # noqa: E402
import paths  # noqa: E402
import peers  # noqa: E402
import rate  # noqa: E402
import request  # noqa: E402
from records import ROOT  # noqa: E402

PICTURES = (batches, caches, dashboard, memory, paths, peers, rate, request)


def draw_all(folder, only=None):
    """Writes NAME.svg of every picture, or of one; the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for module in PICTURES:
        if only in (None, module.__name__):
            written.append(folder / f"{module.__name__}.svg")
            written[-1].write_text(module.draw().svg())
    return written


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, nargs="?", default=ROOT / "docs/plots")
    parser.add_argument("--only", choices=[module.__name__ for module in PICTURES])
    args = parser.parse_args()
    print("\n".join(map(str, draw_all(args.folder, args.only))))


if __name__ == "__main__":
    main()
