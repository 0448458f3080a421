"""Reads a Hugging Face cache with the package huggingface_hub and prints what it found, as JSON.

Usage: hub_readback.py REPO COMMIT, with HF_HUB_CACHE and HF_ENDPOINT set; with --download it also downloads.
"""
import json
import os
import pathlib
import sys

import huggingface_hub


def main():
    repo, commit = sys.argv[1:3]
    out = {"version": huggingface_hub.__version__}
    if "--download" in sys.argv:
        out["downloaded"] = huggingface_hub.snapshot_download(repo, allow_patterns=sys.argv[sys.argv.index("--download") + 1:])
    folder = pathlib.Path(huggingface_hub.snapshot_download(repo, local_files_only=True))
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())
    out |= {"snapshot": str(folder), "names": names, "by_commit": huggingface_hub.snapshot_download(repo, revision=commit, local_files_only=True)}
    out["paths"] = {name: huggingface_hub.try_to_load_from_cache(repo, name) for name in names}
    out["missing"] = huggingface_hub.try_to_load_from_cache(repo, "no-such-file.json")
    scanned = huggingface_hub.scan_cache_dir()
    out["warnings"] = [str(warning) for warning in scanned.warnings]
    out["repos"] = [{"id": found.repo_id, "type": found.repo_type, "files": found.nb_files, "bytes": found.size_on_disk,
                     "revisions": [{"commit": revision.commit_hash, "refs": sorted(revision.refs)} for revision in found.revisions]}
                    for found in scanned.repos]
    out["links"] = {name: os.readlink(folder / name) for name in names}
    print(json.dumps(out))


if __name__ == "__main__":
    main()
