"""memory.svg: memory of the published models: weights, the cache of one long sequence, and that cache without MLA."""
from chart import Axis, Plot, steps
from models import CONTEXT, models
from svg import Picture

LEFT, RIGHT = 178, 616
COLUMNS = (72, 146, 224)  # right ends of the numbers, from RIGHT
BAR, ROW = 15, 46
SMALL = 100e9  # bytes in bf16; larger models have another scale


def draw():
    groups = [[one for one in models() if (one.bf16() <= SMALL) == small] for small in (True, False)]
    picture = Picture(196 + ROW * sum(map(len, groups)) + 76, "Memory of the models",
                      "Bars of the weights in bf16 and int4, the cache of 32,768 tokens, and what the cache would take with keys "
                      "and values of all heads. MLA makes the cache small next to the weights.")
    y = picture.heading(f"Lower is better. Weights, and the bf16 cache of one sequence of {CONTEXT:,} tokens. The dashed part is "
                        "what multi-head attention (MHA) would add to that cache. Computed by latte inspect from the published "
                        "configurations, without layers for drafting; int4 is the smallest format of latte quantize.")
    picture.legend(20, y + 10, [("weights, bf16", "muted", "box"), ("weights, int4", "blue", "box"),
                                ("cache with MLA", "orange", "box"), ("more with MHA", "orange", "hollow")])
    y += 40
    for small, group in zip((True, False), groups):
        y = draw_group(picture, y, group, "Up to 100 GB in bf16" if small else "Larger models: another scale")
    return picture


def draw_group(picture, y, group, title):
    """Models on one scale; the y below them."""
    picture.text(20, y + 6, title, bold=True)
    for right, words, color in zip(COLUMNS, ("weights", "MLA cache", "MHA cache"), ("muted", "orange", "muted")):
        picture.text(RIGHT + right, y + 6, words, color, 12, anchor="end")
    y += 16
    longest = max(one.bf16() + one.mha_cache() for one in group) / 1e9
    ticks = steps(longest, 6)
    x = Axis(0, longest, LEFT, RIGHT)
    bottom = y + ROW * len(group)
    Plot(picture, x, Axis(0, 1, bottom, y)).grid_x([tick for tick in ticks if tick <= longest],
                                                  lambda value: f"{value:,.0f}{' GB' * (value == 0)}")
    for one in group:
        short = one.context < CONTEXT
        picture.text(LEFT - 12, y + (22 if short else 28), one.name, anchor="end")
        if short:
            picture.text(LEFT - 12, y + 38, f"at most {one.context:,} tokens", "muted", 12, anchor="end")
        for i, (weights, color) in enumerate(((one.bf16(), "muted"), (one.int4(), "blue"))):
            bar(picture, x, y + 7 + i * (BAR + 3), weights, one, color)
        y += ROW
    return bottom + 48


def bar(picture, x, y, weights, one, color):
    ends = [x(bytes_ / 1e9) for bytes_ in (0, weights, weights + one.cache(), weights + one.mha_cache())]
    picture.rect(ends[2], y + 0.5, ends[3] - ends[2], BAR - 1, edge="orange", dashed=True)
    picture.rect(ends[0], y, ends[1] - ends[0], BAR, fill=color)
    picture.rect(ends[1], y, max(1.5, ends[2] - ends[1]), BAR, fill="orange")
    base = y + BAR - 3
    columns = (("", weights, color), ("+ ", one.cache(), "orange"), ("+ ", one.mha_cache(), "muted"))
    for right, (sign, bytes_, ink) in zip(COLUMNS, columns):
        picture.text(RIGHT + right, base, sign + gigabytes(bytes_), ink, 12, anchor="end")


def gigabytes(bytes_):
    return f"{bytes_ / 1e9:,.{0 if bytes_ >= 99.95e9 else 1 if bytes_ >= 1e9 else 2}f} GB"
