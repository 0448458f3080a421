"""`latte pull` and the package huggingface_hub share one cache: each reads and completes what the other wrote."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e/hub"))

from hub import COMMIT, Hub

TINY = HERE.parents[1] / "models/tiny"


def variables(hub, cache):
    return {"HF_ENDPOINT": hub.url, "HF_HUB_CACHE": str(cache), "HF_HOME": str(cache), "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_UPDATE_CHECK": "1", "NO_PROXY": "*", "no_proxy": "*"}


def pull(context, hub, cache):
    done = subprocess.run([context.latte, "pull", hub.repo, "--json"], text=True, capture_output=True, timeout=120, check=False,
                          env=os.environ | variables(hub, cache))
    return json.loads(done.stdout) if done.returncode == 0 else {"failed": done.stderr}


def read_back(context, hub, cache, *arguments):
    done = subprocess.run([context.environment.python, HERE / "hub_readback.py", hub.repo, COMMIT, *arguments], text=True,
                          capture_output=True, timeout=120, check=False, env=os.environ | variables(hub, cache))
    return json.loads(done.stdout) if done.returncode == 0 else {"failed": done.stderr}


def check_reading(part, hub, pulled, found, who):
    """What huggingface_hub finds is what the Hub has."""
    same = part.check
    if not same("failed" not in found, f"{who}: huggingface_hub fails: {found.get('failed', '')[-500:]}"):
        return
    names = sorted(hub.files)
    same(found["snapshot"] == found["by_commit"] == pulled, f"{who}: snapshot {found['snapshot']}, expected {pulled}")
    same(found["names"] == names, f"{who}: files {found['names']}, expected {names}")
    same(all(found["paths"][name] == f"{pulled}/{name}" for name in names), f"{who}: try_to_load_from_cache: {found['paths']}")
    same(all(pathlib.Path(path).read_bytes() == hub.files[name] for name, path in found["paths"].items()), f"{who}: contents differ")
    same(found["missing"] is None, f"{who}: a file that is not there is found")
    same(found["warnings"] == [], f"{who}: scan_cache_dir: {found['warnings']}")
    expected = [{"id": hub.repo, "type": "model", "files": len({hub.etag(name) for name in names}),
                 "bytes": sum(len(data) for data in {hub.etag(n): d for n, d in hub.files.items()}.values()),
                 "revisions": [{"commit": COMMIT, "refs": ["main"]}]}]
    same(found["repos"] == expected, f"{who}: scan_cache_dir: {found['repos']}, expected {expected}")


def run(context, part):
    files = {path.name: path.read_bytes() for path in TINY.iterdir()} | {"additional_chat_templates/tool_use.jinja": b"{{ x }}"}
    ours, theirs = context.out / "cache-latte", context.out / "cache-huggingface"
    for cache in (ours, theirs):
        shutil.rmtree(cache, ignore_errors=True)
    with Hub(files) as hub:
        pulled = pull(context, hub, ours)
        if not part.check("failed" not in pulled, f"latte pull: {pulled.get('failed')}"):
            return
        found = read_back(context, hub, ours)
        check_reading(part, hub, pulled["path"], found, "a cache of latte pull")
        part.notes.append(f"huggingface_hub {found.get('version')}")

        # The package fills a cache of its own from the same server: names and links are the same.
        other = read_back(context, hub, theirs, "--download", "*")
        check_reading(part, hub, other.get("downloaded"), other, "a cache of huggingface_hub")
        part.check(found.get("links") == other.get("links"), f"links differ: {found.get('links')} and {other.get('links')}")

        # Nothing is fetched twice, in either order.
        before = len(hub.asked("storage"))
        again = pull(context, hub, theirs)
        part.check(again.get("downloaded_bytes") == 0, f"latte pull after huggingface_hub: {again}")
        again = read_back(context, hub, ours, "--download", "*")
        part.check("failed" not in again, f"huggingface_hub after latte pull: {again.get('failed', '')[-500:]}")
        part.check(len(hub.asked("storage")) == before, "weights are fetched again")

        # An interrupted pull is no cache that huggingface_hub takes for a model or for a damaged one.
        (ours / "models--org--model/refs/main").unlink()
        shutil.rmtree(ours / "models--org--model/snapshots")
        (ours / "models--org--model/snapshots").mkdir()
        (ours / "models--org--model/blobs" / (hub.etag("model.safetensors") + ".latte.incomplete")).write_bytes(b"x")
        broken = read_back(context, hub, ours)
        part.check("LocalEntryNotFoundError" in broken.get("failed", ""), f"an interrupted pull: {broken}")
