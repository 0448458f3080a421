"""Files, environment, exit codes, request bodies, build system and scripts. Used by outside_test.py."""
import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys

from outside_cli import batch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from build_copy import install  # noqa: E402

LONG_PROMPT = list(range(100, 140))
CACHE_FLAGS = ["--page-tokens", "16", "--context", "64", "--max-sequences", "2", "--prefill-workspace-tokens", "1024",
               "--dtype", "f32", "--cache-dtype", "bf16", "--draft-tokens", "0"]
SCRIPTS = ("tools/**/*.sh", "tools/**/*.py", "bench/*.py", "fuzz/*.sh", "tests/limits/sweep.py")
ENVIRONMENT_IN = ("apps", "lab", "src", "fuzz", "tests", "tools", "bench")


# Request bodies, trace lines and chat commands: the entries are the input, written by hand. In a pipe, an unknown chat
# command ends the chat.

def missing_requests(outside, recorded):
    lines = []
    for i, entry in enumerate(recorded):
        _, endpoint, body = entry.split(" ", 2)
        base = {"messages": [{"role": "user", "content": "Hi"}]} if endpoint == "chat" else {"prompt": "Hi"}
        url = "/v1/chat/completions" if endpoint == "chat" else "/v1/completions"
        lines.append({"custom_id": str(i), "method": "POST", "url": url, "body": {**base, "max_tokens": 1, **json.loads(body)}})
    for result in batch(outside, "fields", lines):
        if result["response"]["status_code"] != 200:
            yield f"{recorded[int(result['custom_id'])]}: {result['error']['message']}"


def missing_traces(outside, recorded):
    for entry in recorded:
        trace = outside.scratch / "trace.jsonl"
        trace.write_text(entry.removeprefix("trace ") + "\n")
        done = outside.run("simulate", "--trace", trace, "--threads", "2", "--cost", "{scratch}/cost.json",
                           "--shared-prefix", "2", "--prefix-groups", "2")
        if done.returncode != 0:
            yield f"{entry}: {done.stderr.strip()}"


def missing_chat_commands(outside, recorded):
    file = outside.scratch / "conversation.json"
    outside.run("chat", "-n", "1", stdin=f"Hi\n/save {file}\n")
    for entry in recorded:
        command = entry.split(maxsplit=1)[1].replace("FILE", str(file))
        if outside.run("chat", "-n", "1", stdin=f"Hi\n{command}\n").returncode != 0:
            yield entry


# Exit codes: "exit CODE ARGUMENTS".

def missing_exits(outside, recorded):
    def code(entry):
        return outside.run(*entry.split()[2:]).returncode

    for entry, now in zip(recorded, outside.map(code, recorded)):
        if now != int(entry.split()[1]):
            yield f"{entry}: exit {now}"


# Files.

def path_report(outside, env):
    return json.loads(outside.run("inspect", "--path", "--json", env=env).stdout)["path"]


def prefix_files(outside):
    folder = outside.scratch / "prefixes"
    shutil.rmtree(folder, ignore_errors=True)
    line = {"custom_id": "1", "method": "POST", "url": "/v1/completions", "body": {"prompt": LONG_PROMPT, "max_tokens": 1}}
    batch(outside, "prefix", [line], "--cache-dir", folder, *CACHE_FLAGS)
    found = [path for path in folder.rglob("*") if path.is_file()]
    return {f"file prefix {path.relative_to(folder)} {path.read_bytes()[:56].hex()}" for path in found}


def npy_file(outside):
    path = outside.scratch / "logits.npy"
    outside.run("score", "--ids", "1,2", "--logits", path)
    return {f"file npy {path.read_bytes()[:128].decode('latin-1').rstrip()!r}"}


def tensors(outside, name):
    """The endings of the tensor names in a written checkpoint, and their types."""
    out = set()
    for path in (outside.scratch / name).glob("*.safetensors"):
        with path.open("rb") as file:
            header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        out |= {f"file {name} tensor .{tensor.rpartition('.')[2]} {info['dtype']}" for tensor, info in header.items()
                if tensor != "__metadata__"}
    return out


def files(outside):
    outside.run("quantize", "tiny", "{scratch}/fp8", "--to", "fp8", "--json")
    written = {"file checkpoint " + path.name for path in (outside.scratch / "int4").iterdir()}
    return prefix_files(outside) | npy_file(outside) | written | set().union(
        *(tensors(outside, name) for name in ("int4", "int8", "fp8", "synth")))


def sample_files(outside):
    """Files that the product writes on one run and reads on another; recorded once, as they are."""
    rates = path_report(outside, {})["rates"]
    cost = json.loads(outside.run("bench", "steps", "--quick", "--threads", "2", "--context", "64", "--max-sequences", "2",
                                  "--json").stdout)
    rates["memory_gbps"] = 12.5
    return {f"sample rates.json {json.dumps(rates)}",
            f"sample cost.json {json.dumps({key: cost[key] for key in ('made_for', 'microseconds')})}"}


def lay_out_samples(outside, recorded):
    for entry in recorded:
        _, name, text = entry.split(" ", 2)
        (outside.scratch / name).write_text(text)


def missing_samples(outside, recorded):
    for entry in recorded:
        if entry.startswith("sample rates.json"):
            rates = outside.scratch / "rates.json"
            if not same_rates(path_report(outside, {"LATTE_RATES": str(rates)})["rates"], json.loads(rates.read_text())):
                yield f"{entry}: not read as it is written"
        elif outside.run("simulate", "--requests", "1", "--threads", "2", "--cost", "{scratch}/cost.json").returncode != 0:
            yield f"{entry}: refused"


