"""Records the output of a latte binary: a line "name, tab, SHA-256" per standard output and per written file.

Usage: record_answers.py LATTE OUT [--only TEXT]
Runs the commands over models/tiny, the golden checkpoints and synthetic models of real width, for every instruction set.
It removes times, speeds, dates, seeds, bytes from disk and numbers of drafts, which depend on times, before it hashes, and ignores standard error. It stops at a command that fails, so it
needs a processor with all instruction sets. compare_records.py compares two records.
"""
import argparse
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TINY = "models/tiny"
ISAS = ["ref", "avx2", "avx512", "avx512_vnni", "avx512_bf16", "amx"]
ATTENTION = ["auto", "decompressed", "latent", "absorbed"]
CACHES = ["bf16", "f16", "f32", "fp8", "fp8-dense", "int8", "q6"]
STORY = "Once upon a time, a brave duck named Wendy lived in"
OUT = "{out}"  # stands for a path that the case may write to
VARYING = re.compile(r'"(created|seed|[a-z]+_prediction_tokens|drafted_tokens|accepted_tokens|disk_bytes_per_token|[a-z_]*_per_s|[a-z_]*_s|cached_tokens|machine_memory_bytes|available_memory_bytes|largest_context_here)": ?[^,}\n]*')


def ids(count, vocabulary=2000):
    return ",".join(str((i * i * 7 + i * 13) % (vocabulary - 3) + 3) for i in range(count))


def score(model, tokens, *flags):
    return ["score", model, "--ids", tokens, "--logits", OUT, "--json", *flags]


def tiny_scores():
    """(name, arguments, instruction set), like every list of cases."""
    for isa in ISAS:
        for dtype in ("bf16", "f16", "f32"):
            for mode in ATTENTION:
                yield f"score/{dtype}/{mode}/{isa}", score(TINY, ids(90), "--dtype", dtype, "--attention", mode), isa
        for cache in CACHES:
            flags = ["--cache-dtype", cache, "--attention", "absorbed"]
            yield f"score/cache-{cache}/{isa}", score(TINY, ids(90), *flags), isa
    for flag, values in {"chunk": (1, 7, 64, 0), "page-tokens": (16, 256), "threads": (1, 3), "deterministic": ("strict", "off"),
                         "prefill-workspace-tokens": (64,)}.items():
        for value in values:
            yield f"score/{flag}-{value}", score(TINY, ids(700), f"--{flag}", str(value)), None


def golden_scores():
    for folder in sorted(path.parent for path in (ROOT / "tests/goldens").glob("*/tokens.json")):
        tokens = ",".join(map(str, json.loads((folder / "tokens.json").read_text())))
        model = f"tests/goldens/{folder.name}"
        yield f"golden/{folder.name}/f32", score(model, tokens, "--dtype", "f32"), None
        yield f"golden/{folder.name}/act-bf16", score(model, tokens, "--act", "bf16"), None
        for isa in ISAS[1:]:
            yield f"golden/{folder.name}/bf16/{isa}", score(model, tokens), isa


def made_models(scratch):
    """Models that the binary writes, and their scores. The wide one is slow with the reference kernels."""
    for to in ("fp8", "int8", "int4"):
        model = f"{scratch}/{to}"
        yield f"quantize/{to}", ["quantize", TINY, model, "--to", to, "--json"], None
        for isa in ISAS[1:]:
            yield f"quantize/{to}/score/{isa}", score(model, ids(90)), isa
    for dtype in ("bf16", "int4"):
        model = f"{scratch}/wide-{dtype}"
        size = ["--layers", "2", "--vocab", "512", "--experts", "8", "--dtype", dtype]
        yield f"synth/{dtype}", ["synth", model, "--json", *size], None
        for isa in ISAS[1:]:
            yield f"synth/{dtype}/score/{isa}", score(model, ids(70, 512), "--attention", "absorbed"), isa


