#!/usr/bin/env python3
"""Runs the steps of the Dockerfile without Docker: each stage in a root that mmdebstrap makes. For Linux, as root.

Usage: try_dockerfile.py WORK [--suite bookworm] [--build-arg NAME=VALUE …]
WORK: an empty folder for the roots (3 GB). Understands the instructions that the Dockerfile has. Then runs `latte --version` and a story in
the last stage, as its user. --setup FILE is copied to etc/apt/apt.conf.d of every root, for a proxy.
"""
import argparse
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]


def instructions(text):
    """(name, rest) of each instruction."""
    text = re.sub(r"^#.*\n", "", text, flags=re.M).replace("\\\n", " ")
    for line in text.splitlines():
        if line.strip():
            name, _, rest = line.strip().partition(" ")
            yield name, rest.strip()


class Stage:
    """A root file system and the state of a build stage."""

    def __init__(self, folder, suite, setup):
        self.folder, self.args, self.env, self.user, self.workdir = folder, {}, {}, "root", "/"
        subprocess.run(["mmdebstrap", "--variant=minbase", "--quiet", suite, str(folder)], check=True)
        if setup:
            shutil.copy(setup, folder / "etc/apt/apt.conf.d")
        shutil.copy("/etc/resolv.conf", folder / "etc/resolv.conf")

    def path(self, name):
        return self.folder / str(pathlib.PurePosixPath(self.workdir) / name).lstrip("/")

    def run(self, command):
        words = ["env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"]
        words += [f"{name}={value}" for name, value in {**self.args, **self.env}.items()]
        inner = f"cd {shlex.quote(self.workdir)} && {command}"
        mount = "mount -t proc proc proc && mount -t devtmpfs dev dev 2>/dev/null || mount --bind /dev dev; "
        chroot = ["chroot", f"--userspec={self.user}", str(self.folder), *words, "sh", "-c", inner]
        subprocess.run(["unshare", "--mount", "--pid", "--fork", "sh", "-c", f"cd {self.folder} && {mount}{shlex.join(chroot)}"], check=True)


def copy(source, target):
    ignore = shutil.ignore_patterns(*(ROOT / ".dockerignore").read_text().split()) if source == ROOT else None
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True, ignore=ignore)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)


def build(options):
    given = dict(pair.split("=", 1) for pair in options.build_arg)
    stages, stage = {}, None
    for name, rest in instructions((ROOT / "packaging/Dockerfile").read_text()):
        start = time.monotonic()
        if name == "FROM":
            label = rest.split(" AS ")[1] if " AS " in rest else str(len(stages))
            stage = stages[label] = Stage(pathlib.Path(options.work) / label, options.suite, options.setup)
        elif name == "ARG" and stage:
            key, _, value = rest.partition("=")
            stage.args[key] = given.get(key, value)
        elif name == "ENV":
            key, _, value = rest.partition("=")
            stage.env[key] = value
        elif name == "WORKDIR":
            stage.workdir = rest
            stage.path(".").mkdir(parents=True, exist_ok=True)
        elif name == "USER":
            stage.user = rest
        elif name == "COPY":
            words = rest.split()
            origin = stages[words.pop(0).split("=")[1]].folder if words[0].startswith("--from") else ROOT
            copy(origin / words[0].lstrip("/") if words[0] != "." else origin, stage.path(words[1]))
        elif name == "RUN":
            stage.run(rest)
        elif name not in ("ARG", "VOLUME", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"):
            raise SystemExit(f"packaging/Dockerfile: {name} is not understood here")
        print(f"{time.monotonic() - start:7.1f} s  {name} {rest[:100]}", flush=True)
    return stage


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work")
    parser.add_argument("--suite", default="bookworm")
    parser.add_argument("--setup")
    parser.add_argument("--build-arg", action="append", default=[])
    options = parser.parse_args()
    last = build(options)
    last.run("latte --version && latte run -p 'Once upon a time' --seed 0 -n 20 && test $(id -un) = latte")
    print("the image works")


if __name__ == "__main__":
    sys.exit(main())
