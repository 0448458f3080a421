"""KL divergence between the logits that two runs of `latte score --logits` wrote.

  python3 tools/tiny/kl.py REFERENCE.npy OTHER.npy ...

Needs nothing but Python. Prints mean and largest KL(reference ‖ other) in nats over the positions, and at how many
of them both like the same token best.
"""
import array
import ast
import math
import struct
import sys


def load(path):
    with open(path, "rb") as f:
        data = f.read()
    size = struct.unpack("<H", data[8:10])[0]
    rows, columns = ast.literal_eval(data[10 : 10 + size].decode())["shape"]
    values = array.array("f")
    values.frombytes(data[10 + size :])
    return [values[i * columns : (i + 1) * columns] for i in range(rows)]


def log_probabilities(row):
    top = max(row)
    total = math.log(sum(math.exp(x - top) for x in row)) + top
    return [x - total for x in row]


def main():
    reference = [log_probabilities(row) for row in load(sys.argv[1])]
    for path in sys.argv[2:]:
        other = [log_probabilities(row) for row in load(path)]
        kl = [sum(math.exp(a) * (a - b) for a, b in zip(p, q)) for p, q in zip(reference, other)]
        same = sum(p.index(max(p)) == q.index(max(q)) for p, q in zip(reference, other))
        print(f"{path}: mean {sum(kl) / len(kl):.2e}, largest {max(kl):.2e}, same best token {same} of {len(kl)}")


main()
