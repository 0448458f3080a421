"""Thins the loss curve of train.py or train_indexer.py to a small CSV and draws it."""

import argparse
import csv

import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt

MAX_ROWS = 300


def thin(rows, most):
    """At most `most` rows, evenly spread, the last one included."""
    stride = -(-len(rows) // most)
    return rows[::-1][::stride][::-1]


def draw_indexers(columns, millions, upper, lower):
    """Divergence of each layer's indexer from its attention above, shares of attention below."""
    layers = sum(name.startswith("kl_") for name in columns)
    for i in range(layers):
        label = f"layer {i}" if i < layers - 1 else "MTP layer"
        line, = upper.plot(millions, columns[f"kl_{i}"], label=label, linewidth=1)
        for what, style in (("chosen", "-"), ("best", ":")):
            share = [100 * value for value in columns[f"{what}_{i}"]]
            lower.plot(millions, share, style, color=line.get_color(), linewidth=1)
    upper.set_ylabel("KL divergence, nats per token")
    lower.set_ylabel("attention to the keys\nchosen, best (dots), %")
    lower.set_ylim(0, 100)


def draw_losses(columns, millions, upper, lower):
    """Loss and MTP loss above, shares below."""
    upper.plot(millions, columns["loss"], label="next token", linewidth=1)
    upper.plot(millions, columns["mtp_loss"], label="token after next (MTP)", linewidth=1)
    upper.set_ylabel("loss, nats per token")
    for name, label in (("mtp_acceptance", "MTP drafts accepted"), ("answers", "digits of answers that are right")):
        if name in columns:
            lower.plot(millions, [100 * share for share in columns[name]], label=label, linewidth=1)
    lower.set_ylabel("%")
    lower.set_ylim(0 if "answers" in columns else 50, 100)
    lower.legend(frameon=False)


def draw(columns, title, path):
    """columns: name -> list of float. The background is opaque, so the figure is legible on dark pages."""
    plt.rcParams["svg.fonttype"] = "path"
    plt.rcParams["svg.hashsalt"] = "tiny"
    figure, (upper, lower) = plt.subplots(2, 1, figsize=(7, 5), sharex=True, height_ratios=[2, 1])
    millions = [tokens / 1e6 for tokens in columns["tokens"]]
    draw_parts = draw_indexers if "kl_0" in columns else draw_losses
    draw_parts(columns, millions, upper, lower)
    upper.set_yscale("log")
    low, high = upper.get_ylim()
    ticks = [tick for tick in (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10) if low <= tick <= high]
    upper.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    upper.minorticks_off()
    upper.legend(frameon=False)
    lower.set_xlabel("training tokens, millions")
    for axes in (upper, lower):
        axes.grid(alpha=0.3)
    figure.suptitle(title, fontweight="bold", fontsize=11, x=0.01, ha="left")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--curve", required=True, help="loss.csv of train.py")
    parser.add_argument("--csv", required=True, help="thinned curve to write")
    parser.add_argument("--figure", required=True, help=".svg to write")
    parser.add_argument("--title", default="", help="line above the figure: model, training, machine, date")
    args = parser.parse_args()
    with open(args.curve, newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    rows = thin(rows, MAX_ROWS)
    with open(args.csv, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([header] + rows)
    draw({name: [float(row[i]) for row in rows] for i, name in enumerate(header)}, args.title, args.figure)


if __name__ == "__main__":
    main()
