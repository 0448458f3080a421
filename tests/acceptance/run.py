#!/usr/bin/env python3
"""Runs official clients and test suites against `latte serve tiny`; README.md says what each part proves.

Usage: run.py LATTE OUT [--short] [--only PART …] [--seed N] [--attack-seconds N]
OUT gets the virtual environment, the server's log and the reports. Exit status: 0 all passed, 1 something failed.
"""
import argparse
import json
import pathlib
import sys
import time

import part_anthropic
import part_attack
import part_hub
import part_lm_eval
import part_pytest
import part_schema
from environment import Environment, SetUpFailed
from results import Part, read_expected
from server import Server

HERE = pathlib.Path(__file__).resolve().parent
SHORT = ("sdk", "anthropic", "schema", "scenarios", "hub")
PARTS = {
    "sdk": part_pytest.run_sdk,
    "anthropic": part_anthropic.run,
    "schema": part_schema.run,
    "scenarios": part_pytest.run_scenarios,
    "hub": part_hub.run,
    "smoke": part_pytest.run_smoke,
    "lm-eval": part_lm_eval.run,
    "attack": part_attack.run,
}
# The model names that the SDK's tests use. A short context bounds answers whose request has no max_tokens.
FLAGS = ["--served-model-name", "tiny", "--served-model-name", "gpt-6-astra", "--served-model-name", "gpt-3.5-turbo-instruct",
         "--served-model-name", "claude-opus-5-5",
         "--context", 1024, "--cache-bytes", "32M", "--head-timeout", 5, "--body-timeout", 5, "--idle-timeout", 10,
         "--stall-timeout", 5]
GROWTH_BYTES = 48 << 20  # of the allocator and of buffers; the cache is full from the beginning


class Context:
    """The server, the environment and the options of a run."""

    def __init__(self, options, environment):
        self.latte = pathlib.Path(options.latte).resolve()
        self.out = pathlib.Path(options.out).resolve()
        self.is_short = options.short
        self.seed = options.seed
        self.attack_seconds = options.attack_seconds
        self.environment = environment
        self.expected = read_expected(HERE / "expected_failures.txt")
        self.server = None


def fill_cache(server):
    """Prompts that differ from their first token on, until every page of the cache has been written."""
    for i in range(0, 120, 20):
        prompts = [[3 + (i + j) * 7 + k % 900 for k in range(900)] for j in range(20)]
        server.post("/v1/completions", {"model": "tiny", "prompt": prompts, "max_tokens": 8, "ignore_eos": True})


def check_server(server, before):
    """The server is alive, idle, and has no more memory and files than before."""
    part = Part("server")
    bytes_before, files_before = before
    deadline = time.monotonic() + 30  # connections of clients that left are closed by then
    while server.is_alive() and server.open_files() > files_before and time.monotonic() < deadline:
        time.sleep(0.2)
    if not part.check(server.is_alive(), f"the server has ended with status {server.process.poll()}; see {server.log}"):
        return part
    files, memory = server.open_files(), server.resident_bytes()
    part.check(files <= files_before, f"open files: expected {files_before} as at the start, found {files}")
    part.check(memory <= bytes_before + GROWTH_BYTES,
               f"resident memory: expected at most {GROWTH_BYTES >> 20} MiB more than {bytes_before >> 20} MiB, found {memory >> 20} MiB")
    part.check(json.loads(server.get("/requests"))["running"] == 0, "/requests: expected no running request at the end")
    part.notes.append(f"memory {bytes_before >> 20} → {memory >> 20} MiB, open files {files_before} → {files}")
    status = server.stop()
    part.check(status == 0, f"SIGTERM: expected exit status 0, found {status}")
    return part


def print_part(part, seconds):
    print(f"{part.name}: {part.passed} passed, {len(part.failures)} failed, {len(part.expected)} expected failures, {seconds:.0f} s", flush=True)
    for line in part.failures:
        print(f"  FAILED {line}")
    for note in part.notes:
        print(f"  {note}")
    for reason in sorted({reason for _, reason in part.expected}):
        print(f"  expected {sum(r == reason for _, r in part.expected)}: {reason}")


def print_table(parts):
    print(f"\n{'part':<12}{'passed':>8}{'failed':>8}{'expected failures':>20}")
    for part in parts:
        print(f"{part.name:<12}{part.passed:>8}{len(part.failures):>8}{len(part.expected):>20}")


def run_parts(context, names):
    parts = []
    with Server(context.latte, context.out / "server.log", *FLAGS) as server:
        context.server = server
        fill_cache(server)
        before = server.resident_bytes(), server.open_files()
        for name in names:
            part, began = Part(name), time.monotonic()
            try:
                PARTS[name](context, part)
            except Exception as error:  # the other parts still have something to say
                if isinstance(error, SetUpFailed):
                    raise
                part.failures.append(f"{type(error).__name__}: {error}")
            print_part(part, time.monotonic() - began)
            parts.append(part)
        parts.append(check_server(server, before))
        print_part(parts[-1], 0)
    return parts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("latte", help="the binary")
    parser.add_argument("out", help="folder for everything that is written")
    parser.add_argument("--short", action="store_true", help=f"only {', '.join(SHORT)}; fewer cases")
    parser.add_argument("--only", nargs="+", choices=PARTS, help="only these parts")
    parser.add_argument("--seed", type=int, default=1, help="of the generated requests (default: 1)")
    parser.add_argument("--attack-seconds", type=int, default=300, help="(default: 300)")
    options = parser.parse_args()
    out = pathlib.Path(options.out).resolve()
    out.mkdir(parents=True, exist_ok=True)
    try:
        environment = Environment(out, options.short)
        began = time.monotonic()
        environment.create()
        print(f"virtual environment: {time.monotonic() - began:.0f} s", flush=True)
        parts = run_parts(Context(options, environment), options.only or (SHORT if options.short else PARTS))
    except (SetUpFailed, RuntimeError) as error:
        print(error)
        return 1
    print_table(parts)
    failed = sum(len(part.failures) for part in parts)
    print(f"{sum(part.passed for part in parts)} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
