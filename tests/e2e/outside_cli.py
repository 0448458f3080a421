"""Input of users and output for programs: commands, flags, values, kernels, JSON keys, files. Used by outside_test.py."""
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess

BAD = "no-such-value"
# The error that a probe causes after its values have been checked; without an entry, the command really runs.
LATE = {
    "run": ["tiny", "-p", "x", "-n", "1"], "score": ["tiny", "--ids", "1"], "chat": ["tiny"],
    "batch": ["no/such", "-i", "x", "-o", "y", "--cache-bytes", "16M"],
    "eval": ["tiny", "--skills", "addition", "--count", "1"], "simulate": ["no/such"],
    "quantize": ["tiny", "/dev/null/x", "--to", "int4"], "synth": ["/dev/null/x"], "serve": ["--print-config"],
    **{f"bench {name}": ["no/such"] for name in ("model", "steps", "simulation")},
    **{f"bench {name}": ["--threads", "1025"] for name in ("batch", "prefix", "determinism")},
    **{f"bench {name}": ["--m", "0"] for name in ("gemm", "linear", "projections", "moe")},
    "bench attention": ["--heads", "1", "--context", "16", "--kernel", "no.such"],
}
LATE_WORDS = ("no/such", "no.such", "/dev/null", "1025", "--m: expected")
REQUIRED = {"batch": ["-i", "x", "-o", "y"], "quantize": ["x", "y", "--to", "int4"], "synth": ["x"]}
SMALL = ["--m", "1", "--n", "16", "--k", "64"]
# Commands with --kernel, and flags that make them short.
KERNEL_FLAGS = {
    "bench attention": ["--heads", "1", "--context", "16"],
    "bench attention --phase prefill": ["--heads", "1", "--context", "16"],
    "bench gemm": SMALL, "bench linear": SMALL, "bench projections": ["--shape", "v2-lite"], "bench moe": ["--shape", "v2-lite", "--dtype", "int4"],
}
# Commands whose JSON is checked. The ones in SLOW run only with --record; the test finds their keys in the source.
JSON = {
    "run": ["run", "-p", "x", "-n", "2", "--json"],
    "score": ["score", "--ids", "1,2", "--json"],
    "score --text-file": ["score", "--text-file", str(pathlib.Path(__file__).resolve().parents[2] / "VERSION"), "--json"],
    "inspect": ["inspect", "--path", "--kernels", "--json"],
    "tokenize": ["tokenize", "--text", "x", "--json"],
    "tokenize --decode": ["tokenize", "--decode", "5", "--json"],
    "eval": ["eval", "--count", "1", "--json"],
    "eval --texts": ["eval", "--texts", "{scratch}/texts.jsonl", "--json"],
    "serve --dry-run": ["serve", "--dry-run", "--json"],
    "quantize --to int4": ["quantize", "tiny", "{scratch}/int4", "--to", "int4", "--json"],
    "quantize --to int8": ["quantize", "tiny", "{scratch}/int8", "--to", "int8", "--json"],
    "synth": ["synth", "{scratch}/synth", "--layers", "1", "--vocab", "64", "--experts", "8", "--dtype", "int4", "--json"],
    "simulate": ["simulate", "--requests", "2", "--threads", "2", "--cost", "{scratch}/cost.json", "--json"],
    "bench attention": ["bench", "attention", "--heads", "1", "--context", "16", "--json"],
    "bench attention --phase prefill": ["bench", "attention", "--phase", "prefill", "--heads", "1", "--context", "16", "--json"],
    "bench gemm": ["bench", "gemm", *SMALL, "--json"],
    "bench linear": ["bench", "linear", *SMALL, "--json"],
    "bench moe": ["bench", "moe", "--shape", "v2-lite", "--dtype", "int4", "--json"],
    "bench pool": ["bench", "pool", "--json"],
    "bench sampler": ["bench", "sampler", "--vocab", "100", "--rows", "1", "--json"],
    "bench absorption": ["bench", "absorption", "--heads", "1", "--context", "1", "--json"],
    "bench model": ["bench", "model", "--prompt", "64", "--gen", "1", "--json"],
    "bench batch": ["bench", "batch", "--batches", "1", "--prompt", "1", "--gen", "1", "--json"],
    "bench prefix": ["bench", "prefix", "--requests", "1", "--prefix", "64", "--own", "1", "--gen", "1", "--long-prompt", "128",
                     "--json"],
    "bench determinism": ["bench", "determinism", "--requests", "2", "--prompt", "64", "--gen", "16", "--rounds", "1", "--json"],
    "bench steps": ["bench", "steps", "--quick", "--context", "64", "--max-sequences", "2", "--out", "{scratch}/steps.json",
                    "--json"],
    "bench simulation": ["bench", "simulation", "--requests", "2", "--runs", "1", "--rate", "0", "--threads", "2", "--cost",
                         "{scratch}/cost.json", "--json"],
}
SLOW = {
    "bench projections": ["bench", "projections", "--shape", "v2-lite", "--json"],
    "bench dispatch": ["bench", "dispatch", "--heads", "1", "--json"],
    "bench calibrate": ["bench", "calibrate", "--heads", "1", "--out", "{scratch}/calibrated.json", "--json"],
}
# Files that commands above wrote.
WRITTEN = {
    "quantize --to int4: config.json": "int4/config.json", "quantize --to int8: config.json": "int8/config.json",
    "synth: config.json": "synth/config.json", "bench steps --out": "steps.json", "batch --output": "results.jsonl",
}
# Words, not data, that these keys have as their values. Names of kernels and ops are no words to compare with.
SHOWN = ("act", "attention", "bench", "cache_dtype", "chosen", "code", "dtype", "finish_reason", "form", "format", "isa", "level",
         "name", "object", "path", "phase", "quant_method", "role", "strategy", "to", "type")
