#!/usr/bin/env python3
"""Runs every block of shell commands of the documents, page by page and in order, each page in a clean clone.

Usage: run_blocks.py BUILD_FOLDER [PAGE…]     without pages: all of them; needs Python's standard library and bash.

BUILD_FOLDER (build/release) is copied into the clone, so `make run` there compiles nothing. A small model of random weights stands
in for every model that a page names: at `path/to/…`, in the current folder (MODEL, DIR), and on a local server that behaves as the
Hugging Face Hub, which has the built-in model as a GGUF file for ORG/NAME:QUANT. A repository that the page uses without `latte pull` is downloaded before. Input files of a page (requests.jsonl,
in.jsonl, trace.jsonl) exist. SUBSTITUTIONS is the whole list of what else differs from the page.

A block that cannot run here has the line `<!-- not run: REASON -->` before it. There are at most MOST_NOT_RUN of these.
"""
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from blocks import blocks_of, commands_of, is_shell, lacks_language

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e/hub"))
from hub import Hub  # noqa: E402

sys.path.insert(0, str(ROOT / "tests/e2e/gguf"))
import gguf_test  # noqa: E402

sys.path.insert(0, str(ROOT / "tests/support"))
import build_copy  # noqa: E402

PAGES = ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "docs/**/*.md", "examples/**/*.md", "packaging/**/*.md"]
MOST_NOT_RUN = 10
PAGE_SECONDS = 300
STAND_IN = "--shape v2-lite --layers 1 --dense 0 --experts 6 --vocab 1024 --mtp 1".split()
REQUESTS = """\
{"custom_id": "1", "method": "POST", "url": "/v1/completions", "body": {"prompt": "Once upon a time", "max_tokens": 8}}
{"custom_id": "2", "method": "POST", "url": "/v1/chat/completions", "body": {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 8}}
"""
TRACE = '{"arrival_s": 0, "prompt_tokens": 20, "output_tokens": 8}\n{"arrival_s": 0.1, "prompt_tokens": 30, "output_tokens": 4}\n'
REPOSITORY = r"latte %s ([a-z][\w-]*/[A-Z][\w.-]+)(?::([\w.-]+))?"  # of the Hub; paths to models begin with `path/`

# What differs from the page: (pattern, replacement, why). They apply to each command, in this order.
SUBSTITUTIONS = [
    (r"git clone REPOSITORY latte", "furnished_clone latte", "the address is this working tree; the clone gets the built binary"),
    (r"^pip install latte-mla$", "true", "the built binary stands in for the package"),
    (r"/tmp/", "$SCRATCH/", "the test leaves nothing in /tmp"),
    (r"(127\.0\.0\.1:|--port )8000", r"\g<1>$PORT", "another server may listen on port 8000"),
    (r"^(?:build/release/)?latte serve (?!.*--dry-run)(.*?)( &)?$", r"serve \1", "in the background, until the page's next server or end"),
    (r"^curl ", "curl --fail-with-body -sS ", "an answer with an error is a failure"),
    (r"'\{\"messages\"(?!.*max_tokens)", "'{\"max_tokens\": 8, \"messages\"", "size: random weights never end an answer"),
    (r"^(?=(?:build/release/)?latte chat )", "echo Hello | ", "the user types one line"),
    (r"(latte (?:chat|run) )(?!.* -n )", r"\g<1>-n 8 ", "size: length of an answer"),
    (r"--requests \d+ --rate \d+", "--requests 5 --rate 5", "size: number of requests"),
    (r"--requests \d+ --sweep [\d,]+", "--requests 5 --sweep 5,10", "size: number of requests"),
    (r"latte synth --shape v2-lite ", "latte synth --shape v2-lite --layers 1 --experts 6 --vocab 1024 ", "size: the model"),
    (r"bench steps ", "bench steps --quick ", "size: number of measured steps"),
    (r"bench simulation ", "bench simulation --cost costs.json --runs 1 ", "size: number of runs"),
    (r"mpirun -n", "mpirun --allow-run-as-root --oversubscribe -n", "a test machine has few processors, and its user may be root"),
]

