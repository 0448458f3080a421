#!/usr/bin/env python3
"""Writes constraints.txt: the versions of everything that is installed, with the SHA-256 of their files.
Usage: ENVIRONMENT/bin/pip freeze --all | ENVIRONMENT/bin/python tests/acceptance/lock.py; asks pip's index for each package once.

       lock.py REPORT OUT: the same for a report of `pip install --dry-run --ignore-installed --report REPORT -r LIST`.

Two parts: what requirements.txt needs on its own, and what the other lists add, because pip takes a hash only for what a
list of requirements names.

The files are source archives and wheels for CPython 3.11 to 3.14 on Linux.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tools"))
import fetch_archive  # noqa: E402

WHEEL = re.compile(r"-(?:\w+\.)*(?:py3\d*-none|cp31[1-4]-\w+|cp3\d+-abi3)-(?:any|(?:many|musl)linux[\w.]*_(?:x86_64|aarch64))\.whl$")
SOURCE = (".tar.gz", ".zip")
HEAD = "# Exact versions of everything that is installed, and the SHA-256 of their files; lock.py makes it.\n"
PARTS = ("# requirements.txt and requirements-build.txt:\n", "# requirements-full.txt, too:\n")


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def hashes(name, version):
    index = fetch_archive.configured("index-url") or fetch_archive.DEFAULT_INDEX
    page = index.rstrip("/") + "/" + normal(name) + "/"
    with fetch_archive.opened(page, "application/vnd.pypi.simple.v1+json") as answer:
        files = json.load(answer)["files"]
    sources = tuple(f"-{version}{end}" for end in SOURCE)
    of_version = [file for file in files if file["filename"].split("-")[1:2] == [version] or file["filename"].endswith(sources)]
    out = sorted(file["hashes"]["sha256"] for file in of_version
                 if file["filename"].endswith(SOURCE) or WHEEL.search(file["filename"]))
    if not out:
        sys.exit(f"{name} {version}: the package index has no file of it")
    if not any(WHEEL.search(file["filename"]) for file in of_version):
        print(f"{name} {version}: a source archive only", file=sys.stderr)
    return out


def needed(versions):
    """The normal names of what the short lists need, with these versions."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as lock:
        lock.write("".join(f"{name}=={version}\n" for name, version in versions.items()))
        lock.flush()
        lists = [part for name in ("requirements.txt", "requirements-build.txt") for part in ("-r", str(HERE / name))]
        report = subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--dry-run", "--ignore-installed", "--only-binary", ":all:",
                                 *lists, "-c", lock.name, "--report", "-"], check=True, capture_output=True).stdout
    return {normal(package["metadata"]["name"]) for package in json.loads(report)["install"]}


def entry(name, version):
    return f"{name}=={version}" + "".join(f" \\\n    --hash=sha256:{value}" for value in hashes(name, version)) + "\n"


def lock_report(report, out):
    packages = [package["metadata"] for package in json.loads(pathlib.Path(report).read_text(encoding="utf-8"))["install"]]
    text = HEAD + "".join(sorted((entry(package["name"], package["version"]) for package in packages), key=str.lower))
    pathlib.Path(out).write_text(text, encoding="utf-8")


def main():
    lines = (line.strip().partition("==") for line in sys.stdin if not line.startswith("#"))
    versions = {name: version for name, separator, version in lines if separator and normal(name) not in ("pip", "wheel")}
    short, text = needed(versions), HEAD
    for is_short, part in zip((True, False), PARTS):
        text += part
        for name, version in versions.items():
            if (normal(name) in short) == is_short:
                text += entry(name, version)
    (HERE / "constraints.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        lock_report(*sys.argv[1:])
    else:
        main()
