#!/usr/bin/env python3
"""A copy of a build folder that installs as the original does and compiles nothing, for tests that run while others use the original:
an installation writes a list of its files into the build folder.

Usage as a program: build_copy.py BUILD_FOLDER NEW_FOLDER
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

TEXTS = ["CMakeCache.txt", "optional_parts.txt", "**/cmake_install.cmake"]
NINJA = "build all: phony\nbuild latte: phony\nbuild latte_shared: phony\ndefault all\n"


def add_file(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_symlink():
        target.symlink_to(os.readlink(source))
        return
    try:
        os.link(source, target)
    except OSError:  # on another file system
        shutil.copy2(source, target)


def copy_build(build, folder):
    """Makes `folder` such a copy of `build`; both are absolute."""
    build, folder = pathlib.Path(build), pathlib.Path(folder)
    named = re.compile(re.escape(f"{build}/") + r"([^\"\n;]+)")
    files = {"latte", *(path.name for path in build.glob("liblatte*.so*"))}
    for pattern in TEXTS:
        for path in build.glob(pattern):
            text = path.read_text()
            files |= set(named.findall(text)) if path.suffix == ".cmake" else set()
            target = folder / path.relative_to(build)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text.replace(str(build), str(folder)))
    for name in sorted(files):
        if (build / name).is_file() and not (folder / name).exists():
            add_file(build / name, folder / name)
    (folder / "build.ninja").write_text(NINJA)


def install(build, prefix):
    """Installs the build under `prefix` and leaves the build folder as it is."""
    copy = pathlib.Path(f"{prefix}.build")
    copy_build(pathlib.Path(build).resolve(), copy)
    environment = {name: value for name, value in os.environ.items() if name != "DESTDIR"}
    subprocess.run(["cmake", "--install", copy, "--prefix", prefix], check=True, capture_output=True, env=environment)
    shutil.rmtree(copy)


if __name__ == "__main__":
    copy_build(*map(os.path.abspath, sys.argv[1:]))
