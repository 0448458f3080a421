#!/usr/bin/env python3
"""How long a usual request takes alone, and with clients that send hostile grammars.

Usage: hostile_grammars.py LATTE MODEL [--requests N] [--clients N] [--tokens N] [--only TEXT]
       hostile_grammars.py --print | build/release/bench/grammar_cost TOKENIZER_FOLDER
For no grammar and each grammar of tests/e2e/serve/hostile_grammars.py, `clients` send it again and again, changed a little each time, so that
it is compiled each time. Prints the median and the 99th percentile of a usual request in milliseconds, as a table in Markdown.
"""
import argparse
import json
import pathlib
import statistics
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests/e2e/serve"))
from hostile_grammars import DEAR, REFUSED, USUAL  # noqa: E402
from server import Server  # noqa: E402


def changed(field, value, i):
    """The same grammar under another text: kept ones cost nothing."""
    if field == "guided_json":
        return {**value, "title": str(i)}
    return value + f"\n# {i}" if field == "guided_grammar" else value


def measure(server, model, options):
    times = []
    for i in range(options.requests):
        begun = time.monotonic()
        status, _, answer = server.post("/v1/completions", {"model": model, "prompt": f"Text {i % 7}:", "max_tokens": options.tokens,
                                                            "ignore_eos": True, "temperature": 1, "seed": i}, timeout=600)
        if status != 200:
            sys.exit(f"{status} {json.dumps(answer)[:300]}")
        times.append((time.monotonic() - begun) * 1000)
    times.sort()
    return statistics.median(times), times[min(len(times) - 1, int(len(times) * 0.99))]


def beside(server, model, options, field, value):
    stop = threading.Event()
    statuses = {}

    def attack(client):
        i = 0
        while not stop.is_set():
            i += 1
            body = {"model": model, "prompt": "A duck", "max_tokens": 100, "temperature": 1, "seed": i}
            if field:
                body[field] = changed(field, value, f"{client}-{i}")
            status, _, _ = server.post("/v1/completions", body, timeout=600)
            statuses[status] = statuses.get(status, 0) + 1

    threads = [threading.Thread(target=attack, args=(client,)) for client in range(options.clients)]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    found = measure(server, model, options)
    stop.set()
    for thread in threads:
        thread.join()
    return found, statuses


def print_all():
    syntaxes = {"guided_json": "json-schema", "guided_regex": "regex", "guided_grammar": "ebnf"}
    for name, one in {**USUAL, **DEAR, **REFUSED}.items():
        text = one[1] if isinstance(one[1], str) else json.dumps(one[1])
        print(name, syntaxes[one[0]], text.replace("\n", "\x01"), sep="\t")


def main():
    if sys.argv[1:] == ["--print"]:
        return print_all()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("latte")
    parser.add_argument("model")
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=8)
    parser.add_argument("--only", default="", help="of the grammars, those whose name contains this text")
    options = parser.parse_args()
    with Server(options.latte, model=options.model) as server:
        model = server.get("/v1/models")[2]["data"][0]["id"]
        print("| with | median | 99 % | answers to the grammar |\n|---|--:|--:|---|")
        print("| nothing | {:.1f} | {:.1f} | |".format(*measure(server, model, options)), flush=True)
        grammars = {"no grammar": (None, None)} | {name: one[:2] for name, one in {**DEAR, **REFUSED, **USUAL}.items()}
        for name, (field, value) in grammars.items():
            if options.only not in name:
                continue
            (median, most), statuses = beside(server, model, options, field, value)
            said = ", ".join(f"{status}: {count}" for status, count in sorted(statuses.items()))
            print(f"| {name} | {median:.1f} | {most:.1f} | {said} |", flush=True)
        print("| nothing, at the end | {:.1f} | {:.1f} | |".format(*measure(server, model, options)))


if __name__ == "__main__":
    main()
