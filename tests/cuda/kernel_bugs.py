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
PATHS = {"blocks": "src/tensor/weight_blocks.h", "cache_rows": "src/kernels/cuda/common/cache_rows.cuh",
         "store_cache_row": "src/kernels/cuda/common/store_cache_row.cuh", "weights": "src/kernels/cuda/common/weights.cuh"}

# Tests that find the bugs of a file, in this order: quick ones first.
TESTS = {
    "attention": ["Hand.MlaDecode*:Hand.Mha*:Hand.OneScore*:Hand.LseMerge", "MovesConformance.LseMerge:MhaConformance.Parts*:MlaDecodeLists.Chunks*",
                  "MhaConformance.Unseen*", "MlaDecodeEdge.Sequences*:MlaDecodeLists.Ragged*", "MlaDecodeEdge.EqualScores*"],
    "cache": ["Hand.Append*:Hand.Gather*:Hand.APage*", "MovesConformance.Append:NormRopeAppend*"],
    "blocks": ["MovesConformance.GatherOfBlocks"],
    "cache_rows": ["CachedRow*", "MlaDecodeConformance.Few*"],
    "store_cache_row": ["CachedRow*"],
    "gemm": ["Hand.Linear*:Hand.EveryExpert*:Hand.Gates", "ExpertGemm*", "*F32*/v2_lite"],
    "indexer": ["IndexTopK.OfEqual*:IndexTopK.Lists*:IndexTopK.Both*:IndexTopK.NaN*:IndexTopK.F*", "IndexTopK.Sorted*", "IndexTopK.Chunks*",
                "IndexTopK.Random*:IndexTopK.Kernels*", "IndexTopK.Exact*"],
    "moe": ["Hand.Route*:Hand.GroupBy*:Hand.Combine*:RouteConformance*", "MovesConformance.Combine"],
    "norm": ["Hand.RmsNorm:Hand.LayerNorm:AddRmsNorm*", "RmsNorm*"],
    "rows": ["Hand.Rope*:Hand.Rows*:Hand.Drafts*:Hand.AddAndGather:Hand.Cast*:Hand.Quantize*:Hand.Query*", "QuantizeRows*Few*",
             "MovesConformance.*"],
    "weights": ["Hand.Linear*", "GemmTypes*"],
}

