"""caches.svg: time of decode attention by cache format, from `latte bench attention`."""
from chart import Axis, Plot
from records import date_of, machine_of, read
from svg import Picture

MACHINE = "zen5"
FORMATS = {"bf16": "muted", "fp8": "orange", "int8": "blue", "q6": "purple"}
SHAPES = ((1, 32768), (16, 8192), (128, 8192))
TOP, BOTTOM = 136, 316


def times_of(records, heads, context):
    """{format: the newest record} of decode attention with one new token."""
    return {r["cache_dtype"]: r for r in records if r.get("phase") == "decode" and r.get("q_len") == 1
            and (r["heads"], r["context"]) == (heads, context)}


def draw():
    records = read(MACHINE)
    groups = [times_of(records, *shape) for shape in SHAPES]
    used = [record for group in groups for record in group.values()]
    picture = Picture(352, "Decode attention by cache format",
                      "Bars of the time of attention with bf16, fp8, int8 and q6 caches, for 1, 16 and 128 heads.")
    y = picture.heading(f"Lower is better. Bars are relative to bf16; numbers are milliseconds of one layer for one new token. "
                        f"{machine_of(MACHINE)}, {used[0]['threads']} threads, {date_of(used)}. C = 512, R = 64.")
    slowest = max(record["us"] / group["bf16"]["us"] for group in groups for record in group.values())
    for i, ((heads, context), group) in enumerate(zip(SHAPES, groups)):
        left = 62 + 270 * i
        plot = Plot(picture, Axis(0, len(FORMATS), left, left + 240), Axis(0, slowest, BOTTOM, TOP))
        picture.text(left, TOP - 28, f"{heads} head{'s' * (heads > 1)}, {context:,} cached tokens", bold=True)
        plot.grid_y([tick / 2 for tick in range(int(slowest * 2) + 1)], numbers=i == 0)
        base = group["bf16"]["us"]
        for at, (name, color) in enumerate(FORMATS.items()):
            x, top = plot.x(at + 0.5), plot.y(group[name]["us"] / base)
            picture.rect(x - 19, top, 38, BOTTOM - top, fill=color)
            picture.text(x, top - 6, f"{group[name]['us'] / 1e3:.2f}", size=12, anchor="middle", halo=True)
            picture.text(x, BOTTOM + 18, name, color, anchor="middle")
    assert y < TOP - 40
    return picture
