#!/usr/bin/env python3
"""Draws SVG plots from JSON lines of bench/run.py.

  bench/plot.py RESULTS.jsonl OUT_FOLDER [--peers PEERS.json]

paths.svg     both attention paths over the cached context, from the grid of `latte bench dispatch`
decode.svg    milliseconds per token of a model over its depth, from `latte bench model`, beside peers
caches.svg    attention over the same context by cache format

PEERS.json: {"name": [[depth, ms per token], …], …}, measured on the same machine. Needs matplotlib.
"""
import argparse
import json
import pathlib

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "latte"  # the same plot, the same bytes
import matplotlib.pyplot as plt  # noqa: E402


def last(records, **wanted):
    """The newest record for every command that has these values."""
    found = {}
    for record in records:
        if all(record.get(key) == value for key, value in wanted.items()):
            found[record["command"]] = record
    return list(found.values())


def save(figure, path):
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    print(path)


def plot_paths(records, out):
    for record in last(records, bench="dispatch"):
        contexts = sorted({cell["cached_tokens"] for cell in record["grid"]})
        figure, axes = plt.subplots(1, len(contexts), figsize=(3 * len(contexts), 3), sharey=True)
        for axis, context in zip(axes, contexts):
            cells = [cell for cell in record["grid"] if cell["cached_tokens"] == context]
            tokens = [cell["new_tokens"] for cell in cells]
            for path in ("absorbed", "latent"):
                axis.plot(tokens, [cell[f"{path}_us"] / 1e3 for cell in cells], label=path)
                chosen = [cell for cell in cells if cell["chosen"] == path]
                axis.plot([cell["new_tokens"] for cell in chosen], [cell[f"{path}_us"] / 1e3 for cell in chosen], "k.")
            axis.set(xscale="log", yscale="log", title=f"{context} cached", xlabel="new tokens")
        axes[0].set_ylabel(f"ms per layer, {record['heads']} heads (dots: chosen)")
        axes[0].legend()
        save(figure, out / "paths.svg")


def plot_decode(records, peers, out):
    points = sorted((record["depth"], record["decode"]["ms"]) for record in last(records, bench="model")
                    if record["batch"] == 1 and "decode" in record)
    if not points:
        return
    figure, axis = plt.subplots(figsize=(6, 4))
    axis.plot(*zip(*points), "o-", label="Latte")
    for name, line in peers.items():
        axis.plot(*zip(*line), "o--", label=name)
    axis.set(xlabel="cached tokens", ylabel="ms per token", ylim=(0, None))
    axis.legend()
    save(figure, out / "decode.svg")


def plot_caches(records, out):
    rows = [record for record in last(records, bench="attention", phase="decode", context=8192, q_len=1)]
    if not rows:
        return
    heads = sorted({record["heads"] for record in rows})
    figure, axes = plt.subplots(1, len(heads), figsize=(3 * len(heads), 3))
    for axis, count in zip(axes if len(heads) > 1 else [axes], heads):
        here = [record for record in rows if record["heads"] == count]
        axis.bar([record["cache_dtype"] for record in here], [record["us"] / 1e3 for record in here])
        axis.set(title=f"{count} heads", ylabel="ms, 8192 tokens")
    save(figure, out / "caches.svg")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--peers", type=pathlib.Path)
    args = parser.parse_args()
    records = [json.loads(line) for line in args.results.read_text().splitlines()]
    peers = json.loads(args.peers.read_text()) if args.peers else {}
    args.out.mkdir(parents=True, exist_ok=True)
    plot_paths(records, args.out)
    plot_decode(records, peers, args.out)
    plot_caches(records, args.out)


if __name__ == "__main__":
    main()
