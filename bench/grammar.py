#!/usr/bin/env python3
"""Tokens per second of answers with and without a grammar, for 1, 8 and 32 requests at once.

Usage: grammar.py LATTE MODEL [--tokens N] [--rounds N]
MODEL needs a tokenizer. Both kinds of answers have N tokens: end tokens are ignored, and the grammars have no end. The kinds take
turns, and the figure is the median of the rounds. Prints a table in Markdown.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ENDLESS = {
    "none": None,
    "JSON strings": {"guided_json": {"type": "array", "items": {"type": "string"}, "minItems": 100_000}},
    "JSON objects": {"guided_json": {"type": "array", "minItems": 100_000, "items": {
        "type": "object", "properties": {"name": {"type": "string", "maxLength": 40}, "age": {"type": "integer"},
                                         "kind": {"enum": ["duck", "goose", "swan"]}}, "required": ["name", "age", "kind"]}}},
    "any text": {"guided_regex": r"(.|\n)*"},
}


def requests(grammar, count, tokens):
    for i in range(count):
        body = {"model": "m", "prompt": f"Text {i}:", "max_tokens": tokens, "ignore_eos": True, "temperature": 1, "seed": i,
                "skip_special_tokens": False} | (ENDLESS[grammar] or {})
        yield json.dumps({"custom_id": str(i), "method": "POST", "url": "/v1/completions", "body": body})


def tokens_per_second(options, grammar, count, folder):
    source, target = folder / "in.jsonl", folder / "out.jsonl"
    times = []
    # The second number of tokens takes loading, prompts and compilation out of the difference.
    for tokens in (options.tokens // 4, options.tokens):
        source.write_text("\n".join(requests(grammar, count, tokens)) + "\n")
        target.unlink(missing_ok=True)
        begun = time.monotonic()
        subprocess.run([options.latte, "batch", options.model, "--input", source, "--output", target, "--context", "2048",
                        "--max-sequences", str(count), "--draft-tokens", "0"], check=True, capture_output=True)
        times.append(time.monotonic() - begun)
        answers = [json.loads(line) for line in target.read_text().splitlines()]
        made = sum(answer["response"]["body"]["usage"]["completion_tokens"] for answer in answers)
        if made != count * tokens:
            sys.exit(f"expected {count * tokens} tokens, found {made}")
    return count * (options.tokens - options.tokens // 4) / (times[1] - times[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("latte")
    parser.add_argument("model")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print("| requests | " + " | ".join(ENDLESS) + " |\n|---|" + "---|" * len(ENDLESS))
    with tempfile.TemporaryDirectory() as folder:
        for count in (1, 8, 32):
            rates = {grammar: [] for grammar in ENDLESS}
            for _ in range(options.rounds):
                for grammar in ENDLESS:
                    rates[grammar].append(tokens_per_second(options, grammar, count, pathlib.Path(folder)))
            print(f"| {count} | " + " | ".join(f"{statistics.median(r):.1f}" for r in rates.values()) + " |", flush=True)


if __name__ == "__main__":
    main()
