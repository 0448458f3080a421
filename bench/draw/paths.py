"""paths.svg: time of both attention paths over the new tokens, from the newest grid of `latte bench dispatch`."""
import math

from chart import Axis, Plot, figure, powers
from records import date_of, machine_of, newest, read
from svg import Picture

MACHINE = "zen5"
PATHS = {"absorbed": "blue", "latent": "orange"}
COLUMN, ROW = 412, 284


def steady(points):
    """The points (tokens, time) without calls that take twice as long as one with more tokens."""
    return [(x, y) for x, y in points if not any(x < more and y > 2 * time for more, time in points)]


def crossing(first, second):
    """The x at which the second line falls below the first, between two common points, on logarithmic axes."""
    common = sorted(set(dict(first)) & set(dict(second)))
    gaps = [math.log(dict(first)[x] / dict(second)[x]) for x in common]
    for x0, x1, gap0, gap1 in zip(common, common[1:], gaps, gaps[1:]):
        if gap0 < 0 <= gap1:
            return math.exp(math.log(x0) + (math.log(x1) - math.log(x0)) * -gap0 / (gap1 - gap0))
    raise ValueError("the two paths do not cross")


def draw():
    grids = newest(read(MACHINE), bench="dispatch")
    cells = [cell for cell in grids[-1]["grid"] if cell["cached_tokens"]]
    contexts = sorted({cell["cached_tokens"] for cell in cells})
    picture = Picture(772, "Two forms of attention for a chunk of a prompt: which one is faster?",
                      "For four numbers of cached tokens, the time of the absorbed and the latent form over the number of new "
                      "tokens. The absorbed form is faster for few new tokens, the latent form for many.")
    y = picture.heading("Absorbed works on the cached latents directly: its time grows with every new token. Latent first expands "
                        "all cached tokens to keys and values, which takes the same time for one new token as for a thousand; "
                        "after that, a new token is cheap. So few new tokens are faster absorbed, and many are faster latent.")
    y = picture.lines_of_text(20, y + 4, f"Lower is better. {machine_of(MACHINE)}, {grids[-1]['threads']} threads, "
                              f"{date_of(grids)}, {grids[-1]['heads']} heads, time of one layer, logarithmic axes.", 820)
    picture.legend(20, y + 10, [("absorbed", "blue", "line"), ("latent", "orange", "line"),
                                ("chosen by --attention auto with built-in rates", "text", "dot"),
                                ("where the lines cross", "muted", "dashes")])
    highest, lowest = (f(cell[f"{path}_us"] / 1e3 for cell in cells for path in PATHS) for f in (max, min))
    news = sorted({cell["new_tokens"] for cell in cells})
    left_out = []
    for i, context in enumerate(contexts):
        left, top = 70 + COLUMN * (i % 2), y + 58 + ROW * (i // 2)
        plot = Plot(picture, Axis(news[0] / 1.2, news[-1] * 1.2, left, left + 360, log=True),
                    Axis(lowest / 1.3, highest * 4, top + 200, top, log=True))
        left_out += panel(plot, context, [cell for cell in cells if cell["cached_tokens"] == context], news)
    if left_out:
        note = f"Left out, because the first call also maps the workspace: {'; '.join(left_out)}."
        picture.lines_of_text(20, picture.height - 14, note, 820, size=12)
    return picture


def panel(plot, context, cells, news):
    """One number of cached tokens; what is left out, in words."""
    picture, left_out, lines = plot.picture, [], {}
    for path in PATHS:
        points = [(cell["new_tokens"], cell[f"{path}_us"] / 1e3) for cell in cells]
        lines[path] = steady(points)
        left_out += [f"{path}, {context:,} cached, {x} new" for x, _ in points if x not in dict(lines[path])]
    plot.grid_y(powers(plot.y.low, plot.y.high, (1,)))
    plot.grid_x([x for x in news if x in (1, 8, 32, 128, 512, 2048)], lines=False)
    plot.name_x("new tokens in the chunk")
    picture.text(plot.x.start - 40, plot.y.end - 12, "ms", "muted", 12)
    picture.text(plot.x.start, plot.y.end - 12, f"{context:,} cached tokens", bold=True)
    cross = crossing(lines["absorbed"], lines["latent"])
    at = plot.x(cross)
    picture.line([(at, plot.y.start), (at, plot.y.end)], "muted", dashed=True)
    for path, color in PATHS.items():
        plot.line(lines[path], color)
        chosen = {cell["new_tokens"] for cell in cells if cell["chosen"] == path}
        plot.dots([point for point in lines[path] if point[0] in chosen], color)
    picture.text(at - 6, plot.y.end + 14, "absorbed faster", "blue", 12, anchor="end", halo=True)
    picture.text(at + 6, plot.y.end + 14, "latent faster", "orange", 12, halo=True)
    picture.text(at, plot.y.end - 12, figure(round(cross)), "muted", 12, anchor="middle")
    return left_out
