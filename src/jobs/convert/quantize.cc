#include "src/jobs/convert/quantize.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>

#include <fmt/format.h>

#include "src/base/file.h"
#include "src/base/json_out.h"
#include "src/base/math.h"
#include "src/checkpoint/checkpoint.h"
#include "src/checkpoint/config/model_config.h"
#include "src/checkpoint/expected_tensors.h"
#include "src/checkpoint/formats/formats.h"
#include "src/checkpoint/quant_tensors.h"
#include "src/jobs/convert/checkpoint_writer.h"
#include "src/models/weight_loader.h"
#include "src/tensor/dtype.h"

namespace latte {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxCopiedBytes = 64 << 20;  // of a small file that is copied
constexpr int64_t kRows = kEncodedRows;        // number of rows encoded at once

// The treatment of one tensor, or of one matrix of a stack.
struct Item {
  enum class What {
    kCopy,
    kQuantise,
    kWiden
  };  // kWiden: quantised values that are not quantised again become BF16
  What what = What::kCopy;
  std::string source;
  size_t first = 0;  // index of its first tensor in the plan
  int64_t rows = 0;
  int64_t columns = 0;
  std::optional<WeightLoader::StackPart> part;
};

EncodedRows Widen(std::span<const float> w) {
  EncodedRows out;
  out.values.resize(w.size() * 2);
  RoundTo16(w.data(), static_cast<int64_t>(w.size()), DType::kBF16,
            reinterpret_cast<uint16_t*>(out.values.data()));
  return out;
}

// Iterates over a checkpoint twice: to plan, and to write.
class Quantizer {
 public:
  Quantizer(const Checkpoint& checkpoint, const ModelConfig& config, const QuantScheme& scheme)
      : checkpoint_(checkpoint),
        quant_(config.quant),
        scheme_(scheme),
        load_(checkpoint, config.quant) {
    report_.errors = QuantErrors(config.layers);
  }

  // Computes the plan and its part of the report.
  void Plan() {
    const std::set<std::string> of_matrices = TensorsBesideValues();
    for (const auto& [name, tensor] : checkpoint_.tensors()) {
      report_.bytes_before += tensor.bytes;
      if (of_matrices.contains(name)) continue;
      if (IsProjection(name) && tensor.shape.size() == 3)
        PlanStack(name, tensor);
      else
        PlanTensor(name, tensor);
    }
    for (const TensorPlan& plan : plan_) report_.bytes_after += plan.bytes();
  }

  [[nodiscard]] Status Write(const CheckpointWriter& writer, ThreadPool& threads,
                             const JobProgress& progress) {
    int64_t done = 0;
    for (const Item& item : items_) {
      LATTE_RETURN_IF_ERROR(item.what == Item::What::kCopy ? Copy(item, writer)
                                                           : Encode(item, writer, threads));
      done += plan_[item.first].bytes();
      if (progress) progress(done, values_bytes_, {});
    }
    return {};
  }

  const std::vector<TensorPlan>& plan() const { return plan_; }
  QuantizeReport& report() { return report_; }

 private:
  // Whether the tensor holds the values of a matrix that is quantised already.
  bool IsQuantised(const std::string& name, const StoredTensor& tensor) const {
    return !FindMatrix(quant_, name, tensor.shape, checkpoint_.tensors())
                .scheme.format->method.empty();
  }

  // The scales of quantised matrices, and other tensors that belong to their values.
  std::set<std::string> TensorsBesideValues() const {
    std::set<std::string> out;
    for (const auto& [name, tensor] : checkpoint_.tensors()) {
      if (!IsProjection(name) || tensor.shape.size() < 2) continue;
      const StoredMatrix matrix = FindMatrix(quant_, name, tensor.shape, checkpoint_.tensors());
      for (size_t i = 1; i < matrix.tensors.size(); ++i) out.insert(matrix.tensors[i].name);
    }
    return out;
  }

  void Add(Item item, std::vector<TensorPlan> plan) {
    item.first = plan_.size();
    values_bytes_ += plan.front().bytes();
    items_.push_back(std::move(item));
    for (TensorPlan& tensor : plan) plan_.push_back(std::move(tensor));
  }

  void PlanTensor(const std::string& name, const StoredTensor& tensor) {
    if (!IsProjection(name) || tensor.shape.size() != 2) {
      ++report_.kept;
      return Add({.source = name}, {{name, tensor.dtype_name, tensor.shape}});
    }
    PlanMatrix(name, {.source = name, .rows = tensor.shape[0], .columns = tensor.shape[1]},
               IsQuantised(name, tensor));
  }

