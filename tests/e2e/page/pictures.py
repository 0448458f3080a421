"""Draws the pictures of the web page in docs/images. Usage: pictures.py FOLDER"""
import collections
import pathlib
import struct
import sys
import tempfile
import threading
import time
import zlib

from browser import Browser
from fake_server import FakeServer, pieces
from page_case import READY

ANSWER = r"""MLA caches **one latent vector** per token instead of keys and values of every head:

$$c_t = W^{DKV} h_t, \qquad k_{t,i} = W^{UK}_i c_t, \quad v_{t,i} = W^{UV}_i c_t$$

| attention | cached numbers per token and layer |
|-----------|-----------------------------------:|
| MHA | $2\,n_h d_h = 4{,}096$ |
| MLA | $d_c + d_r = 576$ |

In code, without the rotary part:

```python
def cache_row(hidden, down):
    latent = hidden @ down          # [tokens, d_c]
    return rms_norm(latent)         # all heads share it
```

So a cache of the same size holds about **7 times** as many tokens.
"""
OTHERS = ["Plan a week of vegetarian dinners", "Explain quicksort", "Rename files by date in bash"]


def converse(browser, fake, url):
    browser.open(url)
    browser.until(READY)
    for title in OTHERS:
        say(browser, fake, title, ["Done."])
        browser.click("#new")
    say(browser, fake, "Why does MLA need so little cache?", pieces(ANSWER, 9), ["The user asks about the cache. I compare the sizes."])
    browser.until("return document.querySelectorAll('math').length === 3 && document.querySelector('.t-keyword')")


def say(browser, fake, text, answer, reasoning=()):
    parts = [part if isinstance(part, dict) else {"content": part} for part in answer]
    fake.answer = lambda body: [{"reasoning_content": r} for r in reasoning] + [p for part in parts for p in (part, 0.03)] + ["stop"]
    before = browser.run("return document.querySelectorAll('.message').length")
    browser.type("#input", text + "{enter}")
    browser.until("return document.querySelectorAll('.message').length > arguments[0] && document.getElementById('messages').ariaBusy === 'false'", before)


def live(fake, done):
    """A server that works."""
    i = 0
    while not done.wait(1.9):
        i = min(i + 1, 14)
        fake.metrics["vllm:generation_tokens_total"] += 60 + 25 * (i % 3) + 5 * i
        fake.metrics["vllm:num_requests_running"] = 2 + i % 4
        fake.metrics["latte:cache_pages_used"] = 900 + 120 * i


def unfiltered(raw, width, height, size):
    """The rows of a PNG's pixels of `size` bytes."""
    rows, before, stride = [], bytes(width * size), width * size
    for y in range(height):
        kind, row = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for i in range(stride):
            left, up, corner = row[i - size] if i >= size else 0, before[i], before[i - size] if i >= size else 0
            guess = left + up - corner
            paeth = min((left, up, corner), key=lambda v: abs(guess - v))  # the first of equals, as the standard says
            row[i] = (row[i] + (0, left, up, (left + up) // 2, paeth)[kind]) & 255
        rows.append(bytes(row))
        before = rows[-1]
    return rows


def shrink(path):
    """Writes a PNG again with the 256 colours that it uses most."""
    data = path.read_bytes()
    width, height, kind = *struct.unpack(">II", data[16:24]), data[25]
    size, parts, at = {2: 3, 6: 4}[kind], b"", 8
    while at < len(data):
        length = struct.unpack(">I", data[at:at + 4])[0]
        parts += data[at + 8:at + 8 + length] if data[at + 4:at + 8] == b"IDAT" else b""
        at += length + 12
    rows = [[row[i:i + 3] for i in range(0, len(row), size)] for row in unfiltered(zlib.decompress(parts), width, height, size)]
    counts = collections.Counter(pixel for row in rows for pixel in row)
    palette = [color for color, _ in counts.most_common(256)]
    index = {color: min(range(len(palette)), key=lambda i: sum((a - b) ** 2 for a, b in zip(palette[i], color))) for color in counts}
    pixels = zlib.compress(b"".join(b"\0" + bytes(index[pixel] for pixel in row) for row in rows), 9)
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)), (b"PLTE", b"".join(palette)), (b"IDAT", pixels), (b"IEND", b"")]
    path.write_bytes(data[:8] + b"".join(struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in chunks))


def main(folder):
    folder = pathlib.Path(folder)
    with tempfile.TemporaryDirectory() as scratch:
        fake = FakeServer(scratch + "/libraries")
        fake.props.update(model="deepseek-v2-lite", names=["deepseek-v2-lite"])
        browser = Browser(scratch)
        done = threading.Event()
        threading.Thread(target=live, args=(fake, done), daemon=True).start()
        try:
            browser.resize(1216, 760)
            converse(browser, fake, fake.url)
            time.sleep(35)
            browser.run("const m = document.getElementById('messages'); m.scrollTop = 0; document.getElementById('input').blur()")
            for scheme in ("light", "dark"):
                browser.prefer(scheme)
                browser.frames(30)
                browser.screenshot(folder / f"page_{scheme}.png")
            browser.prefer("light")
            browser.resize(390, 844, touch=True)
            browser.frames(30)
            browser.run("document.getElementById('messages').scrollTop = 120")
            browser.frames(10)
            browser.screenshot(folder / "page_phone.png")
        finally:
            done.set()
            for path in folder.glob("page_*.png"):
                shrink(path)
            browser.close()
            fake.stop()


if __name__ == "__main__":
    main(sys.argv[1])
