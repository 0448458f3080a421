#!/usr/bin/env python3
"""Draws SVG plots from JSON lines of bench/run.py.

  bench/plot.py RESULTS.jsonl OUT_FOLDER [--peers PEERS.jsonl]

paths.svg     time of both attention paths over the cached context, from the grid of `latte bench dispatch`
decode.svg    milliseconds per token of models over the context depth, from `latte bench model`
caches.svg    time of attention over the same context by cache format
peers.svg     Latte and other engines, interleaved on the same machine

Each line of PEERS.jsonl is {"work": what, "unit": of the figures, "engines": {name: [one per round, …], …}}. Needs matplotlib.
"""
import argparse
import json
import pathlib
import statistics

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


def plot_decode(records, out):
    models = {}
    for record in last(records, bench="model", batch=1):
        if "decode" in record and record["prompt"] <= 512:
            models.setdefault(record["model"], {})[record["depth"]] = record["decode"]["ms"]
    models = {name: points for name, points in models.items() if len(points) > 2}
    if not models:
        return
    figure, axis = plt.subplots(figsize=(6, 4))
    for name, points in models.items():
        axis.plot(*zip(*sorted(points.items())), "o-", label=name)
    axis.set(xlabel="cached tokens", ylabel="ms per token", ylim=(0, None))
    axis.legend()
    save(figure, out / "decode.svg")


def plot_peers(rows, out):
    """Bars are medians of the rounds, dots the rounds; all divided by the median of the first engine."""
    figure, axis = plt.subplots(figsize=(8, 0.6 * len(rows) + 1))
    names = list(rows[0]["engines"])
    height = 0.8 / len(names)
    for i, name in enumerate(names):
        for y, row in enumerate(rows):
            unit = statistics.median(row["engines"][names[0]])
            rounds = row["engines"][name]
            axis.barh(y + i * height, statistics.median(rounds) / unit, height, color=f"C{i}", label=name if y == 0 else None)
            axis.plot([x / unit for x in rounds], [y + i * height] * len(rounds), "k.", markersize=3)
    axis.set_yticks([y + 0.4 - height / 2 for y in range(len(rows))], [f"{row['work']}, {row['unit']}" for row in rows])
    axis.invert_yaxis()
    axis.set(xlabel=f"of {names[0]}")
    axis.legend(loc="lower left")
    save(figure, out / "peers.svg")


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
    args.out.mkdir(parents=True, exist_ok=True)
    plot_paths(records, args.out)
    plot_decode(records, args.out)
    plot_caches(records, args.out)
    if args.peers:
        plot_peers([json.loads(line) for line in args.peers.read_text().splitlines()], args.out)


if __name__ == "__main__":
    main()
