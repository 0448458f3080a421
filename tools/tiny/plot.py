"""Thins the loss curve of train.py to a small CSV and draws it."""

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


def draw(columns, path):
    """columns: name -> list of float. Loss and MTP loss above, shares below."""
    plt.rcParams["svg.fonttype"] = "none"
    plt.rcParams["svg.hashsalt"] = "tiny"
    figure, (upper, lower) = plt.subplots(2, 1, figsize=(7, 5), sharex=True, height_ratios=[2, 1])
    millions = [tokens / 1e6 for tokens in columns["tokens"]]
    upper.plot(millions, columns["loss"], label="next token", linewidth=1)
    upper.plot(millions, columns["mtp_loss"], label="token after next (MTP)", linewidth=1)
    upper.set_yscale("log")
    upper.set_ylabel("loss, nats per token")
    upper.legend(frameon=False)
    for name, label in (("mtp_acceptance", "MTP drafts accepted"), ("answers", "digits of answers")):
        if name in columns:
            lower.plot(millions, [100 * share for share in columns[name]], label=label, linewidth=1)
    lower.set_ylabel("%")
    lower.set_ylim(0 if "answers" in columns else 50, 100)
    lower.legend(frameon=False)
    lower.set_xlabel("training tokens, millions")
    for axes in (upper, lower):
        axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--curve", required=True, help="loss.csv of train.py")
    parser.add_argument("--csv", required=True, help="thinned curve to write")
    parser.add_argument("--figure", required=True, help=".svg to write")
    args = parser.parse_args()
    with open(args.curve, newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    rows = thin(rows, MAX_ROWS)
    with open(args.csv, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([header] + rows)
    draw({name: [float(row[i]) for row in rows] for i, name in enumerate(header)}, args.figure)


if __name__ == "__main__":
    main()
