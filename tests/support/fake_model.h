// A model without weights, for testing the code that drives a model. Its cache rows are hashes
// chained from token to token, its logits a hash of all rows of a sequence as the page tables show
// them: a wrong page, position, token, path or copy changes the sampled tokens. PlainRows computes
// the expected result without any cache, so an engine can be compared with the definition.
#pragma once

#include <atomic>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "src/base/random.h"
#include "src/models/model.h"

namespace latte::testing_support {

inline constexpr int64_t kFakeVocab = 64;
// The last ids are sampled only with a bias: tests give them special meanings.
inline constexpr int32_t kRareTokens = 4;
inline constexpr int32_t kFirstRareToken = kFakeVocab - kRareTokens;

inline ModelConfig FakeConfig() {
  ModelConfig config;
  config.architecture = "FakeForCausalLM";
  config.layers = 2;
  config.mtp_layers = 1;
  config.vocab = kFakeVocab;
  config.max_position = 1 << 20;
  // Rows have room for a hash (8 bytes) with every path and floating-point cache.
  config.mla = {.d = 8, .h = 1, .c = 2, .n = 2, .r = 2, .v = 4};
  return config;
}

// The row of one token in one layer. `previous`: the row of the previous token; 0 for the first.
inline uint64_t FakeRow(uint64_t previous, int32_t token, int64_t position, int64_t layer,
                        MlaPath path) {
  const uint64_t place = Mix64(static_cast<uint64_t>(position)) ^
                         Mix64(static_cast<uint64_t>(layer * 16 + static_cast<int>(path)) << 32);
  return Mix64(previous ^ Mix64(place ^ static_cast<uint64_t>(token)));
}

// Logits after a sequence whose rows have the hash `state`.
inline void FakeLogits(uint64_t state, std::span<float> logits) {
  for (size_t v = 0; v < logits.size(); ++v) {
    const bool rare = static_cast<int32_t>(v) >= kFirstRareToken;
    logits[v] = rare ? -60.0f : static_cast<float>(Mix64(state + v) % 4096) / 512.0f - 4.0f;
  }
}

// As FakeRow and FakeLogits without a cache: rows of one sequence, appended token by token.
class PlainRows {
 public:
  void Append(int32_t token, MlaPath path) {
    for (size_t layer = 0; layer < last_.size(); ++layer) {
      last_[layer] = FakeRow(last_[layer], token, length_, static_cast<int64_t>(layer), path);
      state_ = Mix64(state_ ^ last_[layer]);
    }
    ++length_;
  }
  uint64_t state() const { return state_; }
  int64_t length() const { return length_; }

 private:
  std::vector<uint64_t> last_ = std::vector<uint64_t>(static_cast<size_t>(FakeConfig().layers));
  uint64_t state_ = 0;
  int64_t length_ = 0;
};

// Thread-compatible: one engine at a time. Uses only the first stream of a cache.
class FakeModel : public Model {
 public:
  // Replaces all logits after `token` at `position`; nullopt: unchanged.
  using Fault = std::function<std::optional<float>(int32_t token, int64_t position)>;
  Fault fault;
  std::function<void(const StepContext&)> on_forward;  // called before a step is computed

  const ModelConfig& config() const override { return config_; }
  int64_t forwards() const { return forwards_; }

  void Forward(StepContext& step, const TensorView& h) const override {
    if (on_forward) on_forward(step);
    ++forwards_;
    // As in a real layer, all rows are written before attention reads any.
    for (const SequenceChunk& s : step.sequences) WriteRows(step, s);
    for (const SequenceChunk& s : step.sequences) WriteHidden(step, s, h);
  }

  // Drafts are right in three of four cases. The rows of the drafted-from token are written where
  // the model will write them, so that the next draft finds them.
  int64_t draft_layers() const override { return 1; }
  void Draft(StepContext& step, DraftRun run, const TensorView&,
             const TensorView& z) const override {
    for (const SequenceChunk& s : step.sequences) {
      LATTE_CHECK(s.count == 1, "{} rows", s.count);
      const int64_t position = s.cached_len + 1;
      const int64_t slot = SlotOf(step, s, position);
      for (int64_t layer = 0; layer < config_.layers; ++layer)
        WriteRow(step, s, layer, position, step.tokens[static_cast<size_t>(s.query_start)], slot);
      SequenceChunk longer = s;
      longer.cached_len = position;
      WriteHidden(step, longer, z);
    }
    AppendDraftRows(step, run, z);
  }
  void AppendDraftRows(StepContext& step, DraftRun, const TensorView&) const override {
    for (const int64_t slot : step.slots) std::memset(RowAt(step, config_.layers, slot), 1, 8);
  }
  void DraftLogits(StepContext&, int64_t, const TensorView& z,
                   const TensorView& logits) const override {
    for (int64_t row = 0; row < z.shape[0]; ++row) {
      const uint64_t state = StateOf(z.Row<float>(row));
      const uint64_t wrong = Mix64(state) % 4 == 0 ? 1 : 0;
      FakeLogits(state ^ wrong, {logits.Row<float>(row), static_cast<size_t>(kFakeVocab)});
    }
  }

