"""A normal client during attacks: wrk and slowhttptest, only to the server under test on this machine."""
import http.client
import json
import pathlib
import shutil
import subprocess
import threading
import time
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
BEFORE_SECONDS = 60
MOST_SLOWDOWN = 2  # of the normal client's 99th percentile
CONNECTIONS = 500  # of each slowhttptest, and 100 more every second until then
RATE = 100
# slowhttptest's arguments for each phase, after the path of the URL.
PHASES = {
    "slow headers": ("/v1/chat/completions", ["-H", "-i", "2"]),
    "slow bodies": ("/v1/chat/completions", ["-B", "-i", "2", "-s", "8192", "-f", "application/json"]),
    "slow readers": ("/metrics", ["-X", "-k", "50", "-n", "2", "-w", "64", "-y", "256", "-z", "16"]),
}
BODY = {"model": "tiny", "messages": [{"role": "user", "content": "A story about a duck."}], "max_tokens": 8, "temperature": 0}


class NormalClient(threading.Thread):
    """Asks for a short answer again and again, every second time as a stream, and takes the times."""

    def __init__(self, url):
        super().__init__()
        place = urllib.parse.urlsplit(url)
        self.address = place.hostname, place.port
        self.seconds, self.errors, self.is_over = [], [], threading.Event()

    def ask(self, link, is_stream):
        link.request("POST", "/v1/chat/completions", json.dumps(BODY | {"stream": is_stream}), {"Content-Type": "application/json"})
        reply = link.getresponse()
        body = reply.read()
        if reply.status != 200 or (is_stream and not body.endswith(b"data: [DONE]\n\n")):
            raise OSError(f"status {reply.status}: {body[:200]!r}")

    def run(self):
        link, count = http.client.HTTPConnection(*self.address, timeout=30), 0
        while not self.is_over.wait(0.02):
            count += 1
            if count % 10 == 0:  # new connections are part of a normal client's life
                link.close()
            began = time.monotonic()
            try:
                self.ask(link, count % 2 == 0)
            except (OSError, http.client.HTTPException) as error:
                self.errors.append(f"{type(error).__name__}: {error}")
                link.close()
            self.seconds.append(time.monotonic() - began)
        link.close()

    def stop(self):
        self.is_over.set()
        self.join()

    def percentile(self, share):
        return sorted(self.seconds)[min(len(self.seconds) - 1, int(share * len(self.seconds)))]

    def describe(self):
        return (f"{len(self.seconds)} requests, p50 {self.percentile(0.5) * 1e3:.1f} ms, p99 {self.percentile(0.99) * 1e3:.1f} ms, "
                f"most {max(self.seconds) * 1e3:.1f} ms, {len(self.errors)} errors")


def attack(context, name, path, arguments, seconds):
    """One phase: wrk and one slowhttptest side by side. Returns what they say of themselves."""
    url = context.server.url
    logs = [context.out / f"attack-{tool}-{name.replace(' ', '-')}.log" for tool in ("wrk", "slowhttptest")]
    # The lowest priority: the attackers of a real server do not take its processors.
    commands = [["nice", "-n", "19", "wrk", "-t", "1", "-c", "32", "-d", f"{seconds}s", "-s", HERE / "attack.lua", url],
                ["nice", "-n", "19", "slowhttptest", "-c", CONNECTIONS, "-r", RATE, "-l", seconds, "-p", 5, "-u", url + path, *arguments]]
    running = []
    for command, log in zip(commands, logs):
        with open(log, "w", encoding="utf-8") as file:
            running.append(subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT))
    try:
        for process in running:
            process.wait(seconds + 60)
    finally:
        for process in running:
            process.kill()
            process.wait()
    lines = logs[0].read_text(encoding="utf-8").splitlines()
    return next((line.strip() for line in lines if "Requests/sec" in line), "no result")


def run(context, part):
    for tool in ("wrk", "slowhttptest"):
        if not part.check(shutil.which(tool), f"{tool} is not installed"):
            return
    before = NormalClient(context.server.url)
    before.start()
    time.sleep(min(BEFORE_SECONDS, context.attack_seconds))
    before.stop()
    part.notes.append(f"before: {before.describe()}")
    during = NormalClient(context.server.url)
    during.start()
    for name, (path, arguments) in PHASES.items():
        wrk = attack(context, name, path, arguments, max(1, context.attack_seconds // len(PHASES)))
        part.check(context.server.is_alive(), f"{name}: the server has ended")
        part.notes.append(f"{name}: wrk {wrk}")
    during.stop()
    part.notes.append(f"during: {during.describe()}")
    for client, when in ((before, "before"), (during, "during")):
        part.check(not client.errors, f"{when} the attack the normal client sees {len(client.errors)} errors, the first: {client.errors[:1]}")
    most = MOST_SLOWDOWN * before.percentile(0.99)
    part.check(during.percentile(0.99) <= most,
               f"p99 of the normal client: expected at most {most * 1e3:.1f} ms during the attack, found {during.percentile(0.99) * 1e3:.1f} ms")