OPEN_KEYS = ("prompt_logprobs[]", "top_logprobs[]")  # their members are token ids or texts


def key_paths(value, path=""):
    if isinstance(value, list):
        return set().union(*(key_paths(item, path + "[]") for item in value)) if value else set()
    if not isinstance(value, dict):
        return set()
    out = set()
    is_open = path.endswith(OPEN_KEYS) and not {"token", "logprob"} <= value.keys()
    for key, item in value.items():
        inner = f"{path}.{'*' if is_open else key}".lstrip(".")
        out |= {inner} | key_paths(item, inner)
    return out


def shown_words(value, path=""):
    """Lines "path = word" for the keys of SHOWN, all levels down."""
    if isinstance(value, list):
        return set().union(*(shown_words(item, path + "[]") for item in value)) if value else set()
    if not isinstance(value, dict):
        return set()
    out = set()
    for key, item in value.items():
        inner = f"{path}.{key}".lstrip(".")
        if key in SHOWN and isinstance(item, str) and not inner.startswith("kernels[]"):
            out.add(f"{inner} = {item}")
        out |= shown_words(item, inner)
    return out


def entries_of(name, value):
    paths = {path for path in (path.removeprefix("[].") for path in key_paths(value)) if path}
    return {f"json {name} | {path}" for path in paths} | \
        {f"shown {name} | {line.removeprefix('[].')}" for line in shown_words(value)}


