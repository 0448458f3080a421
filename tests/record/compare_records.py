"""Compares two records of outputs, of kernels or of answers: which hashes are equal, which differ.

Usage: compare_records.py BEFORE AFTER [--names FILE] [--by-position] [--show N]
Record kernels with LATTE_RECORD_OUTPUTS=FILE conformance_test, answers with record_answers.py.
Lines of the two records with the same names form a pair: for kernels the test, op, kernel and machine (the first call of
a kernel within a test with the first, and so on), for answers the name. --names lists renamed ones: lines "OLD NEW"; a
name is a whole column. --by-position pairs the calls of a test by their order and ignores ops and kernels, for a kernel
that was split into several. Exits 1 unless every line of BEFORE has an equal one in AFTER and each
kernel that AFTER lists as runnable has a line.
"""
import argparse
import collections
import sys


def read_names(path):
    return dict(line.split() for line in open(path, encoding="utf-8") if line.strip()) if path else {}


def key_of(fields, names, by_position):
    if len(fields) == 2:  # of an answer: name, hash
        return (names.get(fields[0], fields[0]),)
    test, op, row, machine = (names.get(field, field) for field in fields[:4])
    return (test,) if by_position else (test, op, row, machine)


def read_record(path, names, by_position):
    """{(names…, n-th line of these names): hash}, lines per (op, kernel), and the kernels listed without a line."""
    hashes, seen, rows, listed = {}, collections.Counter(), collections.Counter(), set()
    for line in open(path, encoding="utf-8"):
        fields = line.rstrip("\n").split("\t")
        if fields[0] == "#":
            listed.add((fields[1], fields[2]))
            continue
        key = key_of(fields, names, by_position)
        hashes[(*key, seen[key])] = fields[-1]
        seen[key] += 1
        if len(fields) > 2:
            rows[fields[1], fields[2]] += 1
    return hashes, rows, sorted(listed - set(rows))


def show(title, keys, limit):
    print(f"{title}: {len(keys)}")
    for key in keys[:limit]:
        print("   ", *key)
    for name, count in collections.Counter(key[0] for key in keys[limit:]).items():
        print(f"    … and {count} of {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--names", help="file of lines OLD NEW")
    parser.add_argument("--by-position", action="store_true", help="pair calls of a test by order, ignore ops and rows")
    parser.add_argument("--show", type=int, default=10, help="lines shown of each kind (default: 10)")
    args = parser.parse_args()
    before, _, _ = read_record(args.before, read_names(args.names), args.by_position)
    after, rows, without = read_record(args.after, {}, args.by_position)
    shared = [key for key in before if key in after]
    differ = [key for key in shared if before[key] != after[key]]
    missing = [key for key in before if key not in after]
    added = [key for key in after if key not in before]
    for (op, row), count in sorted(rows.items()):
        print(f"{op:20} {row:28} {count:7} lines")
    print(f"equal: {len(shared) - len(differ)} of {len(before)}")
    for title, keys in {"differ": differ, "only in BEFORE": missing, "only in AFTER": added,
                        "kernels without a line in AFTER": without}.items():
        show(title, keys, args.show)
    return bool(differ or missing or without or not before)


if __name__ == "__main__":
    sys.exit(main())