  void Logits(StepContext&, const TensorView& h, const TensorView& logits) const override {
    for (int64_t row = 0; row < h.shape[0]; ++row) {
      const std::span<float> out(logits.Row<float>(row), static_cast<size_t>(kFakeVocab));
      const float* const in = h.Row<float>(row);
      FakeLogits(StateOf(in), out);
      const std::optional<float> value =
          fault ? fault(static_cast<int32_t>(in[kToken]), static_cast<int64_t>(in[kPosition]))
                : std::nullopt;
      if (value) std::fill(out.begin(), out.end(), *value);
    }
  }

 private:
  // Columns of a hidden state: a hash split into pieces that f32 holds exactly, then these.
  static constexpr int kPieces = 4;
  static constexpr int kToken = kPieces;
  static constexpr int kPosition = kPieces + 1;

  static uint64_t StateOf(const float* hidden) {
    uint64_t state = 0;
    for (int i = 0; i < kPieces; ++i) state |= static_cast<uint64_t>(hidden[i]) << (16 * i);
    return state;
  }

  static std::byte* RowAt(const StepContext& step, int64_t layer, int64_t slot) {
    const CacheStream& stream = step.cache->spec().streams[0];
    return step.cache->View(stream.id, layer).data + slot * stream.width * SizeOf(stream.dtype);
  }
  static int64_t SlotOf(const StepContext& step, const SequenceChunk& s, int64_t position) {
    const int64_t page = step.cache->spec().page_tokens;
    return s.pages[static_cast<size_t>(position / page)] * page + position % page;
  }
  static uint64_t ReadRow(const StepContext& step, const SequenceChunk& s, int64_t layer,
                          int64_t position) {
    uint64_t row = 0;
    std::memcpy(&row, RowAt(step, layer, SlotOf(step, s, position)), sizeof row);
    return row;
  }
  static void WriteRow(const StepContext& step, const SequenceChunk& s, int64_t layer,
                       int64_t position, int32_t token, int64_t slot) {
    const uint64_t previous = position == 0 ? 0 : ReadRow(step, s, layer, position - 1);
    const uint64_t row = FakeRow(previous, token, position, layer, s.path);
    std::memcpy(RowAt(step, layer, slot), &row, sizeof row);
  }

  void WriteRows(const StepContext& step, const SequenceChunk& s) const {
    for (int64_t i = 0; i < s.count; ++i) {
      const auto at = static_cast<size_t>(s.query_start + i);
      const int64_t position = step.positions[at];
      for (int64_t layer = 0; layer < config_.layers; ++layer)
        WriteRow(step, s, layer, position, step.tokens[at], step.slots[at]);
    }
  }

  void WriteHidden(const StepContext& step, const SequenceChunk& s, const TensorView& h) const {
    uint64_t state = 0;
    for (int64_t position = 0; position < s.total_len(); ++position) {
      for (int64_t layer = 0; layer < config_.layers; ++layer)
        state = Mix64(state ^ ReadRow(step, s, layer, position));
      if (position < s.cached_len) continue;
      const int64_t at = s.query_start + position - s.cached_len;
      float* const out = h.Row<float>(at);
      std::fill_n(out, config_.mla.d, 0.0f);
      for (int i = 0; i < kPieces; ++i) out[i] = static_cast<float>((state >> (16 * i)) & 0xffff);
      out[kToken] = static_cast<float>(step.tokens[static_cast<size_t>(at)]);
      out[kPosition] = static_cast<float>(step.positions[static_cast<size_t>(at)]);
    }
  }

  const ModelConfig config_ = FakeConfig();
  mutable std::atomic<int64_t> forwards_ = 0;
};

}  // namespace latte::testing_support