  // Plans one matrix under the name that it will have.
  void PlanMatrix(const std::string& name, Item item, bool quantised) {
    if (TakesMatrix(scheme_, name)) {
      if (FitsGroups(scheme_, item.columns)) {
        ++report_.quantized;
        item.what = Item::What::kQuantise;
        return Add(std::move(item), latte::PlanMatrix(scheme_, name, item.rows, item.columns));
      }
      report_.not_divisible.push_back(ModuleOf(name));
    }
    ++report_.kept;
    const StoredTensor& stored = *checkpoint_.Find(item.source);
    item.what = quantised || item.part ? Item::What::kWiden : Item::What::kCopy;
    const int64_t rows = item.rows;
    const int64_t columns = item.columns;
    Add(std::move(item), {{name,
                           quantised || stored.shape.size() == 3 ? "BF16" : stored.dtype_name,
                           {rows, columns}}});
  }

  // Stacked experts, [E, 2I, D] of gate and up or [E, D, I] of down, become one matrix each.
  void PlanStack(const std::string& name, const StoredTensor& tensor) {
    const bool quantised = IsQuantised(name, tensor);
    const std::string experts = ModuleOf(name);
    const bool down = name.ends_with(".down_proj");
    const int64_t rows = down ? tensor.shape[1] : tensor.shape[1] / 2;
    for (int64_t e = 0; e < tensor.shape[0]; ++e)
      for (int half = 0; half < (down ? 1 : 2); ++half) {
        const char* projection = down ? "down_proj" : half == 0 ? "gate_proj" : "up_proj";
        Item item = {.source = name, .rows = rows, .columns = tensor.shape[2]};
        item.part = {name, tensor.shape[0], tensor.shape[1], tensor.shape[2], e, half * rows, rows};
        PlanMatrix(fmt::format("{}.{}.{}.weight", experts, e, projection), std::move(item),
                   quantised);
      }
  }

  [[nodiscard]] Status Copy(const Item& item, const CheckpointWriter& writer) const {
    const StoredTensor& stored = *checkpoint_.Find(item.source);
    const MappedFile& file = *checkpoint_.files()[static_cast<size_t>(stored.file_index)];
    return writer.Write(
        item.first, 0,
        file.bytes().subspan(static_cast<size_t>(stored.begin), static_cast<size_t>(stored.bytes)));
  }

  [[nodiscard]] Status Encode(const Item& item, const CheckpointWriter& writer,
                              ThreadPool& threads) {
    LATTE_ASSIGN_OR_RETURN(const Linear linear,
                           item.part ? load_.FromStack(*item.part)
                                     : load_.Matrix(item.source, item.rows, item.columns));
    const int64_t blocks = CeilDiv(item.rows, kRows);
    std::vector<EncodedRows> encoded(static_cast<size_t>(blocks));
    std::vector<Status> written(static_cast<size_t>(blocks));
    threads.ParallelFor(blocks, [&](int64_t b) {
      const auto at = static_cast<size_t>(b);
      written[at] = EncodeBlock(item, linear.matrix, b, writer, encoded[at]);
    });
    for (const Status& status : written) LATTE_RETURN_IF_ERROR(status);
    if (item.what == Item::What::kWiden) return {};
    CountError(plan_[item.first].name, encoded);
    return WriteScales(item, encoded, writer);
  }

  // Encodes the rows from b·kRows on and writes their values; keeps scales and errors.
  [[nodiscard]] Status EncodeBlock(const Item& item, const LoadedMatrix& matrix, int64_t b,
                                   const CheckpointWriter& writer, EncodedRows& out) const {
    const int64_t rows = std::min(kRows, item.rows - b * kRows);
    std::vector<float> w(static_cast<size_t>(rows * item.columns));
    for (int64_t i = 0; i < rows; ++i) matrix.ReadRow(b * kRows + i, w.data() + i * item.columns);
    if (!std::all_of(w.begin(), w.end(), [](float x) { return std::isfinite(x); }))
      return Corrupt(
          fmt::format("tensor '{}': expected finite values, found NaN or infinity in "
                      "rows {} to {}; see latte inspect --check-weights",
                      item.source, b * kRows, b * kRows + rows - 1));
    out = item.what == Item::What::kWiden
              ? Widen(w)
              : scheme_.format->encoder->encode(scheme_, w, item.columns);
    const TensorPlan& plan = plan_[item.first];
    LATTE_RETURN_IF_ERROR(
        writer.Write(item.first, b * kRows * (plan.bytes() / item.rows), out.values));
    out.values = {};
    return {};
  }

  [[nodiscard]] Status WriteScales(const Item& item, const std::vector<EncodedRows>& encoded,
                                   const CheckpointWriter& writer) const {
    int64_t at = 0;
    for (const EncodedRows& rows : encoded) {
      LATTE_RETURN_IF_ERROR(writer.Write(item.first + 1, at, rows.scales));
      at += static_cast<int64_t>(rows.scales.size());
    }
    if (scheme_.format->encoder->written.size() < 3) return {};
    const int64_t shape[2] = {item.rows, item.columns};
    return writer.Write(item.first + 2, 0, std::as_bytes(std::span(shape)));
  }

