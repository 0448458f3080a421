// Absorbed decode: which rows and which keys make a task, and the merging of their results.
//
// The keys of a sequence are cut into splits of kSplitKeys, anchored at position 0. Each split is
// computed from nothing and splits are merged from left to right, so a row's bytes do not depend on
// which tasks computed them; tasks are cut as the threads need them. A task is a piece: some rows,
// (token, head) pairs of one sequence, and a run of splits.
#include "src/kernels/cpu/parallel.h"

namespace latte::cpu {
namespace {

// Keys of a split. Merging one costs a pass over o: where it comes from another core, 1/30 of
// computing it with 16 heads and an int8 cache.
constexpr int64_t kSplitKeys = 1024;
static_assert(kSplitKeys % 128 == 0, "kernels cut their blocks at multiples of 128 keys");
// Pieces per thread that a step of several sequences is cut into, where there are splits enough:
// the last one to finish is then not far behind. Those of one sequence are alike, and a piece for
// each thread takes the queries up once.
constexpr int64_t kPiecesPerThread = 4;

static_assert(static_cast<int>(RowKind::kF8) == static_cast<int>(latte::RowKind::kF8) &&
              static_cast<int>(RowKind::kF8Dense) == static_cast<int>(latte::RowKind::kF8Dense) &&
              static_cast<int>(RowKind::kI8) == static_cast<int>(latte::RowKind::kI8) &&
              static_cast<int>(RowKind::kQ6) == static_cast<int>(latte::RowKind::kQ6));

bool IsQuantised(latte::RowKind kind) { return kind != latte::RowKind::kPlain; }

CachedRows CachedRowsOf(DType cache, RowFormat rows, int64_t c, int64_t r) {
  CachedRows out;
  out.kind = static_cast<RowKind>(rows.kind);
  out.element = ElementOf(cache);
  out.c = c;
  out.r = r;
  out.descale = rows.descale;
  if (!IsQuantised(rows.kind)) {
    out.bytes = (c + r) * SizeOf(cache);
    return out;
  }
  const RowLayout layout = LayoutOf(rows.kind, c, r);
  out.bytes = layout.bytes;
  out.rope_at = layout.rope_at;
  out.scales_at = layout.scales_at;
  return out;
}

struct Piece {
  const SequenceChunk* sequence;
  int64_t row, rows;               // of the count·H rows of the sequence
  int64_t split_begin, split_end;  // what it computes
  int64_t splits;                  // of the same rows, other pieces included
  int64_t first_end;               // split_end of the piece that begins at split 0
  int64_t index, count;            // among the pieces of the same rows
  float* slots;                    // for the results of splits from first_end on
};

// How the rows and keys of a sequence are cut.
struct Cut {
  int64_t groups, splits, splits_per_piece;
  int64_t pieces_per_group() const { return CeilDiv(splits, splits_per_piece); }
};

struct Plan {
  int64_t h, c;
  int64_t max_rows;     // of a piece
  int64_t piece_pairs;  // of rows and keys: what a piece should be
  int64_t macs;
  bool merges = false;
  CacheLevel prefetch_level = CacheLevel::kL1;
  bool many_dram_streams = false;
  std::span<Piece> pieces;
  float* o;                // the op's output
  float *max, *sum;        // [T·H]
  float* slots = nullptr;  // what is left of them while pieces are made
};

int64_t SlotFloats(int64_t rows, int64_t c) { return RoundUp(rows * (c + 2), 16); }

Cut CutOf(const Plan& plan, const SequenceChunk& s) {
  const int64_t rows = s.count * plan.h;
  Cut cut;
  cut.groups = CeilDiv(rows, plan.max_rows);
  cut.splits = CeilDiv(std::max<int64_t>(s.total_len(), 1), kSplitKeys);
  const int64_t group_rows = CeilDiv(rows, std::max<int64_t>(cut.groups, 1));
  const int64_t split_pairs = std::max<int64_t>(group_rows * kSplitKeys, 1);
  cut.splits_per_piece = std::clamp<int64_t>(plan.piece_pairs / split_pairs, 1, cut.splits);
  return cut;
}

// Pieces that there could be at most.
int64_t CountUnits(const Plan& plan, std::span<const SequenceChunk> sequences) {
  int64_t count = 0;
  for (const SequenceChunk& s : sequences) {
    const Cut cut = CutOf(plan, s);
    count += cut.groups * cut.splits;
  }
  return count;
}

// Cuts the rows finer than a target takes them where splits alone do not make a piece for each
// thread.
void ChooseSizes(Plan& plan, const MlaDecodeOp::Params& p, const Exec& exec) {
  const MlaDecodeOp::Shape shape = MlaDecodeOp::ShapeOf(p);
  plan.h = shape.h;
  plan.c = shape.c;
  int64_t pairs = 0;
  for (const SequenceChunk& s : p.sequences) pairs += s.count * shape.h * s.total_len();
  plan.macs = pairs * (2 * shape.c + shape.r);
  const int64_t threads = exec.threads->threads();
  plan.piece_pairs = pairs / (threads * (p.sequences.size() == 1 ? 1 : kPiecesPerThread));
  while (plan.max_rows > 1 && CountUnits(plan, p.sequences) < threads)
    plan.max_rows = CeilDiv(plan.max_rows, 2);
}

// Takes [count] elements from the front of `at`.
template <class T>
T* Take(std::byte*& at, int64_t count) {
  auto* const taken = reinterpret_cast<T*>(at);
  at += RoundUp(count * static_cast<int64_t>(sizeof(T)), 64);
  return taken;
}

void AddPieces(Plan& plan, const SequenceChunk& s, size_t& at) {
  const Cut cut = CutOf(plan, s);
  const int64_t rows = s.count * plan.h;
  for (int64_t group = 0; group < cut.groups; ++group) {
    Piece piece;
    piece.sequence = &s;
    piece.row = group * rows / cut.groups;
    piece.rows = (group + 1) * rows / cut.groups - piece.row;
    piece.splits = cut.splits;
    piece.first_end = cut.splits_per_piece;
    piece.count = cut.pieces_per_group();
    piece.slots = plan.slots;
    for (piece.index = 0; piece.index < piece.count; ++piece.index) {
      piece.split_begin = piece.index * cut.splits_per_piece;
      piece.split_end = std::min(piece.split_begin + cut.splits_per_piece, cut.splits);
      plan.pieces[at++] = piece;
    }
    if (piece.count == 1) continue;
    plan.merges = true;
    plan.slots += (cut.splits - piece.first_end) * SlotFloats(piece.rows, plan.c);
  }
}

// All of it lies in the threads' scratch.
Plan MakePlan(const MlaDecodeOp::Params& p, int64_t max_rows, const Exec& exec) {
  Plan plan;
  plan.max_rows = max_rows;
  plan.prefetch_level = PrefetchLevel(exec);
  plan.many_dram_streams = exec.machine->many_dram_streams;
  ChooseSizes(plan, p, exec);
  int64_t pieces = 0;
  int64_t slots = 0;
  for (const SequenceChunk& s : p.sequences) {
    const Cut cut = CutOf(plan, s);
    pieces += cut.groups * cut.pieces_per_group();
    // Rows of groups differ by one at most.
    const int64_t group_rows = CeilDiv(s.count * plan.h, std::max<int64_t>(cut.groups, 1));
    slots += cut.groups * (cut.splits - cut.splits_per_piece) * SlotFloats(group_rows, plan.c);
  }
  const int64_t rows = MlaDecodeOp::ShapeOf(p).t * plan.h;
  const int64_t bytes = pieces * static_cast<int64_t>(sizeof(Piece)) + (2 * rows + slots) * 4;
  std::byte* at = exec.threads->Scratch(bytes + 3 * 64);
  plan.pieces = {Take<Piece>(at, pieces), static_cast<size_t>(pieces)};
  plan.max = Take<float>(at, rows);
  plan.sum = Take<float>(at, rows);
  plan.slots = Take<float>(at, slots);
  plan.o = p.o_latent.Ptr<float>();
  size_t next = 0;
  for (const SequenceChunk& s : p.sequences) AddPieces(plan, s, next);
  return plan;
}

// Results of rows of a piece, from its `row`-th on, where o is the op's output.
Partial TotalOf(const Plan& plan, const Piece& piece, int64_t row) {
  const int64_t at = piece.sequence->query_start * plan.h + piece.row + row;
  return {plan.o + at * plan.c, plan.max + at, plan.sum + at};
}

// The same of a split that waits to be merged.
Partial SlotOf(const Plan& plan, const Piece& piece, int64_t split, int64_t row) {
  float* const o = piece.slots + (split - piece.first_end) * SlotFloats(piece.rows, plan.c);
  float* const max = o + piece.rows * plan.c;
  return {o + row * plan.c, max + row, max + piece.rows + row};
}

template <const Target& kTarget>
void Finish(const MlaDecodeOp::Params& p, const Plan& plan, const Piece& piece, int64_t row,
            int64_t rows) {
  const int64_t at = piece.sequence->query_start * plan.h + piece.row + row;
  float* const lse = p.lse.empty() ? nullptr : p.lse.Ptr<float>() + at;
  kTarget.finish_partial(TotalOf(plan, piece, row), rows, plan.c, lse);
}

// Keys that a row of a sequence sees.
int64_t KeysOf(const SequenceChunk& s, int64_t row, int64_t heads) {
  return s.total_len() - s.count + row / heads + 1;
}

DecodeTask TaskOf(const MlaDecodeOp::Params& p, const Plan& plan, const Piece& piece,
                  DecodeRow* q) {
  const MlaDecodeOp::Shape s = MlaDecodeOp::ShapeOf(p);
  for (int64_t i = 0; i < piece.rows; ++i) {
    const int64_t row = piece.row + i;
    const int64_t token = piece.sequence->query_start + row / s.h;
    q[i] = {FloatAt(p.q_latent, token, row % s.h), FloatAt(p.q_rope, token, row % s.h),
            KeysOf(*piece.sequence, row, s.h)};
  }
  DecodeTask t;
  t.q = q;
  t.pages = p.pages.data;
  t.cache = CachedRowsOf(s.cache, p.rows, s.c, s.r);
  t.page_tokens = s.page_tokens;
  t.page_table = piece.sequence->pages.data();
  t.rows = piece.rows;
  t.c = s.c;
  t.r = s.r;
  t.scale = p.scale;
  t.prefetch_level = plan.prefetch_level;
  t.many_dram_streams = plan.many_dram_streams;
  return t;
}

// Where results of a piece go. The piece that begins at split 0 merges its own splits as it goes;
// others keep theirs apart.
template <const Target& kTarget>
struct PieceOuts {
  const Plan& plan;
  const Piece& piece;
  Partial next;  // of a split that is merged at once
  int64_t split = piece.split_begin;

