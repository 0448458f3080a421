#!/usr/bin/env python3
"""`latte serve` under many requests of three kinds: refused by their head, answered, and cut by the client in every state. Measures what each
kind leaves behind.

Usage: requests_soak.py LATTE [SHARE]. SHARE 1: 1,000,000 refused, 200,000 answered and 20,000 cut requests. Prints one JSON object: for each
kind the requests per second and the slope of the resident memory in bytes per request, fitted over the second half. Fails if the memory
grows by more than MOST_GROWTH in that half, or if an entry of a list, an open file or a byte is left at the end.
"""
import json
import os
import pathlib
import random
import re
import socket
import struct
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e" / "serve"))
from server import Server, until  # noqa: E402

FLAGS = ["--api-key", "key", "--cors-origin", "https://page.example", "--no-access-log", "--log-level", "error", "--threads", "1",
         "--context", "512", "--cache-bytes", "2M", "--workers", "1"]
MOST_GROWTH = 1 << 20  # of the heap, which is fragmented
SAMPLES = 40
PIPELINED = 100  # requests that are sent before their answers are read
KEY = "Authorization: Bearer key\r\n"


def head(line, *fields):
    return f"{line} HTTP/1.1\r\nHost: localhost\r\n{''.join(fields)}\r\n".encode()


def identity(number):
    """A header field with the longest id; every request has another one."""
    return f"X-Request-Id: {number:0128d}\r\n"


def post(path, body, number):
    text = json.dumps(body)
    return head(f"POST {path}", KEY, identity(number), "Content-Type: application/json\r\n", f"Content-Length: {len(text)}\r\n") + text.encode()


def completion(number, stream, tokens=2):
    return post("/v1/completions", {"prompt": "Once", "max_tokens": tokens, "stream": stream, "ignore_eos": True}, number)


class Pipe:
    """A connection whose requests are sent in groups."""

    def __init__(self, server):
        self.socket = server.socket()
        self.file = self.socket.makefile("rb")

    def ask(self, requests):
        self.socket.sendall(b"".join(requests))
        return [self.answer() for _ in requests]

    def answer(self):
        status = int(self.file.readline().split()[1])
        length, chunked = 0, False
        while (line := self.file.readline()) != b"\r\n":
            if not line:
                raise OSError("the server has ended the connection")
            name, _, value = line.lower().partition(b": ")
            if name == b"content-length":
                length = int(value)
            chunked |= name == b"transfer-encoding"
        if chunked:
            while size := int(self.file.readline(), 16):
                self.file.read(size + 2)
            self.file.readline()
        elif status not in (204, 304):
            self.file.read(length)
        return status

    def close(self):
        self.file.close()
        self.socket.close()


def refused(pipe, first, count):
    """Heads that the server refuses: 401, 403, 404, 405, 415, and the question of a browser."""
    kinds = [(401, lambda i: head("GET /v1/models", identity(i))),
             (403, lambda i: head("GET /health", identity(i), KEY, "Origin: https://evil.example\r\n")),
             (404, lambda i: head("GET /favicon.ico", identity(i), KEY)),
             (405, lambda i: head("DELETE /health", identity(i), KEY)),
             (415, lambda i: head("POST /tokenize", identity(i), KEY)),
             (204, lambda i: head("OPTIONS /v1/models", identity(i), "Origin: https://page.example\r\n"))]
    chosen = [kinds[i % len(kinds)] for i in range(first, first + count)]
    statuses = pipe.ask([make(first + i) for i, (_, make) in enumerate(chosen)])
    if statuses != [status for status, _ in chosen]:
        raise OSError(f"refused: {statuses}")


