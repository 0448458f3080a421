#include "src/jinja/limits/budget.h"

#include <algorithm>

#include <fmt/format.h>

#include "src/base/limits/cpu_time.h"
#include "src/jinja/value.h"

namespace latte::jinja {
namespace {

// A look at the clock takes as long as a step or two. Each call of Spend counts too, so that cheap
// ones cannot put it off.
constexpr int64_t kStepsPerLook = 1024;
constexpr int64_t kStepsOfCall = 16;

// The bytes of objects on the heap, with what the allocator adds.
constexpr int64_t kObjectBytes = 96;
constexpr int64_t kItemBytes = 32;    // of a list
constexpr int64_t kEntryBytes = 160;  // of a dict

int64_t MemoryOf(const Text& text) {
  return static_cast<int64_t>(text.size() + text.runs().size() * sizeof(Text::Run));
}

// The bytes of a value apart from its items; 0 for a value that others hold too.
int64_t OwnMemory(const Value& value) {
  if (!value.is_only_holder()) return 0;
  switch (value.kind()) {
    case Kind::kUndefined:
      return kObjectBytes + static_cast<int64_t>(value.undefined().size());
    case Kind::kString:
      return kObjectBytes + MemoryOf(value.text());
    case Kind::kList:
      return kObjectBytes + kItemBytes * std::ssize(value.list().items);
    case Kind::kDict:
      return kObjectBytes + kEntryBytes * std::ssize(value.dict().entries);
    case Kind::kCallable:
      return kObjectBytes + std::ssize(value.callable().name);
    default:
      return 0;
  }
}

}  // namespace

Budget::Budget(const Limits& limits)
    : limits_(limits), until_look_(kStepsPerLook), cpu_at_start_(ThreadCpuSeconds()) {}

bool Budget::CpuIsSpent() {
  until_look_ = kStepsPerLook;
  return ThreadCpuSeconds() - cpu_at_start_ > limits_.cpu_seconds;
}

Status Budget::Spend(int64_t steps, int64_t bytes) {
  steps_ += steps;
  bytes_ += bytes;
  until_look_ -= steps + kStepsOfCall;
  if (steps_ > limits_.steps)
    return Exhausted(fmt::format("the template takes more than {} steps", limits_.steps));
  if (bytes_ > limits_.total_bytes)
    return Exhausted(fmt::format("the template uses more than {} bytes", limits_.total_bytes));
  if (until_look_ <= 0 && CpuIsSpent())
    return Exhausted(
        fmt::format("the template takes more than {} s of processor time", limits_.cpu_seconds));
  return {};
}

Status Budget::SpendPass(size_t bytes) {
  return Spend(static_cast<int64_t>(bytes) / kBytesPerStep);
}

Status Budget::SpendString(size_t bytes, size_t runs) {
  LATTE_RETURN_IF_ERROR(SpendAppended(0, bytes));
  return SpendRuns(runs);
}

Status Budget::SpendRuns(size_t runs) {
  if (runs <= 1) return {};
  const size_t bytes = runs * sizeof(Text::Run);
  if (bytes > static_cast<size_t>(limits_.string_bytes))
    return Exhausted(
        fmt::format("the template mixes its own text and that of users in {} places of one string; "
                    "the limit is {}",
                    runs, static_cast<size_t>(limits_.string_bytes) / sizeof(Text::Run)));
  return Spend(0, static_cast<int64_t>(bytes));
}

Status Budget::CheckString(size_t bytes) const {
  if (bytes > static_cast<size_t>(limits_.string_bytes))
    return Exhausted(fmt::format("the template makes a string of {} bytes; the limit is {}", bytes,
                                 limits_.string_bytes));
  return {};
}

Status Budget::SpendAppended(size_t before, size_t size) {
  LATTE_RETURN_IF_ERROR(CheckString(size));
  const auto added = static_cast<int64_t>(size - before);
  return Spend(1 + std::max<int64_t>(added, 0) / kBytesPerStep, added);
}

Status Budget::SpendSearch(size_t size, size_t what) {
  return Spend(1 + static_cast<int64_t>((size / 64 + 1) * (what / 16 + 1)));
}

// Most names differ in size from the one that is sought.
Status Budget::SpendNames(size_t count, size_t size) {
  return Spend(static_cast<int64_t>(count * (1 + size / 64) / 64));
}

Status Budget::SpendOperand(const Value& value) {
  if (!value.Is(Kind::kString)) return {};
  return Spend(MemoryOf(value.text()) / kBytesPerStep);
}

Status Budget::SpendMade(const Value& value, int64_t before) {
  int64_t memory = OwnMemory(value);
  if (memory == 0) return {};
  // An operation that makes a list may make its items too.
  if (value.Is(Kind::kList))
    for (const Value& item : value.list().items) memory += OwnMemory(item);
  const int64_t missing = memory - (bytes_ - before);
  return missing > 0 ? Spend(0, missing) : Status();
}

}  // namespace latte::jinja
