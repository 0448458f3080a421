#include "src/layers/moe/exchange.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "src/kernels/params/gemm.h"
#include "src/kernels/registry.h"
#include "src/layers/ranks.h"

namespace latte {
namespace {

// What travels in the time that one more exchange costs between processes of one machine: 25 µs at
// 10 GB/s.
constexpr int64_t kBytesOfExchange = 256 << 10;

size_t Index(int64_t i) { return static_cast<size_t>(i); }

// A token travels as x [D] f32, its experts [K] i32 and their weights [K] f32, side by side:
// numbers that are only copied.
int64_t RecordWidth(const MoeDims& dims, int64_t d) { return d + 2 * dims.chosen; }

// Shapes: records [M, D + 2K] f32, written, rows contiguous.
void WriteRecords(const RoutedTokens& tokens, int64_t k, const TensorView& records,
                  StepContext& step) {
  if (tokens.count() == 0) return;
  const int64_t d = tokens.x.shape[1];
  Run<CastOp>({tokens.x, records.Slice(1, 0, d)}, step.exec);
  for (int64_t i = 0; i < tokens.count(); ++i) {
    auto* const ends = records.Row<float>(i) + d;
    std::memcpy(ends, &tokens.experts[Index(i * k)], Index(k) * sizeof(int32_t));
    std::memcpy(ends + k, &tokens.weights[Index(i * k)], Index(k) * sizeof(float));
  }
}

// The tokens of the records `rows`.
RoutedTokens ReadRecords(const MoeLayer& moe, const TensorView& records,
                         std::span<const int32_t> rows, StepContext& step) {
  const int64_t k = moe.dims.chosen;
  const int64_t d = records.shape[1] - 2 * k;
  const TensorView x = step.workspace->Take(DType::kF32, {std::ssize(rows), d});
  const RoutedTokens out = WithRoom(moe, x, step);
  if (rows.empty()) return out;
  Run<GatherOp>({records.Slice(1, 0, d), rows, x}, step.exec);
  for (int64_t i = 0; i < std::ssize(rows); ++i) {
    const auto* const ends = records.Row<float>(rows[Index(i)]) + d;
    std::memcpy(&out.experts[Index(i * k)], ends, Index(k) * sizeof(int32_t));
    std::memcpy(&out.weights[Index(i * k)], ends + k, Index(k) * sizeof(float));
  }
  return out;
}

std::span<std::byte> BytesOf(const TensorView& rows) {
  return std::as_writable_bytes(std::span(rows.Ptr<float>(), Index(rows.elements())));
}

std::vector<int64_t> Times(std::vector<int64_t> counts, int64_t factor) {
  for (int64_t& count : counts) count *= factor;
  return counts;
}

// All ranks receive the tokens of all. places: of each rank's records, at least as many as its
// tokens.
ReceivedTokens GatherTokens(const MoeLayer& moe, const RoutedTokens& own, const TokenShares& shares,
                            const std::vector<int64_t>& places, StepContext& step) {
  Communicator& ranks = *step.expert_ranks;
  const int64_t width = RecordWidth(moe.dims, own.x.shape[1]);
  const TensorView records = step.workspace->Take(
      DType::kF32, {std::accumulate(places.begin(), places.end(), int64_t{0}), width});
  ReceivedTokens out;
  std::vector<int32_t> rows;  // that are tokens
  int64_t begin = 0;
  TensorView mine;
  for (int64_t rank = 0; rank < ranks.size(); ++rank) {
    const int64_t count = shares.Count(rank);
    const int64_t end = begin + places[Index(rank)];
    if (rank == ranks.rank()) mine = records.Slice(0, begin, end);
    for (int64_t i = 0; i < count; ++i) rows.push_back(static_cast<int32_t>(begin + i));
    out.counts.push_back(count);
    begin = end;
  }
  WriteRecords(own, moe.dims.chosen, mine.Slice(0, 0, own.count()), step);
  const std::span<std::byte> padding = BytesOf(mine.Slice(0, own.count(), mine.shape[0]));
  std::fill(padding.begin(), padding.end(), std::byte{0});
  ranks.AllGather(BytesOf(mine), Times(places, width * SizeOf(DType::kF32)), BytesOf(records));
  out.tokens = ReadRecords(moe, records, rows, step);
  return out;
}

// The rank of each of E experts, which are spread whole.
std::vector<int32_t> RanksOfExperts(int64_t experts, int64_t ranks) {
  std::vector<int32_t> out;
  for (int64_t rank = 0; rank < ranks; ++rank)
    out.resize(Index(RankShare{rank, ranks}.Rows().End(experts)), static_cast<int32_t>(rank));
  return out;
}

// The tokens that chose an expert of each rank, in order.
std::vector<std::vector<int32_t>> TokensOfRanks(const MoeLayer& moe, const RoutedTokens& own,
                                                int64_t ranks) {
  const std::vector<int32_t> rank_of = RanksOfExperts(moe.dims.experts, ranks);
  std::vector<std::vector<int32_t>> out(Index(ranks));
  for (int64_t pair = 0; pair < std::ssize(own.experts); ++pair) {
    const auto token = static_cast<int32_t>(pair / moe.dims.chosen);
    std::vector<int32_t>& to = out[Index(rank_of[Index(own.experts[Index(pair)])])];
    if (to.empty() || to.back() != token) to.push_back(token);
  }
  return out;
}

ReceivedTokens SendToChosen(const MoeLayer& moe, const RoutedTokens& own, StepContext& step) {
  Communicator& ranks = *step.expert_ranks;
  Workspace& workspace = *step.workspace;
  const int64_t width = RecordWidth(moe.dims, own.x.shape[1]);
  const TensorView records = workspace.Take(DType::kF32, {own.count(), width});
  WriteRecords(own, moe.dims.chosen, records, step);

  std::vector<int32_t> rows;
  std::vector<int64_t> sent;
  for (const std::vector<int32_t>& tokens : TokensOfRanks(moe, own, ranks.size())) {
    rows.insert(rows.end(), tokens.begin(), tokens.end());
    sent.push_back(std::ssize(tokens));
  }
  ReceivedTokens out;
  out.counts.resize(sent.size());
  const std::vector<int64_t> one(sent.size(), static_cast<int64_t>(sizeof(int64_t)));
  ranks.AllToAll(std::as_bytes(std::span(sent)), one, std::as_writable_bytes(std::span(out.counts)),
                 one);

  const TensorView to_send = workspace.Take(DType::kF32, {std::ssize(rows), width});
  if (!rows.empty()) Run<GatherOp>({records, rows, to_send}, step.exec);
  const int64_t received = std::accumulate(out.counts.begin(), out.counts.end(), int64_t{0});
  const TensorView arrived = workspace.Take(DType::kF32, {received, width});
  const int64_t bytes = width * SizeOf(DType::kF32);
  ranks.AllToAll(BytesOf(to_send), Times(sent, bytes), BytesOf(arrived), Times(out.counts, bytes));
  std::vector<int32_t> all(Index(received));
  std::iota(all.begin(), all.end(), 0);
  out.tokens = ReadRecords(moe, arrived, all, step);
  return out;
}

}  // namespace

TokenShares::TokenShares(std::span<const int64_t> group_tokens, int64_t ranks) {
  const auto groups = std::ssize(group_tokens);
  LATTE_CHECK(groups > 0 && ranks % groups == 0, "{} ranks in {} groups", ranks, groups);
  ranks_per_group_ = ranks / groups;
  int64_t begin = 0;
  for (const int64_t count : group_tokens) {
    for (int64_t i = 0; i < ranks_per_group_; ++i)
      begins_.push_back(begin + count * i / ranks_per_group_);
    begin += count;
  }
  begins_.push_back(begin);
}

int64_t TokenShares::most() const {
  int64_t most = 0;
  for (int64_t rank = 0; rank < ranks(); ++rank) most = std::max(most, Count(rank));
  return most;
}

std::vector<int64_t> TokenShares::BeginsInGroup(int64_t rank) const {
  std::vector<int64_t> out;
  const int64_t first = FirstOfGroup(rank);
  for (int64_t i = 0; i <= ranks_per_group_; ++i) out.push_back(Begin(first + i) - Begin(first));
  return out;
}

ExpertExchange CheaperExchange(const MoeDims& dims, int64_t d, int64_t tokens, int64_t ranks) {
  const int64_t of_rank = RankShare{ranks - 1, ranks}.Of(dims.experts);  // the most
  double none = 1;  // the probability that a token chose no expert of a rank
  for (int64_t i = 0; i < dims.chosen; ++i)
    none *= static_cast<double>(std::max<int64_t>(dims.experts - of_rank - i, 0)) /
            static_cast<double>(dims.experts - i);
  const auto bytes = static_cast<double>(tokens * RecordWidth(dims, d) * SizeOf(DType::kF32));
  return none * bytes > static_cast<double>(kBytesOfExchange) ? ExpertExchange::kAllToAll
                                                              : ExpertExchange::kGather;
}

ReceivedTokens SendTokens(const MoeLayer& moe, const RoutedTokens& own, const TokenShares& shares,
                          ExpertExchange exchange, StepContext& step) {
  LATTE_CHECK(step.workspace->device().is_host(), "ranks exchange rows in host memory");
  if (exchange == ExpertExchange::kAuto)
    exchange = moe.whole_experts
                   ? CheaperExchange(moe.dims, own.x.shape[1], shares.total(), shares.ranks())
                   : ExpertExchange::kGather;
  std::vector<int64_t> places;
  switch (exchange) {
    case ExpertExchange::kAllToAll:
      LATTE_CHECK(moe.whole_experts, "shares of experts need the tokens of all ranks");
      return SendToChosen(moe, own, step);
    case ExpertExchange::kPadded:
      places.assign(Index(shares.ranks()), shares.most());
      break;
    case ExpertExchange::kGather:
    case ExpertExchange::kAuto:
      for (int64_t rank = 0; rank < shares.ranks(); ++rank) places.push_back(shares.Count(rank));
  }
  return GatherTokens(moe, own, shares, places, step);
}

TensorView ReturnRows(const MoeLayer& moe, const TensorView& rows,
                      std::span<const int64_t> to_ranks, const RoutedTokens& own,
                      std::span<int32_t> row_of_pair, StepContext& step) {
  const std::vector<int32_t> rank_of = RanksOfExperts(moe.dims.experts, moe.ranks);
  const auto from = [&](int32_t expert) { return Index(rank_of[Index(expert)]); };
  std::vector<int64_t> counts(Index(moe.ranks));
  for (const int32_t expert : own.experts) ++counts[from(expert)];
  std::vector<int64_t> next(counts.size());  // row from each rank
  std::exclusive_scan(counts.begin(), counts.end(), next.begin(), int64_t{0});
  for (size_t pair = 0; pair < own.experts.size(); ++pair)
    row_of_pair[pair] = static_cast<int32_t>(next[from(own.experts[pair])]++);

  const TensorView arrived =
      step.workspace->Take(DType::kF32, {std::ssize(own.experts), rows.shape[1]});
  const int64_t bytes = rows.shape[1] * SizeOf(DType::kF32);
  step.expert_ranks->AllToAll(BytesOf(rows), Times({to_ranks.begin(), to_ranks.end()}, bytes),
                              BytesOf(arrived), Times(counts, bytes));
  return arrived;
}

void ReturnColumns(const TensorView& share, const TensorView& y, const TokenShares& shares,
                   StepContext& step) {
  Communicator& ranks = *step.expert_ranks;
  Workspace& workspace = *step.workspace;
  const int64_t rows = y.shape[0];
  std::vector<int32_t> ids;  // of the rows for each rank, which are the tokens of its group
  std::vector<int64_t> sent, received;
  const int64_t float_bytes = SizeOf(DType::kF32);
  for (int64_t rank = 0; rank < ranks.size(); ++rank) {
    const int64_t begin = shares.GroupBegin(rank);
    const int64_t count = shares.GroupCount(rank);
    for (int64_t i = 0; i < count; ++i) ids.push_back(static_cast<int32_t>(begin + i));
    sent.push_back(count * share.shape[1] * float_bytes);
    received.push_back(rows * RankShare{rank, ranks.size()}.Of(y.shape[1]) * float_bytes);
  }
  TensorView to_send = share;  // if every group is one rank, the rows are in order
  if (shares.ranks_per_group() > 1) {
    to_send = workspace.Take(DType::kF32, {std::ssize(ids), share.shape[1]});
    if (to_send.elements() > 0) Run<GatherOp>({share, ids, to_send}, step.exec);
  }
  const TensorView parts = workspace.Take(DType::kF32, {y.elements()});
  ranks.AllToAll(BytesOf(to_send), sent, BytesOf(parts), received);
  JoinColumns(parts, ranks.size(), /*unit=*/1, y, step);
}

}  // namespace latte
