"""Hundreds of malformed checkpoints: each must end in exit code 2 and one line that names the file or key, never in a
signal or a hang. Usage: malformed_checkpoints.py LATTE_BINARY [WORDS_OF_A_CASE…]; needs only Python's standard
library.
"""
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import checkpoint_cases
import folder_cases

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDENS = ROOT / "tests/goldens"
SECONDS = 60  # a run takes milliseconds; even on a busy machine, only a hang takes longer
COMMANDS = {
    "score": ["score", "{}", "--ids", "1,2,3"],
    "run": ["run", "{}", "-p", "Once", "-n", "2"],
    "inspect": ["inspect", "{}"],
    "chat": ["chat", "{}", "-n", "2"],
    "tokenize": ["tokenize", "{}", "--text", "Once"],
    "hostile": ["tokenize", "{}", "--text", "a" * 64 + "b"],
}


def fill(folder, base):
    """A good checkpoint whose files may be replaced; large files are links."""
    golden = {"v3": "v3_noaux", "shards": "v2_group", "fp8": "fp8", "pack4": "pack4",
              "gptq": "gptq", "int8": "int8"}.get(base)
    source = GOLDENS / golden if golden else ROOT / "models/tiny"
    for file in source.iterdir():
        if file.suffix in (".json", ".safetensors") and file.name not in ("meta.json", "tokens.json", "training.json"):
            (folder / file.name).symlink_to(file)
    if base == "kimi":
        (folder / "tokenizer.json").unlink()
        (folder / "tokenizer_config.json").unlink()
        for file in (ROOT / "tests/data/tokenizer/kimi_style").iterdir():
            (folder / file.name).symlink_to(file)
    for file in folder.glob("*.json"):  # never writes through links into the repository
        text = file.read_bytes()
        file.unlink()
        file.write_bytes(text)


def run_case(latte, case):
    """A list of errors; empty if there are none."""
    wrong = []
    with tempfile.TemporaryDirectory() as parent:
        folder = pathlib.Path(parent) / "model"
        folder.mkdir()
        fill(folder, case.base)
        case.change(folder)
        for command in case.commands:
            args = [latte] + [word.format(folder / case.sub) for word in COMMANDS[command]]
            try:
                done = subprocess.run(args, capture_output=True, timeout=SECONDS, input=b"Hi\n")
            except subprocess.TimeoutExpired:
                wrong.append(f"{command}: still running after {SECONDS} s")
                continue
            stderr = done.stderr.decode(errors="backslashreplace")
            if done.returncode != case.code:
                wrong.append(f"{command}: exit code {done.returncode}, expected {case.code}: {stderr[:600]}")
            if case.code == 0:
                continue
            wrong += [f"{command}: no {word!r} in: {stderr[:600]}" for word in case.words if word not in stderr]
            if stderr.count("\n") != 1 or len(stderr) > 20_000:
                wrong.append(f"{command}: expected one line of reasonable length: {stderr[:600]!r}")
            if done.stdout:
                wrong.append(f"{command}: wrote to standard output: {done.stdout[:200]!r}")
        shutil.rmtree(folder, ignore_errors=True)
    return wrong


def main():
    latte, wanted = os.path.abspath(sys.argv[1]), " ".join(sys.argv[2:])
    cases = [*checkpoint_cases.all_cases(), *folder_cases.all_cases()]
    names = [case.name for case in cases]
    assert len(names) == len(set(names)), sorted(n for n in names if names.count(n) > 1)
    cases = [case for case in cases if wanted in case.name]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for case, wrong in zip(cases, pool.map(lambda case: run_case(latte, case), cases)):
            for line in wrong:
                print(f"{case.name}: {line}")
            failed += bool(wrong)
    bad = sum(case.code != 0 for case in cases)
    runs = sum(len(case.commands) for case in cases)
    print(f"{bad} malformed checkpoints, {len(cases) - bad} odd but good ones, {runs} runs: {failed} not as expected")
    if not wanted and bad < 150:
        print("expected at least 150 malformed ones")
        failed += 1
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
