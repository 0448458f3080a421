#!/usr/bin/env python3
"""Compares two sets of logits: mean, median and largest KL divergence per token, and how often the most probable token is
the same.

Usage: kl.py REFERENCE.npy OTHER.npy, both as `latte score --logits` writes them. Standard library only.
"""
import array
import ast
import math
import statistics
import sys


def read(path):
    """A float32 matrix -> list of rows"""
    with open(path, "rb") as file:
        data = file.read()
    size = int.from_bytes(data[8:10], "little")
    rows, columns = ast.literal_eval(data[10:10 + size].decode())["shape"]
    values = array.array("f", data[10 + size:])
    return [values[i * columns:(i + 1) * columns] for i in range(rows)]


def log_softmax(row):
    top = max(row)
    total = math.log(math.fsum(math.exp(x - top) for x in row)) + top
    return [x - total for x in row]


def divergences(reference, other):
    """Two such lists -> (KL divergence of each row in nats, rows whose first choice is the same)"""
    found, same = [], 0
    for a, b in zip(map(log_softmax, reference), map(log_softmax, other)):
        found.append(math.fsum(math.exp(p) * (p - q) for p, q in zip(a, b)))
        same += a.index(max(a)) == b.index(max(b))
    return found, same


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    reference, other = (read(path) for path in sys.argv[1:])
    if [len(row) for row in reference] != [len(row) for row in other]:
        sys.exit("the two have other shapes")
    found, same = divergences(reference, other)
    print(f"{len(found)} tokens: KL mean {statistics.fmean(found):.2e}, median {statistics.median(found):.2e}, "
          f"largest {max(found):.2e} nats; same first choice {same / len(found):.4f}")


if __name__ == "__main__":
    main()
