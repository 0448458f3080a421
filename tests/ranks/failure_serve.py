"""Failures of ranks below `latte serve`, many times each, as a table. CTest runs one of each (here and in serve_test.py).

Usage: failure_serve.py LATTE MPIRUN SOURCE_DIR [--layout "--tp 2"] [--times 1] [--faults slow,cut,kill,stop]
Every round starts a server and eight streams, lets a rank fail while all of them run, and compares each text that was received
with the text of a single rank.
  kill, stop  SIGKILL or SIGSTOP to a rank, in turn
  slow        a rank runs for a tenth of the time: nothing may be declared dead, and all answers are right
  cut         ranks in two network namespaces whose link is cut
Columns are seconds after the failure, median and maximum: until the culprit is named (on standard error), all ranks are gone, all streams
have ended, /ready is 200 again (for cut: after the link is back). "silent": streams that ended without an error; "wrong": texts that
are not a beginning of the right one. Fails if a promise of docs/ranks.md is broken.
"""
import argparse
import contextlib
import http.client
import os
import pathlib
import re
import signal
import socket
import statistics
import sys
import threading
import time

import hosts as lab
import launcher
from serve_test import below, is_there

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e" / "serve"))
from server import Server, events, until  # noqa: E402

STREAMS = 8
TOKENS = {"kill": 3000, "stop": 3000, "cut": 3000, "slow": 120}
FLAGS = ["--cache-bytes", "64M", "--context", 4096, "--threads", 1]
COLUMNS = ["named", "gone", "ended", "ready"]
MOST = {"named": 10, "gone": 15, "ended": 15}  # seconds


def body(i, tokens):
    return {"model": "tiny", "prompt": "Once upon a time", "max_tokens": tokens, "ignore_eos": True, "seed": i, "temperature": 0.8}


class Stream(threading.Thread):
    """A request and what it receives."""

    def __init__(self, server, i, tokens):
        super().__init__(daemon=True)
        self.server, self.body = server, body(i, tokens)
        self.text, self.error, self.broken, self.complete, self.ended_at = "", None, None, False, None
        self.begun = threading.Event()
        self.start()

    def run(self):
        try:
            connection, answer = self.server.stream("/v1/completions", self.body)
            if answer.status != 200:
                self.error = answer.read().decode()
                return
            for event in events(answer):
                if event == "[DONE]":
                    continue
                if "error" in event:
                    self.error = event["error"]["message"]
                    continue
                for choice in event["choices"]:
                    self.text += choice["text"]
                    self.complete = self.complete or choice["finish_reason"] == "length"
                self.begun.set()
            connection.close()
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.broken = error  # what was received stays
        finally:
            self.ended_at = time.monotonic()
            self.begun.set()


def ranks_of(server):
    """Numbers of mpirun's processes by rank."""
    return {rank: number for number, (_, rank) in below(server.process.pid).items() if rank is not None}


def all_below(server):
    return list(below(server.process.pid))


@contextlib.contextmanager
def environment_of_hosts(mpirun):
    """Variables that make the mpirun of a server put rank 1 on another host; the server's host is this one."""
    with lab.Hosts(mpirun) as hosts:
        lab.ip("addr", "add", f"{hosts.subnet}.250/24", "dev", f"{hosts.name}r")
        file = pathlib.Path(hosts.folder.name) / "hostfile"
        file.write_text(f"{socket.gethostname()} slots=1\n{hosts.names[1]} slots=1\n", encoding="utf-8")
        keepalive = dict(zip(lab.KEEPALIVE[1::3], lab.KEEPALIVE[2::3]))
        options = {"orte_default_hostfile": str(file), "plm_rsh_agent": str(hosts.agent), "btl_tcp_if_include": f"{hosts.subnet}.0/24",
                   "oob_tcp_if_include": f"{hosts.subnet}.0/24", **keepalive}
        yield hosts, {f"OMPI_MCA_{name}": value for name, value in options.items()}


