#!/usr/bin/env python3
"""Compiles CUDA kernels with nvcc and fails if one spills registers, has a stack frame, or gets a warning of ptxas.

usage: tools/check_sass.py [--nvcc PATH] [--opcodes] [FILE.cu…]

Without files it takes the subjects of the emulator's tests and the images of the product. A file compiles for the
architectures that a name with "sm90" or "sm80" says, else for sm_80 and sm_90. It needs no GPU. Exit status: 0 all is well,
1 a kernel has a fault, 77 there is no nvcc. --opcodes adds a table of instructions, if nvdisasm is there (PyPI:
nvidia-cuda-nvdisasm).
"""
import argparse
import collections
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
FLAGS = ["-std=c++20", "-O3", "--expt-relaxed-constexpr", "-Xptxas", "-v,-warn-spills", "-cubin"]
ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
# Advice of ptxas about wgmma (C7500 and following: it serialises the instructions), and every warning.
WARNING = re.compile(r"warning|\bC75\d\d\b|error", re.I)
OPCODE = re.compile(r"^\s*(?:/\*[0-9a-f]+\*/)?\s*(?:@!?\w+\s+)?([A-Z][\w.]+)")


def find_nvcc(given):
    for path in (given, shutil.which("nvcc"), "/usr/local/cuda/bin/nvcc"):
        if path and pathlib.Path(path).exists():
            return path
    return None


def sources(given):
    if given:
        return [pathlib.Path(name).resolve() for name in given]
    return sorted([*(ROOT / "tests/cuda/subjects").glob("*.cu"), *(ROOT / "src/kernels/cuda").rglob("*.cu")])


def architectures(path):
    if "sm90" in path.name:
        return ["90a"]
    return ["80"] if "sm80" in path.name else ["80", "90"]


class Kernel:
    def __init__(self, name):
        self.name, self.registers, self.stack, self.spills = name, 0, 0, 0

    def faults(self):
        if self.spills:
            yield f"{self.spills} bytes of spilled registers"
        if self.stack:
            yield f"a stack frame of {self.stack} bytes"


def read_log(log):
    """(kernels, warnings) of ptxas' messages."""
    kernels, warnings = [], []
    for line in log.splitlines():
        if entry := ENTRY.search(line):
            kernels.append(Kernel(entry.group(1)))
        elif (frame := FRAME.search(line)) and kernels:
            kernels[-1].stack = max(kernels[-1].stack, int(frame.group(1)))
            kernels[-1].spills += int(frame.group(2)) + int(frame.group(3))
        elif (used := USED.search(line)) and kernels:
            kernels[-1].registers = int(used.group(1))
        elif WARNING.search(line):
            warnings.append(line.strip())
    return kernels, warnings


def opcodes(nvdisasm, cubin):
    text = subprocess.run([nvdisasm, "-c", str(cubin)], capture_output=True, text=True, check=True).stdout
    counts = collections.Counter(m.group(1) for m in map(OPCODE.match, text.splitlines()) if m)
    return ", ".join(f"{name} {count}" for name, count in counts.most_common(24))


def compile_file(nvcc, path, arch, cubin):
    command = [nvcc, *FLAGS, f"-I{ROOT}", "-gencode", f"arch=compute_{arch},code=sm_{arch}", "-o", str(cubin), str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def check(nvcc, path, arch, nvdisasm):
    """The faults of one file, printed as they are found."""
    with tempfile.TemporaryDirectory() as folder:
        cubin = pathlib.Path(folder) / "kernels.cubin"
        status, log = compile_file(nvcc, path, arch, cubin)
        name = f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path} for sm_{arch}"
        if status != 0:
            print(f"{name}: does not compile\n{log}")
            return 1
        kernels, warnings = read_log(log)
        faults = [f"{k.name}: {fault}" for k in kernels for fault in k.faults()] + warnings
        if not kernels:
            faults.append("no kernel in it")
        for k in kernels:
            print(f"{name}: {k.name}: {k.registers} registers")
        for fault in faults:
            print(f"{name}: FAULT: {fault}")
        if nvdisasm:
            print(f"{name}: {opcodes(nvdisasm, cubin)}")
        return len(faults)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nvcc")
    parser.add_argument("--opcodes", action="store_true")
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    nvcc = find_nvcc(options.nvcc)
    if nvcc is None:
        print("skipped: no nvcc in PATH or /usr/local/cuda/bin; --nvcc names one")
        sys.exit(77)
    nvdisasm = shutil.which("nvdisasm") if options.opcodes else None
    if options.opcodes and nvdisasm is None:
        print("no table of opcodes: nvdisasm is not in PATH (PyPI: nvidia-cuda-nvdisasm)")
    faults = sum(check(nvcc, path, arch, nvdisasm) for path in sources(options.files) for arch in architectures(path))
    print(f"{faults} faults" if faults else "no spills, no stack frames, no warnings")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
