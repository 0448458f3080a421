#include "lab/synth/synth.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <iterator>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "lab/synth/synth_tokenizer.h"
#include "src/base/json_out.h"
#include "src/base/random.h"
#include "src/base/timer.h"
#include "src/checkpoint/config/model_size.h"
#include "src/checkpoint/expected_tensors.h"
#include "src/checkpoint/formats/common/encoding.h"
#include "src/jobs/convert/quant_scheme.h"
#include "src/tensor/dtype.h"

namespace latte {
namespace {

constexpr int64_t kPieceBytes = 1 << 20;  // bytes written at once

// The sum s of four uniform bytes is close to normal with mean 510. A weight is (s − 510)·unit,
// with a unit that gives a standard deviation of 0.02. One unit replaces zero: few weights of
// trained layers are zero, and kernels may be slower with them. A table maps s to the code of a
// format. Only integers are involved, so every machine writes the same bytes.
constexpr size_t kSums = 4 * 255 + 1;
constexpr double kUnit = 0.02 / 147.80054127;  // √(4·(256² − 1)/12)
constexpr double kLargest = 510 * kUnit;
using CodeTable = std::array<uint32_t, kSums>;

// One tensor: random codes of `bits` bits each, or a repeated `pattern`.
struct SynthTensor {
  int64_t bits = 0;  // 0: uses the pattern
  std::string pattern;
};

// The sums of the lower and of the upper four bytes of a word.
std::pair<size_t, size_t> ByteSums(uint64_t word) {
  constexpr uint64_t kEven = 0x00ff00ff00ff00ff;
  const uint64_t pairs = (word & kEven) + ((word >> 8) & kEven);
  return {(pairs & 0xffff) + ((pairs >> 16) & 0xffff), ((pairs >> 32) & 0xffff) + (pairs >> 48)};
}

CodeTable MakeTable(const std::function<uint32_t(float)>& code) {
  CodeTable table = {};
  for (size_t s = 0; s < kSums; ++s)
    table[s] = code(static_cast<float>((s == 510 ? 1 : static_cast<double>(s) - 510) * kUnit));
  return table;
}

uint32_t PlainCode(DType dtype, float weight) {
  return dtype == DType::kF32 ? std::bit_cast<uint32_t>(weight) : FloatToBF16(weight);
}

// The codes of a tensor's stream from 2·first_pair on, as many as fit in `out`.
template <class Code>
void FillCodes(const CodeTable& table, uint64_t stream, uint64_t first_pair,
               std::span<std::byte> out) {
  const size_t count = out.size() / sizeof(Code);
  for (size_t i = 0; i < count; i += 2) {
    const auto [a, b] = ByteSums(Mix64(stream + first_pair + i / 2));
    const Code codes[2] = {static_cast<Code>(table[a]), static_cast<Code>(table[b])};
    std::memcpy(out.data() + i * sizeof(Code), codes,
                std::min<size_t>(2, count - i) * sizeof(Code));
  }
}

// Two codes per byte, the first in the lower half.
void FillNibbles(const CodeTable& table, uint64_t stream, uint64_t first_pair,
                 std::span<std::byte> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    const auto [a, b] = ByteSums(Mix64(stream + first_pair + i));
    out[i] = static_cast<std::byte>(table[a] | table[b] << 4);
  }
}

// Every tensor that is written. Tensors of multi-token-prediction layers come last, so the other
// tensors are the same with and without these layers.
std::vector<ExpectedTensor> TensorsOf(const ModelConfig& config) {
  std::vector<ExpectedTensor> out = ExpectedTensors(config);
  std::ranges::move(ExpectedMtpTensors(config), std::back_inserter(out));
  return out;
}

// The content of the folder, tensor by tensor.
class SynthWeights {
 public:
  SynthWeights(const SynthSpec& spec, const ModelConfig& config) : spec_(spec) {
    for (const ExpectedTensor& tensor : TensorsOf(config)) AddTensor(tensor);
    const SynthFormat& format = spec.format;
    tables_[0] = MakeTable([&](float weight) { return PlainCode(format.plain, weight); });
    if (format.quant)
      tables_[1] = MakeTable([encoder = format.quant->format->encoder](float weight) {
        return encoder->uniform_code(weight, kLargest);
      });
  }