# Commands that need what not every build and machine has: (pattern, whether it is there, what is missing).
NEEDS = [
    (r"--grammar", lambda latte: "xgrammar" in output_of([latte, "--version"]), "a build with xgrammar"),
    (r"mpirun|--tp |--ep |--dp ", lambda latte: shutil.which("mpirun") is not None, "Open MPI"),
]

PREAMBLE = r"""
furnished_clone() {  # furnished_clone FOLDER: a clean clone with the built binary, models and requests
  git clone -q "$SOURCE" "$1" && mkdir "$1/build" && "$COPY_BUILD" "$BUILD" "$1/build/release" || return 1
  [ ! -e "$BUILD/../xgrammar" ] || ln -s "$BUILD/../xgrammar" "$1/build/xgrammar"
  mkdir -p "$1/path/to"
  for name in model checkpoint $(grep -rhoE 'path/to/[A-Za-z0-9._-]+' "$SOURCE/$PAGE" | sed 's/.*\///' | sort -u); do
    ln -sfn "$STAND_IN" "$1/path/to/$name"
  done
  ln -s "$STAND_IN" "$1/MODEL"; ln -s "$STAND_IN" "$1/DIR"
  for name in requests in; do printf %s "$REQUESTS" >"$1/$name.jsonl"; done
  printf %s "$TRACE" >"$1/trace.jsonl"; printf 'Once upon a time, a cat met a dog.\n' >"$1/FILE"
  [ -z "$CACHED" ] || latte pull "$CACHED" --quiet
}
stop_server() {
  [ -z "${server-}" ] || { kill "$server"; wait "$server" || true; server=; }
}
serve() {  # serve ARGUMENTS…: returns once the model is loaded
  stop_server
  scheme=http; case " $* " in *" --ssl-certfile "*) scheme=https;; esac
  LATTE_PORT=$PORT latte serve "$@" >"$SCRATCH/server.log" 2>&1 & server=$!
  for _ in $(seq 600); do
    curl -sfk "$scheme://127.0.0.1:$PORT/ready" >/dev/null && return 0
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
  done
  cat "$SCRATCH/server.log"; return 1
}
trap stop_server EXIT
check() {  # check STATUS WHERE
  [ "$1" = 0 ] || { echo "FAILED with exit code $1 at $2"; exit 1; }
}
set -o pipefail
export PATH=$BUILD:$PATH
"""


def output_of(command):
    return subprocess.run(command, text=True, capture_output=True, check=True).stdout


def pages(names):
    if names:
        return names
    return sorted({str(path.relative_to(ROOT)) for pattern in PAGES for path in ROOT.glob(pattern)})


def substituted(text):
    lines = text.rstrip("\n")
    for pattern, replacement, _ in SUBSTITUTIONS:
        lines = re.sub(pattern, replacement, lines, flags=re.M)
    return lines


def working_copy(folder):
    """A repository with this working tree as its only commit."""
    files = output_of(["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]).split("\0")
    for name in filter(None, files):
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    git = ["git", "-C", str(folder), "-c", "user.name=test", "-c", "user.email=test@localhost"]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "working tree"]):
        subprocess.run(git + arguments, check=True, stdout=subprocess.DEVNULL)


