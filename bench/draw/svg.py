"""Writes a picture as SVG text: shapes, words, and one style for light and for dark pages.

A colour is a name of COLORS; the picture contains its light value and, for readers who prefer dark pages, its dark value.
Coordinates are pixels; y points down. Texts are laid out for the widest common font, so they fit in every other one.
"""
from xml.sax.saxutils import escape

# name: (on light pages, on dark pages)
COLORS = {
    "page": ("#ffffff", "#0d1117"), "panel": ("#f6f8fa", "#161b22"), "grid": ("#d8dee4", "#2b3138"),
    "edge": ("#818b98", "#656c76"), "text": ("#1f2328", "#e6edf3"), "muted": ("#59636e", "#9198a1"),
    "blue": ("#0969da", "#58a6ff"), "orange": ("#bc4c00", "#f0883e"), "green": ("#1a7f37", "#3fb950"),
    "purple": ("#8250df", "#bc8cff"), "pink": ("#bf3989", "#f778ba"),
    "paleblue": ("#ddf4ff", "#12263f"), "paleorange": ("#fff1e5", "#3a2213"), "palegreen": ("#dafbe1", "#12311c"),
    "palepurple": ("#fbefff", "#2c1f45"), "paleedge": ("#afb8c1", "#484f58")}
SERIES = ("blue", "orange", "green", "purple", "pink", "muted")
FONT = "-apple-system,'Segoe UI','Noto Sans',Helvetica,Arial,'DejaVu Sans',sans-serif"
SIZE = 13  # of a text without a size
WIDTH = 860  # of every picture

# Widths of DejaVu Sans in thousandths of the size; 610 for what is not listed.
_WIDTHS = {width: letters for letters, width in {
    "ijl'|": 280, " .,:;/()[]ft-I·": 360, "r*\"": 415, "sczJ?_": 530, "0123456789": 636, "mM%W@→←◄►": 950,
    "wQOGDHNUCR≥≤+=<>~×≈": 800}.items()}
_WIDTH_OF = {letter: width for width, letters in _WIDTHS.items() for letter in letters}


def number(value):
    """A coordinate: at most one decimal."""
    out = f"{value:.1f}"
    return "0" if out == "-0.0" else out.removesuffix(".0")


def width_of(words, size=SIZE, bold=False):
    """An upper estimate of the width of a text."""
    return sum(_WIDTH_OF.get(letter, 610) for letter in words) * size / 1000 * (1.1 if bold else 1)


def wrap(words, width, size=SIZE):
    """The lines of a text of at most this width."""
    lines = []
    for word in words.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and width_of(longer, size) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


