"""Compares `latte score` with oracle logits of every checkpoint below a folder, for each attention mode and chunk size.

Usage: acceptance.py LATTE_BINARY FOLDER [--tolerance 2e-4]
FOLDER is what `make_goldens.py --out FOLDER --variants --seed N …` wrote: checkpoints that no test contains.
Prints the largest difference per checkpoint; exits 1 if one passes the tolerance. Needs numpy.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

MODES = ["decompressed", "latent", "absorbed", "auto"]
CHUNKS = [1, 7, 64, 0]


def largest_difference(binary, folder):
    ids = ",".join(map(str, json.loads((folder / "tokens.json").read_text())))
    golden = np.load(folder / "logits.npy")
    worst = 0.0
    with tempfile.TemporaryDirectory() as scratch:
        for mode in MODES:
            for chunk in CHUNKS:
                out = f"{scratch}/logits.npy"
                subprocess.run([binary, "score", folder, "--ids", ids, "--dtype", "f32", "--attention", mode,
                                "--max-batch-tokens", str(chunk), "--logits", out, "--json"], check=True, capture_output=True)
                worst = max(worst, float(np.abs(np.load(out) - golden).max()))
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--tolerance", type=float, default=2e-4)
    args = parser.parse_args()
    failed = 0
    folders = sorted(p.parent for p in args.folder.rglob("logits.npy"))
    for folder in folders:
        try:
            worst = largest_difference(args.binary, folder)
        except subprocess.CalledProcessError as error:
            print(f"{folder.name:24} refused: {error.stderr.decode().strip()}")
            failed += 1
            continue
        failed += not worst < args.tolerance
        print(f"{folder.name:24} {worst:.2e}{'' if worst < args.tolerance else '  TOO LARGE'}")
    print(f"{len(folders) - failed} passed, {failed} failed; {len(MODES) * len(CHUNKS)} runs each")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
