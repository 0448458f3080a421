#!/usr/bin/env python3
"""Draws the plots of the documents from JSON lines of bench/run.py.

  bench/plot.py RESULTS.jsonl OUT_FOLDER [--peers PEERS.jsonl] [--batches ENGINE.jsonl …]

paths.svg     time of both attention paths over the new tokens, from the newest grid of `latte bench dispatch`
caches.svg    time of decode attention by cache format, from `latte bench attention`
peers.svg     Latte and other engines, interleaved on one machine
batches.svg   tokens per second of several machines over the number of sequences, from `latte bench batch`

A file of results belongs to one machine, and its name says which. Each line of PEERS.jsonl is
{"work": what, "unit": of the figures, "engines": {name: [one per round, …], …}, …}. Needs matplotlib.
"""
import argparse
import json
import pathlib
import statistics

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import FuncFormatter  # noqa: E402

# Text and background are opaque, so the plots are legible on dark pages. The same plot has the same bytes.
matplotlib.rcParams.update({
    "svg.hashsalt": "latte", "figure.facecolor": "white", "axes.facecolor": "white", "savefig.facecolor": "white",
    "axes.grid": True, "grid.color": "#d8dee4", "axes.axisbelow": True, "axes.spines.top": False,
    "axes.spines.right": False, "font.size": 10, "axes.titlesize": 10, "legend.frameon": False})
WIDTH = 8.6  # inches; 826 pixels on a web page
COLORS = ["#0969da", "#d1742f", "#2da44e", "#8250df", "#6e7781"]
MACHINES = {
    "zen5": "Zen 5", "zen4": "Zen 4", "zen3": "Zen 3", "emerald_rapids": "Emerald Rapids without AMX",
    "xeon_l3_480": "Xeon with AMX, 480 MiB L3", "sapphire_rapids": "Sapphire Rapids with AMX"}
FORMATS = ["bf16", "fp8", "int8", "q6"]


def machine_of(path):
    """The machine of a file of results, from its name."""
    stem = path.stem.removesuffix("_engine").removesuffix("_peers")
    return MACHINES.get(stem, stem)


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def newest(records, **wanted):
    """The records with these values that were made at the newest commit among them."""
    found = [record for record in records if all(record.get(key) == value for key, value in wanted.items())]
    return [record for record in found if record.get("commit") == found[-1].get("commit")]


def date_of(records):
    return max(record.get("time", "")[:10] for record in records)


def number(value, _=None):
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"


def save(figure, path, title, below):
    """Writes a figure with its title, and below it the machine and how to read it."""
    figure.suptitle(title, fontweight="bold", x=0.01, ha="left")
    figure.supxlabel(below, fontsize=9, color="#424a53", x=0.01, ha="left")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    print(path)


def steady(points):
    """The points (tokens, time) without calls that take twice as long as one with more tokens."""
    return [(x, y) for x, y in points if not any(x < more and y > 2 * time for more, time in points)]


def plot_paths(records, machine, out):
    grids = newest(records, bench="dispatch")
    cells = [cell for cell in grids[-1]["grid"] if cell["cached_tokens"]]
    contexts = sorted({cell["cached_tokens"] for cell in cells})
    figure, axes = plt.subplots(2, 2, figsize=(WIDTH, 6.6), sharex=True, sharey=True, layout="constrained")
    left_out = []
    for axis, context in zip(axes.flat, contexts):
        here = [cell for cell in cells if cell["cached_tokens"] == context]
        for color, path in zip(COLORS, ("absorbed", "latent")):
            points = [(cell["new_tokens"], cell[f"{path}_us"] / 1e3) for cell in here]
            shown = steady(points)
            left_out += [f"{path}, {context:,} cached, {x} new" for x, _ in points if x not in dict(shown)]
            chosen = [cell["new_tokens"] for cell in here if cell["chosen"] == path]
            axis.plot(*zip(*shown), "-", color=color, label=path)
            axis.plot(*zip(*[point for point in shown if point[0] in chosen]), "o", color=color, markersize=5,
                      label=f"{path}, chosen by auto")
        axis.set(xscale="log", yscale="log", title=f"{context:,} cached tokens")
        axis.xaxis.set_major_formatter(FuncFormatter(number))
        axis.yaxis.set_major_formatter(FuncFormatter(number))
    for axis in axes[:, 0]:
        axis.set_ylabel("ms per layer")
    for axis in axes[-1]:
        axis.set_xlabel("new tokens")
    axes[0, 0].legend(loc="upper left")
    note = f"\nLeft out, because the first call also maps the workspace: {'; '.join(left_out)}." if left_out else ""
    save(figure, out / "paths.svg", "Attention of a prompt's chunk: absorbed or latent path",
         f"{machine}, {grids[-1]['threads']} threads, {date_of(grids)}. {grids[-1]['heads']} heads. Lower is better.{note}")


