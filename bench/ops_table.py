#!/usr/bin/env python3
"""Prints the ops of `latte bench model --json` records as Markdown tables, one column per context depth.

  bench/ops_table.py RECORDS.jsonl [--least MS]

One table for prefill, one for decode. A cell is "ms (bound, share)": the mean time of all calls of the op in a prompt or step, the
larger of its FLOPs at the f32 peak and its bytes at the speed of memory, and that bound as a share of the time. An op without counted
work has its time alone. Ops that take less than MS milliseconds at every depth are added up as "other".
"""
import argparse
import json
import pathlib


def cell(op):
    if not op:
        return ""
    if op["bound_ms"] == 0:
        return f"{op['ms']:.2f}"
    return f"{op['ms']:.2f} ({op['bound_ms']:.2f}, {op['share']:.2f})"


def table(phase, records, least):
    """The Markdown lines of "prefill" or "decode"."""
    columns = [record[phase]["ops"] for record in records]
    names = sorted({name for ops in columns for name in ops},
                   key=lambda name: -max(ops.get(name, {"ms": 0})["ms"] for ops in columns))
    shown = [name for name in names if any(ops.get(name, {"ms": 0})["ms"] >= least for ops in columns)]
    yield f"| {phase} | " + " | ".join(f"{record['depth']:,}" for record in records) + " |"
    yield "|---" * (len(records) + 1) + "|"
    for name in shown:
        yield f"| {name} | " + " | ".join(cell(ops.get(name)) for ops in columns) + " |"
    other = [sum(op["ms"] for name, op in ops.items() if name not in shown) for ops in columns]
    yield "| other | " + " | ".join(f"{ms:.2f}" for ms in other) + " |"
    yield "| all, median | " + " | ".join(f"{record[phase]['ms']:.1f}" for record in records) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", type=pathlib.Path)
    parser.add_argument("--least", type=float, default=0.1)
    args = parser.parse_args()
    records = [json.loads(line) for line in args.records.read_text().splitlines() if line.strip()]
    records.sort(key=lambda record: record["depth"])
    for phase in ("prefill", "decode"):
        having = [record for record in records if phase in record]
        if having:
            print("\n".join(table(phase, having, args.least)), end="\n\n")


if __name__ == "__main__":
    main()
