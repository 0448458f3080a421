"""The build backend of pyproject.toml (PEP 517): compiles Latte with CMake and packs the program, liblatte and python/latte_mla as a wheel.

Standard library only, so that `pip install .` needs no backend from PyPI; cmake and ninja come from there only if the system has none.
In the wheel:

  latte_mla/                  python/latte_mla
  latte_mla/bin/latte         the program; the script `latte` becomes it
  latte_mla/lib/liblatte.so.0.2
  latte_mla/share/latte/models/tiny
  latte_mla-*.data/data/share the man page and the completions, which pip puts under the prefix

The wheel runs on systems that have the libraries of this one; packaging/make_wheel.py turns it into one for other systems too.
CMAKE_ARGS: more arguments for cmake. LATTE_TREE: an installed Latte (LATTE_SHARED_PROGRAM) to be packed instead of compiling.
"""
import base64
import hashlib
import io
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
VERSION = (ROOT / "VERSION").read_text().strip()
NAME = "latte_mla"
TAG = "py3-none-linux_x86_64"
OLDEST_PYTHON = "3.9"
SUMMARY = "Inference for language models with Multi-head Latent Attention on CPUs: the latte program and its library"
# Replaces itself by the program, so that it keeps its process id and gets latte's signals and exit code. The package is found and
# not imported: nothing of Python's start is added but Python itself.
SCRIPT = """#!python
import os
import sys
from importlib.util import find_spec

program = os.path.join(list(find_spec("latte_mla").submodule_search_locations)[0], "bin", "latte")
os.execv(program, [sys.argv[0], *sys.argv[1:]])
"""


def seconds():
    """The time of every file: SOURCE_DATE_EPOCH, else a fixed one, so that equal contents are equal archives."""
    return max(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), 315532800)  # 1980, the first year of zip


def say(text):
    print(f"latte: {text}", file=sys.stderr, flush=True)


def get_xgrammar():
    """Whether xgrammar is there; fetched if PyPI is. Without it the program cannot answer by JSON schema."""
    if (ROOT / "build/xgrammar/installed").exists():
        return True
    # pip hides the system's packages from a backend by this variable; the script asks the system's pip for the index.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([ROOT / "tools/get_xgrammar.sh", ROOT / "build/xgrammar"], stdout=sys.stderr, env=environment)
    if done.returncode != 0:
        say("xgrammar is not there: this build answers without JSON schemas and grammars")
    return done.returncode == 0


def functions(*command):
    """The names of the functions that nm lists, without those that every file may have a copy of."""
    listed = subprocess.run(["nm", "--defined-only", *map(str, command)], check=True, capture_output=True, text=True).stdout
    return {line.split()[2].split("@")[0] for line in listed.splitlines() if " T " in line}


def check_one_engine(program, library):
    """Ends the build if the program has functions that it should use of liblatte: a second copy of the engine."""
    twice = functions(program) & functions("-D", library)
    if twice:
        raise SystemExit(f"{program}: expected the functions of {library} only there, found {len(twice)} in both, such as {min(twice)}; "
                         "cmake/library.cmake lists what liblatte exports to the program")


