"""The time that Python adds to eight answers, by latte_mla and by a C program that drives the engine itself.

Usage: bench/python_overhead.py [BUILD_DIR] [RUNS] [MODEL] [TOKENS]; by default answers of 256 tokens from `tiny`. Runs alternate; the ratio is the median of the ratios of neighbouring runs. Both engines have one thread.
"""
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/release").resolve()
RUNS = int(sys.argv[2]) if len(sys.argv) > 2 else 9
MODEL = sys.argv[3] if len(sys.argv) > 3 else str(ROOT / "models/tiny")
TOKENS = int(sys.argv[4]) if len(sys.argv) > 4 else 256
SEQUENCES = 8

os.environ["LATTE_LIBRARY"] = str(BUILD / "liblatte.so")
sys.path.insert(0, str(ROOT / "python"))
import latte_mla  # noqa: E402


def generate(llm, prompts, params):
    llm.generate(prompts, params, progress=False)


def stream(llm, prompts, params):
    """Every token as a delta, as a program with eight users gets them."""
    streams = [llm.stream(prompt, params) for prompt in prompts]
    while streams:
        streams = [one for one in streams if next(one, None) is not None]


def seconds_of(run, *arguments):
    """(seconds, of them seconds of a processor)"""
    begun, used = time.perf_counter(), time.process_time()
    run(*arguments)
    return time.perf_counter() - begun, time.process_time() - used


def seconds_of_c(program):
    """The same of the second run of a process."""
    lines = subprocess.run([program, MODEL, "2", str(TOKENS)], text=True, capture_output=True, check=True).stdout.splitlines()
    return tuple(map(float, lines[1].split()))


def report(times):
    for name, runs in times.items():
        wall, used = zip(*runs)
        ratios = [statistics.median(mine[i] / base[i] for mine, base in zip(runs, times["C"])) for i in (0, 1)]
        per_token = [statistics.median(seconds) / (SEQUENCES * TOKENS) * 1e6 for seconds in (wall, used)]
        print(f"{name:9} {per_token[0]:8.1f} µs per token, {ratios[0]:.2f} times C; processor {per_token[1]:8.1f} µs, {ratios[1]:.2f} times C")


def main():
    prompts = [[5 + i, 6, 7] for i in range(SEQUENCES)]
    params = latte_mla.SamplingParams(max_tokens=TOKENS, ignore_eos=True, temperature=0.0, seed=0)
    times = {"C": [], "generate": [], "stream": []}
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "engine_of_c"
        subprocess.run(["cc", "-O2", "-std=gnu11", f"-I{ROOT / 'include'}", str(ROOT / "bench/engine_of_c.c"), "-o", str(program),
                        f"-L{BUILD}", "-llatte", f"-Wl,-rpath,{BUILD}"], check=True)
        with latte_mla.LLM(MODEL, speculative=0, cache_bytes=256 << 20, threads=1) as llm:
            generate(llm, prompts, params)
            for _ in range(RUNS):
                times["C"].append(seconds_of_c(program))
                times["generate"].append(seconds_of(generate, llm, prompts, params))
                times["stream"].append(seconds_of(stream, llm, prompts, params))
    report(times)


if __name__ == "__main__":
    main()