def texts(scratch):
    """Commands that read or write text: run, chat, eval, tokenize, inspect, batch."""
    pathlib.Path(scratch, "prompt.txt").write_text(STORY * 9)
    pathlib.Path(scratch, "requests.jsonl").write_text("\n".join(requests()) + "\n")
    flags = {"greedy": ["--temperature", "0"], "seed-0": ["--seed", "0"], "seed-7": ["--seed", "7", "--temperature", "1.3"],
             "top-k": ["--top-k", "5", "--seed", "0"], "top-p": ["--top-p", "0.7", "--temperature", "1.5", "--seed", "0"],
             "min-p": ["--min-p", "0.1", "--temperature", "1.5", "--seed", "0"],
             "bias": ["--logit-bias", "16:-100,263:3", "--seed", "0"],
             "penalties": ["--repetition-penalty", "1.2", "--presence-penalty", "0.3", "--frequency-penalty", "0.2",
                           "--seed", "0"]}
    for name, more in flags.items():
        for isa in ISAS:
            yield f"run/{name}/{isa}", ["run", TINY, "-p", STORY, "-n", "48", "--ignore-eos", "--json", *more], isa
    yield "run/text", ["run", TINY, "--prompt-file", f"{scratch}/prompt.txt", "--stop", "the", "--min-tokens", "4", "--seed", "0"], None
    for name, more in {"bf16": [], "f32": ["--dtype", "f32"], "system": ["--system", "Be brief."],
                       "strict": ["--deterministic", "strict", "--temperature", "0"]}.items():
        yield f"chat/{name}", ["chat", TINY, "-n", "24", "--seed", "0", *more], None
    for isa in (None, "avx2", "avx512"):
        yield f"eval/{isa or 'best'}", ["eval", TINY, "--count", "3", "--json"], isa
    for name, more in {"text": ["--text", STORY], "file": ["--file", "LICENSE", "--json"], "decode": ["--decode", ids(200, 1300)],
                       "special": ["--text", "<｜User｜>é 日本語 🦆", "--special", "--bos", "--json"], "stdin": []}.items():
        yield f"tokenize/{name}", ["tokenize", TINY, *more], None
    yield "inspect/json", ["inspect", TINY, "--json"], None
    for isa in ISAS:
        for mode in ("on", "strict"):
            flags = ["--cache-bytes", "64M", "--deterministic", mode, "--no-prefix-cache"]
            yield f"batch/{mode}/{isa}", ["batch", TINY, "-i", f"{scratch}/requests.jsonl", "-o", OUT, *flags], isa


def requests():
    bodies = [dict(prompt=STORY[:4 + 9 * i], seed=i, temperature=0.8 * (i % 3), max_tokens=30, logprobs=i % 4) for i in range(6)]
    bodies += [dict(prompt=STORY, n=16, seed=3, temperature=2, max_tokens=60), dict(prompt=[0, 5, 6, 7], stop=".", max_tokens=40)]
    bodies += [dict(messages=[dict(role="user", content=text)], max_tokens=16, seed=1) for text in ("Hi", "12+30=")]
    for i, body in enumerate(bodies):
        url = "/v1/chat/completions" if "messages" in body else "/v1/completions"
        yield json.dumps(dict(custom_id=f"{i:02}", method="POST", url=url, body=body))


def digest(data, scratch):
    """Hashes files unchanged, except for JSON lines without varying values and batch results sorted by name."""
    if data[:1] == b"{":
        text = VARYING.sub(r'"\1":0', data.decode().replace(scratch, ""))
        lines = text.splitlines(keepends=True)
        data = "".join(sorted(lines, key=lambda line: line.partition('"custom_id"')[2])).encode()
    return hashlib.sha256(data).hexdigest()


def record_case(binary, name, args, isa, scratch):
    """Yields (name of an output, its hash)."""
    out = pathlib.Path(scratch, "out")
    env = {key: value for key, value in os.environ.items() if not key.startswith("LATTE_")} | ({"LATTE_ISA": isa} if isa else {})
    if "--threads" not in args and args[0] not in ("tokenize", "inspect"):
        args = [*args, "--threads", "2"]
    command = [binary, *(str(out) if arg == OUT else arg for arg in args)]
    done = subprocess.run(command, input=b"Tell me a story.\nAnd 12+30=\n", capture_output=True, env=env, cwd=ROOT, timeout=600)
    if done.returncode != 0:
        raise SystemExit(f"{name}: {' '.join(command)}\nexit {done.returncode}: {done.stderr.decode()}")
    made = pathlib.Path(args[2] if args[0] == "quantize" else args[1] if args[0] == "synth" else out)
    if made == out:  # the others print times alone
        yield f"{name}:stdout", digest(done.stdout, scratch)
    for path in sorted(path for path in (made.rglob("*") if made.is_dir() else [made]) if path.is_file()):
        yield f"{name}:{path.name}", digest(path.read_bytes(), scratch)
    out.unlink(missing_ok=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", type=os.path.abspath)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--only", default="", help="cases whose name begins with this text")
    args = parser.parse_args()
    lines = []
    with tempfile.TemporaryDirectory() as scratch:
        for cases in (tiny_scores(), golden_scores(), texts(scratch), made_models(scratch)):
            for name, command, isa in cases:
                if name.startswith(args.only):
                    lines += [f"{output}\t{value}\n" for output, value in record_case(args.binary, name, command, isa, scratch)]
    args.out.write_text("".join(lines))
    print(f"{len(lines)} outputs recorded in {args.out}")


if __name__ == "__main__":
    sys.exit(main())
