"""The pictures of docs/plots: drawn from the records, and legible on light and dark pages. Usage: pictures_test.py"""
import pathlib
import re
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/draw"))

import draw  # noqa: E402
import promql  # noqa: E402
from svg import SIZE, width_of  # noqa: E402

PLOTS = ROOT / "docs/plots"
SVG = "{http://www.w3.org/2000/svg}"
DARK = re.compile(r"@media \(prefers-color-scheme:dark\)\{(.*)\}$", re.S)
RULE = re.compile(r"([.\w-]+)\{([^{}]*)\}")
LEAST_CONTRAST = 4.5  # of text, in WCAG 2 (AA)
LEAST_SIZE = 11
drawn = {}


def setUpModule():
    with tempfile.TemporaryDirectory(prefix="latte_pictures_") as folder:
        drawn.update((path.name, path.read_text()) for path in draw.draw_all(pathlib.Path(folder)))


def schemes(tree):
    """The styles of a picture on light and on dark pages: {selector: {property: value}} each."""
    def rules(text):
        return {name: dict(pair.split(":", 1) for pair in body.split(";") if pair) for name, body in RULE.findall(text)}
    text = tree.find(f"{SVG}style").text
    light = rules(DARK.sub("", text))
    dark = rules(DARK.search(text)[1])
    return {"light": light, "dark": {name: body | dark.get(name, {}) for name, body in light.items()}}


def fill_of(element, style):
    """The colour that fills an element; None: nothing does."""
    names = [f".{name}" for name in element.get("class", "").split()] + [element.tag.removeprefix(SVG)]
    found = (style[name]["fill"] for name in names if "fill" in style.get(name, {}))
    color = next(found, "#000000")
    return None if color == "none" else color


