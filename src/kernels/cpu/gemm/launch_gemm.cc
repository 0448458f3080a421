// Matrix products.
#include <array>

#include "src/kernels/cpu/parallel.h"

namespace latte::cpu {
namespace {

// Rows of W that a target works on at once, and columns of its widest tile.
constexpr int64_t kWeightRows = 64;
constexpr int64_t kTileColumns = 128;
// Outputs of a task with a gate, which has to be kept until it is multiplied.
constexpr int64_t kGateOutputs = 1 << 15;
// Rows of x up to which memory is the floor, and weights of a task with so few: what it prepares
// and reads before it has asked for it should be little of it.
constexpr int64_t kMemoryRows = 64;
constexpr int64_t kStreamMacs = 1 << 20;
// Columns of a task of many rows of x of 8 bits, and what those of some rows are a multiple of.
constexpr int64_t kByteColumns = 512;
constexpr int64_t kByteLanes = 16;
// Rows of x from which on a target may have some_columns.
constexpr int64_t kSomeRows = 14;
// Parts of one ParallelFor.
constexpr size_t kMaxParts = 256;

// Rows of x of a task of 16 bits or more, whose W is widened or packed once for all of them, and
// its columns where there are enough of them: those that are packed at once.
constexpr int64_t kMaxWideRows = 512;
constexpr int64_t kWideColumns = 128;

constexpr int64_t kLeastRun = 16;
constexpr int64_t kLeastTileOutputs = 32;
// Rows of activations that are packed together.
constexpr int64_t kPackRows = 16;

bool IsWeight(DType dtype) {
  return IsFloat(dtype) || IsF8(dtype) || dtype == DType::kI8 || dtype == DType::kU4;
}

// A product cut into blocks of `rows` rows of x and `columns` outputs of each row.
struct Blocks {
  int64_t m = 0, n = 0, rows = 1, columns = 1;
  int64_t macs = 0;  // of an output

