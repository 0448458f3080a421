"""Compares the decoders of src/tensor/weight_blocks.h with the decoders of the Python package `gguf`, bit for bit.

    python3 tools/gguf/check_blocks.py [--blocks N] [--golden]

Needs numpy, gguf and a C++20 compiler (CXX, or c++). Blocks are random bytes; their floating-point scales are finite.
--golden prints the constants of weight_blocks_test.cc instead.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import gguf
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Type: where its 16-bit floating-point fields are.
HALVES = {
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108],
    "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0], "MXFP4": [],
}
PROGRAM = """
#include <cstdio>
#include <vector>
#include "src/tensor/weight_blocks.h"
int main() {
  using Block = latte::blocks::%s;
  std::vector<uint8_t> block(Block::kBytes);
  std::vector<float> values(Block::kValues);
  while (std::fread(block.data(), 1, block.size(), stdin) == block.size()) {
    latte::blocks::Decode<Block>(block.data(), values.data());
    for (int i = 0; i < Block::kValues; ++i)
      if (std::bit_cast<uint32_t>(values[i]) != std::bit_cast<uint32_t>(latte::blocks::ValueAt<Block>(block.data(), i)))
        return 1;
    if (!latte::blocks::IsFinite<Block>(block.data())) return 2;
    std::fwrite(values.data(), sizeof(float), values.size(), stdout);
  }
}
"""


def random_blocks(name, count, rng):
    _, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]]
    blocks = rng.integers(0, 256, (count, size), dtype=np.uint8)
    for at in HALVES[name]:
        halves = blocks[:, at:at + 2].copy().view(np.uint16)
        halves[(halves & 0x7C00) == 0x7C00] ^= 0x4000
        blocks[:, at:at + 2] = halves.view(np.uint8)
    if name == "MXFP4":
        blocks[:, 0] %= 253  # above, large codes are infinite
    return blocks


def expected(name, blocks):
    return gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType[name]).astype(np.float32)


def decoded(name, blocks, folder):
    source, program = folder / f"{name}.cc", folder / name
    source.write_text(PROGRAM % name)
    subprocess.run([os.environ.get("CXX", "c++"), "-std=c++20", "-O2", "-march=native", f"-I{ROOT}", source, "-o", program], check=True)
    out = subprocess.run([program], input=blocks.tobytes(), capture_output=True, check=True).stdout
    return np.frombuffer(out, np.float32).reshape(len(blocks), -1)


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def print_golden(name, rng):
    for block in random_blocks(name, 2, rng):
        values = expected(name, block[None])[0]
        some = ", ".join(f"0x{v:08x}" for v in values.view(np.uint32)[[0, 17, -1]])
        text = block.tobytes().hex()
        lines = "\n     ".join(f'"{text[i:i + 80]}"' for i in range(0, len(text), 80))
        print(f"    {{BlockOf<blocks::{name}>(\"{name}\"),\n     {lines},\n     {{{some}}},\n     0x{fnv1a(values.tobytes()):016x}}},")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=10000)
    parser.add_argument("--golden", action="store_true")
    args = parser.parse_args()
    rng = np.random.default_rng(1)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in HALVES:
            if args.golden:
                print_golden(name, rng)
                continue
            blocks = random_blocks(name, args.blocks, rng)
            ours, theirs = decoded(name, blocks, pathlib.Path(folder)), expected(name, blocks)
            different = int((ours.view(np.uint32) != theirs.view(np.uint32)).sum())
            failed += different > 0
            print(f"{name}: {len(blocks)} blocks, {theirs.size} values, {different} differ")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