class Outside:
    """The product under test, run without any influence of the user's machine."""

    def __init__(self, root, build, latte, cxx, scratch):
        self.root, self.build, self.latte, self.cxx, self.scratch = root, build, latte, cxx, pathlib.Path(scratch)
        self.env = {k: v for k, v in os.environ.items() if not re.match(r"LATTE_|HF_|HUGGINGFACE_|XDG_CACHE", k)}
        self.env |= {"LATTE_ISA": "avx2", "HOME": str(self.scratch), "LATTE_RATES": ""}
        (self.scratch / "empty.jsonl").write_text("")
        (self.scratch / "texts.jsonl").write_text('{"text": "x"}\n')
        self.help = {}
        self.threads = concurrent.futures.ThreadPoolExecutor(os.cpu_count())

    def run(self, *args, env=None, stdin=""):
        args = [str(word).replace("{scratch}", str(self.scratch)) for word in args]
        return subprocess.run([self.latte, *args], text=True, capture_output=True, timeout=600, input=stdin,
                              env={**self.env, **(env or {})}, cwd=self.scratch)

    def map(self, function, items):
        return list(self.threads.map(function, items))

    def read_help(self, command=""):
        text = self.run(*command.split(), "--help").stdout
        self.help[command] = text
        listed = text.split("\nCommands:\n")[1].split("\n\n")[0] if "\nCommands:\n" in text else ""
        names = re.findall(r"^  (\w+)  ", listed, re.M)
        for name in names:
            self.read_help(f"{command} {name}".strip())


# Commands, flags and positionals, as --help lists them.

def flag_lines(text):
    """(is positional, names, word for the value, the rest) of each option and argument of a help text."""
    text = re.sub(r"\n {20,}", "  ", text)
    section = ""
    for line in text.splitlines():
        if not line.startswith(" "):
            section = line.rstrip(":") if line.endswith(":") else ""
        elif section not in ("", "Commands", "Example", "Examples"):
            head, _, about = re.sub(r"^ +", "", line).partition("  ")
            if section != "Arguments" and not head.startswith("-"):
                continue  # an example
            names = re.findall(r"(?<![\w|-])--?[a-zA-Z][\w-]*(?=,| |$)", head) if section != "Arguments" else [head]
            kind = head.split(names[-1], 1)[1].strip() if names else ""
            if names:
                yield section == "Arguments", names, kind, about


def flag_entry(command, positional, name, kind, about):
    words = ["positional" if positional else "flag", *command.split(), name]
    if not positional and kind:
        words.append("VALUE")
    words += ["required"] if "(required)" in about else []
    words += ["repeatable"] if kind.endswith("...") else []
    default = re.search(r"\(default:\s+([\w.,-]+)[;)]", about)
    if default and "generation_config" not in default[1]:
        words.append(f"default={default[1]}")
    return " ".join(words)


def commands_and_flags(outside):
    if not outside.help:
        outside.read_help()
    out = {f"command {command}" for command in outside.help if command}
    for command, text in outside.help.items():
        for positional, names, kind, about in flag_lines(text):
            out |= {flag_entry(command, positional, name, kind, about) for name in names}
    return out


def key_of(entry):
    return re.sub(r"( VALUE| required| repeatable| default=\S+)+$", "", entry)


def flag_is_parsed(outside, entry):
    """Whether a flag that --help does not show is accepted, with or without a value."""
    words = key_of(entry).split()[1:]
    command, flag = words[:-1], words[-1]
    given = [flag, "1"] if " VALUE" in entry else [flag]
    done = outside.run(*command, *REQUIRED.get(" ".join(command), []), *given, "--no-such-flag")
    return "unknown option --no-such-flag" in done.stderr


def command_is_known(outside, words):
    """Whether a command that --help does not list has a help of its own."""
    own, above = (outside.run(*some, "--help") for some in (words, words[:-1]))
    return own.returncode == 0 and own.stdout != above.stdout


def missing_flags(outside, recorded):
    """Recorded entries that do not hold, each with what is wrong."""
    commands_and_flags(outside)
    for command in (entry.removeprefix("command ") for entry in recorded if entry.startswith("command ")):
        if command not in outside.help and command_is_known(outside, command.split()):
            outside.read_help(command)
    current = {key_of(entry): entry for entry in commands_and_flags(outside)}
    for entry in recorded:
        key, now = key_of(entry), current.get(key_of(entry))
        if now is None:
            if not entry.startswith("flag") or not flag_is_parsed(outside, entry):
                yield entry
            continue
        if (" VALUE" in entry) != (" VALUE" in now) or (" required" in now and " required" not in entry) or \
                (" repeatable" in entry and " repeatable" not in now):
            yield f"{entry}; now: {now}"
        default = re.search(r" default=\S+", entry)
        if default and default[0] not in now:
            yield f"{entry}; --help shows another default, or none"


