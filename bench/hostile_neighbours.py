#!/usr/bin/env python3
"""How long a usual request takes alone, and and with each kind of hostile client. Needs only Python's standard library.

Usage: hostile_neighbours.py LATTE [MODEL] [--requests N] [--clients N] [--only TEXT]
Prints the median and the 99th percentile of a usual request in milliseconds, as a table in Markdown. The clients run on the machine of the
server, so they take a part of its processors too: the first neighbour, which asks for nothing but /health, shows how much.
"""
import argparse
import json
import multiprocessing
import pathlib
import socket
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests/e2e/serve"))
from hostile_grammars import DEAR, REFUSED  # noqa: E402
from server import Server  # noqa: E402

WORDS = "once upon a time there was a hedgehog "


def measure(server, model, count):
    times = []
    for i in range(count):
        begun = time.monotonic()
        status, _, answer = server.post("/v1/completions", {"model": model, "prompt": f"Text {i % 7}:", "max_tokens": 8, "ignore_eos": True,
                                                            "temperature": 1, "seed": i}, timeout=600)
        if status != 200:
            sys.exit(f"{status} {json.dumps(answer)[:300]}")
        times.append((time.monotonic() - begun) * 1000)
    times.sort()
    return statistics.median(times), times[min(len(times) - 1, int(len(times) * 0.99))]


def raw(server, data, wait):
    """Sends bytes, reads nothing for `wait` seconds, and leaves."""
    with server.socket() as s:
        s.sendall(data)
        time.sleep(wait)


def head(path, length, more=""):
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{more}\r\n".encode()


def unread_stream(server, model, i):
    body = json.dumps({"model": model, "prompt": "A", "max_tokens": 400, "ignore_eos": True, "stream": True, "seed": i}).encode()
    raw(server, head("/v1/completions", len(body)) + body, 2)


def cut_answer(server, model, i):
    body = json.dumps({"model": model, "prompt": f"Text {i}", "max_tokens": 400, "ignore_eos": True}).encode()
    raw(server, head("/v1/completions", len(body)) + body, 0.02)


def grammar(table):
    def send(server, model, i):
        field, value = list(table.values())[i % len(table)][:2]
        value = {**value, "title": str(i)} if field == "guided_json" else value
        server.post("/v1/completions", {"model": model, "prompt": "A duck", "max_tokens": 20, "temperature": 1, "seed": i, field: value},
                    timeout=600)
    return send


NEIGHBOURS = {
    "/health, as fast as it goes": lambda server, model, i: server.get("/health"),
    "refused bodies": lambda server, model, i: server.post("/v1/completions", {"model": model, "prompt": [-1], "n": 0}),
    "refused paths": lambda server, model, i: server.get("/v1/nothing"),
    "heads that never end": lambda server, model, i: raw(server, b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ", 1),
    "bodies that never end": lambda server, model, i: raw(server, head("/v1/completions", 1 << 20) + b'{"prompt": "', 1),
    "streams that are not read": unread_stream,
    "answers that are cut": cut_answer,
    "prompts that cannot fit": lambda server, model, i: server.post("/v1/completions", {"model": model, "prompt": WORDS * 20000}),
    "long texts to count": lambda server, model, i: server.post("/tokenize", {"model": model, "prompt": WORDS * 20000}, timeout=600),
    "16,000 messages": lambda server, model, i: server.post(
        "/v1/chat/completions", {"model": model, "messages": [{"role": "user", "content": "x"}] * 16000}, timeout=600),
    "grammars beyond their price": grammar(REFUSED),
    "grammars at their price": grammar(DEAR),
}


def attack(server, model, send, client, sent):
    """A process of its own, so that it takes no time from the one that measures."""
    while True:
        try:
            send(server, model, client * 1_000_000 + sent.value)
        except (OSError, ValueError):  # refused, cut
            pass
        sent.value += 1


def beside(server, model, options, send):
    sent = [multiprocessing.Value("q", 0) for _ in range(options.clients)]
    clients = [multiprocessing.Process(target=attack, args=(server, model, send, i, count), daemon=True) for i, count in enumerate(sent)]
    for client in clients:
        client.start()
    time.sleep(0.5)
    found = measure(server, model, options.requests)
    for client in clients:
        client.kill()
        client.join()
    time.sleep(1)  # the server ends what they have begun
    return found, sum(count.value for count in sent)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("latte")
    parser.add_argument("model", nargs="?", default="tiny")
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--only", default="", help="of the neighbours, those whose name contains this text")
    options = parser.parse_args()
    socket.setdefaulttimeout(600)
    with Server(options.latte, model=options.model) as server:
        model = server.get("/v1/models")[2]["data"][0]["id"]
        print("| with | median | 99 % | times of alone | hostile requests |\n|---|--:|--:|--:|--:|")
        alone = measure(server, model, options.requests)
        print("| nothing | {:.1f} | {:.1f} | | |".format(*alone), flush=True)
        multiprocessing.set_start_method("fork")
        for name, send in NEIGHBOURS.items():
            if options.only not in name:
                continue
            (median, most), sent = beside(server, model, options, send)
            print(f"| {name} | {median:.1f} | {most:.1f} | {median / alone[0]:.1f} / {most / alone[1]:.1f} | {sent} |", flush=True)
        print("| nothing, at the end | {:.1f} | {:.1f} | | |".format(*measure(server, model, options.requests)))


if __name__ == "__main__":
    main()
