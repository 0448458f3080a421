"""Axes, grids and labels of charts."""
import math



def figure(value):
    """A figure for a reader: three digits, or all before the point."""
    if value >= 100:
        return f"{value:,.0f}"
    out = f"{value:.3g}"
    return out if "e" not in out else f"{value:f}".rstrip("0")


def steps(high, most=5):
    """0 and round numbers up to at least `high`, at most `most` of them above 0."""
    unit = 10 ** math.floor(math.log10(high)) / 10
    step = next(unit * factor for factor in (1, 2, 2.5, 5, 10, 20, 25, 50) if unit * factor * most >= high * 0.9999)
    return [round(i * step, 10) for i in range(math.ceil(high / step - 1e-9) + 1)]


def powers(low, high, factors=(1, 2, 5)):
    """The numbers factor · 10^n from low to high."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = (round(factor * 10.0 ** n, 10) for n in decades for factor in factors)
    return [value for value in values if low * 0.9999 <= value <= high * 1.0001]


class Axis:
    """Maps [low, high] to pixels [start, end]; log: equal factors have equal lengths."""

    def __init__(self, low, high, start, end, log=False):
        self._scale = math.log10 if log else float
        self.low, self.high, self.start, self.end = low, high, start, end

    def __call__(self, value):
        low, high = self._scale(self.low), self._scale(self.high)
        return self.start + (self._scale(value) - low) / (high - low) * (self.end - self.start)


class Plot:
    """A box with two axes, x from left to right and y from bottom to top; draws its grid and the numbers at it."""

    def __init__(self, picture, x, y):
        self.picture, self.x, self.y = picture, x, y

    def grid_x(self, ticks, label=figure, lines=True, size=12):
        for tick in ticks:
            at = self.x(tick)
            if lines:
                self.picture.line([(at, self.y.start), (at, self.y.end)], "grid")
            self.picture.text(at, self.y.start + 17, label(tick), "muted", size, anchor="middle")

    def grid_y(self, ticks, label=figure, numbers=True, size=12):
        for tick in ticks:
            at = self.y(tick)
            self.picture.line([(self.x.start, at), (self.x.end, at)], "grid")
            if numbers:
                self.picture.text(self.x.start - 7, at + 4, label(tick), "muted", size, anchor="end")

    def name_x(self, words):
        """The name of the axis x, below its numbers."""
        self.picture.text((self.x.start + self.x.end) / 2, self.y.start + 36, words, "muted", 12, anchor="middle")

    def points(self, points):
        return [(self.x(x), self.y(y)) for x, y in points]

    def line(self, points, color, width=2, dashed=False):
        self.picture.line(self.points(points), color, width, dashed)

    def dots(self, points, color, radius=4, hollow=False):
        for x, y in self.points(points):
            self.picture.dot(x, y, radius, fill="page" if hollow else color, edge=color if hollow else None, width=1.5)


def apart(places, least):
    """The places (y) moved as little as possible, in order, so that neighbours differ by at least `least`."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    out = list(places)
    groups = []  # of (indices, wanted centre)
    for i in order:
        groups.append([i])
        while len(groups) > 1:
            above, below = groups[-2], groups[-1]
            if _centre(below, places) - _centre(above, places) >= least * (len(above) + len(below)) / 2:
                break
            groups[-2:] = [above + below]
    for group in groups:
        first = _centre(group, places) - least * (len(group) - 1) / 2
        for place, i in enumerate(group):
            out[i] = first + least * place
    return out


def _centre(group, places):
    return sum(places[i] for i in group) / len(group)