class Rounds:
    def __init__(self, binary, mpirun, layout):
        self.binary, self.mpirun, self.layout = binary, mpirun, layout
        self.right = {}

    def expected(self, tokens):
        """The texts of a single rank."""
        if tokens not in self.right:
            with Server(self.binary, *FLAGS) as server:
                streams = [Stream(server, i, tokens) for i in range(STREAMS)]
                for stream in streams:
                    stream.join()
                    assert stream.complete, stream.error
                self.right[tokens] = [stream.text for stream in streams]
                server.stop()
        return self.right[tokens]

    def wrong(self, streams, tokens):
        return sum(not right.startswith(stream.text) for stream, right in zip(streams, self.expected(tokens)))

    def once(self, fault, turn):
        tokens = TOKENS[fault]
        self.expected(tokens)
        with contextlib.ExitStack() as stack:
            hosts, env = stack.enter_context(environment_of_hosts(self.mpirun)) if fault == "cut" else (None, {})
            server = stack.enter_context(Server(self.binary, *FLAGS, *self.layout, env=env))
            ranks = ranks_of(server)
            old = all_below(server)
            streams = [Stream(server, i, tokens) for i in range(STREAMS)]
            for stream in streams:
                stream.begun.wait(60)
            culprit = turn % len(ranks)
            if fault == "slow":
                out = self.slow(ranks[culprit], streams, server)
            else:
                out = self.fail(fault, culprit, ranks, old, streams, server, hosts)
            out["wrong"] = self.wrong(streams, tokens)
            server.stop()
            return out

    @staticmethod
    def slow(number, streams, server):
        began = time.monotonic()
        pause = 2  # of three seconds without a heartbeat, after which a rank counts as lost
        while any(stream.is_alive() for stream in streams):
            with contextlib.suppress(ProcessLookupError):  # it was ended, which counts as a restart
                os.kill(number, signal.SIGSTOP)
                time.sleep(pause)
                os.kill(number, signal.SIGCONT)
            pause = 0.45
            time.sleep(0.05)
        ended = max(stream.ended_at for stream in streams) - began
        return {"ended": ended, "silent": sum(not stream.complete for stream in streams),
                "restarts": server.metric("latte:engine_restarts_total")}

    @staticmethod
    def fail(fault, culprit, ranks, old, streams, server, hosts):
        lines = len(server.lines)
        # Whichever daemon notices a cut first: Open MPI names the host, or only says that a daemon is gone, and the front names a rank.
        name = re.compile(f"{hosts.names[1]}|rank [0-9]+ is lost" if fault == "cut" else f"rank {culprit}")
        at = {}

        def watch(key, condition):
            at[key] = time.monotonic() - began if until(condition, 60) else float("inf")

        conditions = {"named": lambda: any(name.search(line) for line in server.lines[lines:]),
                      "gone": lambda: not any(is_there(number) for number in old),
                      "ended": lambda: not any(stream.is_alive() for stream in streams)}
        began = time.monotonic()
        if fault == "cut":
            hosts.cut()
        else:
            os.kill(ranks[culprit], signal.SIGKILL if fault == "kill" else signal.SIGSTOP)
        watchers = [threading.Thread(target=watch, args=item) for item in conditions.items()]
        for watcher in watchers:
            watcher.start()
        for watcher in watchers:
            watcher.join()
        if fault == "cut":
            hosts.heal()
            began = time.monotonic()
        watch("ready", lambda: server.get("/ready")[0] == 200)
        at["silent"] = sum(stream.error is None and not stream.complete for stream in streams)
        at["errors"] = sorted({stream.error or str(stream.broken) for stream in streams})
        at["restarts"] = server.metric("latte:engine_restarts_total")
        if at["restarts"] != 1:  # the new ranks failed, too
            at["log"] = server.lines[lines:]
        return at


def broken(fault, one):
    """The promises that a round breaks."""
    if fault == "slow":
        return [name for name in ("silent", "wrong", "restarts") if one[name] != 0]
    return [name for name, most in MOST.items() if one[name] > most] + [name for name in ("silent", "wrong") if one[name] != 0]


def row(fault, rounds):
    cells = []
    for column in COLUMNS:
        values = [one[column] for one in rounds if column in one]
        cells.append(f"{statistics.median(values):.1f}, {max(values):.1f}" if values else "-")
    sums = [sum(one[key] for one in rounds) for key in ("silent", "wrong", "restarts")]
    return f"| {fault} | {len(rounds)} | " + " | ".join(cells) + " | " + " | ".join(f"{value:.0f}" for value in sums) + " |"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("latte")
    parser.add_argument("mpirun")
    parser.add_argument("source")
    parser.add_argument("--layout", default="--tp 2")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--faults", default="slow,cut")
    flags = parser.parse_args()
    launcher.skip_if_it_fails(flags.mpirun)
    os.environ["LATTE_ISA"] = "avx2"
    rounds = Rounds(flags.latte, flags.mpirun, flags.layout.split())
    print(f"{flags.layout}, {STREAMS} streams\n\n| fault | times | named | gone | ended | ready | silent | wrong | restarts |\n"
          "|---|---|---|---|---|---|---|---|---|", flush=True)
    problems = []
    for fault in flags.faults.split(","):
        if fault == "cut":
            lab.skip_if_not_permitted(flags.mpirun)
        done = []
        for turn in range(flags.times):
            done.append(rounds.once(fault, turn))
            print(f"{fault} {turn}: {done[-1]}", file=sys.stderr, flush=True)
            problems += [f"{fault} {turn}: {name}" for name in broken(fault, done[-1])]
        print(row(fault, done), flush=True)
    if problems:
        sys.exit(f"broken: {', '.join(problems)}")


if __name__ == "__main__":
    main()
