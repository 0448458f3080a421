"""peers.svg: Latte and another engine, interleaved on one machine."""
import re
import statistics

from chart import Axis, Plot, figure
from records import date_of, machine_of, read
from svg import Picture

LEFT, RIGHT = 268, 700  # of the bars
ROW, BAR, GROUP = 46, 14, 28  # heights of a row, a bar and a machine's name


def fastest(row):
    """[(engine, rounds)]: Latte, and the fastest setting of the other engine."""
    latte, *others = row["engines"].items()
    return [latte, max(others, key=lambda one: statistics.median(one[1]))]


def in_words(work):
    """(what is computed, of which model) of a record."""
    what, _, model = work.removesuffix(", depth 0").partition(", ")
    for pattern, words in ((r"prefill of (.*)", r"prompt of \1 tokens"),
                           (r"decode at (.*)", r"1 sequence after \1 tokens"),
                           (r"8 sequences at ([^0].*)", r"8 sequences after \1 tokens"),
                           (r"8 sequences( at 0)?", "8 sequences, empty cache")):
        what = re.sub(f"^{pattern}$", words, what)
    return what, model.replace("V3 attention", "V3's attention")


def draw():
    files = ["sapphire_rapids_peers", "zen4_peers"]
    groups = [(machine_of(name), read(name)) for name in files]
    rows = [row for _, group in groups for row in group]
    picture = Picture(168 + ROW * len(rows) + GROUP * len(groups), "Speed of Latte and of ik_llama.cpp on the same machine",
                      "Bars of tokens per second for prompts, one sequence and eight sequences. Latte is ahead in every row.")
    y = picture.heading("Higher is better. Numbers are tokens per second: medians of runs, which alternate between the "
                        "engines. Lengths are relative to ik_llama.cpp, in the faster of two settings on Zen 4; × is Latte divided "
                        "by ik_llama.cpp. V2-Lite's shape with 4 of 27 layers, and 2 layers with V3's attention; random weights.")
    peer = fastest(rows[0])[1][0]
    picture.legend(20, y + 12, [("Latte", "blue", "box"), (peer, "muted", "box"), ("single runs", "text", "ring")])
    y += 36
    longest = max(max(fastest(row)[0][1]) / statistics.median(fastest(row)[1][1]) for row in rows)
    x = Axis(0, longest, LEFT, RIGHT)
    top = y
    Plot(picture, x, Axis(0, 1, y + ROW * len(rows) + GROUP * len(groups), y)).grid_x(range(int(longest) + 1))
    for machine, group in groups:
        picture.text(20, y + 19, f"{machine}, {group[0]['threads']} threads, {date_of(group)}", bold=True, halo=True)
        y += GROUP
        for row in group:
            draw_row(picture, x, y, row)
            y += ROW
    picture.line([(x(1), top), (x(1), y)], "muted", dashed=True)
    return picture


def draw_row(picture, x, y, row):
    what, model = in_words(row["work"])
    picture.text(LEFT - 12, y + 17, what, anchor="end")
    picture.text(LEFT - 12, y + 34, model, "muted", 12, anchor="end")
    engines = fastest(row)
    unit = statistics.median(engines[1][1])
    for i, (_, rounds) in enumerate(engines):
        at, median = y + 6 + i * (BAR + 3), statistics.median(rounds)
        picture.rect(LEFT, at, x(median / unit) - LEFT, BAR, fill=("blue", "muted")[i])
        for one in rounds:
            picture.dot(x(one / unit), at + BAR / 2, 3, fill="page", edge="text")
        picture.text(x(max(rounds) / unit) + 8, at + BAR - 2.5, figure(median), size=12, halo=True)
    ratio = statistics.median(engines[0][1]) / unit
    picture.text(picture.width - 20, y + 27, f"{ratio:.2f} ×", "blue", 15, bold=True, anchor="end")