def script_of(page, blocks, missing):
    """(bash script of the page, number of its commands)."""
    lines, count = [], 0
    if not any("git clone REPOSITORY" in line for block in blocks for line in block.lines):
        lines.append('furnished_clone latte && cd latte')
        lines.append(f"check $? {page}")
    for block in blocks:
        for number, command in commands_of(block):
            lacking = [what for pattern, what in missing if re.search(pattern, command)]
            if lacking:
                print(f"{page}:{number}: left out, needs {lacking[0]}")
                continue
            count += 1
            lines += [f"printf '%s\\n' {shlex.quote('$ ' + command.strip())}", substituted(command), f"check $? {page}:{number}"]
    return PREAMBLE + "\n".join(lines) + "\nexit 0\n", count


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Runner:
    def __init__(self, build, folder):
        self.build, self.folder = build, folder
        self.latte = str(build / "latte")
        self.missing = [(pattern, what) for pattern, there, what in NEEDS if not there(self.latte)]
        self.source, self.stand_in = folder / "source", folder / "stand-in"
        working_copy(self.source)
        subprocess.run([self.latte, "synth", *STAND_IN, str(self.stand_in)], check=True, capture_output=True)
        self.files = {path.name: path.read_bytes() for path in self.stand_in.iterdir()}
        gguf_test.write_gguf(folder / "tiny.gguf", gguf_test.renamed(gguf_test.stored(gguf_test.TINY)))
        self.gguf = (folder / "tiny.gguf").read_bytes()

    def environment(self, page, here, hub, cached):
        out = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "LATTE_", "XDG_", "MAKE"))}
        out |= {"HOME": here / "home", "SCRATCH": here / "scratch", "SOURCE": self.source, "BUILD": self.build, "COPY_BUILD": build_copy.__file__, "PAGE": page,
                "STAND_IN": self.stand_in, "REQUESTS": REQUESTS, "TRACE": TRACE, "CACHED": cached, "PORT": free_port(), "HF_ENDPOINT": hub.url}
        return {name: str(value) for name, value in out.items()}

    def run(self, page, blocks):
        """(whether all commands succeeded, number of commands, their output)"""
        script, count = script_of(page, blocks, self.missing)
        if count == 0:
            return True, 0, ""
        here = self.folder / page.replace("/", "_")
        for name in ("home", "scratch", "work"):
            (here / name).mkdir(parents=True)
        pulled, used = re.findall(REPOSITORY % "pull", script), re.findall(REPOSITORY % r"[^p]\w+", script)
        named = pulled or used or [("org/model", "")]
        repo, quant = named[0]
        cached = "" if pulled or not used else f"{repo}:{quant}" if quant else repo
        files = {f"Model-{quant}.gguf": self.gguf for _, quant in named if quant}
        if not all(quant for _, quant in named):
            files |= self.files
        with Hub(files, repo=repo, also={name for name, _ in named}) as hub, open(here / "output", "w+b") as output:
            process = subprocess.Popen(["bash", "-c", script], cwd=here / "work", env=self.environment(page, here, hub, cached),
                                       stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
            try:
                status = process.wait(PAGE_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                output.write(f"FAILED: the page takes longer than {PAGE_SECONDS} s\n".encode())
                status = 1
            output.seek(0)
            text = output.read().decode(errors="replace")
        shutil.rmtree(here)
        return status == 0, count, text


def form_errors(blocks):
    """Faults of the pages that need no run to be seen."""
    for block in filter(lacks_language, blocks):
        yield f"{block.where}: commands in a block without a language; write ```sh"
    not_run = [block for block in blocks if is_shell(block) and block.not_run]
    if len(not_run) > MOST_NOT_RUN:
        yield f"{len(not_run)} blocks are marked `not run`; at most {MOST_NOT_RUN} may be: " + ", ".join(b.where for b in not_run)


def main():
    build, names = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]
    blocks = {page: blocks_of(page, (ROOT / page).read_text()) for page in pages(names)}
    everything = [block for found in blocks.values() for block in found]
    errors = list(form_errors(everything))
    for block in everything:
        if is_shell(block) and block.not_run:
            print(f"{block.where}: not run: {block.not_run}")
    total = 0
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(build, pathlib.Path(folder))
        for page, found in blocks.items():
            started = time.monotonic()
            good, count, text = runner.run(page, [b for b in found if is_shell(b) and not b.not_run])
            total += count
            if count:
                print(f"{page}: {count} commands, {time.monotonic() - started:.1f} s", flush=True)
            if not good:
                errors.append(f"{page}: the last lines of its commands:\n" + "\n".join(text.splitlines()[-25:]))
    if total == 0:
        errors.append("no command was found")
    print("\n".join(errors) if errors else f"{total} commands of the documents run")
    return bool(errors)


if __name__ == "__main__":
    sys.exit(main())