# Environment variables.

def environment(outside):
    pattern = re.compile(r'(?:getenv|Env|variable|environ\.get)\("([A-Z_]+)"|"((?:HF|HUGGINGFACE)_[A-Z_]+)"|\$\{([A-Z_]+):-')
    out = set()
    for path in source_files(outside):
        out |= {f"env {next(filter(None, names))}" for names in pattern.findall(path.read_text())}
    return out


def source_files(outside):
    return [path for folder in ENVIRONMENT_IN for path in (outside.root / folder).rglob("*")
            if path.suffix in (".cc", ".h", ".c", ".py", ".sh") and not path.name.startswith("outside_")]


def variable_works(outside, name):
    """True or False by what the product does; None where only scripts or tests read the variable."""
    rates = json.loads((outside.scratch / "rates.json").read_text())
    for folder in ("cache", "home/.cache"):
        (outside.scratch / folder / "latte").mkdir(parents=True, exist_ok=True)
        (outside.scratch / folder / "latte/rates.json").write_text(json.dumps(rates))
        hub = outside.scratch / folder / "huggingface/hub/models--org--name/snapshots"
        hub.mkdir(parents=True, exist_ok=True)
        if not (hub / "main").exists():
            (hub / "main").symlink_to(outside.root / "models/tiny")
    cache = str(outside.scratch / "cache")
    places = {"HF_HUB_CACHE": f"{cache}/huggingface/hub", "HUGGINGFACE_HUB_CACHE": f"{cache}/huggingface/hub",
              "HF_HOME": f"{cache}/huggingface", "XDG_CACHE_HOME": cache, "HOME": str(outside.scratch / "home")}
    if name in places:
        hub = outside.run("inspect", "org/name", env={name: places[name]}).returncode == 0
        return hub and (name.startswith("H") and name != "HOME" or same_rates(rates_from(outside, {name: places[name]}), rates))
    if name == "LATTE_RATES":
        return same_rates(path_report(outside, {name: str(outside.scratch / "rates.json")})["rates"], rates)
    if name in ("LATTE_ISA", "LATTE_KERNEL"):
        return name in outside.run("inspect", "--kernels", env={name: "no.such"}).stderr
    if name == "TMPDIR":
        spec = "v2-lite:layers=1,vocab=64,experts=8"
        return "TMPDIR" in outside.run("bench", "model", "--synthetic", spec, env={name: "/dev/null"}).stderr
    return None


def same_rates(report, file):
    """Whether the report has the numbers of a file; it may have others, which files of an earlier version lack."""
    return report | file == report


def rates_from(outside, env):
    without = {key: value for key, value in outside.env.items() if key != "LATTE_RATES"} | env
    done = subprocess.run([outside.latte, "inspect", "--path", "--json"], text=True, capture_output=True, env=without)
    return json.loads(done.stdout)["path"]["rates"]


def missing_environment(outside, recorded):
    text = None
    for entry in recorded:
        name = entry.split()[1]
        works = variable_works(outside, name)
        if works is None:
            text = text or "".join(path.read_text() for path in source_files(outside))
            works = re.search(rf"\b{name}\b", text) is not None
        if not works:
            yield entry


# The build: CMake, packages, make, scripts.

def build(outside):
    lists = [outside.root / "CMakeLists.txt", *(outside.root / "cmake").iterdir()]
    options = re.findall(r"^option\((\w+)", "".join(path.read_text() for path in lists), re.M)
    out = {f"cmake option {name}" for name in options}
    presets = json.loads((outside.root / "CMakePresets.json").read_text())
    for kind in ("configure", "build", "test"):
        out |= {f"cmake {kind} preset {preset['name']}" for preset in presets[f"{kind}Presets"]}
    return out | installed(outside) | makefile(outside) | scripts(outside)


def installed(outside):
    prefix = outside.scratch / "prefix"
    install(outside.build, prefix)
    library = next(prefix.rglob("liblatte.so")).parent
    out = {f"installed {path.relative_to(prefix)}".replace(f" {library.relative_to(prefix)}/", " LIB/")
           for path in prefix.rglob("*") if not path.is_dir() and not re.search(r"\.so\.\d+\.\d+\.|Targets-", path.name)}
    out |= {f"cmake target {name}" for name in
            re.findall(r"add_library\((\S+)", (library / "cmake/latte/latteTargets.cmake").read_text())}
    package = (library / "pkgconfig/latte.pc").read_text()
    return out | {f"pkg-config {name}" for name in re.findall(r"^(\w+)[=:]", package, re.M)}


def makefile(outside):
    text = (outside.root / "Makefile").read_text()
    out = {f"make variable {name}={value}" for name, value in re.findall(r"^([A-Z_]+) \?= (.*)$", text, re.M)}
    return out | {f"make target {name}" for name in re.findall(r"^([a-z][\w-]*):(?!=)", text, re.M)}


def scripts(outside):
    out = set()
    for pattern in SCRIPTS:
        for path in outside.root.glob(pattern):
            name = path.relative_to(outside.root)
            out.add(f"script {name}")
            out |= {f"script {name} {flag}" for flag in re.findall(r'add_argument\("(--?[\w-]+)"', path.read_text())}
    targets = re.findall(r'all="(?:\$all )?([\w ]+)"', (outside.root / "fuzz/run.sh").read_text())
    return out | {f"fuzz {name}" for line in targets for name in line.split()}
