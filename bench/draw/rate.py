"""rate.svg: the limit of decoding over the memory rate, for the models, and measured runs below their limits."""
from chart import Axis, Plot, apart, powers
from models import models
from records import ENGINES, date_of, dates_of, machine_of, newest_batches, read
from svg import SERIES, Picture, wrap

NEAR = 1.3  # models whose bytes differ by less are one band
TOP, BOTTOM, LEFT, RIGHT = 226, 646, 62, 600
CUT_BELOW = 1e9  # bytes per token of the models with 4 layers
# What memory of these channels transfers in theory, GB/s: channels · 8 bytes · transfers per second.
MEMORIES = {("2 channels", "DDR5-5600"): 89.6, ("8 channels", "DDR4-3200"): 204.8, ("12 channels", "DDR5-4800"): 460.8}
WHOLE = "v2-lite:dtype=int8"  # the model of the runs with all layers


def measured():
    """[(memory rate, tokens/s, bytes per token, name, color)] of single runs with one sequence, and their dates by machine."""
    out, dates = [], {}
    for name, color in zip(ENGINES, SERIES):
        records = read(name)
        runs = [run for int8 in (False, True) for run in newest_batches(records, int8)]
        steps = [batch for run in runs for batch in run["batches"] if batch["batch"] == 1]
        whole = [run for run in records if run.get("model") == WHOLE]
        steps += [run["decode"] for run in whole]
        dates[machine_of(name)] = dates_of({run["time"][:10] for run in runs + whole if run.get("time")} or {date_of(records)})
        out += [(step["dram_gbps"], step["tokens_per_s"], step["bytes"], machine_of(name), color) for step in steps]
    return out, dates


def bands():
    """[(names, least bytes, most bytes)] of the models, from few bytes per token to many."""
    out = []
    for one in sorted(models(), key=lambda one: one.int8_read()):
        size = one.int8_read()
        if out and size < NEAR * out[-1][1]:
            out[-1] = (out[-1][0] + [one.name], out[-1][1], size)
        else:
            out.append(([one.name], size, size))
    return out


def draw():
    runs, dates = measured()
    picture = Picture(724, "How fast can a machine decode? Memory rate decides",
                      "Lines of the most tokens per second over the memory rate, one for each model, and dots of measured runs, "
                      "which lie on or a little below the lines of their models.")
    y = picture.heading("Higher is better. To decode one token of one sequence, the CPU reads all weights that the token uses. A "
                        "line is the limit of a model with int8 or fp8 weights: the memory rate divided by the bytes per token. Start "
                        "from your memory rate, which latte bench model prints, and go up to your model. Dots are measured runs; "
                        "both axes are logarithmic.")
    for i, (machine, date) in enumerate(dates.items()):
        picture.legend(20 + 400 * (i % 2), y + 8 + 20 * (i // 2), [(f"{machine}, {date}", SERIES[i], "dot")])
    picture.legend(420, y + 48, [("V2-Lite's shape with 4 of 27 layers", "text", "dashes")])
    plot = Plot(picture, Axis(10, 600, LEFT, RIGHT, log=True), Axis(0.2, 250, BOTTOM, TOP, log=True))
    plot.grid_x(powers(10, 600))
    plot.grid_y(powers(0.2, 250))
    picture.text(LEFT - 7, TOP - 12, "tokens per second", "muted", 12)
    picture.text(LEFT, BOTTOM + 38, "memory rate, GB/s", "muted", 12)
    draw_memories(plot)
    labels = [(*limit(plot, low, high), names, low, high) for names, low, high in bands()]
    places = apart([y for _, y, *_ in labels], 50)
    for label, place in zip(labels, places):
        draw_name(picture, place, *label)
    for size in sorted({round(run[2], -7) for run in runs if run[2] < CUT_BELOW}):
        x, _ = limit(plot, size, size, dashed=True)
        picture.text(x, TOP - 10, "int8" if size < 5e8 else "bf16", size=12, anchor="middle")
    for rate, speed, size, _, color in runs:
        plot.dots([(rate, speed)], color, 3.5 if size < CUT_BELOW else 5)
    whole = [run for run in runs if run[2] > CUT_BELOW]
    x, y = plot.points([(max(run[0] for run in whole), max(run[1] for run in whole))])[0]
    picture.text(x + 12, y + 14, "the whole V2-Lite, int8", whole[0][4], 12, halo=True)
    return picture


def draw_memories(plot):
    """What some memories transfer in theory, below the axis."""
    for words, rate in MEMORIES.items():
        x = plot.x(rate)
        plot.picture.line([(x, BOTTOM - 16), (x, BOTTOM)], "text", 2)
        for i, line in enumerate((*words, "in theory")):
            plot.picture.text(x, BOTTOM + 38 + 15 * i, line, "muted", 12, anchor="middle")


def limit(plot, low, high, dashed=False):
    """The limit of models that read `low` to `high` bytes per token, as a line or a band; the pixel of its right end."""
    def ends(size):
        first, last = max(plot.x.low, plot.y.low * size / 1e9), min(plot.x.high, plot.y.high * size / 1e9)
        return [(first, first / size * 1e9), (last, last / size * 1e9)]
    if high > low:
        plot.picture.line(plot.points(ends(low) + ends(high)[::-1]), None, fill="paleedge")
    else:
        plot.line(ends(low), "text" if dashed else "muted", 1.5, dashed)
    return plot.points(ends((low * high) ** 0.5))[1]


def draw_name(picture, place, x, y, names, low, high):
    """The names of the models of a line right of its end, joined to it."""
    at = RIGHT + 28
    picture.line([(x + 2, y), (RIGHT + 14, place), (at - 5, place)], "edge")
    size = f"{low / 1e9:.1f} to {high / 1e9:.1f}" if high > low else f"{low / 1e9:.1f}"
    lines = wrap(", ".join(names), picture.width - at - 8, 12)
    for i, words in enumerate(lines):
        picture.text(at, place - 2 - 15 * (len(lines) - 1 - i), words, size=12)
    picture.text(at, place + 13, f"{size} GB per token", "muted", 12)