def luminance(color):
    channels = [int(color[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first, second):
    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def covers(shape, x, y):
    """Whether a rectangle or a circle contains a point."""
    number = {name: float(shape.get(name, 0)) for name in ("x", "y", "width", "height", "cx", "cy", "r")}
    if shape.tag == f"{SVG}circle":
        return (x - number["cx"]) ** 2 + (y - number["cy"]) ** 2 <= number["r"] ** 2
    inside = number["x"] <= x <= number["x"] + number["width"] and number["y"] <= y <= number["y"] + number["height"]
    return shape.tag == f"{SVG}rect" and inside


def box_of(text, style):
    """(size, left, right, middle) of a text; the widths are estimates from above."""
    classes = text.get("class", "").split()
    size = next((int(style[f".{name}"]["font-size"].removesuffix("px")) for name in classes if name.startswith("size")), SIZE)
    width, x = width_of(text.text, size, "bold" in classes), float(text.get("x"))
    left = x - (width if "end" in classes else width / 2 if "middle" in classes else 0)
    return size, left, left + width, float(text.get("y")) - size / 3


def texts_and_colors(tree, style):
    """(words, colour, colour behind) of every text, at both ends and in the middle."""
    shapes = []
    for element in tree:
        if element.tag in (f"{SVG}rect", f"{SVG}circle") and fill_of(element, style):
            shapes.append(element)
        elif element.tag == f"{SVG}text":
            _, left, right, y = box_of(element, style)
            for x in (left + 1, (left + right) / 2, right - 1):
                behind = [shape for shape in shapes if covers(shape, x, y)][-1]
                yield element.text, fill_of(element, style), fill_of(behind, style)


def laid_out():
    """(name, tree, [(words, size, left, right, middle), …]) of every picture."""
    for name, text in drawn.items():
        tree = ElementTree.fromstring(text)
        style = schemes(tree)["light"]
        yield name, tree, [(text.text, *box_of(text, style)) for text in tree.iter(f"{SVG}text")]


class Pictures(unittest.TestCase):
    def test_the_committed_files_are_what_the_records_make(self):
        committed = {path.name: path.read_text() for path in PLOTS.iterdir()}
        self.assertEqual(set(drawn), set(committed), "run bench/draw/draw.py")
        for name, text in drawn.items():
            self.assertTrue(text == committed[name], f"docs/plots/{name} has other bytes: run bench/draw/draw.py")

    def test_a_picture_refers_to_nothing_outside(self):
        for name, text in drawn.items():
            without_names = text.replace('xmlns="http://www.w3.org/2000/svg"', "")
            found = re.search(r"(?i)https?:/|href|url\(|@import|<script|<image|<foreignobject|\bon\w+=|<!", without_names)
            self.assertIsNone(found, name)

    def test_a_picture_says_what_it_shows(self):
        for name, text in drawn.items():
            with self.subTest(picture=name):
                tree = ElementTree.fromstring(text)
                self.assertEqual(tree.tag, f"{SVG}svg")
                self.assertTrue(tree.find(f"{SVG}title").text)
                self.assertGreater(len(tree.find(f"{SVG}desc").text), 40)

    def test_text_stands_out_on_light_and_dark_pages(self):
        for name, text in drawn.items():
            tree = ElementTree.fromstring(text)
            for scheme, style in schemes(tree).items():
                with self.subTest(picture=name, scheme=scheme):
                    for words, color, behind in texts_and_colors(tree, style):
                        self.assertGreaterEqual(contrast(color, behind), LEAST_CONTRAST, f"{words!r}: {color} on {behind}")

    def test_text_is_large_enough_and_inside_the_picture(self):
        for name, tree, texts in laid_out():
            with self.subTest(picture=name):
                for words, size, left, right, y in texts:
                    self.assertGreaterEqual(size, LEAST_SIZE, words)
                    self.assertTrue(left >= 0 and right <= float(tree.get("width")), f"{words!r}: {left:.0f} to {right:.0f}")
                    self.assertTrue(size / 2 <= y <= float(tree.get("height")) - size / 2, words)

    def test_no_text_lies_on_another(self):
        for name, _, texts in laid_out():
            with self.subTest(picture=name):
                for i, (words, size, left, right, y) in enumerate(texts):
                    for other, size1, left1, right1, y1 in texts[i + 1:]:
                        apart = abs(y - y1) >= 0.4 * (size + size1) or left >= right1 or left1 >= right
                        self.assertTrue(apart, f"{words!r} and {other!r}")

    def test_pages_describe_the_pictures_that_they_show(self):
        for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]:
            for words, target in re.findall(r"!\[([^\]]*)\]\(([^)]*docs/plots/\S+|[^)]*plots/\S+)\)", page.read_text()):
                self.assertGreater(len(words), 20, f"{page}: {target}")
                self.assertIn(pathlib.Path(target).name, drawn, page)


class Expressions(unittest.TestCase):
    """The values of the dashboard, from recorded series."""

    def series(self, *lines, readings=11):
        return promql.Series([{"readings": readings}, *({"series": name, "labels": labels, "values": values}
                                                        for name, labels, values in lines)])

    def test_a_rate_is_the_increase_per_second_of_the_last_readings(self):
        counter = ("c", {}, [None, 0, 0, 10, 20, 30, 40, 50, 50, 50, 50])
        self.assertEqual(self.series(counter).evaluate("sum(rate(c{a=~\"$b\"}[$__rate_interval]))", 7), [({}, 10.0)])
        self.assertEqual(self.series(counter).evaluate("rate(c[$__rate_interval])", 10), [({}, 4.0)])
        self.assertEqual(self.series(counter).evaluate("sum(rate(c[$__rate_interval]))", 1), [({}, None)])

    def test_labels_separate_sums(self):
        lines = (("g", {"by": "x", "other": "1"}, [1]), ("g", {"by": "x", "other": "2"}, [2]), ("g", {"by": "y"}, [4]))
        self.assertEqual(self.series(*lines).evaluate("sum by (by) (g)", 3), [({"by": "x"}, 3), ({"by": "y"}, 4)])
        self.assertEqual(self.series(*lines).evaluate("max(g)", 3), [({}, 4)])

    def test_a_quantile_lies_within_its_bucket(self):
        buckets = [({"le": bound}, value) for bound, value in (("1", 2.0), ("3", 6.0), ("+Inf", 8.0))]
        self.assertEqual(promql.quantile(0.5, buckets), 2.0)    # the fourth of eight: half way from 1 to 3
        self.assertEqual(promql.quantile(0.125, buckets), 0.5)
        self.assertEqual(promql.quantile(0.9, buckets), 3.0)    # beyond the last bound
        self.assertIsNone(promql.quantile(0.5, [({"le": "+Inf"}, 0.0)]))

    def test_a_quotient_without_divisor_has_no_value(self):
        lines = (("a", {}, list(range(11))), ("b", {}, [0]))
        quotient = "sum(rate(a[$__rate_interval])) / sum(rate(b[$__rate_interval]))"
        self.assertEqual(self.series(*lines).evaluate(quotient, 10), [({}, None)])

    def test_other_expressions_are_refused(self):
        with self.assertRaisesRegex(ValueError, "does not know the expression"):
            self.series(("a", {}, [1])).evaluate("topk(3, a)", 0)


if __name__ == "__main__":
    unittest.main()
