#include "src/text/unicode/regex.h"

#include <algorithm>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include "src/base/limits/cpu_time.h"
#include "src/base/limits/out_of_memory.h"
#include "src/base/timer.h"
#include "src/text/unicode/printable.h"

namespace latte {
namespace {

// PCRE2's own default: seconds of work, far more than a pattern without nested repeats needs.
constexpr uint32_t kMatchLimit = 10'000'000;
// Limits the interpreter's backtracking frames, and with them the depth.
constexpr uint32_t kHeapLimitKib = 64 * 1024;
// The JIT code starts with 32 KiB of the caller's stack and uses this much when that runs out.
constexpr size_t kJitStackBytes = size_t{16} << 20;

// The first search tries this many places before it reads the clock; later searches try more.
constexpr size_t kFirstPlaces = 64;
constexpr double kSlowSeconds = 0.01;  // after a slower search, the following ones are short
// Reading the clock after each word would cost a tenth of the time of splitting.
constexpr int64_t kFindsPerLook = 16;

PCRE2_SPTR Bytes(std::string_view text) {
  // PCRE2 requires a pointer that is not null even if the length is 0.
  return reinterpret_cast<PCRE2_SPTR>(text.empty() ? "" : text.data());
}

// The memory that PCRE2 keeps for a pattern or a search is a few hundred bytes.
[[noreturn]] void NoMemory() { throw OutOfMemory(1024, "a search by pattern"); }

bool IsNoMemory(int error) {
  return error == PCRE2_ERROR_NOMEMORY || error == PCRE2_ERROR_HEAP_FAILED;
}

std::string Message(int code) {
  PCRE2_UCHAR buffer[256] = {};
  pcre2_get_error_message(code, buffer, sizeof(buffer));
  return reinterpret_cast<const char*>(buffer);
}

}  // namespace

struct Regex::Code {
  Code(pcre2_code* code, std::string text)
      : compiled(code),
        pattern(std::move(text)),
        in_one_go(pattern.find("\\G") != std::string::npos) {}
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  ~Code() { pcre2_code_free(compiled); }

  pcre2_code* compiled;
  std::string pattern;
  // \G would match at the start of each partial search. Only Latte's own translations contain it
  // (regex_onig_syntax.cc), and they take linear time.
  bool in_one_go;
};

struct RegexMatcher::Memory {
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    pcre2_jit_stack_free(jit_stack);
  }

  pcre2_match_data* data = nullptr;
  pcre2_match_context* context = nullptr;
  pcre2_jit_stack* jit_stack = nullptr;  // allocated when a match first needs it
};

Result<Regex> Regex::Compile(std::string_view pattern, RegexOptions options) {
  const uint32_t flags = options.literal ? PCRE2_UTF | PCRE2_LITERAL | PCRE2_USE_OFFSET_LIMIT
                                         : PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE |
                                               PCRE2_NEVER_BACKSLASH_C | PCRE2_USE_OFFSET_LIMIT;
  const std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
      pcre2_compile_context_create(nullptr), &pcre2_compile_context_free);
  if (context == nullptr) NoMemory();
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* compiled =
      pcre2_compile(Bytes(pattern), pattern.size(), flags, &error, &offset, context.get());
  if (compiled == nullptr && IsNoMemory(error)) NoMemory();
  if (compiled == nullptr)
    return Unsupported(
        fmt::format("expected a pattern that can be compiled, found {} at byte {} "
                    "of '{}'",
                    Message(error), offset, Printable(pattern)));
  auto code = std::make_shared<const Code>(compiled, std::string(pattern));
  // A platform without JIT uses the interpreter, with the same matches.
  if (options.jit) static_cast<void>(pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE));
  return Regex(std::move(code));
}

