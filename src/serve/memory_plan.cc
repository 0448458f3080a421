#include "src/serve/memory_plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "src/base/draw/bar.h"
#include "src/base/json_out.h"
#include "src/base/limits/memory.h"
#include "src/base/math.h"

namespace latte {
namespace {

// The second length for which concurrency is told, that of a usual chat.
constexpr int64_t kChatTokens = 4096;

// "131072" → "131,072".
std::string Grouped(int64_t number) {
  const std::string digits = fmt::to_string(number);
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

std::string ContextText(const MemoryPlan& plan) {
  if (plan.spread_tokens > plan.max_tokens)
    return fmt::format("{} tokens in the caches of all groups, {} in one",
                       Grouped(plan.spread_tokens), Grouped(plan.max_tokens));
  const std::string tokens = Grouped(plan.max_tokens);
  if (plan.max_tokens == plan.model_tokens && plan.asked_tokens > plan.model_tokens)
    return fmt::format("{} tokens, the model's limit; --context is {}", tokens,
                       Grouped(plan.asked_tokens));
  const int64_t wanted = plan.wanted_tokens();
  if (plan.max_tokens >= wanted) return tokens + " tokens";
  const int64_t cache = plan.wanted_cache_bytes;
  const int64_t total = plan.weight_bytes + plan.processes * (plan.wanted_workspace_bytes + cache);
  const bool fits = !plan.available_bytes || total <= *plan.available_bytes;
  return fmt::format(
      "{} tokens, all that the cache holds; {} need --cache-bytes {}{}", tokens, Grouped(wanted),
      cache,
      fits ? ""
           : fmt::format(" and {} of {}memory", MemoryText(total), plan.gpu.empty() ? "" : "GPU "));
}

std::string SequencesText(const MemoryPlan& plan) {
  std::string out = fmt::format("{} of {} tokens", Grouped(plan.Sequences(plan.max_tokens)),
                                Grouped(plan.max_tokens));
  if (plan.max_tokens > kChatTokens)
    out += fmt::format(", {} of {}", Grouped(plan.Sequences(kChatTokens)), Grouped(kChatTokens));
  return fmt::format("{} (at most {})", out, Grouped(plan.max_sequences));
}

constexpr BarFill kWeights = BarFill::kFull;
constexpr BarFill kWorkspace = BarFill::kDark;
constexpr BarFill kCache = BarFill::kMedium;
constexpr BarFill kRest = BarFill::kLight;
constexpr std::string_view kLimit = "│";

// The available memory and what lies in it; if that is too little, what is needed, with the limit
// in it.
std::string PlanBar(const MemoryPlan& plan) {
  constexpr int kColumns = 60;
  const auto needed = static_cast<double>(plan.total_bytes());
  const auto available = static_cast<double>(plan.available_bytes.value_or(plan.total_bytes()));
  const auto processes = static_cast<double>(plan.processes);
  const BarPart parts[] = {{static_cast<double>(plan.weight_bytes), kWeights},
                           {processes * static_cast<double>(plan.workspace_bytes), kWorkspace},
                           {processes * static_cast<double>(plan.cache_bytes()), kCache},
                           {std::max(0.0, available - needed), kRest}};
  std::string out = StackedBar(parts, kColumns);
  if (available < needed) {
    const auto column = static_cast<size_t>(available / needed * kColumns);
    out.insert(column * FillText(kRest).size(), kLimit);
  }
  return out;
}

}  // namespace

std::optional<int64_t> MemoryPlan::left_bytes() const {
  if (!available_bytes) return std::nullopt;
  return *available_bytes - total_bytes();
}

int64_t MemoryPlan::wanted_tokens() const {
  return asked_tokens > 0 ? std::min(asked_tokens, model_tokens) : model_tokens;
}

int64_t MemoryPlan::Sequences(int64_t tokens) const {
  return std::min(max_sequences, pages / CeilDiv(std::max<int64_t>(tokens, 1), page_tokens));
}

std::string MemoryPlanText(const MemoryPlan& plan) {
  const bool on_gpu = !plan.gpu.empty();
  std::string out = fmt::format(
      "{}:\n  {}\n", on_gpu ? fmt::format("GPU memory plan, {}", plan.gpu) : "memory plan",
      PlanBar(plan));
  const auto line = [&](std::string_view mark, std::string_view name, const std::string& text) {
    out += fmt::format("  {} {:<18} {}\n", mark, name, text);
  };
  line(FillText(kWeights), "weights", MemoryText(plan.weight_bytes));
  line(FillText(kWorkspace), on_gpu ? "workspace of steps" : "prefill workspace",
       fmt::format("{} ({} tokens)", MemoryText(plan.workspace_bytes),
                   Grouped(plan.workspace_tokens)));
  line(FillText(kCache), "cache",
       fmt::format("{} ({}: {} pages of {} tokens, {} bytes each)", MemoryText(plan.cache_bytes()),
                   plan.cache_dtype, Grouped(plan.pages_of_rank()), plan.page_tokens,
                   Grouped(plan.page_bytes)));
  if (plan.processes > 1)
    line(" ", "processes",
         fmt::format("{}, each with a workspace and {}", plan.processes,
                     plan.cache_ranks == 1
                         ? "a cache"
                         : fmt::format("a part of a cache: 1 of {}", plan.cache_ranks)));
  const std::optional<int64_t> left = plan.left_bytes();
  if (!left) {
    line(" ", "available", "unknown");
  } else {
    line(*left >= 0 ? FillText(kRest) : kLimit, *left >= 0 ? "remains" : "missing",
         fmt::format("{} of {} available", MemoryText(std::abs(*left)),
                     MemoryText(*plan.available_bytes)));
  }
  line(" ", "largest context", ContextText(plan));
  line(" ", "sequences at once", SequencesText(plan));
  return out;
}

std::string MemoryPlanJson(const MemoryPlan& plan) {
  JsonOut out = {
      {"weight_bytes", plan.weight_bytes},
      {"workspace_bytes", plan.workspace_bytes},
      {"workspace_tokens", plan.workspace_tokens},
      {"cache_dtype", plan.cache_dtype},
      {"cache_bytes", plan.cache_bytes()},
      {"pages", plan.pages},
      {"page_bytes", plan.page_bytes},
      {"page_tokens", plan.page_tokens},
      {"processes", plan.processes},
      {"gpu", plan.gpu.empty() ? JsonOut(nullptr) : JsonOut(plan.gpu)},
      {"total_bytes", plan.total_bytes()},
      {"available_bytes", nullptr},
      {"left_bytes", nullptr},
      {"max_tokens", plan.max_tokens},
      {"spread_tokens", plan.spread_tokens},
      {"model_tokens", plan.model_tokens},
      {"max_sequences", plan.max_sequences},
      {"sequences_at_max_tokens", plan.Sequences(plan.max_tokens)},
      {"sequences_at_4096_tokens", plan.Sequences(kChatTokens)},
  };
  if (plan.available_bytes) {
    out["available_bytes"] = *plan.available_bytes;
    out["left_bytes"] = *plan.left_bytes();
  }
  return Dump(out);
}

}  // namespace latte