  int64_t across() const { return CeilDiv(n, columns); }
  int64_t down() const { return CeilDiv(m, rows); }
  int64_t per_batch() const { return across() * down(); }
};

struct Cutting {
  int64_t step;           // what columns are a multiple of
  int64_t parts = 1;      // products of about this size in one call
  bool bytes = false;     // activations of 8 bits
  bool prepares = false;  // each task brings them into its own order
  int64_t some = 0;       // as Target::some_columns
  int64_t rows = kMaxTaskM;
};

// macs: multiply-adds of an output.
Blocks Cut(int64_t m, int64_t n, int64_t macs, const Cutting& cut, const Exec& exec) {
  int64_t step = cut.step;
  Blocks out{m, n, 1, step, macs};
  if (m == 0 || n == 0) return out;
  out.rows = std::min(m, cut.rows);
  const bool some = cut.some > 0 && m >= kSomeRows && m <= kMemoryRows;
  if (cut.prepares) step = m > kMemoryRows ? kWeightRows : kByteLanes;
  if (some) step = cut.some;
  const int64_t tasks = cut.prepares ? 4 : some && cut.bytes ? 16 : 8;
  const int64_t share = CeilDiv(n * cut.parts, tasks * exec.threads->threads());
  const int64_t columns =
      RoundUp(std::max(CeilDiv(kTaskMacs, macs * out.rows),
                       m <= kMemoryRows ? std::min(share, CeilDiv(kStreamMacs, macs)) : 0),
              step);
  // A block narrower than what a target widens or packs at once would read all of x for less; a
  // task of many rows of bytes, some of which it prepares itself, should have columns enough, and
  // every thread tasks.
  int64_t least = m == 1 ? step : RoundUp(kWeightRows, step);
  // Few outputs, as routers have: a piece for every thread.
  const int64_t each = RoundUp(CeilDiv(n * cut.parts, exec.threads->threads()), step);
  if (!cut.bytes && m <= kMemoryRows) least = std::min(least, each);
  // Heads of 128 outputs in one piece: what is left behind whole panels costs as much as one.
  if (some && cut.bytes) least = 3 * step;
  if (cut.bytes && m > kMemoryRows)
    least = std::clamp(n / (8 * exec.threads->threads()) / least * least, least, kByteColumns);
  if (!cut.bytes && m > kMemoryRows &&
      CeilDiv(n, kWideColumns) * out.down() >= 4 * exec.threads->threads())
    least = kWideColumns;
  out.columns = std::min(std::max(columns, least), RoundUp(n, step));
  if (out.per_batch() < 2 * exec.threads->threads()) out.rows = std::min(m, cut.rows / 4);
  return out;
}

// A block of a product: a batch, rows of x from m and outputs from n.
struct Block {
  int64_t b, m, rows, n, columns;
};

// Blocks of the same weights are neighbours: what one has read is still in the cache.
Block BlockAt(const Blocks& blocks, int64_t task) {
  const int64_t n = task % blocks.per_batch() / blocks.down() * blocks.columns;
  const int64_t m = task % blocks.down() * blocks.rows;
  return {task / blocks.per_batch(), m, std::min(blocks.rows, blocks.m - m), n,
          std::min(blocks.columns, blocks.n - n)};
}

// The same for targets with tiles of 16 × 16 outputs, which pass W once for as many rows as they
// take. Pieces per thread: more where memory is the floor, so that threads end together, but of all
// parts of a call together, since a piece takes some time to reach the rate of memory.
Blocks CutForTiles(const GemmProblem& p, int64_t parts, const Exec& exec) {
  const GemmOp::Shape s = GemmOp::ShapeOf(p);
  Blocks out{s.m, s.n, 1, kLeastTileOutputs, s.k};
  if (s.m == 0 || s.n == 0) return out;
  out.rows = std::min(s.m, kMaxAmxM);
  out.columns = kMaxAmxN;
  const int64_t threads = exec.threads->threads();
  const int64_t pieces = s.m <= kLeastTileOutputs ? CeilDiv(16 * threads, parts) : 4 * threads;
  while (out.columns > kLeastTileOutputs && s.b * out.per_batch() < pieces) out.columns /= 2;
  return out;
}

ScaleGrid GridAt(const BlockScale& s, int64_t b, int64_t row, int64_t column) {
  ScaleGrid out = {};
  if (s.scale.empty()) return out;
  out.scale = s.scale.data;
  out.type = ElementOf(s.scale.dtype);
  out.stride = s.scale.stride[0];
  out.zero = s.zero.empty() ? nullptr : s.zero.Ptr<const uint8_t>();
  out.zero_stride = s.zero.stride[0];
  out.rows = s.rows;
  out.columns = s.columns;
  out.row_begin = s.row_begin + b * s.batch_rows + row;
  out.column_begin = s.column_begin + column;
  return out;
}

GemmTask TaskAt(const GemmProblem& p, const Block& at) {
  GemmTask t = {};
  t.x = At(p.x, at.b, at.m);
  t.w = At(p.w, at.b, at.n);
  t.x_type = ElementOf(p.x.dtype);
  t.w_type = ElementOf(p.w.dtype);
  t.x_stride = p.x.stride[1];
  t.w_stride = p.w.stride[1];
  t.y_stride = p.y.stride[1];
  t.grid = GridAt(p.w_scale, at.b, at.n, 0);
  if (!p.x_scale.empty()) {
    t.x_scale = FloatAt(p.x_scale, at.b, at.m);
    t.x_scale_stride = p.x_scale.stride[1];
    t.x_group = p.x_group;
  }
  t.bias = p.bias.empty() ? nullptr : p.bias.Ptr<float>() + at.n;
  t.y = FloatAt(p.y, at.b, at.m) + at.n;
  t.m = at.rows;
  t.n = at.columns;
  t.k = p.x.shape[2];
  return t;
}

// What a block of a part reads first.
GemmTask FirstTaskAt(const GemmProblem& p, const Block& at) {
  GemmTask t = TaskAt(p, at);
  if (p.gate.empty()) return t;
  t.w = At(p.gate, at.b, at.n);
  t.grid = GridAt(p.gate_scale, at.b, at.n, 0);
  return t;
}

// Activations of one part, packed: [b, ⌈m/16⌉] pieces of `bytes`.
struct Packed {
  std::byte* data = nullptr;
  int64_t tiles = 0, bytes = 0;  // of a batch; of 16 rows