RegexMatcher::RegexMatcher(const Regex& regex, RegexBudget budget)
    : regex_(regex),
      budget_(budget),
      allowed_seconds_(budget.seconds),
      cpu_at_start_(ThreadCpuSeconds()),
      memory_(std::make_unique<Memory>()) {
  memory_->data = pcre2_match_data_create(1, nullptr);  // only the whole match is needed
  memory_->context = pcre2_match_context_create(nullptr);
  if (memory_->data == nullptr || memory_->context == nullptr) NoMemory();
  pcre2_set_match_limit(memory_->context, kMatchLimit);
  pcre2_set_heap_limit(memory_->context, kHeapLimitKib);
}

RegexMatcher::~RegexMatcher() = default;
RegexMatcher::RegexMatcher(RegexMatcher&&) noexcept = default;

int RegexMatcher::Run(std::string_view subject, size_t from, size_t last) {
  const auto run = [&] {
    return pcre2_match(regex_.code_->compiled, Bytes(subject), subject.size(), from,
                       PCRE2_NO_UTF_CHECK, memory_->data, memory_->context);
  };
  pcre2_set_offset_limit(memory_->context, last);
  int found = run();
  if (found == PCRE2_ERROR_JIT_STACKLIMIT && memory_->jit_stack == nullptr) {
    memory_->jit_stack = pcre2_jit_stack_create(32 * 1024, kJitStackBytes, nullptr);
    if (memory_->jit_stack == nullptr) throw OutOfMemory(kJitStackBytes, "a search by pattern");
    pcre2_jit_stack_assign(memory_->context, nullptr, memory_->jit_stack);
    found = run();
  }
  return found;
}

// The wall clock is cheap to read but also advances while the thread waits, so the thread's own
// clock decides.
bool RegexMatcher::BudgetIsSpent() {
  const auto now = std::chrono::steady_clock::now();
  used_seconds_ += Seconds(now - looked_);
  looked_ = now;
  if (used_seconds_ <= allowed_seconds_) return false;
  used_seconds_ = std::min(used_seconds_, ThreadCpuSeconds() - cpu_at_start_);
  return used_seconds_ > allowed_seconds_;
}

tl::unexpected<Error> RegexMatcher::GaveUp(std::string_view subject, size_t from,
                                           std::string_view why) const {
  return InvalidArgument(
      fmt::format("text of {} bytes cannot be split into tokens: the tokenizer's pattern '{}' "
                  "gave up after byte {} ({}); shorten the text or break its longest run of "
                  "similar characters",
                  subject.size(), Printable(regex_.code_->pattern), from, why));
}

Result<RegexMatch> RegexMatcher::Find(std::string_view subject, size_t from) {
  if (from == 0) {
    allowed_seconds_ += static_cast<double>(subject.size()) / budget_.bytes_per_second;
    looked_ = std::chrono::steady_clock::now();
  }
  // A search cannot be interrupted, so each search tries only a few start places.
  const size_t first = regex_.code_->in_one_go ? subject.size() : kFirstPlaces;
  for (size_t places = first;; places *= 4) {
    const size_t last = std::min(subject.size(), from + places);
    const int found = Run(subject, from, last);
    if (IsNoMemory(found)) NoMemory();
    if (found < 0 && found != PCRE2_ERROR_NOMATCH) return GaveUp(subject, from, Message(found));
    const bool usual = found >= 0 && places == first;
    const double used_before = used_seconds_;
    if ((!usual || ++finds_ % kFindsPerLook == 0) && BudgetIsSpent())
      return GaveUp(subject, from, fmt::format("{:.0f} s of work", used_seconds_));
    if (found >= 0) {
      const PCRE2_SIZE* range = pcre2_get_ovector_pointer(memory_->data);
      return RegexMatch{.found = true, .begin = range[0], .end = range[1]};
    }
    if (last == subject.size()) return RegexMatch{};
    from = last + 1;
    while (from < subject.size() && (static_cast<uint8_t>(subject[from]) & 0xC0) == 0x80) ++from;
    if (used_seconds_ - used_before > kSlowSeconds) places = kFirstPlaces / 4;
  }
}

}  // namespace latte
