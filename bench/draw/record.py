#!/usr/bin/env python3
"""Records what the pictures of shapes and of the dashboard show.

  bench/draw/record.py models LATTE > bench/results/models.jsonl
  bench/draw/record.py metrics URL SECONDS > bench/results/MACHINE_metrics.jsonl

models    `latte inspect CONFIG --json` of the published configurations, one line each, without this machine's memory
metrics   /metrics of a server, read every second. The first line says what was recorded; every other line is one series
          that the dashboard of examples/monitoring uses: {"series", "labels", "values"}, one value per reading, null
          before the series exists; a series that never changes has one value.
"""
import argparse
import datetime
import json
import pathlib
import re
import subprocess
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "tests/data/configs"
DASHBOARD = ROOT / "examples/monitoring/grafana.json"
MODELS = {"minicpm3": "MiniCPM3-4B", "v2_lite": "V2-Lite", "moonlight": "Moonlight", "glm_4_7_flash": "GLM-4.7-Flash",
          "mistral_small_4": "Mistral-Small-4", "v2": "DeepSeek-V2", "v3": "DeepSeek-V3, R1", "v3_2": "DeepSeek-V3.2",
          "glm_5": "GLM-5", "kimi_k2": "Kimi-K2"}
OF_THIS_MACHINE = ("machine_memory_bytes", "available_memory_bytes", "largest_context_here")
SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'(\w+)="([^"]*)"')


def output_of(*command):
    return subprocess.run([str(word) for word in command], text=True, capture_output=True, check=True).stdout


def provenance():
    """The processor, the commit and the time, as in other records."""
    cpu = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    return {"processor": cpu[1] if cpu else "", "commit": output_of("git", "-C", ROOT, "rev-parse", "--short", "HEAD").strip(),
            "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")}


def record_models(latte):
    for config, name in MODELS.items():
        record = json.loads(output_of(latte, "inspect", CONFIGS / f"{config}.json", "--json"))
        shape = {key: value for key, value in record.items() if key not in OF_THIS_MACHINE}
        print(json.dumps({"model": name, "config": f"{config}.json", **shape}))


def dashboard_metrics():
    """The names of metrics in the expressions of the dashboard."""
    text = DASHBOARD.read_text()
    return set(re.findall(r"\b(?:vllm:|latte:|process_)\w+", text))


def read_metrics(url, wanted):
    """{(name, labels as text): value} of the wanted metrics."""
    out = {}
    with urllib.request.urlopen(url, timeout=5) as answer:
        for line in answer.read().decode().splitlines():
            match = SAMPLE.match(line)
            if match and match[1] in wanted:
                out[match[1], match[2] or ""] = float(match[3])
    return out


def record_metrics(url, seconds):
    wanted, readings = dashboard_metrics(), []
    header = {"bench": "metrics", "url": url, "interval_s": 1, **provenance()}
    start = time.monotonic()
    for i in range(seconds + 1):
        time.sleep(max(0.0, start + i - time.monotonic()))
        readings.append(read_metrics(url, wanted))
    print(json.dumps({**header, "readings": len(readings)}))
    for name, labels in dict.fromkeys(key for reading in readings for key in reading):
        values = [reading.get((name, labels)) for reading in readings]
        values = [int(x) if x is not None and x == int(x) else x for x in values]
        values = values[:1] if len(set(values)) == 1 else values
        print(json.dumps({"series": name, "labels": dict(LABEL.findall(labels)), "values": values}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_subparsers(dest="what", required=True)
    what.add_parser("models").add_argument("latte", type=pathlib.Path)
    metrics = what.add_parser("metrics")
    metrics.add_argument("url")
    metrics.add_argument("seconds", type=int)
    args = parser.parse_args()
    if args.what == "models":
        record_models(args.latte)
    else:
        record_metrics(args.url, args.seconds)


if __name__ == "__main__":
    main()