# Values of flags.

def probe(outside, command, pairs):
    late = list(LATE.get(command, []))
    for flag, _ in pairs:
        if flag in late:
            del late[late.index(flag):late.index(flag) + 2]
    if command == "bench attention" and any(flag == "--dtype" for flag, _ in pairs):
        late += ["--phase", "prefill"]
    return outside.run(*command.split(), *late, *(word for pair in pairs for word in pair))


def is_taken(outside, command, flag, value):
    done = probe(outside, command, [(flag, value)])
    return done.returncode == 0 or any(word in done.stderr for word in LATE_WORDS)


def candidate_values(outside):
    """The words in the help of each flag that refuses an unknown value."""
    words, places = {}, []
    for command, text in outside.help.items():
        for positional, names, kind, about in flag_lines(text):
            if not positional and (kind == "TEXT" or "|" in kind):
                places.append((command, names[-1]))
                words.setdefault(names[-1], set()).update(re.findall(r"[a-z0-9][a-z0-9.-]*[a-z0-9]|[0-9]", f"{kind} {about}"))
    refusals = outside.map(lambda place: f"found '{BAD}'" in probe(outside, place[0], [(place[1], BAD)]).stderr, places)
    refusing = [place for place, refused in zip(places, refusals) if refused]
    return [(command, flag, value) for command, flag in refusing if flag not in ("--kernel", "--synthetic")
            for value in sorted(words[flag])]


def values(outside):
    found = candidate_values(outside)
    taken = outside.map(lambda item: is_taken(outside, *item), found)
    return {f"value {command} {flag} {value}" for (command, flag, value), ok in zip(found, taken) if ok}


def missing_values(outside, recorded):
    by_command = {}
    for entry in recorded:
        words = entry.split()[1:]
        by_command.setdefault(" ".join(words[:-2]), {}).setdefault(words[-2], []).append(words[-1])
    return [line for lines in outside.map(lambda item: missing_values_of(outside, *item), by_command.items()) for line in lines]


def missing_values_of(outside, command, flags):
    out = []
    for flag in flags:
        if is_taken(outside, command, flag, BAD):
            out.append(f"value {command} {flag}: {BAD} is taken too")
    for i in range(max(map(len, flags.values()))):
        pairs = [(flag, values[i]) for flag, values in flags.items() if i < len(values)]
        done = probe(outside, command, pairs)
        if done.returncode == 0 or any(word in done.stderr for word in LATE_WORDS):
            continue
        out += [f"value {command} {flag} {value}" for flag, value in pairs if not is_taken(outside, command, flag, value)]
    return out


# Kernels and instruction sets, by the names that LATTE_KERNEL, --kernel and LATTE_ISA take.

def kernels(outside):
    report = json.loads(outside.run("inspect", "--kernels", "--json").stdout)
    out = {f"kernel {row['name']}" for row in report["kernels"]}
    for command in KERNEL_FLAGS:
        out |= {f"kernel-of {command}: {name}" for name in listed_kernels(outside, command)}
    return out | {f"isa {isa}" for isa in {row["isa"] for row in report["kernels"]} if isa_is_taken(outside, isa)}


def listed_kernels(outside, command):
    done = outside.run(*command.split(), *KERNEL_FLAGS[command], "--kernel", "no.such")
    found = re.search(r"expected one of (.*), found 'no.such'", done.stderr)
    return found[1].split(", ") if found else []


