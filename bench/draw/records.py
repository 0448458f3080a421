"""Reads the records of bench/results."""
import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench/results"
# A file of results belongs to one machine, and its name says which.
MACHINES = {
    "zen5": "Zen 5", "zen4": "Zen 4", "zen3": "Zen 3", "emerald_rapids": "Emerald Rapids without AMX",
    "xeon_l3_480": "Xeon with AMX, 480 MiB L3", "sapphire_rapids": "Sapphire Rapids with AMX"}
# The records of the engine: tokens per second of several machines.
ENGINES = ("zen5_engine", "zen4_engine", "emerald_rapids", "xeon_l3_480", "sapphire_rapids_engine")


def read(name):
    """The records of a file of results, named without .jsonl."""
    return [json.loads(line) for line in (RESULTS / f"{name}.jsonl").read_text().splitlines()]


def machine_of(name):
    return MACHINES[name.removesuffix("_engine").removesuffix("_peers").removesuffix("_metrics")]


def newest(records, **wanted):
    """The records with these values that were made at the newest commit among them."""
    found = [record for record in records if all(record.get(key) == value for key, value in wanted.items())]
    return [record for record in found if record.get("commit") == found[-1].get("commit")]


def date_of(records):
    """The last day of the records."""
    return max(record.get("time", "")[:10] for record in records)


def dates_of(dates):
    """2026-11-21, or 2026-11-21/22 for two days of one month."""
    first, *rest = sorted(dates)
    return first + "".join(f"/{date[-2:]}" for date in rest)


def newest_batches(records, int8):
    """The newest runs of `latte bench batch` with int8 or with bf16 weights."""
    return newest([record for record in records if record["bench"] == "batch"
                   and ("int8" in record.get("model", record.get("command", ""))) == int8])
