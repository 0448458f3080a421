"""request.svg: the path of a request through `latte serve` and the engine, by thread."""
from svg import Picture

LANE = 162  # where the boxes begin; the names of the threads are left of it
RIGHT = 814  # where the boxes of a step end
# (name of the thread, explanation, top, height, colour of its boxes)
LANES = {"client": ("Client", "", 74, 62, "panel"), "io": ("I/O thread", "one, for all clients", 144, 78, "paleblue"),
         "workers": ("Workers", "--workers threads", 230, 66, "palegreen"),
         "engine": ("Engine's thread", "one step after another", 312, 212, "paleorange"),
         "below": ("Other threads", "of the engine", 532, 82, "palepurple")}
# The nine parts of a step: (what, by what).
STEP = (("take new requests", "and cancellations", "inbox"), ("place pages from disk,", "draft tokens", "page mover, drafter"),
        ("plan: who computes", "which tokens", "scheduler, cache"), ("copy and save pages,", "start loads", "page mover"),
        ("one forward pass", "of all sequences", "runner, model"), ("finished pages", "become prefixes", "scheduler"),
        ("sample the", "next tokens", "sampler"), ("token to text,", "stop conditions", "outputs"),
        ("deliver the events", "of the step", "event sink"))


class Boxes:
    """Draws boxes in lanes."""

    def __init__(self, picture):
        self.picture = picture
        for name, about, top, height, _ in LANES.values():
            picture.rect(12, top, picture.width - 24, height, fill="page", edge="grid", radius=6)
            picture.text(24, top + 26, name, bold=True)
            picture.lines_of_text(24, top + 44, about, LANE - 30, size=12)

    def box(self, lane, x, width, *lines, y=10, height=46, small=""):
        """A box at x with lines of words; `small`: a muted last line. The place of its edges: (left, top, right, bottom)."""
        _, _, top, _, fill = LANES[lane]
        self.picture.rect(x, top + y, width, height, fill=fill, edge="edge", radius=5)
        rows = [*lines, small] if small else lines
        first = top + y + height / 2 - 8.5 * (len(rows) - 1) + 4.5
        for i, words in enumerate(rows):
            muted = small and i == len(rows) - 1
            self.picture.text(x + width / 2, first + 17 * i, words, "muted" if muted else "text", 12, anchor="middle")
        return x, top + y, x + width, top + y + height

    def arrow(self, *points):
        self.picture.line(points, "text", 1.5, arrow=True)


def draw():
    picture = Picture(632, "The path of a request",
                      "A request goes from the client to the I/O thread, to a worker that parses and tokenises it, to the inbox of "
                      "the engine. The engine's thread runs steps of nine parts: inbox, pages from disk and drafts, plan, page "
                      "copies, forward pass, prefixes, sampling, text, events. The I/O thread writes the events to the client.")
    picture.heading("Through latte serve, by thread. Programs that use the library, and the commands run, chat and batch, begin at "
                    "Submit.")
    boxes = Boxes(picture)
    sent = boxes.box("client", LANE, 150, "sends a request", height=42)
    reads = boxes.box("client", 690, 150, "reads the answer", height=42)
    front = boxes.box("io", LANE, 150, "HTTP: limits, keys,", "hosts, body", y=16)
    submit = boxes.box("io", 384, 156, "Submit: check it,", "put it into the inbox", y=16)
    write = boxes.box("io", 690, 150, "write the events,", "one by one or whole", y=16)
    parse = boxes.box("workers", 246, 204, "parse the body, apply the", "chat template, tokenise")
    step = draw_step(boxes)
    boxes.arrow((215, sent[3]), (215, front[1]))
    boxes.arrow((280, front[3]), (280, parse[1]))
    boxes.arrow((417, parse[1]), (417, submit[3]))
    inbox = step[0]
    boxes.arrow((490, submit[3]), (490, 304), (inbox[0] + 60, 304), (inbox[0] + 60, inbox[1]))
    events = step[8]
    boxes.arrow((events[2], events[1] + 36), (832, events[1] + 36), (832, write[3]))
    boxes.arrow((765, write[1]), (765, reads[3]))
    return picture


def draw_step(boxes):
    """The parts of a step in two rows, and the threads below; the places of the parts."""
    picture, places = boxes.picture, []
    for i, (first, second, by) in enumerate(STEP):
        row, column = (0, i) if i < 4 else (1, i - 4)
        count = 4 if row == 0 else 5
        width = (RIGHT - LANE - 8 * (count - 1)) / count
        x = LANE + (width + 8) * column
        places.append(boxes.box("engine", x, width, first, second, y=22 + 92 * row, height=72, small=by))
        picture.dot(x + 2, places[-1][1] + 2, 9, fill="text")
        picture.text(x + 2, places[-1][1] + 6, str(i + 1), "page", 12, bold=True, anchor="middle")
    kernels = boxes.box("below", LANE, 172, "kernels of 5, and 7:", "--threads threads", y=18)
    boxes.box("below", LANE + 188, 190, "masks of answers that must", "match a grammar, during 5", y=18)
    boxes.box("below", LANE + 394, 258, "prefix files of --cache-dir: reads", "for 2, writes what 4 saves", y=18)
    x = places[4][0] + 60
    boxes.arrow((x, places[4][3]), (x, kernels[1]))
    return places
