#!/usr/bin/env python3
"""Plants one bug at a time in a copy of the decode kernels of tests/cuda/subjects; each must turn the test red.

usage: tests/cuda/planted_bugs.py BUILD-FOLDER [NAME-PART]

Run by hand after a change of the emulator or of the subjects. A bug that no case catches means that the cases are too few
or the emulator too kind. BUILD-FOLDER has the libraries of the emulator: build/release, after building cuda_decode_test.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUBJECTS = ROOT / "tests/cuda/subjects"

# name, file, kernel under test, text, its replacement
SM80 = "mla_decode_sm80.cuh"
SM90 = "mla_decode_sm90.cuh"
BUGS = [
    ("no barrier before a tile is used", SM80, "sm80_64x64",
     "SyncThreads();  // the tile is there for all, and all have done with the one before", ""),
    ("no barrier after the maxima", SM80, "sm80_64x64", "SyncThreads();  // maxima", ""),
    ("no barrier after P", SM80, "sm80_64x64", "SyncThreads();  // P", ""),
    ("no wait for cp.async", SM80, "sm80_64x64", "CopyAsyncWait<0>();", ""),
    ("waits for one group too few", SM80, "sm80_64x64", "CopyAsyncWait<0>();", "CopyAsyncWait<1>();"),
    ("wait after the barrier", SM80, "sm80_64x64",
     "CopyAsyncWait<0>();\n    SyncThreads();", "SyncThreads();\n    CopyAsyncWait<0>();"),
    ("next tile started before the barrier", SM80, "sm80_64x64",
     "const SharedAddr s_keys = s_q + Tile::kKeysAt + tile % 2 * Tile::kTileBytes;\n    CopyAsyncWait<0>();",
     "const SharedAddr s_keys = s_q + Tile::kKeysAt + tile % 2 * Tile::kTileBytes;\n"
     "    if (tile > 0 && tile_begin + Tile::kTile < end)\n"
     "      StartTile<Tile>(p, seq, tile_begin + Tile::kTile, end,\n"
     "                      s_q + Tile::kKeysAt + (tile + 1) % 2 * Tile::kTileBytes);\n    CopyAsyncWait<0>();"),
    ("wrong swizzle when P is written", SM80, "sm80_64x64",
     "ProbsOffset<Tile::kTile>(row[i], key0 / 8 + n)", "ProbsOffset<Tile::kTile>(row[i] + 1, key0 / 8 + n)"),
    ("wrong swizzle when V is read", SM80, "sm80_64x64",
     "WideOffset(lane % 16, dim0 / 8 + lane / 16)", "WideOffset(lane % 16, dim0 / 8 + lane / 8 % 2)"),
    ("V not transposed", SM80, "sm80_64x64", "LoadMatrix4Transposed(", "LoadMatrix4("),
    ("no swizzle at all (right, but slow)", SM80, "sm80_64x64", "((chunk ^ (row & 7)) << 4)", "(chunk << 4)"),
    ("causal limit one key too far", SM80, "sm80_64x64",
     "seq.total_len - seq.query_len + token + 1;", "seq.total_len - seq.query_len + token + 2;"),
    ("no causal limit", SM80, "sm80_64x64",
     "seq.total_len - seq.query_len + token + 1;", "seq.total_len + 0 * token;"),
    ("page table off by one", SM80, "sm80_64x64",
     "seq.table_start + key / p.page_tokens", "seq.table_start + (key + 1) / p.page_tokens"),
    ("page table read past its end", SM80, "sm80_64x64", "const bool valid = key < end;",
     "const bool valid = begin < end;"),
    ("tail not zero filled", SM80, "sm80_64x64", "chunk * 8, valid);", "chunk * 8, true);"),
    ("tail not copied at all", SM80, "sm80_64x64",
     "CopyAsync16(s_keys + WideOffset(row, chunk), g_row + chunk * 8, valid);",
     "if (valid) CopyAsync16(s_keys + WideOffset(row, chunk), g_row + chunk * 8, true);"),
    ("O not decayed", SM80, "sm80_64x64", "o[n][2 * i + 1] *= decay;", ""),
    ("sum not decayed", SM80, "sm80_64x64", "l[i] *= decay;", ""),
    ("infinity minus infinity", SM80, "sm80_64x64",
     "shift[i] = next == kMinusInf ? 0 : next;", "shift[i] = next;"),
    ("sum of one column group only", SM80, "sm80_64x64",
     "sum += LoadSharedFloat(s_sum + (g * Tile::kRows + row[i]) * 4);",
     "sum = LoadSharedFloat(s_sum + (g * Tile::kRows + row[i]) * 4);"),
    ("lse in base 2", SM80, "sm80_64x64", "* 0.69314718056f : kMinusInf", ": kMinusInf"),
    ("divergent ldmatrix", SM80, "sm80_64x64", "LoadMatrix4(StepAt(s_a, k), a);",
     "if (lane < 31) LoadMatrix4(StepAt(s_a, k), a);"),
    ("rows past the end stored", SM80, "sm80_64x64", "if (row_begin + row[i] >= rows) continue;", ""),
    ("splits overlap by one key", SM80, "sm80_64x64",
     "if (end > begin + p.split_tokens) end = begin + p.split_tokens;",
     "if (end > begin + p.split_tokens) end = begin + p.split_tokens + 1;"),
    ("Q loaded past the last row", SM80, "sm80_64x64", "if (row_begin + row < rows) {", "if (row >= 0) {"),
    ("combine forgets the weights", "combine.cuh", "sm80_64x64", "o[j].y += w * part.y;", "o[j].y += part.y;"),
    ("combine reads empty splits", "combine.cuh", "sm80_64x64", "if (lse == kMinusInf) continue;", ""),

    ("stage freed by half of the warps", SM90, "sm90", "kEmptyAt + 8 * stage, 8);", "kEmptyAt + 8 * stage, 4);"),
    ("stage freed before the wait", SM90, "sm90",
     "WgmmaWait<0>(o);\n    FreeStage(s_base, tile % 2);\n    if", "FreeStage(s_base, tile % 2);\n    WgmmaWait<0>(o);\n    if"),
    ("scorer does not wait for TMA", SM90, "sm90",
     "MbarrierWait(s_base + Sm90::kFullAt + 8 * (tile % 2), tile / 2 % 2);\n    if", "if"),
    ("producer waits for the wrong parity", SM90, "sm90", "tile / 2 % 2 ^ 1", "tile / 2 % 2"),
    ("producer does not wait at all", SM90, "sm90",
     "MbarrierWait(s_base + Sm90::kEmptyAt + 8 * stage, tile / 2 % 2 ^ 1);", ""),
    ("parity by tile, not by turn", SM90, "sm90", "kFullAt + 8 * (tile % 2), tile / 2 % 2);\n    if",
     "kFullAt + 8 * (tile % 2), tile % 2);\n    if"),
    ("expects too few bytes", SM90, "sm90", "128 * Sm90::kSlabs);", "128 * (Sm90::kSlabs - 1));"),
    ("box of the wrong row", SM90, "sm90", "key % p.page_tokens, page);", "0, page);"),
    ("boxes past the last page", SM90, "sm90",
     "const int boxes = (left + box_keys - 1) / box_keys;", "const int boxes = (left + 63) / box_keys;"),
    ("no fence after P is stored", SM90, "sm90", "FenceProxyAsync();\n    BarrierArrive", "BarrierArrive"),
    ("no fence after Q is stored", SM90, "sm90", "FenceProxyAsync();\n  BarrierSync(kQueryReady", "BarrierSync(kQueryReady"),
    ("no fence after the tail is zeroed", SM90, "sm90", "FenceProxyAsync();\n  BarrierSync(kScorer", "BarrierSync(kScorer"),
    ("no barrier after the tail is zeroed", SM90, "sm90", "BarrierSync(kScorer, 128);", ""),
    ("tail not zeroed", SM90, "sm90", "if (tile_begin + Sm90::kTile > w.end) ZeroTail(s_keys, w.end - tile_begin);", ""),
    ("no barrier after Q", SM90, "sm90", "BarrierSync(kQueryReady, 256);", ""),
    ("P overwritten while the follower reads", SM90, "sm90",
     "if (tile > 0) BarrierSync(kProbsFree, 256);", "if (tile > 0) BarrierArrive(kProbsFree, 256);"),
    ("scores read before the wait", SM90, "sm90", "    WgmmaWait<0>(s);", ""),
    ("no wgmma.fence", SM90, "sm90", "  WgmmaFence();\n  LATTE_UNROLL\n  for (int k = 0; k < kWidth / 16", "  LATTE_UNROLL\n  for (int k = 0; k < kWidth / 16"),
    ("forgets the commit", SM90, "sm90", "  WgmmaCommit();\n}", "}"),
    ("V descriptor: strides swapped", SM90, "sm90", "k * 2048, Sm90::kSlab, 1024)", "k * 2048, 1024, Sm90::kSlab)"),
    ("V descriptor: wrong step", SM90, "sm90", "k * 2048, Sm90::kSlab", "k * 1024, Sm90::kSlab"),
    ("K descriptor: step over a line", SM90, "sm90", "k / 4 * Sm90::kSlab + k % 4 * 32", "k / 4 * Sm90::kSlab + k % 4 * 16"),
    ("rope part left out", SM90, "sm90", "for (int k = 0; k < kWidth / 16; ++k)", "for (int k = 0; k < kLatent / 16; ++k)"),
    ("P stored with rows and chunks mixed", SM90, "sm90", "probs[n / 2][n % 2 * 2 + i]", "probs[n / 2][n % 2 + 2 * i]"),
    ("follower does not decay", SM90, "sm90",
     "for (int i = 0; i < 128; ++i) o[i] *= decay[i / 2 % 2];\n    const SharedAddr a", "const SharedAddr a"),
    ("warps of one warpgroup leave early", SM90, "sm90", "  BarrierArrive(kSumReady, 256);",
     "  if (Thread() < 96) BarrierArrive(kSumReady, 256);"),
    ("too many registers taken", SM90, "sm90", "GiveRegisters<24>();", "GiveRegisters<40>();"),
]

# Of decode_test.cc in the copy: the lines of other kernels go, which saves most of the compiler's time.
KERNEL_LINE = re.compile(r'\bMakeSm80<cuda::Sm80Tile<\d+, \d+>>\("(\w+)", \d+\),')


def only_kernel(text, kernel):
    return KERNEL_LINE.sub(lambda m: m.group(0) if m.group(1) == kernel else "", text)


def plant(folder, bug):
    """Writes a copy of the subjects with the bug; the rest of the tree is included from where it is."""
    name, file, kernel, old, new = bug
    copy = folder / "tests/cuda/subjects"
    copy.mkdir(parents=True, exist_ok=True)
    for source in SUBJECTS.iterdir():
        text = source.read_text()
        if source.name == file:
            if text.count(old) != 1:
                sys.exit(f"{name}: expected the text to replace once in {file}, found it {text.count(old)} times")
            text = text.replace(old, new)
        if source.name == "decode_test.cc":
            text = only_kernel(text, kernel)
        (copy / source.name).write_text(text)


def build(folder, objects, library):
    program = folder / "test"
    command = ["g++", "-std=c++20", "-O1", "-w", "-ffp-contract=off", f"-I{folder}", f"-I{ROOT}",
               str(folder / "tests/cuda/subjects/decode_test.cc"), *objects, str(library), "-o", str(program),
               "-lgtest", "-lgtest_main", "-lpthread"]
    subprocess.run(command, check=True)
    return program


def symptom(output):
    """The first thing that a test says: the emulator's words, or the numbers."""
    said = re.search(r"kernel \w+, block \d+: (.*?)(\\n|\n)", output)
    if said:
        return said.group(1).rstrip('"')
    numbers = re.search(r"(o|lse) is off by \S+|bank_conflicts|round \d+", output)
    return numbers.group(0) if numbers else "no message"