  const std::vector<TensorPlan>& plan() const { return plan_; }

  // Computes the bytes [offset, offset + out.size()) of tensor i; `offset` is the start of a word
  // of codes.
  void Fill(size_t i, int64_t offset, std::span<std::byte> out) const {
    const SynthTensor& tensor = tensors_[i];
    if (tensor.bits == 0) return FillPattern(tensor.pattern, out);
    const uint64_t stream = Mix64(Mix64(spec_.seed) ^ i);
    const auto pair = static_cast<uint64_t>(offset * 8 / tensor.bits / 2);
    if (tensor.bits == 4) return FillNibbles(tables_[1], stream, pair, out);
    if (tensor.bits == 8) return FillCodes<uint8_t>(tables_[1], stream, pair, out);
    if (tensor.bits == 16) return FillCodes<uint16_t>(tables_[0], stream, pair, out);
    FillCodes<uint32_t>(tables_[0], stream, pair, out);
  }

 private:
  static void FillPattern(const std::string& pattern, std::span<std::byte> out) {
    for (size_t at = 0; at < out.size(); at += pattern.size())
      std::memcpy(out.data() + at, pattern.data(), std::min(pattern.size(), out.size() - at));
  }

  void Add(TensorPlan plan, SynthTensor tensor) {
    plan_.push_back(std::move(plan));
    tensors_.push_back(std::move(tensor));
  }

  void AddTensor(const ExpectedTensor& tensor) {
    const bool f32 = spec_.format.f32();
    if (tensor.shape.size() == 2) return AddMatrix(tensor);
    // Norms are 1; the router's bias, which is never rounded, and other biases are 0.
    const float value = tensor.name.ends_with("norm.weight") ? 1.0f : 0.0f;
    const bool wide = f32 || tensor.name.ends_with("e_score_correction_bias");
    Add({tensor.name, wide ? "F32" : "BF16", tensor.shape},
        {0, wide ? BytesOf(value) : BytesOf(FloatToBF16(value))});
  }

  void AddMatrix(const ExpectedTensor& tensor) {
    const bool f32 = spec_.format.f32();
    const std::optional<QuantScheme>& scheme = spec_.format.quant;
    if (!scheme || !TakesMatrix(*scheme, tensor.name) || !FitsGroups(*scheme, tensor.shape[1]))
      return Add({tensor.name, f32 ? "F32" : "BF16", tensor.shape}, {f32 ? 32 : 16, {}});
    std::vector<TensorPlan> parts =
        PlanMatrix(*scheme, tensor.name, tensor.shape[0], tensor.shape[1]);
    Add(std::move(parts[0]), {scheme->bits, {}});
    Add(std::move(parts[1]), {0, scheme->format->encoder->uniform_scale(kLargest)});
    if (parts.size() > 2)
      Add(std::move(parts[2]), {0, BytesOf(tensor.shape[0]) + BytesOf(tensor.shape[1])});
  }