class Picture:
    """A drawing. `about` says in words what it shows, for readers who do not see it."""

    def __init__(self, height, title, about, width=WIDTH):
        self.width, self.height, self.title, self.about = width, height, title, about
        self._parts = []
        self._fills, self._lines, self._sizes = ["page", "text"], [], []

    def _fill(self, color):
        if color not in self._fills:
            self._fills.append(color)
        return f"f-{color}"

    def _line(self, color):
        if color not in self._lines:
            self._lines.append(color)
        return f"l-{color}"

    def _add(self, tag, classes, words=None, **attributes):
        pairs = {"class": " ".join(classes), **{name.replace("_", "-"): value for name, value in attributes.items()}}
        inside = "".join(f' {name}="{number(value) if isinstance(value, float | int) else escape(value)}"'
                         for name, value in pairs.items() if value not in (None, ""))
        self._parts.append(f"<{tag}{inside}/>" if words is None else f"<{tag}{inside}>{escape(words)}</{tag}>")

    def text(self, x, y, words, color="text", size=SIZE, bold=False, anchor="start", halo=False):
        """Words whose base line begins (anchor: start), has its middle (middle) or ends (end) at x, y.

        halo: in front of a rim of the page's colour, over lines.
        """
        classes = [] if color == "text" else [self._fill(color)]
        classes += ["bold"] * bold + [anchor] * (anchor != "start")
        classes += ["halo"] * halo
        if size != SIZE:
            classes.append(f"size{size}")
            self._sizes += [size] * (size not in self._sizes)
        self._add("text", classes, words, x=x, y=y)

    def lines_of_text(self, x, y, words, width, color="muted", size=SIZE):
        """A text in lines of at most this width; the y of the line after the last one."""
        for line in wrap(words, width, size):
            self.text(x, y, line, color, size)
            y += round(size * 1.4)
        return y

    def rect(self, x, y, width, height, fill=None, edge=None, radius=0, dashed=False):
        classes = [self._fill(fill) if fill else "none"] + ([self._line(edge)] if edge else [])
        self._add("rect", classes + ["dashed"] * dashed, x=x, y=y, width=width, height=height, rx=radius or None)

    def line(self, points, color, width=1, dashed=False, fill=None, arrow=False):
        """A line through the points (x, y); with fill, the area inside of it."""
        path = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points) + ("Z" if fill else "")
        classes = [self._fill(fill) if fill else "none"] + ([self._line(color)] if color else [])
        self._add("path", classes + ["dashed"] * dashed, d=path, stroke_width=None if width == 1 else width)
        if arrow:
            self._head(points[-2], points[-1], color)

    def _head(self, before, tip, color):
        """The head of an arrow that runs along one axis."""
        (x0, y0), (x, y) = before, tip
        along = ((x > x0) - (x < x0), (y > y0) - (y < y0))
        back = (x - 8 * along[0], y - 8 * along[1])
        side = (4 * along[1], 4 * along[0])
        corners = [tip, (back[0] + side[0], back[1] + side[1]), (back[0] - side[0], back[1] - side[1])]
        self.line(corners, None, fill=color)

    def dot(self, x, y, radius, fill=None, edge=None, width=1):
        classes = [self._fill(fill) if fill else "none"] + ([self._line(edge)] if edge else [])
        self._add("circle", classes, cx=x, cy=y, r=radius, stroke_width=None if width == 1 else width)

    def heading(self, subtitle):
        """The title and lines below it; the y where the drawing may begin."""
        self.text(20, 32, self.title, size=17, bold=True)
        return self.lines_of_text(20, 54, subtitle, self.width - 40)

    def legend(self, x, y, entries, gap=22):
        """Entries (words, color, mark) from left to right; mark: line, dashes, box, hollow, dot, dots, ring."""
        for words, color, mark in entries:
            if mark == "box":
                self.rect(x, y - 10, 12, 12, fill=color)
            elif mark == "hollow":
                self.rect(x + 0.5, y - 10, 12, 12, edge=color, dashed=True)
            elif mark == "dashes":
                self.line([(x, y - 4), (x + 14, y - 4)], color, dashed=True)
            elif mark == "ring":
                self.dot(x + 6, y - 4, 4, fill="page", edge=color, width=1.5)
            else:
                if mark in ("line", "dots"):
                    self.line([(x, y - 4), (x + 14, y - 4)], color, 2)
                if mark in ("dot", "dots"):
                    self.dot(x + 7 if mark == "dots" else x + 6, y - 4, 4, fill=color)
            self.text(x + 19, y, words)
            x += 19 + width_of(words) + gap
        return x

    def svg(self):
        """The text of the file."""
        def rules(scheme):
            return "".join([*(f".f-{name}{{fill:{COLORS[name][scheme]}}}" for name in self._fills),
                            *(f".l-{name}{{stroke:{COLORS[name][scheme]}}}" for name in self._lines),
                            f"text{{fill:{COLORS['text'][scheme]}}}.halo{{stroke:{COLORS['page'][scheme]}}}"])
        fixed = (f"text{{font:{SIZE}px {FONT}}}.bold{{font-weight:600}}.middle{{text-anchor:middle}}.end{{text-anchor:end}}"
                 ".none{fill:none}.dashed{stroke-dasharray:4 3}.halo{stroke-width:4;paint-order:stroke;stroke-linejoin:round}"
                 "path{stroke-linejoin:round}" + "".join(f".size{size}{{font-size:{size}px}}" for size in self._sizes))
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{number(self.height)}" '
            f'viewBox="0 0 {self.width} {number(self.height)}" role="img">',
            f"<title>{escape(self.title)}</title>", f"<desc>{escape(self.about)}</desc>",
            f"<style>{fixed}", rules(0), f"@media (prefers-color-scheme:dark){{{rules(1)}}}</style>",
            f'<rect class="f-page" width="{self.width}" height="{number(self.height)}" rx="6"/>',
            *self._parts, "</svg>"]) + "\n"
