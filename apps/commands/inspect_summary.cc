#include "apps/commands/inspect_summary.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "src/base/bytes_text.h"
#include "src/base/draw/bar.h"
#include "src/base/json_out.h"

namespace latte {
namespace {

std::string Thousands(int64_t n) {
  std::string digits = fmt::to_string(n);
  for (auto at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), 1, ',');
  return digits;
}

// "15.71 billion", "4.40 million", "5,000"
std::string Short(int64_t n) {
  const auto value = static_cast<double>(n);
  if (n >= 1'000'000'000) return fmt::format("{:.2f} billion", value / 1e9);
  if (n >= 1'000'000) return fmt::format("{:.2f} million", value / 1e6);
  return Thousands(n);
}

class SummaryText {
 public:
  explicit SummaryText(const JsonOut& report) : report_(report) {}

  std::string Text() {
    Line("model", fmt::format("{} ({})", String("architecture"), String("model_type")));
    Line("layers",
         fmt::format("{}; width {}, {} heads, latent {} + {}", Number("layers"), Number("hidden"),
                     Number("heads"), Number("latent"), Number("rope")));
    if (Int("experts") > 0)
      Line("experts", fmt::format("{} per layer, {} per token", Number("experts"),
                                  Number("experts_per_token")));
    AddParameters();
    const bool of_files = String("weight_bytes_are") == "those of the files";
    Line("weights", fmt::format("{}, {}{}", BytesText(Int("weight_bytes")), String("weight_format"),
                                of_files ? "" : " (an estimate: there are no files)"));
    AddChat();
    Line("context", fmt::format("{} tokens", Number("max_position")));
    AddCache();
    AddMemory();
    for (const JsonOut& caveat : report_["caveats"]) Line("note", caveat.get<std::string>());
    return text_;
  }

 private:
  void AddParameters() {
    std::string text = fmt::format("{}, {} used per token", Short(Int("total_params")),
                                   Short(Int("active_params")));
    if (Int("mtp_params") > 0)
      text += fmt::format("; {} more in layers that draft tokens", Short(Int("mtp_params")));
    Line("parameters", text);
  }

  void AddChat() {
    if (report_["tokenizer_tokens"].is_null())
      return Line("tokenizer", "none that Latte can read: only token ids");
    Line("tokenizer", fmt::format("{} tokens", Number("tokenizer_tokens")));
    const bool none = report_["chat_format"].is_null();
    const std::string format = none ? "" : String("chat_format");
    Line("chat", none                   ? "no template and no known format"
                 : format == "template" ? "the checkpoint's template"
                                        : "the format " + format);
  }

  int64_t CachePerToken() const { return Int("cache_bytes_per_token"); }

  void AddCache() {
    Line("cache",
         fmt::format("{} per token in bf16; keys and values of all heads would take {}",
                     BytesText(CachePerToken()), BytesText(Int("decompressed_bytes_per_token"))));
  }

  // Weights and cache of one sequence, for two lengths.
  void AddMemory() {
    const JsonOut& gpu = report_["gpu"];
    if (!gpu.is_null()) return AddGpuMemory(gpu);
    const int64_t weights = Int("weight_bytes");
    for (const int64_t tokens : std::vector<int64_t>{4096, 32768}) {
      if (tokens > Int("max_position")) continue;
      Line("memory", fmt::format("{} with {} tokens of context, and some for computing",
                                 BytesText(weights + tokens * CachePerToken()), Thousands(tokens)));
    }
    Line("here", fmt::format("{} of {} of memory are available: {}",
                             BytesText(Int("available_memory_bytes")),
                             BytesText(Int("machine_memory_bytes")), LargestContext()));
    AddMemoryBar(weights);
  }

  std::string LargestContext() const {
    const int64_t largest = Int("largest_context_here");
    if (largest == 0) return "the model does not fit";
    return fmt::format("room for about {} tokens of context", Thousands(largest));
  }

  // The same for the memory of a GPU, which also holds what steps need.
  void AddGpuMemory(const JsonOut& gpu) {
    const auto weights = gpu["weight_bytes"].get<int64_t>();
    const auto of = [](const JsonOut& need, const char* key) { return need[key].get<int64_t>(); };
    for (const JsonOut& need : gpu["needs"])
      Line("memory",
           fmt::format("{} of GPU memory with {} tokens of context: weights {}, steps {}, cache {}",
                       BytesText(weights + of(need, "step_bytes") + of(need, "cache_bytes")),
                       Thousands(of(need, "tokens")), BytesText(weights),
                       BytesText(of(need, "step_bytes")), BytesText(of(need, "cache_bytes"))));
    Line("here", fmt::format("{} of {} of GPU memory are free on {}: {}",
                             BytesText(Int("available_memory_bytes")),
                             BytesText(Int("machine_memory_bytes")), gpu["name"].get<std::string>(),
                             LargestContext()));
    AddGpuBar(weights, gpu["needs"].front());
  }

  void AddGpuBar(int64_t weights, const JsonOut& need) {
    constexpr int kColumns = 30;  // the line has at most 100
    const auto steps = need["step_bytes"].get<int64_t>(),
               cache = need["cache_bytes"].get<int64_t>();
    const int64_t rest =
        std::max<int64_t>(0, Int("available_memory_bytes") - weights - steps - cache);
    const BarPart parts[] = {{static_cast<double>(weights), BarFill::kFull},
                             {static_cast<double>(steps), BarFill::kDark},
                             {static_cast<double>(cache), BarFill::kMedium},
                             {static_cast<double>(rest), BarFill::kLight}};
    Line("", fmt::format("{}  {} weights  {} steps  {} cache of {} tokens  {} free",
                         StackedBar(parts, kColumns), FillText(BarFill::kFull),
                         FillText(BarFill::kDark), FillText(BarFill::kMedium),
                         Thousands(need["tokens"].get<int64_t>()), FillText(BarFill::kLight)));
  }

  // The parts of the available memory for 4,096 tokens of context. Weights and cache fill it if
  // they are larger.
  void AddMemoryBar(int64_t weights) {
    constexpr int kColumns = 36;
    const int64_t tokens = std::min<int64_t>(4096, Int("max_position"));
    const int64_t cache = tokens * CachePerToken();
    const int64_t rest = std::max<int64_t>(0, Int("available_memory_bytes") - weights - cache);
    const BarPart parts[] = {{static_cast<double>(weights), BarFill::kFull},
                             {static_cast<double>(cache), BarFill::kMedium},
                             {static_cast<double>(rest), BarFill::kLight}};
    Line("", fmt::format("{}  {} weights  {} cache of {} tokens  {} available",
                         StackedBar(parts, kColumns), FillText(BarFill::kFull),
                         FillText(BarFill::kMedium), Thousands(tokens), FillText(BarFill::kLight)));
  }

  void Line(std::string_view name, std::string_view value) {
    text_ += fmt::format("{:<11} {}\n", name, value);
  }
  int64_t Int(const char* key) const { return report_[key].get<int64_t>(); }
  std::string Number(const char* key) const { return Thousands(Int(key)); }
  std::string String(const char* key) const { return report_[key].get<std::string>(); }

  const JsonOut& report_;
  std::string text_;
};

}  // namespace

std::string InspectSummary(const JsonOut& report) { return SummaryText(report).Text(); }

}  // namespace latte
