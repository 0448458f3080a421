#!/usr/bin/env python3
"""`latte serve` with groups of ranks under random traffic: requests of all sizes, streams, answers in several copies, cancellations.

Usage: serve_soak.py LATTE SECONDS [--spread] [FLAG …]. Flags of the layout: --dp 2 by default. --spread: some prompts are longer than
the cache of a group, so they are spread over groups. Prints one JSON object. Fails if an answer is wrong or
missing, if a group is started again, or if a resource is left when all requests have ended: pages, open files, memory that grows
after the first quarter.
"""
import http.client
import json
import os
import pathlib
import random
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e" / "serve"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "ranks"))
import launcher  # noqa: E402
from server import Server, events, until  # noqa: E402

CLIENTS = 12
ROUND = 150  # requests; after each round, nothing may be left
MOST_GROWTH = 16 << 20  # of a process: heaps are fragmented
# A small cache: answers are preempted, and prefixes make room.
FLAGS = ["--threads", 1, "--max-sequences", 6, "--page-tokens", 16, "--deterministic", "strict"]
SMALL = ["--cache-bytes", "440K", "--context", 512]
SPREAD = ["--cache-bytes", "1000K", "--context", 2200, "--prefill-workspace-tokens", 1000]
PROMPTS = ["Once upon a time", "Once upon a time there was a frog. " * 9, "The wolf and the lamb. " * 12, "A brave mouse"]
LONG_PROMPTS = ["The fox and the crow. " * 200, "The fox and the crow. " * 250]


class Counts:
    def __init__(self):
        self.lock = threading.Lock()
        self.values = {"requests": 0, "cancelled": 0, "refused": 0, "tokens": 0}
        self.problems = []

    def add(self, **more):
        with self.lock:
            for name, value in more.items():
                self.values[name] += value

    def problem(self, text):
        with self.lock:
            self.problems.append(text)