def run(program, kernel):
    """(red, what it says) of the cases of a kernel, up to the first that fails."""
    try:
        done = subprocess.run([str(program), f"--gtest_filter=*{kernel}*", "--gtest_fail_fast"], capture_output=True,
                              text=True, timeout=600)
    except subprocess.TimeoutExpired:
        return True, "no end in 600 s"
    return done.returncode != 0, symptom(done.stdout)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    library = pathlib.Path(sys.argv[1]) / "tests/cuda/emulator/liblatte_cuda_emulator.a"
    if not library.exists():
        sys.exit(f"expected {library}, found nothing: build the target cuda_decode_test first")
    bugs = [bug for bug in BUGS if len(sys.argv) < 3 or sys.argv[2] in bug[0]]
    missed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        problem = folder / "decode_problem.o"
        subprocess.run(["g++", "-std=c++20", "-O2", "-ffp-contract=off", f"-I{ROOT}", "-c", str(SUBJECTS / "decode_problem.cc"),
                        "-o", str(problem)], check=True)
        for bug in bugs:
            plant(folder, bug)
            red, says = run(build(folder, [str(problem)], library), bug[2])
            print(f"{'caught' if red else 'MISSED'}  {bug[0]}: {says}", flush=True)
            missed += not red
    print(f"{len(bugs) - missed} of {len(bugs)} bugs are caught")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
