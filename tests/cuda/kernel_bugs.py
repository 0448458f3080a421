#!/usr/bin/env python3
"""Plants one bug at a time in a kernel of src/kernels/cuda/any or in what it includes; the conformance tests over the emulated driver must turn red.

usage: tests/cuda/kernel_bugs.py BUILD-FOLDER [NAME-PART]

Run by hand after a change of these kernels, of their tests or of the emulator. BUILD-FOLDER has conformance_test, cuda_model_test and
libcuda_emulated.so: build/release. A kernel with a bug is compiled into a copy of the emulated driver.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Files outside of the folder of the kernels.
PATHS = {"cache_rows": "src/kernels/cuda/common/cache_rows.cuh", "store_cache_row": "src/kernels/cuda/common/store_cache_row.cuh"}

# Tests that find the bugs of a file, in this order: quick ones first.
TESTS = {
    "attention": ["Hand.MlaDecode*:Hand.Mha*:Hand.LseMerge", "MovesConformance.LseMerge:MhaConformance.Parts*:MlaDecodeLists.Chunks*",
                  "MhaConformance.Unseen*", "MlaDecodeEdge.Sequences*:MlaDecodeLists.Ragged*", "MlaDecodeEdge.EqualScores*"],
    "cache": ["Hand.Append*:Hand.Gather*:Hand.APage*", "MovesConformance.Append:NormRopeAppend*"],
    "cache_rows": ["CachedRow*", "MlaDecodeConformance.Few*"],
    "store_cache_row": ["CachedRow*"],
    "gemm": ["Hand.Linear*:Hand.EveryExpert*", "ExpertGemm*", "*F32*/v2_lite"],
    "indexer": ["IndexTopK.OfEqual*:IndexTopK.Lists*:IndexTopK.Both*:IndexTopK.NaN*:IndexTopK.F*", "IndexTopK.Sorted*", "IndexTopK.Chunks*",
                "IndexTopK.Random*:IndexTopK.Kernels*", "IndexTopK.Exact*"],
    "moe": ["Hand.Route*:Hand.GroupBy*:Hand.Combine*:RouteConformance*", "MovesConformance.Combine"],
    "norm": ["Hand.RmsNorm:Hand.LayerNorm:AddRmsNorm*", "RmsNorm*"],
    "rows": ["Hand.SiluMul:Hand.Rope*:Hand.Rows*:Hand.Drafts*:Hand.AddAndGather:Hand.Cast*", "MovesConformance.*:SiluMul*"],
}

# name, file, text, its replacement
BUGS = [
    ("decode: causal limit one key too far", "attention", "place.position + 1 : ListLength", "place.position + 2 : ListLength"),
    ("sum not decayed", "attention", "Fma(row.sum, kept, BlockSum(weight, scratch))", "Add(row.sum, BlockSum(weight, scratch))"),
    ("O not decayed", "attention", "float o = Mul(row.o[i], kept);", "float o = row.o[i];"),
    ("page table off by one", "attention", "LoadGlobal(pages + key / page_tokens)", "LoadGlobal(pages + (key + 1) / page_tokens)"),
    ("decode: keys of a list from the first on", "attention", "list == nullptr ? i : LoadGlobal(list + i)", "i"),
    ("zero keys give 0/0", "attention", "empty ? 0.0f : Div(row.o[i], row.sum)", "Div(row.o[i], row.sum)"),
    ("lse without the sum", "attention", "Add(row.max, Log(row.sum))", "row.max"),
    ("first row of a chunk in the chunk before", "attention", "row >= LoadGlobal(&chunks[s + 1].query_start)",
     "row > LoadGlobal(&chunks[s + 1].query_start)"),
    ("list read to its end", "attention", ": ListLength(list, p.most)", ": p.most"),
    ("mha: keys of a chunk begin at 0", "attention", "p.q_begin + t + 1 - p.key_begin", "p.q_begin + t + 1"),
    ("merge: lse changes too early", "attention", "SyncThreads();  // before lse changes", ""),
    ("merge: NaN of an empty half", "attention", "of_b = has_b ? LoadGlobal(p.o_b + m * p.width + i) : 0.0f",
     "of_b = LoadGlobal(p.o_b + m * p.width + i)"),

    ("append: rows of the first token", "cache", "p.first + t * p.first_stride", "p.first"),
    ("append: rope part of the first token", "cache", "p.second + t * p.second_stride", "p.second"),
    ("append: rows past the end", "cache", "if (t >= p.t) return;\n  StoreRow", "StoreRow"),
    ("fused append: no barrier of the warp", "cache", "SyncWarp();\n  StoreRow", "StoreRow"),
    ("fused append: rope part before its rotation", "cache", "latent, latent + p.c);", "latent, latent);"),
    ("fused append: last head not rotated", "cache", "(p.h + 1) * half", "p.h * half"),
    ("fused append: eps left out", "cache", "InverseRms(latent, p.c, p.eps)", "InverseRms(latent, p.c, 0)"),
    ("gather: row of the page from the first key", "cache", "page * p.cache.page_tokens + key % p.cache.page_tokens",
     "page * p.cache.page_tokens + i / width % p.cache.page_tokens"),
    ("copy: every layer from the first", "cache", "p.layers[layer] + p.from", "p.layers[0] + p.from"),
    ("copy: past the end of the page", "cache", "if (i >= p.page_bytes) return;", ""),

    ("row stride of the numbers", "cache_rows", "rows.base + row * rows.bytes", "rows.base + row * (rows.c + rows.r)"),
    ("rope part left out", "cache_rows", "begin < row.f.c + row.f.r; begin = end", "begin < row.f.c; begin = end"),
    ("rope part of the query from the latent's end on", "cache_rows", ": rope - row.f.c;", ": rope;"),
    ("fp8: scale of the group before", "cache_rows", "i < f.c ? LoadFloat(scales + i / kF8Group * 4)",
     "i < f.c ? LoadFloat(scales + (i - 1) / kF8Group * 4)"),
    ("fp8: rope part scaled like the latents", "cache_rows", "i / kF8Group * 4) : 1.0f", "i / kF8Group * 4) : LoadFloat(scales)"),
    ("fp8-dense: not scaled", "cache_rows", "return f.descale;", "return 1.0f;"),
    ("byte order of scales", "cache_rows", "Load16(at) | Load16(at + 2) << 16", "Load16(at + 2) | Load16(at) << 16"),
    ("unaligned scales loaded at once", "cache_rows", "reinterpret_cast<uint64_t>(at) % 4 == 0", "true"),
    ("int8: offset left out", "cache_rows", "LoadGlobal(at + i) - 128)", "LoadGlobal(at + i))"),
    ("int8: scale of the latents for the rope part", "cache_rows", "(i < f.c ? 0 : 4)", "0"),
    ("int8: low bytes of the rope part left out", "cache_rows", "rope + j) * 256 + LoadGlobal(rope + f.r + j)", "rope + j) * 256 + 128"),
    ("q6: fifth bit left out", "cache_rows", "return low | high << 4;", "return low;"),
    ("q6: scale of the whole chunk", "cache_rows", "i < f.c ? i / kQ6Group :", "i < f.c ? i / kQ6Chunk * 2 :"),
    ("q6: halves of the nibbles swapped", "cache_rows", ">> low.shift & 15", ">> (4 - low.shift) & 15"),
    ("a group passes the latents", "cache_rows", "return end < f.c ? end : f.c;", "return end;"),

    ("append: row stride of the numbers", "store_cache_row", "f.base + index * f.bytes", "f.base + index * (f.c + f.r)"),
    ("append: scale of the first group for all", "store_cache_row", "F8Scale(RangeOf(latent + begin, count).top)",
     "F8Scale(RangeOf(latent, count).top)"),
    ("append: rope part quantised", "store_cache_row", "Store16(rope_at + 2 * i, FloatToBF16(LoadGlobal(rope + i)));",
     "Store16(rope_at + 2 * i, FloatToBF16(F8E4M3ToFloat(F8Of(LoadGlobal(rope + i), 1.0f))));"),
    ("append: byte order of scales", "store_cache_row",
     "Store16(at, FloatBits(value));\n  Store16(at + 2, FloatBits(value) >> 16);",
     "Store16(at + 2, FloatBits(value));\n  Store16(at, FloatBits(value) >> 16);"),
    ("append: scale above a power of two", "store_cache_row", "bits + 0x007fffffu", "bits + 0x00800000u"),
    ("append: negative zero of fp8", "store_cache_row", "x != x ? x : Div(x, scale)", "x == 0.0f ? 0.0f : x != x ? x : Div(x, scale)"),
    ("append: sign of NaN", "store_cache_row", "x != x ? x : Div(x, scale)", "x != x ? BitsFloat(0x7fffffffu) : Div(x, scale)"),
    ("append: scale of a NaN", "store_cache_row", "s.has_nan ? BitsFloat(0x7fc00000u) : s.scale", "s.scale"),
    ("append: infinity in the scale", "store_cache_row", "if (Sub(v, v) == 0.0f) top = ", "if (v == v) top = "),
    ("append: tiny groups overflow", "store_cache_row", "0x1p-100f", "0x1p-149f"),
    ("append: rounded to zero", "store_cache_row",
     "static_cast<int>(Sub(Add(Max(-top, Min(Mul(x, inverse), top)), kRound), kRound))",
     "static_cast<int>(Max(-top, Min(Mul(x, inverse), top)))"),
    ("append: largest of one lane", "store_cache_row", "return {WarpMax(top)", "return {top"),
    ("append: q6 scale rounded down", "store_cache_row", "< exact ? nearest + 1 : nearest", "< exact ? nearest : nearest"),
    ("append: q6 fifth bits of half a chunk", "store_cache_row", "(first >> 4 | second >> 4 << 4)", "(first >> 4)"),
    ("append: q6 nibble past the end of the rope part", "store_cache_row",
     "if (second < begin + in_chunk) StoreGlobal(to + second", "StoreGlobal(to + second"),

    ("rows past the end stored", "gemm", "if (i < t.rows && Lane() == 0) StoreGlobal", "if (Lane() == 0) StoreGlobal"),
    ("rows past the end read", "gemm", "if (i < rows) sums[i] = Fma", "sums[i] = Fma"),
    ("every lane stores", "gemm", "if (i < t.rows && Lane() == 0) StoreGlobal", "if (i < t.rows) StoreGlobal"),
    ("bias of the first column", "gemm", "LoadGlobal(p.bias + n)", "LoadGlobal(p.bias)"),
    ("weights of the first of a batch", "gemm", "b * p.w_batch + n * p.w_stride", "n * p.w_stride"),
    ("no SiLU", "gemm", "Mul(Silu(gates[i]), sums[i])", "Mul(gates[i], sums[i])"),
    ("columns past the end", "gemm", "if (n >= p.n) return;", ""),
    ("experts: rows of the next one too", "gemm", "LoadGlobal(p.first + p.begin + e + 1)", "LoadGlobal(p.first + p.begin + e + 1) + 1"),
    ("experts: weights of another rank read", "gemm", " || p.w[e] == nullptr", ""),
    ("gemm_t: rows of the first of a batch", "gemm", "x = b * p.x_batch + m * p.x_stride, w", "x = m * p.x_stride, w"),
    ("gemm_t: last term left out", "gemm", "for (int n = 0; n < p.n; ++n)", "for (int n = 0; n + 1 < p.n; ++n)"),

    ("NaN is the best score", "indexer", "if (x != x) x = MinusInfinity();", "if (x != x) x = -MinusInfinity();"),
    ("zeros differ", "indexer", "if (x == 0.0f) x = 0.0f;", ""),
    ("no ReLU", "indexer", "dot > 0 ? dot : 0.0f", "dot"),
    ("every equal score is listed", "indexer", "< p.most - above", "< keys"),
    ("equal scores of the tiles before forgotten", "indexer", "equal += BlockSum(equals, scratch);", ""),
    ("weights of the first token", "indexer", "p.weights + t * p.weights_stride + h", "p.weights + h"),
    ("one kept score too many", "indexer", "if (key >= p.kept_scores)", "if (key > p.kept_scores)"),
    ("few keys: no padding", "indexer", "i < keys ? i : -1", "i"),
    ("counts overwritten while others read", "indexer", "SyncThreads();\n  if (Lane() == 0) StoreShared(scratch",
     "if (Lane() == 0) StoreShared(scratch"),

    ("group scored by its best twice", "moe", "second = best;\n      best = v;", "best = v;"),
    ("a tie takes the higher index", "moe", "i < best.index)) best = {v, i};\n  }\n  return best;",
     "i > best.index)) best = {v, i};\n  }\n  return best;"),
    ("groups scored by the first", "moe", "GroupScoreOf(choice, g * width, width", "GroupScoreOf(choice, 0, width"),
    ("the best groups are excluded", "moe", "if (score == score) StoreShared", "if (score != score) StoreShared"),
    ("normalised weights not scaled", "moe", "Div(p.scale, Add(sum, 1e-20f))", "Div(1.0f, Add(sum, 1e-20f))"),
    ("bias left out", "moe", "p.bias == nullptr ? s : Add(s, LoadGlobal(p.bias + i))", "s"),
    ("no barrier after the counts", "moe", "count);\n  }\n  SyncThreads();", "count);\n  }"),
    ("token of a pair", "moe", "i / p.chosen);", "i % p.chosen);"),
    ("sum of before forgotten", "moe", "p.add != 0 ? Add(LoadGlobal(y), sum) : sum", "sum"),
    ("sum from the last expert", "moe", "p.rows + t * p.chosen + k)", "p.rows + t * p.chosen + p.chosen - 1 - k)"),

    ("eps outside of the root", "norm", "Sqrt(Add(Div(WarpSum(squares), static_cast<float>(d)), eps))",
     "Add(Sqrt(Div(WarpSum(squares), static_cast<float>(d))), eps)"),
    ("norm of the residual alone", "norm", "x = h;", ""),
    ("rows past the end", "norm", "if (m >= p.m) return;\n  const float* x = ", "const float* x = "),
    ("mean of one lane", "norm", "Div(WarpSum(sum), d)", "Div(sum, d)"),
    ("first value of the bias", "norm", "LoadElement(p.b, p.b_type, i)", "LoadElement(p.b, p.b_type, 0)"),
    ("rows without a stride", "norm", "const float* x = p.x + m * p.x_stride;", "const float* x = p.x + m * p.d;"),

    ("frequency of the position", "rows", "p.frequency + i % p.half", "p.frequency + i / p.half"),
    ("pairs are never interleaved", "rows", "interleaved ? 2 * j : j", "j"),
    ("angles of the group", "rows", "LoadGlobal(p.cos + m * half + j)", "LoadGlobal(p.cos + g * half + j)"),
    ("gate and up in turn", "rows", "Mul(Silu(LoadGlobal(p.gate + i)), LoadGlobal(p.up + i))",
     "Mul(Silu(LoadGlobal(p.up + i)), LoadGlobal(p.gate + i))"),
    ("lanes past the end add", "rows", "if (i < p.count) StoreGlobal(p.y + i, Add(", "StoreGlobal(p.y + i, Add("),
    ("gathered rows not scaled", "rows", "Mul(LoadElement(p.x, p.x_type, from), p.scale)", "LoadElement(p.x, p.x_type, from)"),
    ("lanes past the end cast", "rows", "if (rest == 0) StoreElement", "StoreElement"),
    ("NaN is finite", "rows", "(bits & 0x7f800000u) == 0x7f800000u", "(bits & 0x7fffffffu) == 0x7f800000u"),
    ("lane 0 alone looks for NaN", "rows", "bad = WarpSum(bad);", ""),
    ("drafts without a slot are packed", "rows", "if (slot < 0) return;", ""),
]


def build_with(build, folder, bug):
    """The emulated driver with the bug."""
    name, file, old, new = bug
    path = PATHS.get(file, f"src/kernels/cuda/any/{file}.cuh")
    text = (ROOT / path).read_text()
    if text.count(old) != 1:
        sys.exit(f"{name}: expected the text to replace once in {path}, found it {text.count(old)} times")
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(text.replace(old, new))
    functions = folder / "functions.o"
    subprocess.run(["g++", "-std=c++20", "-O1", "-w", "-fPIC", "-fno-math-errno", "-ffp-contract=off", f"-I{folder}", f"-I{ROOT}",
                    f"-I{ROOT}/include", "-c", str(ROOT / "tests/cuda/driver/functions.cc"), "-o", str(functions)], check=True)
    objects = build / "tests/cuda/driver/CMakeFiles/cuda_emulated.dir"
    driver = folder / "libcuda_emulated.so"
    subprocess.run(["g++", "-shared", str(functions), *(str(objects / f"{part}.cc.o") for part in ("api", "devices", "memory", "state", "tensor_map")),
                    str(build / "tests/cuda/emulator/liblatte_cuda_emulator.a"), "-o", str(driver)], check=True)
    return driver


def run(build, driver, tests):
    """(red, the first thing that a test says)."""
    env = {**os.environ, "LATTE_CUDA_DRIVER": str(driver)}
    for some in tests:
        program = "cuda/cuda_model_test" if some.startswith("*") else "conformance/conformance_test"
        try:
            done = subprocess.run([build / "tests" / program, f"--gtest_filter={some}", "--gtest_fail_fast"],
                                  text=True, capture_output=True, timeout=900, env=env)
        except subprocess.TimeoutExpired:
            return False, f"no end of {some} in 900 s"
        if done.returncode != 0:
            said = re.search(r"emulated GPU: (.*)", done.stderr) or re.search(r"^\[  FAILED  \] (.*)$", done.stdout, re.M)
            return True, said.group(1) if said else "no message"
    return False, "no test"


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    build = pathlib.Path(sys.argv[1]).resolve()
    bugs = [bug for bug in BUGS if len(sys.argv) < 3 or sys.argv[2] in f"{bug[1]}: {bug[0]}"]
    missed = 0
    for bug in bugs:
        with tempfile.TemporaryDirectory() as name:
            red, says = run(build, build_with(build, pathlib.Path(name), bug), TESTS[bug[1]])
        print(f"{'caught' if red else 'MISSED'}  {bug[1]}: {bug[0]}: {says}", flush=True)
        missed += not red
    print(f"{len(bugs) - missed} of {len(bugs)} bugs are caught")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