class Client(threading.Thread):
    """Sends its share of a round. An answer that was given before must be given again."""

    def __init__(self, server, prompts, seed, counts, answers):
        super().__init__(daemon=True)
        self.server, self.prompts, self.random, self.counts, self.answers = server, prompts, random.Random(seed), counts, answers
        self.start()

    def run(self):
        for _ in range(ROUND // CLIENTS):
            try:
                self.one()
            except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
                self.counts.problem(f"{type(error).__name__}: {error}")

    def one(self):
        kind = self.random.choice(["plain", "plain", "stream", "cancel", "cancel", "bad"])
        body = {"model": "tiny", "prompt": self.random.choice(self.prompts), "max_tokens": self.random.choice([1, 7, 40, 120]),
                "seed": self.random.randrange(3), "temperature": self.random.choice([0, 0.8]), "n": self.random.choice([1, 1, 1, 3])}
        self.counts.add(requests=1)
        if kind == "bad":
            status = self.server.post("/v1/completions", {**body, "max_tokens": -2})[0]
            self.counts.add(refused=1)
            if status != 400:
                self.counts.problem(f"a bad request: status {status}")
        elif kind == "cancel":
            self.cancel({**body, "max_tokens": 400, "ignore_eos": True})
        else:
            self.compare(body, self.streamed(body) if kind == "stream" else self.plain(body))

    def plain(self, body):
        status, _, answer = self.server.post("/v1/completions", body)
        if status != 200:
            raise ValueError(f"status {status}: {answer}")
        self.counts.add(tokens=answer["usage"]["completion_tokens"])
        return [choice["text"] for choice in sorted(answer["choices"], key=lambda choice: choice["index"])]

    def streamed(self, body):
        connection, answer = self.server.stream("/v1/completions", body)
        texts = [""] * body["n"]
        for event in events(answer):
            if event == "[DONE]":
                connection.close()
                return texts
            if "error" in event:
                raise ValueError(event["error"]["message"])
            for choice in event["choices"]:
                texts[choice["index"]] += choice["text"]
        raise ValueError("a stream without an end")

    def cancel(self, body):
        connection, answer = self.server.stream("/v1/completions", body)
        received = events(answer)
        for _ in range(self.random.randrange(6)):
            if next(received, None) is None:
                break
        answer.close()
        connection.close()
        self.counts.add(cancelled=1)

    def compare(self, body, texts):
        with self.counts.lock:
            before = self.answers.setdefault(json.dumps(body), texts)
        if before != texts:
            self.counts.problem(f"another answer than before to {body}")


def processes(ancestor):
    """The server and all below it that are latte: {number: (resident bytes, open files)}."""
    parents = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
    out = {}
    for number in parents:
        above = number
        while above in parents and above != ancestor:
            above = parents[above]
        folder = pathlib.Path(f"/proc/{number}")
        try:
            if above == ancestor and (folder / "comm").read_text() == "latte\n":
                resident = int((folder / "statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
                out[number] = (resident, len(list((folder / "fd").iterdir())))
        except OSError:
            continue
    return out


def settled(ancestor, first):
    """The processes, once none has more open files than in `first`, or after 20 seconds: a connection that a client has closed may be
    open at the server for a moment."""
    until(lambda: all(files <= first.get(number, (0, files))[1] for number, (_, files) in processes(ancestor).items()), 20)
    return processes(ancestor)


def leaks(server, counts):
    """Checks that a round leaves nothing."""
    if not until(lambda: server.metric("latte:cache_pages_used") == 0, 20):
        counts.problem(f"{server.metric('latte:cache_pages_used')} pages are used by nothing")
    total, cached = server.metric("latte:cache_pages"), server.metric("latte:cache_pages_cached")
    if not 0 <= cached <= total:
        counts.problem(f"{cached} of {total} pages are cached")
    if server.metric("latte:engine_restarts_total") != 0:
        counts.problem("the ranks were started again")


def main():
    launcher.skip_if_it_fails("mpirun")
    latte, seconds, layout = sys.argv[1], float(sys.argv[2]), [word for word in sys.argv[3:] if word != "--spread"] or ["--dp", "2"]
    spread = "--spread" in sys.argv
    prompts = 3 * PROMPTS + LONG_PROMPTS if spread else PROMPTS
    counts, answers, quarters = Counts(), {}, []
    with Server(latte, *FLAGS, *(SPREAD if spread else SMALL), *layout) as server:
        begin = time.monotonic()
        rounds = 0
        while len(quarters) < 4 and not counts.problems:
            clients = [Client(server, prompts, 1000 * rounds + i, counts, answers) for i in range(CLIENTS)]
            for client in clients:
                client.join()
            leaks(server, counts)
            rounds += 1
            if time.monotonic() - begin >= seconds / 4 * (len(quarters) + 1):
                quarters.append(settled(server.process.pid, quarters[0] if quarters else {}))
        preemptions = server.metric("vllm:num_preemptions_total")
        seconds = time.monotonic() - begin
        code = server.stop()
    if code != 0:
        counts.problem(f"the server ended with {code}")
    for number, (resident, files) in quarters[0].items() if quarters else ():
        if number not in quarters[-1]:
            counts.problem(f"process {number} has ended")
            continue
        if quarters[-1][number][0] > resident + MOST_GROWTH:
            counts.problem(f"process {number} has {quarters[-1][number][0]} resident bytes, it had {resident}")
        if quarters[-1][number][1] > files:
            counts.problem(f"process {number} has {quarters[-1][number][1]} open files, it had {files}")
    print(json.dumps({"layout": " ".join(layout), "rounds": rounds, **counts.values, "preemptions": preemptions,
                      "resident_bytes": [[one[0] for one in quarter.values()] for quarter in quarters],
                      "open_files": [[one[1] for one in quarter.values()] for quarter in quarters],
                      "seconds": round(seconds, 1), "ok": not counts.problems}))
    for problem in counts.problems[:10]:
        print(f"serve_soak: {problem}", file=sys.stderr)
    return 1 if counts.problems else 0


if __name__ == "__main__":
    sys.exit(main())
