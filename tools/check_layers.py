"""Fails if a source file includes a folder it may not, or uses a third-party header, an intrinsic or `Isa` outside its
place, if only tests include a header of the product, or if a folder holds too many files.

The rule: a file may include its own folder and folders of strictly lower level (LEVELS: folders of src, and lab); siblings
never; and never the pairs in NEVER. FLOORS orders the subfolders of a folder. FENCED headers may appear only in the listed places.
"""
import pathlib
import re
import sys

LEVELS = dict(base=0, http=1, tensor=1, kernels=2, comm=2, text=2, grammar=3, jinja=3, checkpoint=3, cache=3, chat=4, hub=4, layers=4, models=5,
              engine=6, session=7, api=7, serve=8, jobs=8, embed=8, capi=9, lab=9)
# Subfolders in layers, lowest first: a subfolder includes itself and the ones before it in the list; the subfolders of a
# tuple do not include one another.
FLOORS = [
    ("kernels/cpu", "kernels/cpu/isa", "kernels/cpu/common", "kernels/cpu/blocks", (
        "kernels/cpu/gemm", "kernels/cpu/gemm_t", "kernels/cpu/mla_decode", "kernels/cpu/indexer", "kernels/cpu/mha", "kernels/cpu/pointwise",
        "kernels/cpu/sampling", "kernels/cpu/peak"), "kernels/cpu/targets"),
    ("hub/net", "hub/repo", "hub/files", "hub"),
    ("text/unicode", "text"),
    ("api/common/history", "api/common/tools", "api/common/format", "api/common", ("api/completions", "api/messages", "api/responses"), "api"),
    ("grammar/pattern", "grammar/schema", "grammar"),
    ("checkpoint/container", "checkpoint/safetensors", "checkpoint/gguf", "checkpoint/formats/common", "checkpoint/formats", "checkpoint/config", "checkpoint"),
]
NEVER = {
    "cache": {"kernels", "comm", "text"},
    "serve": {"engine", "models", "layers", "cache", "kernels", "comm", "tensor"},
    "capi": {"engine", "models", "layers", "cache", "chat", "checkpoint", "jinja", "text", "api", "comm", "kernels", "tensor", "base",
             "serve", "jobs", "http", "hub"},  # include/latte and embed only
}
FENCED = [
    (r"(xgrammar|dlpack)/", ("src/grammar/xgrammar_",)),
    (r"nlohmann/", ("src/base/json.", "src/base/json_out")),
    (r"toml\+\+/", ("apps/flags/config/toml_text.",)),
    (r"(pcre2)", ("src/text/unicode/",)),
    (r"boost/", ("src/http/",)),
    (r"openssl/", ("src/http/", "src/serve/prefix_salt", "src/comm/control/secret.", "src/hub/files/digest.",
                   "tests/support/net/certificate.h")),
    (r"^histedit\.h", ("apps/terminal/line_editor.cc",)),
    (r"(spdlog|prometheus)/", ("src/serve/observe/",)),
    (r"(immintrin|x86intrin|emmintrin)", ("src/kernels/cpu/isa/",)),
    (r"^cuda(_\w+)?\.h", ("src/kernels/cuda/words/", "tests/cuda/")),
    (r"^mpi\.h", ("src/comm/mpi/module.c",)),
    (r"regex>?$", ()),
]
# Words in code: vector and matrix intrinsics stay in one folder, only the kernels choose an instruction set, and kernels of
# GPUs are written in words of ours, which the emulator can check.
FENCED_WORDS = [
    (re.compile(r"\b(_mm\d*_\w+|_tile_\w+|__builtin_ia32_(?!pause)\w+)"), ("src", "lab", "include", "apps", "tests", "fuzz", "bench"), (
        "src/kernels/cpu/isa/",)),
    (re.compile(r"\b(threadIdx|blockIdx|blockDim|gridDim|__shared__|__syncthreads|__syncwarp|__shfl\w*|asm|__asm__)\b"), (
        "src/kernels/cuda", "tests/cuda"), ("src/kernels/cuda/words/",)),
    (re.compile(r"\b(Isa\b|x86::)"), ("src", "lab", "include", "apps"), (
        "src/kernels/", "src/layers/mla/calibration.cc", "src/jobs/bench/bench_timer.", "src/engine/core/engine_faults_test.cc",
        "src/engine/sampling/sampler_plain_test.cc", "src/layers/mla/path_cost_test.cc")),  # rates, peaks, tests
]
MOST_FILES = 25  # source files of a folder at one level
OURS = re.compile(r'^\s*#\s*include\s+"(?:src/|(?=lab/))([a-z]+)/', re.M)
ROOM = re.compile(r'^\s*#\s*include\s+"src/([^"]+)"', re.M)
ANY = re.compile(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]', re.M)
COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
SOURCES = {".h", ".cc", ".c", ".cu", ".cuh"}