def answered(pipe, first, count):
    """Answers of all kinds: one of ten generates text."""
    kinds = [lambda i: head("GET /health", identity(i)), lambda i: head("GET /v1/models", identity(i), KEY),
             lambda i: post("/tokenize", {"prompt": "Once"}, i), lambda i: head("GET /", identity(i)),
             lambda i: post("/tokenize", {"prompt": 1}, i), lambda i: head("GET /requests", identity(i), KEY),
             lambda i: head("GET /version", identity(i), KEY), lambda i: head("GET /props", identity(i), KEY),
             lambda i: head("GET /", identity(i), "If-None-Match: *\r\n"), lambda i: completion(i, i % 20 < 10)]
    statuses = pipe.ask([kinds[i % len(kinds)](i) for i in range(first, first + count)])
    if not set(statuses) <= {200, 304, 400}:
        raise OSError(f"answered: {statuses}")


def cut(server, number, chance):
    """A client that leaves: in the head, in the body, while it is parsed, queued or generated, in a stream, between two requests."""
    whole = completion(number, number % 2 == 0, tokens=200)
    client = server.socket()
    state = number % 5
    if state == 0:
        client.sendall(whole[:chance.randrange(1, len(whole))])
    elif state == 1:
        client.sendall(whole)
    elif state == 2:
        client.sendall(whole)
        time.sleep(0.001 * chance.randrange(4))
    elif state == 3:
        client.sendall(completion(number, True, tokens=200))
        client.recv(chance.randrange(1, 600))
    else:
        client.sendall(head("GET /health", identity(number)))
        client.recv(1000)
    if number % 3 == 0:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
    client.close()


def resident(process):
    return int(pathlib.Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def slope(samples):
    """Bytes per request, by least squares; samples: (requests, bytes)."""
    mean_x = sum(x for x, _ in samples) / len(samples)
    mean_y = sum(y for _, y in samples) / len(samples)
    return sum((x - mean_x) * (y - mean_y) for x, y in samples) / max(1, sum((x - mean_x) ** 2 for x, _ in samples))


def gauges(server):
    """What requests take, as a request sees it that has an id and a connection itself."""
    text = server.get("/metrics", headers={"Authorization": "Bearer key"})[2]
    wanted = r"^((?:latte:(?:request_records|body_bytes|unsent_bytes|connections)|process_open_fds|vllm:num_requests_\w+)(?:\{[^}]*\})?) (\S+)$"
    return {name: float(value) for name, value in re.findall(wanted, text, re.M)}


def measure(process, count, step, run):
    samples, done, begin = [], 0, time.monotonic()
    while done < count:
        for _ in range(max(1, count // SAMPLES // step)):
            run(done, step)
            done += step
        samples.append((done, resident(process)))
    half = samples[len(samples) // 2:]
    return {"requests": done, "per_second": round(done / (time.monotonic() - begin)), "bytes_per_request": round(slope(half), 3),
            "growth_bytes": half[-1][1] - half[0][1], "resident_bytes": [samples[0][1], half[0][1], half[-1][1]]}


def main():
    latte, share = sys.argv[1], float(sys.argv[2]) if sys.argv[2:] else 1
    problems, report = [], {"share": share}
    chance = random.Random(0)
    with Server(latte, *FLAGS) as server:
        process = server.process.pid
        before = gauges(server)
        pipe = Pipe(server)
        report["refused"] = measure(process, int(1_000_000 * share), PIPELINED, lambda first, count: refused(pipe, first, count))
        report["answered"] = measure(process, int(200_000 * share), PIPELINED, lambda first, count: answered(pipe, first, count))
        pipe.close()
        report["cut"] = measure(process, int(20_000 * share), 1, lambda first, _: cut(server, first, chance))
        if not until(lambda: gauges(server) == before, 60):
            problems.append(f"left: {gauges(server)}, expected {before}")
        code = server.stop()
    if code != 0:
        problems.append(f"the server ended with {code}")
    for kind in ("refused", "answered", "cut"):
        if report[kind]["growth_bytes"] > MOST_GROWTH:
            problems.append(f"{kind}: the memory grows by {report[kind]['growth_bytes']} bytes")
    print(json.dumps({**report, "ok": not problems}))
    for problem in problems:
        print(f"requests_soak: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