  SynthSpec spec_;
  std::vector<TensorPlan> plan_;
  std::vector<SynthTensor> tensors_;
  std::array<CodeTable, 2> tables_ = {};  // for plain and for quantised matrices
};

// Matrices that the scheme includes but whose rows do not divide into its groups.
std::vector<std::string> KeptModules(const QuantScheme& scheme, const ModelConfig& config) {
  std::vector<std::string> kept;
  for (const ExpectedTensor& tensor : TensorsOf(config))
    if (tensor.shape.size() == 2 && TakesMatrix(scheme, tensor.name) &&
        !FitsGroups(scheme, tensor.shape[1]))
      kept.push_back(ModuleOf(tensor.name));
  return kept;
}

// The bytes that one task computes and writes.
struct Piece {
  size_t tensor;
  int64_t offset;
  int64_t bytes;
};

std::vector<Piece> CutIntoPieces(const std::vector<TensorPlan>& plan) {
  std::vector<Piece> pieces;
  for (size_t i = 0; i < plan.size(); ++i)
    for (int64_t at = 0; at < plan[i].bytes(); at += kPieceBytes)
      pieces.push_back({i, at, std::min(kPieceBytes, plan[i].bytes() - at)});
  return pieces;
}

Status WritePieces(const SynthWeights& synth, const CheckpointWriter& writer, ThreadPool& threads,
                   const JobProgress& progress) {
  const std::vector<Piece> pieces = CutIntoPieces(synth.plan());
  std::mutex mutex;
  Status first;
  int64_t done = 0;
  std::atomic<bool> failed = false;
  threads.ParallelFor(static_cast<int64_t>(pieces.size()), [&](int64_t p) {
    if (failed) return;
    const Piece& piece = pieces[static_cast<size_t>(p)];
    std::vector<std::byte> bytes(static_cast<size_t>(piece.bytes));
    synth.Fill(piece.tensor, piece.offset, bytes);
    Status status = writer.Write(piece.tensor, piece.offset, bytes);
    const std::lock_guard lock(mutex);
    if (!status && !failed.exchange(true)) first = std::move(status);
    done += piece.bytes;
    if (progress) progress(done, writer.bytes(), {});
  });
  return first;
}

Status AddTokenizer(const SynthSpec& spec, const ModelConfig& config,
                    const CheckpointWriter& writer) {
  if (!spec.tokenizer) return {};
  const std::optional<SynthTokenizer> made =
      MakeSynthTokenizer(config.vocab, config.bos, config.eos.empty() ? -1 : config.eos.front());
  if (!made) return {};
  LATTE_RETURN_IF_ERROR(writer.AddFile("tokenizer.json", made->tokenizer));
  return writer.AddFile("tokenizer_config.json", made->config);
}

}  // namespace

Result<SynthReport> WriteSynth(const SynthSpec& spec, const std::string& dir, ThreadPool& threads,
                               const WriterOptions& options, const JobProgress& progress) {
  const auto start = std::chrono::steady_clock::now();
  LATTE_ASSIGN_OR_RETURN(JsonOut json, SynthConfig(spec));
  LATTE_ASSIGN_OR_RETURN(const Json parsed, Json::Parse(Dump(json), spec.shape));
  LATTE_ASSIGN_OR_RETURN(const ModelConfig config, ParseModelConfig(parsed));
  const std::optional<QuantScheme>& scheme = spec.format.quant;
  if (scheme)
    json["quantization_config"] =
        scheme->format->encoder->config(*scheme, KeptModules(*scheme, config));
  const SynthWeights synth(spec, config);
  LATTE_ASSIGN_OR_RETURN(CheckpointWriter writer,
                         CheckpointWriter::Begin(dir, synth.plan(), options));
  LATTE_RETURN_IF_ERROR(writer.AddFile("config.json", Dump(json, 2) + "\n"));
  LATTE_RETURN_IF_ERROR(AddTokenizer(spec, config, writer));
  LATTE_RETURN_IF_ERROR(WritePieces(synth, writer, threads, progress));
  LATTE_RETURN_IF_ERROR(writer.Commit());
  return SynthReport{CountParams(config).total(), writer.bytes(), SecondsSince(start),
                     writer.notes()};
}

Result<TemporarySynth> TemporarySynth::Make(const SynthSpec& spec, ThreadPool& threads,
                                            const std::function<bool()>& interrupted,
                                            const JobProgress& progress) {
  LATTE_ASSIGN_OR_RETURN(StagingFolder folder, StagingFolder::MakeScratch("latte-synth"));
  TemporarySynth out(std::move(folder));
  SynthSpec weights = spec;
  weights.tokenizer = false;
  LATTE_RETURN_IF_ERROR(WriteSynth(weights, out.dir(), threads,
                                   {.lasting = false, .interrupted = interrupted}, progress));
  return out;
}

}  // namespace latte