# name, file, text, its replacement
BUGS = [
    ("decode: causal limit one key too far", "attention", "place.position + 1 : ListLength", "place.position + 2 : ListLength"),
    ("sum not decayed", "attention", "Fma(row.sum, kept, BlockSum(weight, scratch))", "Add(row.sum, BlockSum(weight, scratch))"),
    ("O not decayed", "attention", "float o = Mul(row.o[i], kept);", "float o = row.o[i];"),
    ("page table off by one", "attention", "LoadGlobal(pages + key / page_tokens)", "LoadGlobal(pages + (key + 1) / page_tokens)"),
    ("decode: keys of a list from the first on", "attention", "list == nullptr ? i : LoadGlobal(list + i)", "i"),
    ("zero keys give 0/0", "attention", "empty ? 0.0f : Div(row.o[i], row.sum)", "Div(row.o[i], row.sum)"),
    ("NaN looks like no key", "attention", "row.sum == 0.0f", "row.max == MinusInfinity()"),
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
    ("no SiLU", "gemm", "Mul(Silu(gates[i]), sums[i])", "Mul(gates[i], sums[i])"),
    ("columns past the end", "gemm", "if (n >= p.n) return;", ""),
    ("experts: rows of the next one too", "gemm", "LoadGlobal(p.first + p.begin + e + 1)", "LoadGlobal(p.first + p.begin + e + 1) + 1"),
    ("experts: weights of another rank read", "gemm", " || p.w[e].data == nullptr", ""),
    ("gemm_t: rows of the first of a batch", "gemm", "RowOf(p.x, b, m);", "RowOf(p.x, 0, m);"),
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
    ("lanes past the end add", "rows", "if (i < p.count) StoreGlobal(p.y + i, Add(", "StoreGlobal(p.y + i, Add("),
    ("gathered rows not scaled", "rows", "Mul(LoadNumber(row, p.x_type, d), p.scale)", "LoadNumber(row, p.x_type, d)"),
    ("lanes past the end cast", "rows", "if (rest == 0) StoreElement", "StoreElement"),
    ("NaN is finite", "rows", "(bits & 0x7f800000u) == 0x7f800000u", "(bits & 0x7fffffffu) == 0x7f800000u"),
    ("lane 0 alone looks for NaN", "rows", "bad = WarpSum(bad);", ""),
    ("drafts without a slot are packed", "rows", "if (slot < 0) return;", ""),
    ("int8: largest of a lane", "rows", "largest = WarpMax(largest);", ""),
    ("int8: groups one column late", "rows", "begin = g * p.group;", "begin = g * p.group + 1;"),
    ("int8: rounded to zero", "rows", "FloatBits(Add(Mul(LoadGlobal(x + i), inverse), kRound))", "Mul(LoadGlobal(x + i), inverse)"),
    ("int8: scale of a group of NaN", "rows", "finite ? scale : BitsFloat(0x7fc00000u)", "scale"),
    ("int8: tiny groups overflow", "rows", "!finite || most < 0x1p-119f", "!finite || most == 0.0f"),
    ("int8: last group reads the next row", "rows", "p.k - begin < p.group ? p.k : begin + p.group;", "begin + p.group;"),
    ("temperature: from the first period on", "rows", "LogOf(1.0 + static_cast<double>(periods))", "LogOf(static_cast<double>(periods))"),
    ("temperature: of the position", "rows", "LoadGlobal(p.positions + t) / p.period", "LoadGlobal(p.positions + t)"),
    ("temperature: rows without a stride", "rows", "p.x + t * p.stride", "p.x + t * p.width"),
    ("temperature: without beta", "rows", "fma(p.beta, logarithm, 1.0)", "1.0 + logarithm"),
    ("temperature: the first column left out", "rows", "i = Lane(); i < p.width", "i = Lane() + 1; i < p.width"),

    ("weights of the first of a batch", "weights", " + b * l.batch_bytes", ""),
    ("row_begin ignored", "weights", "(l.row_begin + b", "(b"),
    ("batch_rows ignored", "weights", " + b * l.batch_rows", ""),
    ("a scale for every row", "weights", " + n) / l.rows;", " + n);"),
    ("column_begin ignored", "weights", "(w.column_begin + k)", "k"),
    ("groups begin one column early", "weights", "(w.column_begin + k)", "(w.column_begin + k + 1)"),
    ("zero points ignored", "weights", "if (w.zero != nullptr) zero", "if (false) zero"),
    ("zero points of the first row", "weights", "w.zero + block_row * l.zero_stride", "w.zero"),
    ("u4 without its 8", "weights", "w.type == Element::kU4 ? 8.0f : 0.0f", "0.0f"),
    ("nibbles swapped", "weights", ">> i % 2 * 4", ">> (1 - i % 2) * 4"),
    ("fnuz read as e4m3", "weights", "F8E4M3FnuzToFloat(", "F8E4M3ToFloat("),
    ("i8 read as u8", "weights", "static_cast<int8_t>(LoadGlobal(bytes + i))", "LoadGlobal(bytes + i)"),
    ("scales read as f32", "weights", "LoadElement(w.scale, w.scale_type, column)", "LoadElement(w.scale, Element::kF32, column)"),
    ("int8 x: scales of the first row", "weights", " + m * x.scale_stride", ""),
    ("int8 x: groups begin one column early", "weights", "k / x.group", "(k + 1) / x.group"),
    ("int8 x: not scaled", "weights", "Mul(code, LoadGlobal(x.scale + k / x.group))", "code"),
    ("every value from the first block", "weights", "row + i / Block::kValues * Block::kBytes", "row"),
    ("iq4_nl read as q4_0", "weights", "LoadFromBlock<blocks::IQ4_NL>", "LoadFromBlock<blocks::Q4_0>"),

    ("minimum ignored", "blocks", "-(F16At(b + 2) * static_cast<float>(PackedMin(b + 4, g)))", "-0.0f"),
    ("minimum of the low groups", "blocks", "p[g + 4] >> 4 | p[g] >> 6 << 4", "p[g + 4] >> 4"),
    ("q2_k: scale and minimum swapped", "blocks", "static_cast<float>(b[g] & 15)", "static_cast<float>(b[g] >> 4)"),
    ("fifth bit ignored", "blocks", "bits[i / 8] >> (i % 8) & 1", "0"),
    ("high bits of the codes one byte late", "blocks", "codes[i / 128 * 32 + i % 32 + j]", "codes[i / 128 * 32 + (i + 1) % 32 + j]"),
    ("q3_k: scales without high bits", "blocks", " | (s[8 + g % 4] >> (g / 4 * 2) & 3) << 4", ""),
    ("halves of a table swapped", "blocks", "(q < 8 ? low : high)", "(q < 8 ? high : low)"),
    ("mxfp4: half of the scale", "blocks", "F8E8M0ToFloat(b[0]) * 0.5f", "F8E8M0ToFloat(b[0])"),
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
