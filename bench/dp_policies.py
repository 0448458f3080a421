#!/usr/bin/env python3
"""Compares the values of --dp-policy on three traces. Needs only Python's standard library.

Usage: dp_policies.py LATTE [MODEL] [--cost FILE] [--groups 2,4,8] [--seeds N] [--requests N] [--only TEXT] [--real]

mixed   prompts of 100 tokens, and of 4,000
shared  16 groups of prompts that begin alike, in a cache that holds six of these beginnings in each group of ranks
giant   one prompt of 4,000 tokens among prompts of 20 to 80

The traces are random and the same for the same seed. By simulation: requests/s where all requests are there at once; then the other
figures where they arrive as fast as round-robin serves them so. All are means over the seeds.

With --real, `latte serve --dp 2` answers the same traces with 32 requests in flight, policy by policy in turn. Times of ranks on a busy machine
differ widely, so the table has ratios to `tokens`: the median of the seeds, the least and the most. Steps, of the group that makes the most,
depend little on what else the machine does. "idle": of the tokens that all groups could have computed while the group with the most did, those
that they did not have.
"""
import argparse
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests/e2e/serve"))
from server import Server  # noqa: E402

POLICIES = ("balanced", "tokens", "round-robin")
PREFIX = 1024
TRACES = ("mixed", "shared", "giant")
SHARED_PAGES = 200  # of 64 tokens: six beginnings, and as much again for what differs


def lengths(trace, seed, count):
    """Prompt, answer and group of each request."""
    draw = random.Random(f"{trace} {seed}")
    giant = draw.randrange(count // 4, count // 2)
    for i in range(count):
        answer = draw.randint(16, 80)
        if trace == "mixed":
            yield 4000 if draw.random() < 0.25 else 100, answer, None
        elif trace == "shared":
            yield PREFIX + draw.randint(20, 220), answer, draw.randrange(16)
        else:
            yield 4000 if i == giant else draw.randint(20, 80), answer, None


def write(path, trace, seed, count, rate):
    """rate: requests per second; 0: all at once."""
    draw = random.Random(f"arrivals {seed}")
    now = 0
    with open(path, "w") as out:
        for prompt, answer, group in lengths(trace, seed, count):
            now += draw.expovariate(rate) if rate else 0
            line = {"arrival_s": now, "prompt_tokens": prompt, "output_tokens": answer}
            print(json.dumps(line if group is None else {**line, "prefix_group": group}), file=out)


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return done.stdout


def flags_of(args, trace):
    out = ["--page-tokens", 64]
    if trace == "shared":
        out += ["--cache-bytes", SHARED_PAGES * args.page_bytes]
    return out


def simulate(args, trace, path, seed, groups, policy):
    return json.loads(run(args.latte, "simulate", args.model, "--cost", args.cost, "--trace", path, "--shared-prefix", PREFIX, "--seed", seed,
                          "--dp", groups, "--dp-policy", policy, "--json", *flags_of(args, trace)))


def simulate_all(args, trace, folder):
    worst = {"at_once": 9.0, "requests_per_s": 9.0}
    for groups in args.groups:
        rows = {policy: [] for policy in POLICIES}
        for seed in range(args.seeds):
            count = args.requests * groups
            path = folder / "trace.jsonl"
            write(path, trace, seed, count, 0)
            at_once = {policy: simulate(args, trace, path, seed, groups, policy)["requests_per_s"] for policy in POLICIES}
            write(path, trace, seed, count, at_once["round-robin"])
            for policy in POLICIES:
                rows[policy].append({**simulate(args, trace, path, seed, groups, policy), "at_once": at_once[policy]})
        for policy, runs in rows.items():
            mean = {key: statistics.mean(one[key] for one in runs)
                    for key in ("at_once", "requests_per_s", "ttft_ms_p99", "idle_share", "prefix_hit_tokens")}
            print(f"| {trace} | {groups} | {policy} | {mean['at_once']:.1f} | {mean['requests_per_s']:.1f} | {mean['ttft_ms_p99']:.0f} | "
                  f"{100 * mean['idle_share']:.1f} | {mean['prefix_hit_tokens']:,.0f} |", flush=True)
        for key in worst:
            worst[key] = min([worst[key]] + [a[key] / b[key] for a, b in zip(rows["balanced"], rows["tokens"])])
    print(f"balanced / tokens, least of all runs of {trace}: {worst}", file=sys.stderr)


def serve(args, trace, path, seed, policy):
    with Server(args.latte, "--dp", 2, "--dp-policy", policy, "--draft-tokens", 0, *flags_of(args, trace), model=args.model) as server:
        out = json.loads(run(args.latte, "bench", "serve", "--url", f"http://127.0.0.1:{server.port}", "--trace", path, "--seed", seed,
                             "--shared-prefix-tokens", PREFIX, "--concurrency", 32, "--token-ids", "--ignore-eos", "--json"))
        steps = server.metric("latte:engine_steps_total")
        idle, computed = server.metric("latte:idle_tokens_total"), server.metric("latte:computed_tokens_total")
        server.stop()
    if out["failed"]:
        sys.exit(f"{trace}, {policy}: {out['errors']}")
    return out["request_throughput"], out["p99_ttft_ms"], steps, out["cached_input_tokens"], 100 * idle / (idle + computed)


def serve_all(args, trace, folder):
    rows = {policy: [] for policy in POLICIES}
    for seed in range(args.seeds):
        path = folder / "trace.jsonl"
        write(path, trace, seed, args.requests * 2, 0)
        for i in range(len(POLICIES)):
            policy = POLICIES[(seed + i) % len(POLICIES)]
            rows[policy].append(serve(args, trace, path, seed, policy))
    for policy in POLICIES:
        words = []
        for column in range(3):
            ratios = sorted(a[column] / b[column] for a, b in zip(rows[policy], rows["tokens"]))
            words.append(f"{statistics.median(ratios):.2f} [{ratios[0]:.2f} {ratios[-1]:.2f}]")
        cached, idle = (statistics.mean(one[column] for one in rows[policy]) for column in (3, 4))
        print(f"| {trace} | {policy} | {' | '.join(words)} | {cached:,.0f} | {idle:.1f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("latte")
    parser.add_argument("model", nargs="?", default="tiny")
    parser.add_argument("--cost", help="of `latte bench steps MODEL --page-tokens 64 --out FILE` (default: measured first)")
    parser.add_argument("--groups", default="2,4,8", type=lambda text: [int(word) for word in text.split(",")])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=100, help="of each group")
    parser.add_argument("--page-bytes", type=int, default=40960, help="of the model, for the trace with a small cache (default: tiny's)")
    parser.add_argument("--only", choices=TRACES)
    parser.add_argument("--real", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if not args.cost and not args.real:
            args.cost = folder / "cost.json"
            run(args.latte, "bench", "steps", args.model, "--page-tokens", 64, "--out", args.cost)
        if args.real:
            print("| trace | policy | requests/s | p99 of first tokens | steps | cached tokens | idle, % of tokens |\n|---|---|---|---|---|--:|--:|")
        else:
            print("| trace | groups | policy | requests/s at once | requests/s | p99 of first tokens, ms | idle, % | cached tokens |\n"
                  "|---|--:|---|--:|--:|--:|--:|--:|")
        for trace in TRACES if args.only is None else (args.only,):
            (serve_all if args.real else simulate_all)(args, trace, folder)


if __name__ == "__main__":
    main()
