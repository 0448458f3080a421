"""dashboard.svg: the Grafana dashboard of examples/monitoring, drawn from its JSON and filled with a recorded run."""
import json
import re

from chart import Axis, Plot, figure, steps
from promql import WINDOW, Series
from records import ROOT, machine_of, read
from svg import SERIES, Picture, width_of

RECORD = "zen3_metrics"
DASHBOARD = ROOT / "examples/monitoring/grafana.json"
COLUMN, UNIT, GAP = 34.0, 17, 6  # pixels of a column and of a row of Grafana's grid of 24 columns, and between panels
INSTANCE = "127.0.0.1:8000"


def in_unit(value, unit):
    """A value at an axis, as Grafana writes it."""
    if unit == "percentunit":
        return f"{figure(value * 100)}%"
    if unit == "s" and value:
        factor, name = next(pair for pair in ((1, "s"), (1e3, "ms"), (1e6, "µs")) if value * pair[0] >= 1 or pair[1] == "µs")
        return f"{figure(value * factor)} {name}"
    if unit == "bytes" and value:
        return f"{figure(value / 2 ** 20)} MiB" if value >= 2 ** 20 else f"{figure(value / 2 ** 10)} KiB"
    return f"{figure(value / 1e3)}k" if value >= 1e4 else figure(value)


def lines_of(panel, series):
    """{legend: [(second, value or None), …]} of a panel."""
    out = {}
    for target in panel["targets"]:
        for at in range(series.header["readings"]):
            for labels, value in series.evaluate(target["expr"], at):
                known = {"instance": INSTANCE, **labels}
                words = re.sub(r"\{\{(\w+)\}\}", lambda match, known=known: known.get(match[1], ""), target["legendFormat"])
                out.setdefault(words, []).append((at * series.header["interval_s"], value))
    return {words: points for words, points in out.items() if words}


def pieces(points):
    """The runs of points that have a value."""
    out = [[]]
    for x, y in points:
        if y is not None:
            out[-1].append((x, y))
        elif out[-1]:
            out.append([])
    return [piece for piece in out if piece]


def draw():
    series = Series(read(RECORD))
    panels = json.loads(DASHBOARD.read_text())["panels"]
    rows = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels)
    header = series.header
    picture = Picture(98 + rows * UNIT, "The dashboard of examples/monitoring/grafana.json",
                      "Panels with lines over a minute: load, latency, requests, engine and server, as Grafana places them.")
    top = picture.heading(
        "A drawing of the dashboard, not a screenshot: titles, places and expressions of its panels, with a recorded run. "
        f"{header['server'].split(' --')[0]} on a busy {machine_of(RECORD)}, {header['threads']} thread, "
        f"{header['time'][:10]}, under latte bench serve; {header['readings'] - 1} seconds, read every second, rates over {WINDOW} s.")
    for panel in panels:
        place = panel["gridPos"]
        x, y = 22 + place["x"] * COLUMN, top + place["y"] * UNIT
        if panel["type"] == "row":
            picture.text(x, y + 13, panel["title"], bold=True)
        else:
            draw_panel(picture, x, y, place["w"] * COLUMN - GAP, place["h"] * UNIT - GAP, panel, series)
    return picture


def draw_panel(picture, x, y, width, height, panel, series):
    picture.rect(x, y, width, height, fill="panel", edge="grid", radius=4)
    size = 12 if width_of(panel["title"], 12, bold=True) < width - 12 else 11
    picture.text(x + 8, y + 17, panel["title"], size=size, bold=True)
    lines = lines_of(panel, series)
    peaks = {words: max((value for _, value in points if value), default=0) for words, points in lines.items()}
    shown = {words: points for words, points in lines.items() if peaks[words]}
    if len(shown) != len(panel["targets"]):  # labels of one expression: the largest first
        shown = dict(sorted(shown.items(), key=lambda one: -peaks[one[0]]))
    silent = len(lines) - len(shown)
    if not shown:
        shown, silent = dict(list(lines.items())[:1]), silent - 1
    highest = max(peaks.values()) or 1
    unit = panel["fieldConfig"]["defaults"]["unit"]
    ticks = scale(highest, unit)
    last = series.header["readings"] - 1
    plot = Plot(picture, Axis(0, last, x + 54, x + width - 10), Axis(0, ticks[-1], y + height - 40, y + 30))
    plot.grid_y(ticks, lambda value: in_unit(value, unit), size=11)
    for tick in range(0, last + 1, 30):
        picture.text(plot.x(tick), plot.y.start + 14, f"{tick} s", "muted", 11, anchor="middle" if tick else "start")
    for color, points in zip(SERIES, shown.values()):
        for piece in pieces(points):
            plot.line(piece if len(piece) > 1 else piece * 2, color, 1.5)
    draw_legend(picture, x + 10, y + height - 8, width - 18, list(shown), silent)


def scale(highest, unit):
    """Three numbers at an axis; bytes in round numbers of their unit."""
    size = 2 ** 20 if highest >= 2 ** 20 else 2 ** 10
    return [tick * size for tick in steps(highest / size, 3)] if unit == "bytes" else steps(highest, 3)


def draw_legend(picture, x, y, width, names, silent):
    """The names with the colours of their lines, then the count of the names without room and of series that are always 0."""
    end = x + width
    for i, (words, color) in enumerate(zip(names, SERIES)):
        if x + 14 + width_of(words, 11) > end:
            silent += len(names) - i
            break
        picture.line([(x, y - 4), (x + 10, y - 4)], color, 2)
        picture.text(x + 14, y, words, "muted", 11)
        x += 24 + width_of(words, 11)
    if silent and x + width_of(f"+ {silent}", 11) < end:
        picture.text(x, y, f"+ {silent}", "muted", 11)
