// Scratch of the AMX mha kernel (mha_amx_bf16-inl.h), and its softmax of a pair of groups of 16
// queries. The softmax is cut into pieces that run between tile instructions.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/amx_tile-inl.h"
#include "src/kernels/cpu/common/prefetch-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kMhaKeys = 256;  // per block
constexpr int64_t kMhaSteps = kMhaKeys / kStep;
constexpr int64_t kGroupPairRows = 2 * kTileSide;
// Stride of a row of scores: an odd number of cache lines.
constexpr int64_t kScoreStride = kMhaKeys + kTileSide;
// A maximum may rise by this much, in units of log2, before O and sums are rescaled.
constexpr float kSlack = 8.0f;

struct AmxMhaScratch {
  alignas(64) BF16 q[kMaxAmxQueries * kMaxHeadWidth];   // [group][step][row][dimension]
  alignas(64) BF16 k[kMhaKeys * kMaxHeadWidth];         // [16 keys][step][pair][key]
  alignas(64) BF16 v[kMhaKeys * kMaxHeadWidth];         // [16 columns][step][pair of keys][column]
  alignas(64) float o[kMaxAmxQueries * kMaxHeadWidth];  // [group][16 columns][row][column]
  alignas(64) float sum[kMaxAmxQueries * kTileSide];    // one vector for each row
  alignas(64) float scores[2][kGroupPairRows * kScoreStride];
  alignas(64) BF16 p[2][2 * kMhaSteps * kTilePairs];  // [group][step][row][key]
  alignas(64) BF16 masked[2 * kTilePairs];            // a step of v without keys a row does not see
  alignas(64) float joined[kTileSide * kMaxHeadWidth];
  float max[kMaxAmxQueries];  // maximum that probabilities are relative to, in units of log2
  bool finite[kMhaSteps];     // whether all values of the step are finite
  // k_nope, k_rope and v of the next block. The rows of one head lie far apart, so the hardware
  // prefetcher does not follow them.
  BurstPrefetch ahead[3];
  int64_t rows, pairs;
  int64_t steps;         // of N+R
  int64_t column_tiles;  // of V
  int64_t seen;          // keys of the block that row 0 sees, may be < 0
  int64_t count;         // keys of the block
  float scale;           // scale·log2 e

  BF16* Q(int64_t group, int64_t step) { return q + (group * steps + step) * kTilePairs; }
  BF16* K(int64_t tile, int64_t step) { return k + (tile * steps + step) * kTilePairs; }
  BF16* V(int64_t tile, int64_t step) { return v + (tile * kMhaSteps + step) * kTilePairs; }
  float* O(int64_t group, int64_t tile) { return o + (group * column_tiles + tile) * kTileSums; }
  BF16* P(int64_t group, int64_t step) {
    return p[group / 2 % 2] + (group % 2 * kMhaSteps + step) * kTilePairs;
  }
  // The number of keys that a row sees. Rows that fill up a group see as many as the last row.
  int64_t Visible(int64_t row) const { return Max(0, Min(count, seen + Min(row, rows - 1))); }
  // Steps of keys that at least one row of a pair sees.
  int64_t StepsOf(int64_t pair) const {
    return (Visible(pair * kGroupPairRows + kGroupPairRows - 1) + kStep - 1) / kStep;
  }
  // The number of groups of a pair; the last pair may have one.
  int64_t GroupsOf(int64_t pair) const { return rows - pair * kGroupPairRows > kTileSide ? 2 : 1; }
};

// The softmax of a pair of groups, cut into pieces that run between the `overlap` tile steps of
// other pairs.
class OverlappedSoftmax {
 public:
  OverlappedSoftmax(AmxMhaScratch& s, int64_t pair, int64_t overlap)
      : s_(s), first_(pair * kGroupPairRows), scores_(s.scores[pair % 2]), calls_(Max(1, overlap)) {
    keys_ = RoundUp(s.Visible(first_ + kGroupPairRows - 1), kPieceKeys);
    rows_ = s.GroupsOf(pair) * kTileSide;
    pieces_ = rows_ * (keys_ / kPieceKeys);
    FindMax(0);
    FindMax(1);
    StartRow();
  }

