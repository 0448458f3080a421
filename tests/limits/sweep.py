#!/usr/bin/env python3
"""Programs under resource limits: an exceeded limit gives one line and exit code 1, never a signal, and leaves no files.

  sweep.py LATTE EMBEDDER FEW_THREADS [--long]

EMBEDDER is embedder.c linked with liblatte, FEW_THREADS the library that limits threads. Needs only the standard library.
"""
import argparse
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MIB = 1 << 20
PLENTY = 4096 * MIB
TIMEOUT = 120


def is_whole(npy):
    """Whether a .npy file of float32 has all its numbers: memory may run out while the results are printed, after it was written."""
    data = npy.read_bytes()
    header = 10 + int.from_bytes(data[8:10], "little")
    shape = re.search(rb"'shape': \((\d+), (\d+)\)", data[:header])
    return shape is not None and len(data) == header + 4 * int(shape[1]) * int(shape[2])


class Sweep:
    def __init__(self, latte, embedder, few_threads, work, long):
        self.latte, self.embedder, self.few_threads, self.work, self.long = latte, embedder, few_threads, work, long
        self.problems = []
        self.runs = 0
        self.model = self.copy_of_tiny()
        self.ids = ",".join(str(i * 37 % 1000) for i in range(3900))
        self.write("ids.txt", self.ids)
        self.write("long.txt", "Once upon a time there was a hedgehog. " * 200)
        bodies = [{"prompt": "Once upon a time", "max_tokens": 8}, {"prompt": [1, 2, 3] * 900, "max_tokens": 2, "prompt_logprobs": 0},
                  {"prompt": "There was", "max_tokens": 8, "n": 3, "logprobs": 3}]
        self.write("batch.jsonl", "".join(json.dumps({"custom_id": str(i), "method": "POST", "url": "/v1/completions", "body": body}) + "\n"
                                          for i, body in enumerate(bodies)))

    def copy_of_tiny(self):
        folder = self.work / "model"
        shutil.copytree(ROOT / "models/tiny", folder)
        return folder

    def write(self, name, text):
        (self.work / name).write_text(text)

    def commands(self):
        """Name, program and arguments; all files that a command writes lie in the folder `out`."""
        w, m, out = self.work, self.model, self.work / "out"
        rows = [
            ("inspect", "inspect", m), ("inspect kernels", "inspect", "--kernels"),
            ("tokenize", "tokenize", m, "--file", w / "long.txt"),
            ("run", "run", m, "-p", "Once upon a time", "-n", 8, "--seed", 0, "--threads", 2),
            ("run long", "run", m, "--prompt-file", w / "long.txt", "-n", 2, "--threads", 2, "--max-batch-tokens", 0),
            ("chat", "chat", m, "-n", 4),
            ("score", "score", m, "--ids-file", w / "ids.txt", "--max-batch-tokens", 0, "--dtype", "f32", "--threads", 1, "--logits", out / "l.npy"),
            ("score decompressed", "score", m, "--ids-file", w / "ids.txt", "--attention", "decompressed", "--threads", 2),
            ("batch", "batch", m, "-i", w / "batch.jsonl", "-o", out / "o.jsonl", "--cache-bytes", "16M", "--threads", 2),
            ("batch on disk", "batch", m, "-i", w / "batch.jsonl", "-o", out / "o.jsonl", "--cache-bytes", "16M", "--threads", 2, "--cache-dir", out / "cache"),
            ("quantize", "quantize", m, out / "q", "--to", "int4", "--threads", 2),
            ("synth", "synth", out / "s", "--shape", "v2-lite", "--layers", 2, "--experts", 8, "--vocab", 1024, "--threads", 2),
            ("eval", "eval", m, "--skills", "addition", "--count", 2, "--threads", 2),
            ("simulate", "simulate", m), ("bench", "bench", "gemm", "--m", 4, "--n", 512, "--k", 512),
        ]
        rows = [(name, [self.latte, *map(str, arguments)]) for name, *arguments in rows]
        rows.append(("embedder", [self.embedder, str(m), "3000", "2"]))
        rows.append(("embedder alone", [self.embedder, str(m), "200", "1"]))
        return rows

    def run(self, name, command, limits, env=None, prefix=()):
        """Exit code and standard error of a run under limits; what it did wrong is kept."""
        out = self.work / "out"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()

        def limit():
            for what, most in limits.items():
                resource.setrlimit(what, (most, most))
        self.runs += 1
        told = f"{name} under {', '.join(f'{names[k]} {v}' for k, v in limits.items())}{' ' + str(env) if env else ''}"
        try:
            done = subprocess.run([*prefix, *command], input=b"hello\n", capture_output=True, preexec_fn=limit, timeout=TIMEOUT,
                                  env={**os.environ, **(env or {})})
        except subprocess.TimeoutExpired:
            self.problems.append(f"{told}: no end after {TIMEOUT} s")
            return None
        error = done.stderr.decode("utf-8", "replace")
        self.judge(told, done.returncode, error, out)
        return done

    def judge(self, told, code, error, out):
        if code == 127 and "shared librar" in error or "libc.so" in error:
            return  # the loader had no room for the program
        lines = [line for line in error.replace("\r", "\n").splitlines() if line.startswith("latte:") and "warning" not in line]
        if code not in (0, 1):
            self.problems.append(f"{told}: exit code {code}: {error.strip()[-300:]}")
        elif code == 1 and (len(lines) != 1 or "internal" in lines[0] or len(lines[0]) > 2048):
            self.problems.append(f"{told}: expected one line, found {error.strip()[-600:]!r}")
        if code != 0:
            left = sorted(str(p.relative_to(out)) for p in out.rglob("*")
                          if p.name.endswith((".tmp", ".old")) or p.name in ("q", "s") or (p.suffix == ".npy" and not is_whole(p)))
            if left:
                self.problems.append(f"{told}: left behind {left}")

    def least(self, what, low, high, step):
        """The least limit under which `latte --version` runs."""
        while high - low > step:
            middle = (low + high) // 2
            done = subprocess.run([self.latte, "--version"], capture_output=True,
                                  preexec_fn=lambda: resource.setrlimit(what, (middle, middle)))
            low, high = (low, middle) if done.returncode == 0 else (middle, high)
        return high

    def needed(self, name, command, least):
        """The least address space, to 1 MiB or in a short sweep to 16, with which the command succeeds."""
        low, high = least, PLENTY
        while high - low > (MIB if self.long else 16 * MIB):
            middle = (low + high) // 2
            done = self.run(name, command, {resource.RLIMIT_AS: middle})
            if done is None:
                return high
            low, high = (low, middle) if done.returncode == 0 else (middle, high)
        return high

    def memory(self):
        least = self.least(resource.RLIMIT_AS, MIB, 256 * MIB, 64 * 1024)
        print(f"latte --version starts with {least / MIB:.1f} MiB of address space")
        for name, command in self.commands():
            begin = self.runs
            need = self.needed(name, command, least)
            count = 120 if self.long else 6
            for i in range(count):
                self.run(name, command, {resource.RLIMIT_AS: least + (need - least) * i // count // 4096 * 4096})
            print(f"{name}: needs {need / MIB:.0f} MiB; {self.runs - begin} runs", flush=True)

    def threads(self):
        expected = None
        rows = dict(self.commands())
        for count in (range(1, 257, 1 if self.long else 51)):
            command = [*rows["run"][:-1], str(count)]
            done = self.run(f"run on {count} threads", command, {resource.RLIMIT_AS: PLENTY * 4})
            expected = expected or done.stdout
            if done.returncode or done.stdout != expected:
                self.problems.append(f"run on {count} threads: exit code {done.returncode}, or another text")
        for have in (range(0, 10) if self.long else (0, 1, 5)):
            for name in ("run", "score", "batch", "batch on disk", "quantize", "synth", "embedder"):
                command = [*rows[name][:-1], "8"] if rows[name][-2] == "--threads" else rows[name]
                done = self.run(name, command, {}, env={"LD_PRELOAD": self.few_threads, "FEW_THREADS": str(have)})
                # Only the thread that writes prefixes has no substitute.
                if done.returncode and not (name == "batch on disk"):
                    self.problems.append(f"{name} with {have} threads more: {done.stderr.decode()[-300:]}")
        if os.geteuid() == 0 and shutil.which("setpriv"):
            self.unprivileged(rows["run"])

    def unprivileged(self, command):
        """A user with a limit on its processes, as on a shared machine; root has none."""
        os.chmod(self.work, 0o755)
        os.chmod(self.work / "out", 0o777)
        prefix = ("setpriv", "--reuid=65533", "--regid=65533", "--clear-groups")
        reachable = subprocess.run([*prefix, self.latte, "--version"], capture_output=True)
        if reachable.returncode:
            print("unprivileged: skipped, another user cannot reach the binary")
            return
        for most in (1, 2, 3):
            done = self.run("run as another user", [*command[:-1], "16"], {resource.RLIMIT_NPROC: most}, prefix=prefix)
            if done.returncode:
                self.problems.append(f"run with {most} processes: {done.stderr.decode()[-300:]}")

    def stacks(self):
        for kib in ((256, 288, 384, 512, 1024, 2048, 8192) if self.long else (256, 1024)):
            for name, command in self.commands():
                done = self.run(name, command, {resource.RLIMIT_STACK: kib * 1024})
                if done.returncode:
                    self.problems.append(f"{name} on a stack of {kib} KiB: {done.stderr.decode()[-300:]}")

    def file_sizes(self):
        writers = [row for row in self.commands() if row[0] in ("score", "batch", "batch on disk", "quantize", "synth")]
        for bytes_ in ((0, 1, 100, 4096, 100_000, 1 << 20, 3 << 20, 1 << 30) if self.long else (0, 3000, 1 << 20)):
            for name, command in writers:
                self.run(name, command, {resource.RLIMIT_FSIZE: bytes_})


names = {resource.RLIMIT_AS: "address space", resource.RLIMIT_STACK: "stack", resource.RLIMIT_FSIZE: "file size",
         resource.RLIMIT_NPROC: "processes"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("latte")
    parser.add_argument("embedder")
    parser.add_argument("few_threads")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--only", default="memory,threads,stacks,file_sizes")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        paths = (os.path.abspath(p) for p in (args.latte, args.embedder, args.few_threads))
        sweep = Sweep(*paths, pathlib.Path(work), args.long)
        for part in args.only.split(","):
            getattr(sweep, part)()
        for problem in sweep.problems:
            print("PROBLEM", problem)
        print(f"{sweep.runs} runs, {len(sweep.problems)} problems")
    sys.exit(1 if sweep.problems else 0)


if __name__ == "__main__":
    main()
