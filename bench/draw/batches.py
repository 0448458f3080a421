"""batches.svg: tokens per second of several machines over the number of sequences, from `latte bench batch`."""
import statistics

from chart import Axis, Plot, apart, figure, steps
from records import ENGINES, date_of, dates_of, machine_of, newest_batches, read
from svg import SERIES, Picture

TOP, BOTTOM = 196, 446


def rates(runs):
    """{sequences: median of the runs}."""
    points = {}
    for run in runs:
        for batch in run["batches"]:
            points.setdefault(batch["batch"], []).append(batch["tokens_per_s"])
    return {count: statistics.median(values) for count, values in points.items()}


def draw():
    picture = Picture(496, "Decoding many sequences at once",
                      "Lines of tokens per second over 1, 8, 16 and 32 sequences, for five machines and two formats of weights.")
    lines, dates = {}, {}
    for name in ENGINES:
        records = read(name)
        runs = {int8: newest_batches(records, int8) for int8 in (False, True)}
        lines[name] = {int8: rates(found) for int8, found in runs.items()}
        dates[name] = dates_of({date_of(found) or date_of(records) for found in runs.values()})
    gains = [line[32] / line[1] for both in lines.values() for line in both.values()]
    y = picture.heading(f"Higher is better. Tokens per second of all sequences together. A step reads the weights once for all of "
                        f"them, so 32 sequences are {min(gains):.0f} to {max(gains):.0f} times as fast as one. V2-Lite's shape "
                        "with 4 of 27 layers and a vocabulary of 16,384, random weights, 2 threads.")
    for i, name in enumerate(ENGINES):
        picture.legend(20 + 400 * (i % 2), y + 8 + 20 * (i // 2), [(f"{machine_of(name)}, {dates[name]}", SERIES[i], "dots")])
    scale = steps(max(max(line[True].values()) for line in lines.values()), 7)
    for int8, left in ((False, 66), (True, 476)):
        plot = Plot(picture, Axis(0, 33, left, left + 324), Axis(0, scale[-1], BOTTOM, TOP))
        picture.text(left, TOP - 12, "int8 weights" if int8 else "bf16 weights", bold=True)
        plot.grid_y(scale)
        plot.grid_x([1, 8, 16, 32], lines=False)
        plot.name_x("sequences at once")
        ends = apart([plot.y(line[int8][32]) for line in lines.values()], 14)
        for color, line, end in zip(SERIES, lines.values(), ends):
            plot.line(list(line[int8].items()), color)
            plot.dots(list(line[int8].items()), color, 3.5)
            picture.text(plot.x(32) + 10, end + 4, figure(line[int8][32]), color, 12)
    return picture