  // Called after every tile step.
  void operator()() {
    for (due_ += pieces_; due_ >= calls_; due_ -= calls_) Advance();
  }
  void Finish() {
    while (row_ < rows_) Advance();
  }

 private:
  static constexpr int64_t kVectors = 8;  // vectors per piece: as many as the registers hold
  static constexpr int64_t kPieceKeys = kVectors * Amx::kLanes;

  // Masks the keys that row i does not see and finds its maximum. If the maximum has risen by more
  // than kSlack, rescales O and the sum.
  void FindMax(int64_t i) {
    const int64_t row = first_ + i;
    float* const x = scores_ + i * kScoreStride;
    for (int64_t j = s_.Visible(row); j < keys_; ++j) x[j] = -__builtin_inff();
    Amx::Vec top[kVectors / 2];
    for (int64_t j = 0; j < kVectors / 2; ++j) top[j] = Amx::Load(x + j * Amx::kLanes);
    for (int64_t at = kPieceKeys / 2; at < keys_; at += kPieceKeys / 2)
      for (int64_t j = 0; j < kVectors / 2; ++j)
        top[j] = Amx::Max(top[j], Amx::Load(x + at + j * Amx::kLanes));
    const float max =
        Amx::MaxOf(Amx::Max(Amx::Max(top[0], top[1]), Amx::Max(top[2], top[3]))) * s_.scale;
    const float old = s_.max[row];
    if (max <= old + kSlack) return;
    s_.max[row] = max;
    if (old != -__builtin_inff()) Rescale(row, Amx::Exp2(old - max));
  }

  void Rescale(int64_t row, Amx::Vec factor) {
    float* const sum = s_.sum + row * kTileSide;
    Amx::Store(sum, Amx::Mul(Amx::Load(sum), factor));
    float* o = s_.O(row / kTileSide, 0) + row % kTileSide * kTileSide;
    for (int64_t i = 0; i < s_.column_tiles; ++i, o += kTileSums)
      Amx::Store(o, Amx::Mul(Amx::Load(o), factor));
  }

  void StartRow() {
    const int64_t row = first_ + row_;
    from_ = scores_ + row_ * kScoreStride;
    end_ = from_ + keys_;
    to_ = s_.P(row / kTileSide, 0) + row % kTileSide * kStep;
    sum_ = s_.sum + row * kTileSide;
    // A row that has seen no key yet has only scores of −∞.
    shift_ = s_.max[row] == -__builtin_inff() ? 0.0f : -s_.max[row];
  }

  // Probabilities of the next keys of a row. The last piece of a row also finds the maximum of the
  // row after the next.
  void Advance() {
    if (row_ == rows_) return;
    ComputeProbabilities();
    if (from_ < end_) return;
    ++row_;
    if (row_ == rows_) return;
    StartRow();
    if (row_ + 1 < rows_) FindMax(row_ + 1);
  }

  void ComputeProbabilities() {
    const Amx::Vec scale = Amx::Set1(s_.scale);
    const Amx::Vec shift = Amx::Set1(shift_);
    Amx::Vec x[kVectors];
    for (int64_t j = 0; j < kVectors; ++j)
      x[j] = Amx::Fma(Amx::Load(from_ + j * Amx::kLanes), scale, shift);
    Amx::Exp2(x);
    for (int64_t j = 0; j < kVectors; j += 2)
      Amx::StorePairs(to_ + j / 2 * kTilePairs, Amx::RoundPairs(x[j], x[j + 1]));
    const Amx::Vec low = Amx::Add(Amx::Add(x[0], x[1]), Amx::Add(x[2], x[3]));
    const Amx::Vec high = Amx::Add(Amx::Add(x[4], x[5]), Amx::Add(x[6], x[7]));
    Amx::Store(sum_, Amx::Add(Amx::Load(sum_), Amx::Add(low, high)));
    from_ += kPieceKeys;
    to_ += kVectors / 2 * kTilePairs;
  }

  AmxMhaScratch& s_;
  int64_t first_;  // row
  float* scores_;
  int64_t keys_, rows_, pieces_;
  int64_t row_ = 0;
  int64_t calls_, due_ = 0;
  // The row:
  const float* from_;
  const float* end_;
  BF16* to_;
  float* sum_;
  float shift_;
};

struct NoOverlap {
  void operator()() const {}
};

}  // namespace
}  // namespace latte::cpu