def missing_kernels(outside, recorded):
    names = [entry.split()[1] for entry in recorded if entry.startswith("kernel ")]
    if not kernel_is_known(outside, ",".join(names)):
        yield from (f"kernel {name}" for name in names if not kernel_is_known(outside, name))
    yield from kernels_without_effect(outside, [name for name in names if name.startswith("ref.")])
    lists = {command: listed_kernels(outside, command) for command in KERNEL_FLAGS}
    for entry in recorded:
        command, _, name = entry.removeprefix("kernel-of ").partition(": ")
        if entry.startswith("kernel-of ") and name not in lists.get(command, []):
            done = outside.run(*command.split(), *KERNEL_FLAGS[command], "--kernel", name, "--json", env={"LATTE_ISA": "ref"})
            if f"found '{name}'" in done.stderr or "unknown option" in done.stderr:
                yield entry
        if entry.startswith("isa ") and not isa_is_taken(outside, entry.split()[1]):
            yield entry


def kernels_without_effect(outside, names):
    """Forcing the reference kernels selects these and no others."""
    report = json.loads(outside.run("inspect", "--kernels", "--json", env={"LATTE_KERNEL": ",".join(names)}).stdout or "{}")
    for row in report.get("kernels", ()):
        if row["chosen"] and row["isa"] != "ref":
            yield f"LATTE_KERNEL={','.join(names)}: runs {row['name']} all the same"


def isa_is_taken(outside, isa):
    """By LATTE_ISA, which names instruction sets of processors; kernels of GPUs have others."""
    return "LATTE_ISA: expected" not in outside.run("inspect", "--kernels", env={"LATTE_ISA": isa}).stderr


def kernel_is_known(outside, names):
    return outside.run("inspect", "--kernels", env={"LATTE_KERNEL": names}).returncode == 0


# Keys of JSON.

def batch_lines():
    bodies = (("completions", {"prompt": "x", "max_tokens": 2, "logprobs": 2, "prompt_logprobs": 1, "n": 2}),
              ("chat/completions", {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2, "logprobs": True,
                                    "top_logprobs": 2, "prompt_logprobs": 1}),
              ("completions", {"no_such_field": 1}))
    return [{"custom_id": str(i), "method": "POST", "url": f"/v1/{url}", "body": body} for i, (url, body) in enumerate(bodies)]


def batch(outside, name, lines, *flags):
    source, results = outside.scratch / f"{name}_requests.jsonl", outside.scratch / f"{name}.jsonl"
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = outside.run("batch", "tiny", "-i", source, "-o", results, "--overwrite", "--cache-bytes", "16M", *flags)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return [json.loads(line) for line in results.read_text().splitlines()]


def json_keys(outside, runs):
    def keys_of(item):
        name, args = item
        done = outside.run(*args)
        if done.returncode != 0:
            return {f"{name}: exit {done.returncode}: {done.stderr.strip()}"}
        return entries_of(name, json.loads(done.stdout))

    found = outside.map(keys_of, runs.items())
    batch(outside, "results", batch_lines())
    for name, file in WRITTEN.items():
        text = (outside.scratch / file).read_text()
        value = [json.loads(line) for line in text.splitlines()] if file.endswith("jsonl") else json.loads(text)
        found.append(entries_of(name, value))
    return set().union(*found)


def quoted_in_source(outside):
    files = [p for folder in ("apps", "lab", "src") for p in (outside.root / folder).rglob("*") if p.suffix in (".cc", ".h")]
    return set(re.findall(r'"([\w*]+)"', "".join(p.read_text() for p in files if not p.stem.endswith("_test"))))


def missing_json(outside, recorded):
    found = json_keys(outside, JSON)
    yield from sorted(line for line in found if not line.startswith(("json ", "shown ")))
    quoted = quoted_in_source(outside)
    for entry in recorded:
        name, _, path = entry.partition(" ")[2].partition(" | ")
        if name in JSON or name in WRITTEN:
            if entry not in found:
                yield entry
        elif not set(re.findall(r"[\w*]+", path)) <= quoted:
            yield entry
