// The budget of one rendering. Every operation pays for the bytes that it reads and makes. The
// callers of all operations of a kind (ApplyFilter, ApplyTest, CallMethod, BinaryOperation) spend
// steps for the operands, and Evaluator::Evaluate spends bytes for the result. An operation spends
// more itself if it takes longer than a pass over its operands. The limit of CPU time applies to
// all of them. Internal to src/jinja, apart from Limits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "latte/status.h"

namespace latte::jinja {

class Text;
class Value;

// Limits of one rendering. The defaults allow a prompt of a million tokens many times over and end
// any template within about a second.
struct Limits {
  int64_t steps = 5'000'000;          // visited nodes, touched elements, and bytes (kBytesPerStep)
  int64_t total_bytes = 512LL << 20;  // of all strings and elements together
  int64_t string_bytes = 64LL << 20;  // of one string, and of the output
  // Processor time. `steps` take half of it; chats take a hundredth, so whether they are rendered
  // does not depend on the machine.
  double cpu_seconds = 2;
};

// A step takes about 0.1 to 0.3 µs; a pass over this many bytes, about 0.03 to 0.3 µs.
constexpr int64_t kBytesPerStep = 256;

// Counts the resources of a rendering. Thread-compatible; stays in the thread that made it, whose
// processor time it measures.
class Budget {
 public:
  explicit Budget(const Limits& limits);
  // Errors: kExhausted naming the limit.
  [[nodiscard]] Status Spend(int64_t steps, int64_t bytes = 0);
  // For a pass over that many bytes.
  [[nodiscard]] Status SpendPass(size_t bytes);
  // Only checks the size of a string.
  [[nodiscard]] Status CheckString(size_t bytes) const;
  // For a string of that many bytes in `runs` runs, before it is made.
  [[nodiscard]] Status SpendString(size_t bytes, size_t runs = 1);
  // For the runs of a string, if it has more than one.
  [[nodiscard]] Status SpendRuns(size_t runs);
  // As SpendString, for a string of `size` bytes of which `before` were counted already.
  [[nodiscard]] Status SpendAppended(size_t before, size_t size);
  // For a search of `what` bytes at every position of `size` bytes.
  [[nodiscard]] Status SpendSearch(size_t size, size_t what);
  // For a search for a name of `size` bytes in a list of `count` names.
  [[nodiscard]] Status SpendNames(size_t count, size_t size);
  // For an operation that reads `value`: the bytes of a string. Containers are paid for by Items
  // and the like.
  [[nodiscard]] Status SpendOperand(const Value& value);
  // For what an operation made, if it spent less by itself: bytes() was `before` before it.
  [[nodiscard]] Status SpendMade(const Value& value, int64_t before);

  int64_t bytes() const { return bytes_; }
  const Limits& limits() const { return limits_; }

 private:
  bool CpuIsSpent();

  Limits limits_;
  int64_t steps_ = 0;
  int64_t bytes_ = 0;
  int64_t until_look_;  // steps until the next look at the clock
  double cpu_at_start_;
};

}  // namespace latte::jinja