def compile_tree():
    """The folder of an installed Latte, which is compiled in build/package."""
    given = os.environ.get("LATTE_TREE")
    if given:
        return pathlib.Path(given)
    build, tree = ROOT / "build/package", ROOT / "build/package/tree"
    more = shlex.split(os.environ.get("CMAKE_ARGS", ""))
    if not any("LATTE_XGRAMMAR" in word for word in more):
        more.append(f"-DLATTE_XGRAMMAR={'ON' if get_xgrammar() else 'OFF'}")
    say("compiling, for about 25 minutes of one processor")
    layout = ["-DCMAKE_INSTALL_PREFIX=/usr/local", "-DCMAKE_INSTALL_LIBDIR=lib", "-DCMAKE_SKIP_INSTALL_RPATH=OFF", "-DLATTE_DEBIAN=OFF"]
    for command in (["cmake", "--preset", "package", *layout, *more], ["cmake", "--build", "--preset", "package"]):
        if subprocess.run(command, cwd=ROOT, stdout=sys.stderr).returncode != 0:
            raise SystemExit(f"latte: {shlex.join(command[:3])} failed; docs/install.md lists what a build needs of the system")
    check_one_engine(build / "latte", build / "liblatte.so")
    shutil.rmtree(tree, ignore_errors=True)
    subprocess.run(["cmake", "--install", build, "--prefix", tree, "--strip"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return tree


def metadata():
    lines = ["Metadata-Version: 2.4", f"Name: {NAME.replace('_', '-')}", f"Version: {VERSION}", f"Summary: {SUMMARY}",
             "License-Expression: Apache-2.0", "License-File: LICENSE", "License-File: NOTICE", "License-File: THIRD_PARTY.md",
             "Keywords: llm,inference,mla,deepseek,cpu", f"Requires-Python: >={OLDEST_PYTHON}",
             "Classifier: Operating System :: POSIX :: Linux", "Classifier: Programming Language :: C++",
             "Classifier: Programming Language :: Python :: 3", "Description-Content-Type: text/markdown", "",
             (ROOT / "packaging/wheel_readme.md").read_text()]
    return "\n".join(lines)


def wheel_text():
    return f"Wheel-Version: 1.0\nGenerator: latte {VERSION}\nRoot-Is-Purelib: false\nTag: {TAG}\n"


def tree_files(tree):
    """{path in the wheel: path on disk} of an installed Latte."""
    library = next(path for path in sorted(tree.glob("lib*/**/liblatte.so.*")) if path.is_symlink())
    files = {f"{NAME}/bin/latte": tree / "bin/latte", f"{NAME}/lib/{library.name}": library}
    models = tree / "share/latte/models/tiny"
    for path in sorted(models.rglob("*")):
        if path.is_file():
            files[f"{NAME}/share/latte/models/tiny/{path.relative_to(models)}"] = path
    for folder in ("man", "bash-completion", "zsh", "fish"):
        for path in sorted((tree / "share" / folder).rglob("*")):
            if path.is_file():
                files[f"{NAME}-{VERSION}.data/data/share/{path.relative_to(tree / 'share')}"] = path
    return files


def python_files():
    package = ROOT / "python" / NAME
    return {f"{NAME}/{path.relative_to(package)}": path for path in sorted(package.rglob("*"))
            if path.is_file() and "__pycache__" not in path.parts and not path.name.endswith("_test.py")}


def contents(tree):
    """{path in the wheel: (bytes, whether it is a program)}, without RECORD."""
    info = f"{NAME}-{VERSION}.dist-info"
    out = {name: (path.read_bytes(), name.endswith("/bin/latte")) for name, path in {**python_files(), **tree_files(tree)}.items()}
    out[f"{NAME}-{VERSION}.data/scripts/latte"] = (SCRIPT.encode(), True)
    for name in ("LICENSE", "NOTICE", "THIRD_PARTY.md"):
        out[f"{info}/licenses/{name}"] = ((ROOT / name).read_bytes(), False)
    out[f"{info}/METADATA"] = (metadata().encode(), False)
    out[f"{info}/WHEEL"] = (wheel_text().encode(), False)
    return out


def write_wheel(path, files):
    """Writes {path: (bytes, program)} as a wheel with its RECORD. The same files always make the same bytes."""
    info = next(name.split("/")[0] for name in files if name.endswith(".dist-info/WHEEL"))
    record = f"{info}/RECORD"
    lines = []
    stamp = time.gmtime(seconds())[:6]
    with zipfile.ZipFile(path, "w") as archive:
        # What tells about the wheel comes last, as its readers look for it there.
        for name in sorted((name for name in files if name != record), key=lambda name: (".dist-info/" in name, name)):
            data, program = files[name]
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(data)}")
            add(archive, name, data, program, stamp)
        add(archive, record, "\n".join([*lines, f"{record},,", ""]).encode(), False, stamp)


def add(archive, name, data, program, stamp):
    entry = zipfile.ZipInfo(name, stamp)
    entry.external_attr = (0o100755 if program else 0o100644) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.create_system = 3
    archive.writestr(entry, data, compresslevel=9)


def get_requires_for_build_wheel(config_settings=None):
    return [] if os.environ.get("LATTE_TREE") else [name for name in ("cmake", "ninja") if not shutil.which(name)]


def get_requires_for_build_sdist(config_settings=None):
    return []


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """Without this, pip would compile to learn the name."""
    folder = pathlib.Path(metadata_directory) / f"{NAME}-{VERSION}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(metadata())
    (folder / "WHEEL").write_text(wheel_text())
    return folder.name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name = f"{NAME}-{VERSION}-{TAG}.whl"
    write_wheel(pathlib.Path(wheel_directory) / name, contents(compile_tree()))
    return name


def source_files():
    """The files of a clone, without what git ignores; in an unpacked archive, everything but what was built."""
    if (ROOT / ".git").exists():
        listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
        return sorted(name for name in listed.split("\0") if name and (ROOT / name).is_file())
    return sorted(str(path.relative_to(ROOT)) for path in ROOT.rglob("*")
                  if path.is_file() and path.relative_to(ROOT).parts[0] != "build" and "__pycache__" not in path.parts)


def build_sdist(sdist_directory, config_settings=None):
    base = f"{NAME}-{VERSION}"
    with tarfile.open(pathlib.Path(sdist_directory) / f"{base}.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as archive:
        info = tarfile.TarInfo(f"{base}/PKG-INFO")
        data = metadata().encode()
        info.size, info.mtime = len(data), seconds()
        archive.addfile(info, io.BytesIO(data))
        for name in source_files():
            archive.add(ROOT / name, f"{base}/{name}", recursive=False, filter=without_owner)
    return f"{base}.tar.gz"


def without_owner(info):
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    info.mtime = seconds()
    return info