  std::byte* At(int64_t b, int64_t m) const { return data + (b * tiles + m / kPackRows) * bytes; }
};

struct GateScratch {
  alignas(64) float y[kGateOutputs];
};

template <const Target& kTarget>
void RunGated(const GemmProblem& p, const Block& at, const GemmTask& up, float* scratch) {
  GemmTask gate = up;
  gate.w = At(p.gate, at.b, at.n);
  gate.grid = GridAt(p.gate_scale, at.b, at.n, 0);
  gate.y = scratch;
  gate.y_stride = at.columns;
  gate.next = &up;
  kTarget.gemm(gate);
  kTarget.gemm(up);
  for (int64_t i = 0; i < at.rows; ++i) {
    float* const y = up.y + i * up.y_stride;
    kTarget.silu_mul({scratch + i * at.columns, y, y, at.columns});
  }
}

template <const Target& kTarget>
void RunBlock(const GemmProblem& p, const Packed& packed, const Block& at, const GemmTask* next,
              const Exec& exec, std::byte* scratch) {
  GemmTask task = TaskAt(p, at);
  task.prefetch_level = PrefetchLevel(exec);
  task.many_dram_streams = exec.machine->many_dram_streams;
  task.next = next;
  task.scratch = TargetScratch(scratch);
  if (packed.data != nullptr) task.packed = packed.At(at.b, at.m);
  if (p.gate.empty()) return kTarget.gemm(task);
  RunGated<kTarget>(p, at, task, LaunchScratch<GateScratch>(scratch).y);
}

template <const Target& kTarget>
bool Packs(const GemmOp::Shape& s) {
  if (kTarget.amx_tiles) return s.m > 1;
  return kTarget.packs_a != nullptr && kTarget.packs_a(ElementOf(s.w), s.m);
}

template <const Target& kTarget>
Blocks CutPart(const GemmProblem& p, int64_t parts, const Exec& exec) {
  const int64_t step = kTarget.amx_tiles ? kLeastTileOutputs : 8;
  const GemmOp::Shape s = GemmOp::ShapeOf(p);
  Cutting cut{.step = step, .parts = parts * s.b};
  cut.bytes = s.x == DType::kI8;
  cut.prepares = cut.bytes && s.m > kTarget.max_in_place_m && !Packs<kTarget>(s);
  if (!cut.bytes) cut.rows = p.gate.empty() ? kMaxWideRows : kGateOutputs / kWideColumns;
  if (s.w == s.x) cut.some = kTarget.n_multiple;
  Blocks out = kTarget.amx_tiles ? CutForTiles(p, parts, exec) : Cut(s.m, s.n, s.k, cut, exec);
  if (!p.gate.empty())
    out.columns =
        std::min(out.columns, kGateOutputs / std::max<int64_t>(out.rows, 1) / step * step);
  return out;
}

// The blocks of up to kMaxParts products in one list.
struct Pieces {
  std::array<Blocks, kMaxParts> blocks;
  std::array<int64_t, kMaxParts + 1> first = {};  // block of each part, and their number
  std::array<Packed, kMaxParts> packed = {};      // for targets that take them
  int64_t macs = 0;
};

// Packs the activations of all parts into the threads' scratch; those of neighbouring parts that
// are the same once.
template <const Target& kTarget>
void PackParts(std::span<const GemmProblem> parts, const Exec& exec, Pieces& pieces) {
  int64_t bytes = 0;
  const auto same = [&parts](size_t i) {
    return i > 0 && parts[i].x.data == parts[i - 1].x.data &&
           parts[i].x.shape == parts[i - 1].x.shape && parts[i].x.stride == parts[i - 1].x.stride &&
           parts[i].x_scale.data == parts[i - 1].x_scale.data;
  };
  for (size_t i = 0; i < parts.size(); ++i) {
    const GemmOp::Shape s = GemmOp::ShapeOf(parts[i]);
    Packed& packed = pieces.packed[i];
    packed.tiles = CeilDiv(s.m, kPackRows);
    packed.bytes = CeilDiv(s.k, kTarget.packed_a_block.columns) * kTarget.packed_a_block.bytes;
    if (Packs<kTarget>(s) && !same(i)) bytes += s.b * packed.tiles * packed.bytes;
  }
  if (bytes == 0) return;
  std::byte* at = exec.threads->Scratch(bytes);
  for (size_t i = 0; i < parts.size(); ++i) {
    const GemmProblem& part = parts[i];
    const GemmOp::Shape s = GemmOp::ShapeOf(part);
    Packed& packed = pieces.packed[i];
    if (!Packs<kTarget>(s)) continue;
    packed.data = same(i) ? pieces.packed[i - 1].data : at;
    if (same(i)) continue;
    const int64_t count = s.b * packed.tiles;
    at += count * packed.bytes;
    ForEachTask(count, pieces.macs, exec, [&](int64_t task) {
      const int64_t b = task / packed.tiles;
      const int64_t m = task % packed.tiles * kPackRows;
      const GemmTask of = TaskAt(part, {b, m, std::min(kPackRows, s.m - m), 0, 0});
      kTarget.pack_a({of.x, of.x_stride, of.m, of.k, packed.At(b, m), of.x_scale, of.x_scale_stride,
                      of.x_group, of.w_type});
    });
  }
}

template <const Target& kTarget>
void RunParts(std::span<const GemmProblem> parts, const Exec& exec) {
  Pieces pieces;
  for (size_t i = 0; i < parts.size(); ++i) {
    const int64_t batch = parts[i].x.shape[0];
    const Blocks blocks = CutPart<kTarget>(parts[i], std::ssize(parts), exec);
    pieces.blocks[i] = blocks;
    pieces.first[i + 1] = pieces.first[i] + batch * blocks.per_batch();
    pieces.macs += batch * blocks.m * blocks.n * blocks.macs;
  }
  if (kTarget.pack_a != nullptr) PackParts<kTarget>(parts, exec, pieces);
  const auto end = pieces.first.begin() + static_cast<std::ptrdiff_t>(parts.size()) + 1;
  const auto part_of = [&](int64_t task) {
    return static_cast<size_t>(std::upper_bound(pieces.first.begin(), end, task) -
                               pieces.first.begin() - 1);
  };
  const auto block_of = [&](size_t i, int64_t task) {
    return BlockAt(pieces.blocks[i], task - pieces.first[i]);
  };
  const auto run = [&](int64_t task, int64_t next, std::byte* scratch) {
    const size_t i = part_of(task);
    if (next < 0)
      return RunBlock<kTarget>(parts[i], pieces.packed[i], block_of(i, task), nullptr, exec,
                               scratch);
    const size_t j = part_of(next);
    const GemmTask ahead = FirstTaskAt(parts[j], block_of(j, next));
    RunBlock<kTarget>(parts[i], pieces.packed[i], block_of(i, task), &ahead, exec, scratch);
  };
  // Where memory is the floor a thread walks neighbouring weights; many rows of x share them.
  const int64_t tasks = *(end - 1);
  const auto small_m = [](const GemmProblem& p) { return GemmOp::ShapeOf(p).m <= kMemoryRows; };
  if (std::ranges::all_of(parts, small_m)) return ForEachTaskInRuns(tasks, pieces.macs, exec, run);
  ForEachTaskInScratch(tasks, pieces.macs, exec, [&](int64_t task, std::byte* scratch) {
    run(task, task + 1 < tasks ? task + 1 : -1, scratch);
  });
}

}  // namespace

bool Supports(const GemmOp::Shape& s) {
  // Scales change every 16 values of a row at most.
  return s.k > 0 && (IsFloat(s.x) || s.x == DType::kI8) && IsWeight(s.w) &&
         (s.scale_group == 0 || s.scale_group >= kLeastRun || s.scale_group == s.k);
}
bool SupportsBf16(const GemmOp::Shape& s) {
  return Supports(s) && s.x == DType::kBF16 && s.w != DType::kF32 && s.w != DType::kF16;
}
bool SupportsAmxBf16(const GemmOp::Shape& s) {
  if (s.k <= 0 || s.x != DType::kBF16) return false;
  if (s.w == DType::kBF16) return s.scale_group == 0;
  const int64_t least = s.w == DType::kF8E4M3 ? 128 : 32;
  return (IsF8(s.w) || s.w == DType::kI8) && s.scale_group > 0 &&
         (s.scale_group % least == 0 || s.scale_group == s.k);
}
bool SupportsAmxS8(const GemmOp::Shape& s) { return SupportsS8(s) && s.x_group % 128 == 0; }
bool SupportsS8(const GemmOp::Shape& s) {
  const int64_t least = s.w == DType::kI8 ? 128 : 32;
  return s.k > 0 && s.x == DType::kI8 && (s.w == DType::kI8 || s.w == DType::kU4) &&
         s.x_group % 128 == 0 && s.scale_group > 0 &&
         (s.scale_group % least == 0 || s.scale_group == s.k);
}
bool Supports(const GemmTOp::Shape& s) { return s.n > 0 && IsFloat(s.x) && IsWeight(s.w); }
bool SupportsFp8Bf16(const GemmTOp::Shape& s) {
  constexpr int64_t kLeastRows = 16;  // that share a scale
  return Supports(s) && IsF8(s.w) && s.x == DType::kBF16 && s.k % 64 == 0 &&
         s.scale_group % 16 == 0 && (s.scale_rows == 0 || s.scale_rows >= kLeastRows);
}
bool SupportsVnni(const GemmTOp::Shape& s) {
  if (!Supports(s)) return false;
  if (s.w == DType::kU4) return s.k % 128 == 0 && s.scale_group > 0 && s.scale_group % 32 == 0;
  // A fixed point of 16 bits is less than f32 has.
  return s.w == DType::kI8 && s.x != DType::kF32 && s.k % 64 == 0 && s.scale_group == s.k;
}

template <const Target& kTarget>
void Launch<kTarget>::Gemm(const GemmOp::Params& p, const Exec& exec) {
  for (size_t i = 0; i < p.problems.size(); i += kMaxParts)
    RunParts<kTarget>(p.problems.subspan(i, std::min(kMaxParts, p.problems.size() - i)), exec);
}

// Products of one task: several where memory is the floor, answers many streams faster, and there
// are enough for all threads.
int64_t StreamsOf(const GemmTOp::Shape& s, int64_t most, const Exec& exec) {
  if (s.m > kMaxSmallM || !exec.machine->many_dram_streams) return 1;
  return std::clamp<int64_t>(s.b / (2 * exec.threads->threads()), 1, most);
}

template <const Target& kTarget>
void Launch<kTarget>::GemmT(const GemmTOp::Params& p, const Exec& exec) {
  const GemmTOp::Shape s = GemmTOp::ShapeOf(p);
  const int64_t streams = StreamsOf(s, kTarget.batch_in_flight, exec);
  Blocks blocks = Cut(s.m, s.k, s.n, {.step = kTileColumns}, exec);
  // Memory likes whole rows of W; of fewer products than threads each is cut.
  // Bytes besides, for every row of x is cut into them by each task.
  const bool enough = s.b * blocks.down() >= exec.threads->threads();
  if ((s.m <= kMemoryRows || kTarget.batch_in_flight == 1) && enough)
    blocks.columns = std::max<int64_t>(s.k, 1);
  const int64_t macs = s.b * s.m * s.n * s.k;
  const auto block_of = [&](int64_t task) {
    Block at = BlockAt(blocks, task);
    at.b *= streams;
    return at;
  };
  const auto weights_at = [&](const Block& at) {
    return At(p.w, at.b, 0) + at.n * SizeOf(s.w) / ValuesPerElement(s.w);
  };
  const auto run = [&](int64_t task, int64_t next, std::byte* scratch) {
    const Block at = block_of(task);
    GemmTTask t = {};
    t.x = At(p.x, at.b, at.m);
    t.w = weights_at(at);
    if (next >= 0) {
      const Block ahead = block_of(next);
      t.next_w = weights_at(ahead);
      t.next_row_begin = GridAt(p.w_scale, ahead.b, 0, 0).row_begin;
    }
    t.x_type = ElementOf(s.x);
    t.w_type = ElementOf(s.w);
    t.x_stride = p.x.stride[1];
    t.w_stride = p.w.stride[1];
    t.y_stride = p.y.stride[1];
    t.grid = GridAt(p.w_scale, at.b, 0, at.n);
    t.y = FloatAt(p.y, at.b, at.m) + at.n;
    t.m = at.rows;
    t.n = s.n;
    t.k = at.columns;
    t.batches = std::min(streams, s.b - at.b);
    t.x_batch = p.x.stride[0];
    t.w_batch = p.w.stride[0] * SizeOf(s.w);
    t.y_batch = p.y.stride[0];
    t.grid_batch = p.w_scale.batch_rows;
    t.prefetch_level = PrefetchLevel(exec);
    t.scratch = TargetScratch(scratch);
    kTarget.gemm_t(t);
  };
  const int64_t tasks = CeilDiv(s.b, streams) * blocks.per_batch();
  if (s.m <= kMemoryRows) return ForEachTaskInRuns(tasks, macs, exec, run);
  ForEachTaskInScratch(tasks, macs, exec,
                       [&](int64_t task, std::byte* scratch) { run(task, -1, scratch); });
}

template void Launch<kAvx2>::Gemm(const GemmOp::Params&, const Exec&);
template void Launch<kAvx2Bytes>::Gemm(const GemmOp::Params&, const Exec&);
template void Launch<kAvx512>::Gemm(const GemmOp::Params&, const Exec&);
template void Launch<kAvx512Vnni>::Gemm(const GemmOp::Params&, const Exec&);
template void Launch<kAvx512Bf16>::Gemm(const GemmOp::Params&, const Exec&);
template void Launch<kAmx>::Gemm(const GemmOp::Params&, const Exec&);
template void Launch<kAmxInt8>::Gemm(const GemmOp::Params&, const Exec&);
template void Launch<kAvx2>::GemmT(const GemmTOp::Params&, const Exec&);
template void Launch<kAvx512>::GemmT(const GemmTOp::Params&, const Exec&);
template void Launch<kAvx512Vnni>::GemmT(const GemmTOp::Params&, const Exec&);
template void Launch<kAvx512Bf16>::GemmT(const GemmTOp::Params&, const Exec&);

}  // namespace latte::cpu