def plot_caches(records, machine, out):
    shapes = ((1, 32768), (16, 8192), (128, 8192))
    figure, axes = plt.subplots(1, len(shapes), figsize=(WIDTH, 3.6), sharey=True, layout="constrained")
    used = []
    for axis, (heads, context) in zip(axes, shapes):
        times = {}
        for record in (r for r in records if r.get("phase") == "decode" and r.get("q_len") == 1):
            if (record["heads"], record["context"]) == (heads, context):
                times[record["cache_dtype"]] = record
        used += times.values()
        ms = [times[name]["us"] / 1e3 for name in FORMATS]
        bars = axis.bar(FORMATS, [time / ms[0] for time in ms], color=COLORS[:len(FORMATS)])
        axis.bar_label(bars, [f"{time:.2f} ms" for time in ms], padding=2, fontsize=9)
        axis.set(title=f"{heads} head{'s' * (heads > 1)}, {context:,} cached tokens")
        axis.grid(axis="x", visible=False)
    axes[0].set(ylabel="time relative to bf16", ylim=(0, axes[0].get_ylim()[1] * 1.08))
    save(figure, out / "caches.svg", "Decode attention by cache format",
         f"{machine}, {used[0]['threads']} threads, {date_of(used)}. One new token, C = 512, R = 64. Lower is better.")


def plot_peers(rows, machine, out):
    """Bars are medians of the rounds, dots the rounds; all divided by the median of the last engine."""
    figure, axis = plt.subplots(figsize=(WIDTH, 0.62 * len(rows) + 1.4), layout="constrained")
    names = list(rows[0]["engines"])
    height = 0.8 / len(names)
    for i, name in enumerate(names):
        for y, row in enumerate(rows):
            unit = statistics.median(row["engines"][names[-1]])
            rounds, at = row["engines"][name], y + (i - (len(names) - 1) / 2) * height
            axis.barh(at, statistics.median(rounds) / unit, height, color=COLORS[i], label=name if y == 0 else None)
            dots, = axis.plot([x / unit for x in rounds], [at] * len(rounds), "k.", markersize=4)
            axis.text(max(rounds) / unit + 0.05, at, number(statistics.median(rounds)), va="center", fontsize=9)
    axis.set_xlim(0, axis.get_xlim()[1] * 1.04)
    dots.set_label("single rounds")
    axis.set_yticks(range(len(rows)), [row["work"] for row in rows])
    axis.invert_yaxis()
    axis.grid(axis="y", visible=False)
    axis.set(xlabel=f"speed relative to {names[-1]}")
    figure.legend(*axis.get_legend_handles_labels(), loc="outside upper right", ncols=len(names) + 1)
    save(figure, out / "peers.svg", "Latte and ik_llama.cpp\n",
         f"{machine}, {rows[0]['threads']} threads, {date_of(rows)}. Numbers: median {rows[0]['unit']}. Higher is better.")


def plot_batches(paths, out):
    figure, axes = plt.subplots(1, 2, figsize=(WIDTH, 4.6), sharey=True, layout="constrained")
    for color, path in zip(COLORS, paths):
        records = read(path)
        dates = set()
        for axis, dtype in zip(axes, ("bf16", "int8")):
            runs = newest([r for r in records if r["bench"] == "batch" and ("int8" in r.get("model", r.get("command", ""))) == (dtype == "int8")])
            points = {}
            for run in runs:
                for batch in run["batches"]:
                    points.setdefault(batch["batch"], []).append(batch["tokens_per_s"])
            dates.add(date_of(runs) or date_of(records))
            axis.plot(list(points), [statistics.median(rates) for rates in points.values()], "o-", color=color,
                      label=f"{machine_of(path)}, {min(dates)}{''.join('/' + date[-2:] for date in dates - {min(dates)})}")
    for axis, dtype in zip(axes, ("bf16", "int8")):
        axis.set(title=f"{dtype} weights", xlabel="sequences at once", ylim=(0, None), xticks=[1, 8, 16, 32])
    axes[0].set_ylabel("tokens per second, all sequences")
    axes[0].legend(*axes[1].get_legend_handles_labels(), loc="upper left", fontsize=9)
    save(figure, out / "batches.svg", "Decoding many sequences",
         "V2-Lite's shape with 4 of 27 layers, vocabulary 16,384, random weights, 2 threads. Higher is better.")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--peers", type=pathlib.Path)
    parser.add_argument("--batches", type=pathlib.Path, nargs="+")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    records = read(args.results)
    plot_paths(records, machine_of(args.results), args.out)
    plot_caches(records, machine_of(args.results), args.out)
    if args.peers:
        plot_peers(read(args.peers), machine_of(args.peers), args.out)
    if args.batches:
        plot_batches(args.batches, args.out)


if __name__ == "__main__":
    main()