def layer_violations(root):
    for path in sorted(p for folder in ("lab", "src") for p in (root / folder).rglob("*") if p.suffix in SOURCES):
        parts = path.relative_to(root).parts
        here = parts[0] if parts[0] == "lab" else parts[1]
        for there in OURS.findall(path.read_text()):
            if there != here and (LEVELS[there] >= LEVELS[here] or there in NEVER.get(here, ())):
                yield f"{path}: {here} (L{LEVELS[here]}) may not include {there} (L{LEVELS[there]})"


def floor_of(room, floors):
    for number, floor in enumerate(floors):
        if room in (floor if isinstance(floor, tuple) else (floor,)):
            return number
    return None


def room_violations(root):
    for path in sorted((root / "src").rglob("*")):
        if path.suffix not in SOURCES or path.stem.endswith("_test"):
            continue
        here = str(path.parent.relative_to(root / "src"))
        for there in map(lambda name: str(pathlib.PurePath(name).parent), ROOM.findall(path.read_text())):
            for floors in FLOORS:
                a, b = floor_of(here, floors), floor_of(there, floors)
                if here != there and a is not None and b is not None and a <= b:
                    yield f"{path}: {here} may not include {there}"


def fence_violations(root):
    for folder in ("src", "lab", "include", "apps", "examples", "tests", "fuzz"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in SOURCES:
                continue
            name = str(path.relative_to(root))
            for header in ANY.findall(path.read_text()):
                for pattern, places in FENCED:
                    if re.search(pattern, header) and not name.startswith(places or ("\0",)):
                        yield f"{name}: <{header}> belongs to {', '.join(places) or 'no file of ours'}"
            if folder == "include" and path.suffix == ".h":
                for header in ANY.findall(path.read_text()):
                    if "/" in header and not header.startswith("latte/") and header != "tl/expected.hpp":
                        yield f"{name}: public headers include only std, latte/ and tl/expected.hpp, not {header}"


def word_violations(root):
    for pattern, folders, places in FENCED_WORDS:
        for path in sorted(p for folder in folders for p in (root / folder).rglob("*") if p.suffix in SOURCES):
            name = str(path.relative_to(root))
            used = set() if name.startswith(places) else set(pattern.findall(COMMENT_OR_STRING.sub("", path.read_text())))
            for word in sorted(used):
                yield f"{name}: {word} belongs to {', '.join(places)}"


def test_only_headers(root):
    """Headers of src, lab and apps that are compiled, but only for tests, or only for the source file of the same name."""
    users = {}
    for path in (p for top in ("src", "lab", "include", "apps", "tests", "fuzz") for p in (root / top).rglob("*") if p.suffix in SOURCES):
        name = str(path.relative_to(root).with_suffix(""))
        of_product = not name.endswith("_test") and not name.startswith(("tests/", "fuzz/"))
        for header in ANY.findall(path.read_text()):
            users.setdefault(header, set()).add(name if of_product else None)
    for name, of_one in sorted(users.items()):
        of_nvcc = name.endswith(".cuh")  # lists of kernels and programs of tests include them
        if name.startswith(("src/", "lab/", "apps/")) and not of_nvcc and not name.endswith("_test.h") and not of_one - {None, name.removesuffix(".h")}:
            yield f"{name}: no other file of the product includes it: move it to tests/support with its source file, or delete it"


def crowded_folders(root):
    for folder in sorted(p for top in ("src", "lab", "apps", "tests") for p in (root / top).rglob("*") if p.is_dir()):
        name = str(folder.relative_to(root))
        count = sum(path.suffix in SOURCES | {".py"} for path in folder.iterdir())
        if count > MOST_FILES:
            yield f"{name}: {count} source files at one level, at most {MOST_FILES}: move a group into a folder of its own"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    checks = (layer_violations, room_violations, fence_violations, word_violations, test_only_headers, crowded_folders)
    bad = [line for check in checks for line in check(root)]
    print("\n".join(bad) if bad else "every include is allowed, every header has a user, and no folder is too full")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