  void CountError(const std::string& name, const std::vector<EncodedRows>& encoded) {
    double error = 0;
    double size = 0;
    for (const EncodedRows& rows : encoded) {
      error += rows.squared_error;
      size += rows.squared;
    }
    report_.errors.Add(name, error, size);
  }

  const Checkpoint& checkpoint_;
  QuantConfig quant_;
  QuantScheme scheme_;
  WeightLoader load_;
  std::vector<Item> items_;
  std::vector<TensorPlan> plan_;
  int64_t values_bytes_ = 0;  // size of the first tensor of every item
  QuantizeReport report_;
};

// Refuses a source that cannot be quantised.
Status CheckQuantizable(const std::string& from, const ModelConfig& config,
                        const Checkpoint& checkpoint) {
  if (config.wrapped)
    return Unsupported(fmt::format(
        "{}: expected a text model, found one of several parts, which is not quantised", from));
  if (config.quant.format().smaller.empty())
    return Unsupported(fmt::format(
        "{}: expected plain or fp8 weights, found integers or blocks: it is quantised already",
        from));
  return CheckTensors(config, checkpoint.tensors());
}

// The config.json of `from` with another quantization_config.
Result<std::string> NewConfig(const std::string& from, const QuantScheme& scheme,
                              const std::vector<std::string>& kept) {
  const std::string path = from + "/config.json";
  LATTE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxCopiedBytes));
  LATTE_ASSIGN_OR_RETURN(JsonOut config, ParseToEdit(text, path));
  config["quantization_config"] = scheme.format->encoder->config(scheme, kept);
  return Dump(config, 2) + "\n";
}

// Copies the other files of the folder: tokenizer, template, licence. Skips folders, large or
// hidden files, and weights in other formats.
Status CopySmallFiles(const std::string& from, const CheckpointWriter& writer,
                      std::vector<std::string>& copied) {
  std::error_code error;
  for (fs::directory_iterator it(from, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    const bool weights =
        name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json");
    std::error_code unreadable;
    if (weights || name == "config.json" || name.starts_with('.') ||
        !it->is_regular_file(unreadable) || it->file_size(unreadable) > kMaxCopiedBytes)
      continue;
    LATTE_ASSIGN_OR_RETURN(const std::string text, ReadFile(it->path().string(), kMaxCopiedBytes));
    LATTE_RETURN_IF_ERROR(writer.AddFile(name, text));
    copied.push_back(name);
  }
  if (error)
    return Fail(Code::kUnavailable, fmt::format("{}: cannot be read: {}", from, error.message()));
  std::sort(copied.begin(), copied.end());
  return {};
}

}  // namespace

JsonOut ReportJson(const QuantizeReport& report) {
  return {{"quantized_matrices", report.quantized},
          {"kept_tensors", report.kept},
          {"bytes_before", report.bytes_before},
          {"bytes_after", report.bytes_after},
          {"mean_relative_error", report.errors.mean()},
          {"max_relative_error", report.errors.worst().largest},
          {"worst_matrix", report.errors.worst().worst},
          {"errors", QuantErrorsJson(report.errors)},
          {"not_divisible", report.not_divisible},
          {"files", report.files}};
}

Result<QuantizeReport> QuantizeCheckpoint(const std::string& from, const std::string& to,
                                          const QuantScheme& scheme, ThreadPool& threads,
                                          const QuantizeOptions& options) {
  LATTE_ASSIGN_OR_RETURN(const ModelConfig config, LoadModelConfig(from));
  LATTE_ASSIGN_OR_RETURN(Checkpoint checkpoint, Checkpoint::Open(from));
  if (!config.wrapped) checkpoint.UseCommonNames(config.layers);
  LATTE_RETURN_IF_ERROR(CheckQuantizable(from, config, checkpoint));
  Quantizer quantizer(checkpoint, config, scheme);
  quantizer.Plan();
  LATTE_ASSIGN_OR_RETURN(const std::string new_config,
                         NewConfig(from, scheme, quantizer.report().not_divisible));
  LATTE_ASSIGN_OR_RETURN(
      CheckpointWriter writer,
      CheckpointWriter::Begin(
          to, quantizer.plan(),
          {.force = options.force, .source = from, .interrupted = options.interrupted}));
  LATTE_RETURN_IF_ERROR(writer.AddFile("config.json", new_config));
  LATTE_RETURN_IF_ERROR(CopySmallFiles(from, writer, quantizer.report().files));
  LATTE_RETURN_IF_ERROR(quantizer.Write(writer, threads, options.progress));
  LATTE_RETURN_IF_ERROR(writer.Commit());
  quantizer.report().notes = writer.notes();
  return quantizer.report();
}

}  // namespace latte
