#!/usr/bin/env python3
"""Runs the measurements that the documents quote and keeps them as JSON lines.

  bench/run.py LATTE_BINARY OUT.jsonl [--threads N] [--only SUBSTRING]

Every line is one record of `latte bench … --json` plus the command, the processor, the commit and the time.
Run it on an idle machine.
"""
import argparse
import datetime
import json
import pathlib
import platform
import subprocess
import sys

DECODE_HEADS = (128, 64, 16)
CACHES = ("bf16", "fp8", "int8", "q6")
WEIGHTS = ("bf16", "fp8", "int8", "int4")
CONTEXTS = (0, 512, 2048, 4096, 8192, 16384, 32768)


def commands(threads):
    """The measurements, without the binary's name."""
    for heads in DECODE_HEADS:
        for q_len in (1, 2, 4):
            yield f"attention --phase decode --heads {heads} --context 8192 --q-len {q_len}"
    for cache in CACHES[1:]:
        for heads in (128, 16):
            yield f"attention --phase decode --heads {heads} --context 8192 --cache-dtype {cache}"
        for heads in (1, 2):
            yield f"attention --phase decode --heads {heads} --context 32768 --cache-dtype {cache}"
    for heads in (1, 2):
        yield f"attention --phase decode --heads {heads} --context 32768"
    for heads in (16, 128):
        yield f"attention --phase prefill --heads {heads} --context 2048 --q-len 2048"
    for m in (1, 512):
        for weights in WEIGHTS:
            yield f"gemm --m {m} --n 7168 --k 7168 --dtype {weights}"
    for weights in WEIGHTS:
        yield f"projections --dtype {weights}"
    yield "moe"
    for batch in (1, 32):
        yield f"absorption --batch {batch}"
    yield "dispatch"
    for depth in CONTEXTS:
        yield f"model --synthetic v2-lite:layers=4,vocab=16384 --depth {depth}"
    yield from one_sequence_commands()
    yield from engine_commands()


def one_sequence_commands():
    """One sequence, as other engines report it."""
    for weights in ("bf16", "int8"):
        shape = f"v2-lite:layers=4,vocab=16384,dtype={weights}"
        yield f"model --synthetic {shape} --prompt 2048"
        yield f"model --synthetic {shape} --depth 16384"
    yield "model --synthetic v3-attn:dtype=int8 --prompt 2048"
    yield "model --synthetic v3-attn:dtype=int8 --depth 16384"
    yield "model --synthetic v3-attn:dtype=int8 --depth 32768"


def engine_commands():
    """Many requests at once."""
    for weights in ("bf16", "int8"):
        yield f"batch --synthetic v2-lite:layers=4,vocab=16384,dtype={weights} --gen 48"
    for shape in ("v2-lite:layers=4,vocab=16384,dtype=int8", "v3-attn:dtype=int8"):
        for depth in (0, 4096):
            yield f"model --synthetic {shape} --prompt 0 --batch 8 --depth {depth}"
    yield "prefix --synthetic v2-lite:layers=4,vocab=16384"
    yield "determinism --synthetic v2-lite:layers=4,vocab=16384 --requests 8 --gen 96"
    common = "--output-mean 64 --shared-prefix 64 --context 2048"
    yield f"simulation tiny --requests 200 --rate 0 {common}"
    yield f"simulation tiny --requests 80 --rate 8 --prefix-groups 4 {common}"


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("latte")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="", help="run the commands that contain this")
    args = parser.parse_args()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], text=True, capture_output=True).stdout.strip()
    failed = 0
    with args.out.open("a") as out:
        for command in commands(args.threads):
            if args.only not in command:
                continue
            words = [args.latte, "bench", *command.split(), "--threads", str(args.threads), "--json"]
            done = subprocess.run(words, text=True, capture_output=True)
            if done.returncode != 0:
                print(f"{command}: {done.stderr.strip()}", file=sys.stderr)
                failed += 1
                continue
            record = json.loads(done.stdout)
            record["command"] = f"latte bench {command} --threads {args.threads}"
            record["processor"] = processor()
            record["commit"] = commit
            record["time"] = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
            out.write(json.dumps(record) + "\n")
            out.flush()
            print(f"{command}: {record.get('us', record.get('worst_ratio', ''))}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
