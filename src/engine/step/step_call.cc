#include "src/engine/step/step_call.h"

#include <fmt/format.h>

#include "src/engine/group/wire.h"

namespace latte {
namespace {

constexpr int64_t kPaths = 4;

void WriteSequences(std::span<const SequenceChunk> sequences, WireWriter& to) {
  to.Int(std::ssize(sequences));
  for (const SequenceChunk& s : sequences) {
    to.Int(s.query_start);
    to.Int(s.count);
    to.Int(s.cached_len);
    to.Int(static_cast<int64_t>(s.path));
    to.List(s.pages);
  }
}

std::vector<SequenceChunk> ReadSequences(WireReader& from) {
  std::vector<SequenceChunk> out;
  for (int64_t rest = from.Int(); rest > 0; --rest) {
    SequenceChunk s;
    s.query_start = from.Int();
    s.count = from.Int();
    s.cached_len = from.Int();
    const int64_t path = from.Int();
    if (path < 0 || path >= kPaths) from.Fail();
    s.path = static_cast<MlaPath>(path);
    s.pages = from.List<int32_t>();
    if (s.pages.empty()) {  // also after an error, so that a wrong count ends the loop
      from.Fail();
      return out;
    }
    out.push_back(s);
  }
  return out;
}

// Its width, then its elements.
template <class T>
void WriteMatrix(const TensorView& m, WireWriter& to) {
  to.Int(m.empty() ? 0 : m.shape[1]);
  const auto elements = static_cast<size_t>(m.empty() ? 0 : m.elements());
  to.List(std::span(m.Ptr<const T>(), elements));
}

template <class T>
TensorView ReadMatrix(DType dtype, WireReader& from) {
  const int64_t width = from.Int();
  const std::span<const T> values = from.List<T>();
  if (width < 0 || (width == 0 ? !values.empty() : std::ssize(values) % width != 0)) from.Fail();
  if (width <= 0 || !from.good()) return {};
  return TensorView(const_cast<T*>(values.data()), dtype, {std::ssize(values) / width, width});
}

}  // namespace

std::vector<std::byte> WriteStepCall(const StepCall& call) {
  WireWriter out;
  out.Int(static_cast<int64_t>(call.kind));
  out.List(call.tokens);
  out.List(call.positions);
  out.List(call.slots);
  WriteSequences(call.sequences, out);
  out.Int(call.run.layer);
  out.Int(static_cast<int64_t>(call.run.input));
  WriteMatrix<float>(call.rows, out);
  WriteMatrix<int32_t>(call.key_positions, out);
  out.Int(call.from);
  out.Int(call.to);
  out.List(call.page);
  out.List(std::span<const int64_t>(call.group_tokens));
  return out.Take();
}

Result<StepCall> ReadStepCall(std::span<const std::byte> message) {
  WireReader in(message);
  StepCall call;
  const int64_t kind = in.Int();
  if (kind < 0 || kind >= kStepCallKinds) in.Fail();
  call.kind = static_cast<StepCallKind>(kind);
  call.tokens = in.List<int32_t>();
  call.positions = in.List<int32_t>();
  call.slots = in.List<int64_t>();
  call.sequences = ReadSequences(in);
  call.run.layer = in.Int();
  call.run.input = in.Int() == 0 ? DraftInput::kDecoder : DraftInput::kDraft;
  call.rows = ReadMatrix<float>(DType::kF32, in);
  call.key_positions = ReadMatrix<int32_t>(DType::kI32, in);
  call.from = static_cast<int32_t>(in.Int());
  call.to = static_cast<int32_t>(in.Int());
  call.page = in.List<std::byte>();
  const std::span<const int64_t> group_tokens = in.List<int64_t>();
  call.group_tokens.assign(group_tokens.begin(), group_tokens.end());
  if (!in.ok())
    return Corrupt(fmt::format(
        "a message of {} bytes between ranks: expected a call of the model, found other bytes; "
        "all ranks must run the same build",
        message.size()));
  return call;
}

}  // namespace latte