  bool waits() const { return piece.split_begin > 0; }
  // Takes in the split before `split`.
  void Merge() {
    if (!waits() && split > 1)
      kTarget.merge_partials(TotalOf(plan, piece, 0), next, 0, 1, piece.rows, plan.c);
  }
  static Partial Next(void* self) {
    PieceOuts& outs = *static_cast<PieceOuts*>(self);
    outs.Merge();
    const int64_t split = outs.split++;
    if (split == 0) return TotalOf(outs.plan, outs.piece, 0);
    return outs.waits() ? SlotOf(outs.plan, outs.piece, split, 0) : outs.next;
  }
};

struct PieceScratch {
  alignas(64) float o[kMaxTileRows * kMaxDecodeWidth];
  float max[kMaxTileRows];
  float sum[kMaxTileRows];
  DecodeRow q[kMaxTileRows];
};

template <const Target& kTarget>
void RunPiece(const MlaDecodeOp::Params& p, const Plan& plan, const Piece& piece,
              std::byte* scratch) {
  auto& own = LaunchScratch<PieceScratch>(scratch);
  DecodeTask t = TaskOf(p, plan, piece, own.q);
  t.scratch = TargetScratch(scratch);
  PieceOuts<kTarget> outs = {plan, piece, {own.o, own.max, own.sum}};
  t.key_begin = piece.split_begin * kSplitKeys;
  t.key_end = std::min(own.q[piece.rows - 1].visible, piece.split_end * kSplitKeys);
  t.splits = piece.split_end - piece.split_begin;
  t.split_keys = kSplitKeys;
  t.outs = {&outs, PieceOuts<kTarget>::Next};
  kTarget.mla_decode(t);
  outs.Merge();
  if (piece.count == 1) Finish<kTarget>(p, plan, piece, 0, piece.rows);
}

// Merges what waits, in order. Each piece takes a share of its group's rows.
template <const Target& kTarget>
void MergePiece(const MlaDecodeOp::Params& p, const Plan& plan, const Piece& piece) {
  if (piece.count == 1) return;
  const int64_t row = piece.index * piece.rows / piece.count;
  const int64_t rows = (piece.index + 1) * piece.rows / piece.count - row;
  kTarget.merge_partials(TotalOf(plan, piece, row), SlotOf(plan, piece, piece.first_end, row),
                         SlotFloats(piece.rows, plan.c), piece.splits - piece.first_end, rows,
                         plan.c);
  Finish<kTarget>(p, plan, piece, row, rows);
}

}  // namespace

bool Supports(const MlaDecodeOp::Shape& s) {
  return s.c + s.r <= kMaxDecodeWidth && (IsFloat(s.cache) || IsQuantised(s.kind));
}
bool Supports(const GatherPagesOp::Shape& s) { return IsFloat(s.cache) || IsQuantised(s.kind); }

template <const Target& kTarget>
void Launch<kTarget>::MlaDecode(const MlaDecodeOp::Params& p, const Exec& exec) {
  const Plan plan = MakePlan(p, kTarget.decode_rows, exec);
  const auto pieces = static_cast<int64_t>(plan.pieces.size());
  const auto piece = [&plan](int64_t i) -> const Piece& {
    return plan.pieces[static_cast<size_t>(i)];
  };
  ForEachTaskInScratch(pieces, plan.macs, exec, [&](int64_t i, std::byte* scratch) {
    RunPiece<kTarget>(p, plan, piece(i), scratch);
  });
  if (!plan.merges) return;
  ForEachTask(pieces, plan.macs, exec, [&](int64_t i) { MergePiece<kTarget>(p, plan, piece(i)); });
}

template <const Target& kTarget>
void Launch<kTarget>::GatherPages(const GatherPagesOp::Params& p, const Exec& exec) {
  constexpr int64_t kRows = 32;
  const GatherPagesOp::Shape s = GatherPagesOp::ShapeOf(p);
  const int64_t c = IsQuantised(s.kind) ? s.c : s.w;
  // A number is some instructions of a multiply-add's cost.
  ForEachTask(CeilDiv(s.s, kRows), 2 * s.s * s.w, exec, [&](int64_t task) {
    GatherTask t;
    t.pages = p.pages.data;
    t.cache = CachedRowsOf(s.cache, p.rows, c, s.w - c);
    t.page_tokens = p.pages.shape[1];
    t.page_table = p.page_table.data();
    t.begin = p.key_begin + task * kRows;
    t.count = std::min(kRows, s.s - task * kRows);
    t.y = p.y.Row<float>(task * kRows);
    kTarget.gather_pages(t);
  });
}

template void Launch<kAvx2>::GatherPages(const GatherPagesOp::Params&, const Exec&);
template void Launch<kAvx512>::GatherPages(const GatherPagesOp::Params&, const Exec&);
template void Launch<kAvx2>::MlaDecode(const MlaDecodeOp::Params&, const Exec&);
template void Launch<kAvx512>::MlaDecode(const MlaDecodeOp::Params&, const Exec&);
template void Launch<kAvx512Vnni>::MlaDecode(const MlaDecodeOp::Params&, const Exec&);
template void Launch<kAvx512Bf16>::MlaDecode(const MlaDecodeOp::Params&, const Exec&);
template void Launch<kAvx512Few>::MlaDecode(const MlaDecodeOp::Params&, const Exec&);
template void Launch<kAmx>::MlaDecode(const MlaDecodeOp::Params&, const Exec&);
template void Launch<kAmxInt8>::MlaDecode(const MlaDecodeOp::Params&, const Exec&);

}  // namespace latte::cpu
