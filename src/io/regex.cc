#include "src/io/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include "src/base/check.h"
#include "src/io/printable.h"

namespace latte {
namespace {

// PCRE2's own default: seconds of work, far above what a pattern without nested repeats needs.
constexpr uint32_t kMatchLimit = 10'000'000;
// For the interpreter's backtracking frames; it also bounds the depth.
constexpr uint32_t kHeapLimitKib = 64 * 1024;
// Machine code begins with 32 KiB of the caller's stack and gets this much when that runs out.
constexpr size_t kJitStackBytes = size_t{16} << 20;

PCRE2_SPTR Bytes(std::string_view text) {
  // PCRE2 takes a pointer that is not null even when the length is 0.
  return reinterpret_cast<PCRE2_SPTR>(text.empty() ? "" : text.data());
}

std::string Message(int code) {
  PCRE2_UCHAR buffer[256] = {};
  pcre2_get_error_message(code, buffer, sizeof(buffer));
  return reinterpret_cast<const char*>(buffer);
}

}  // namespace

struct Regex::Code {
  Code(pcre2_code* code, std::string text) : compiled(code), pattern(std::move(text)) {}
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  ~Code() { pcre2_code_free(compiled); }

  pcre2_code* compiled;
  std::string pattern;
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
  pcre2_jit_stack* jit_stack = nullptr;  // only once a match has needed it
};

Result<Regex> Regex::Compile(std::string_view pattern, RegexOptions options) {
  const uint32_t flags = options.literal
                             ? PCRE2_UTF | PCRE2_LITERAL
                             : PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
  const std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
      pcre2_compile_context_create(nullptr), &pcre2_compile_context_free);
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* compiled =
      pcre2_compile(Bytes(pattern), pattern.size(), flags, &error, &offset, context.get());
  if (compiled == nullptr)
    return Unsupported(
        fmt::format("expected a pattern that can be compiled, found {} at byte {} "
                    "of '{}'",
                    Message(error), offset, Printable(pattern)));
  auto code = std::make_shared<const Code>(compiled, std::string(pattern));
  // A platform without machine code leaves the interpreter, with the same matches.
  if (options.jit) static_cast<void>(pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE));
  return Regex(std::move(code));
}

RegexMatcher::RegexMatcher(const Regex& regex)
    : regex_(regex), memory_(std::make_unique<Memory>()) {
  memory_->data = pcre2_match_data_create(1, nullptr);  // only the whole match is asked for
  memory_->context = pcre2_match_context_create(nullptr);
  LATTE_CHECK(memory_->data != nullptr && memory_->context != nullptr, "out of memory");
  pcre2_set_match_limit(memory_->context, kMatchLimit);
  pcre2_set_heap_limit(memory_->context, kHeapLimitKib);
}

RegexMatcher::~RegexMatcher() = default;
RegexMatcher::RegexMatcher(RegexMatcher&&) noexcept = default;

Result<RegexMatch> RegexMatcher::Find(std::string_view subject, size_t from) {
  const auto run = [&] {
    return pcre2_match(regex_.code_->compiled, Bytes(subject), subject.size(), from,
                       PCRE2_NO_UTF_CHECK, memory_->data, memory_->context);
  };
  int found = run();
  if (found == PCRE2_ERROR_JIT_STACKLIMIT && memory_->jit_stack == nullptr) {
    memory_->jit_stack = pcre2_jit_stack_create(32 * 1024, kJitStackBytes, nullptr);
    pcre2_jit_stack_assign(memory_->context, nullptr, memory_->jit_stack);
    found = run();
  }
  if (found == PCRE2_ERROR_NOMATCH) return RegexMatch{};
  if (found < 0)
    return InvalidArgument(
        fmt::format("text of {} bytes cannot be split into tokens: the tokenizer's pattern '{}' "
                    "gave up after byte {} ({}); shorten the text or break its longest run of "
                    "similar characters",
                    subject.size(), Printable(regex_.code_->pattern), from, Message(found)));
  const PCRE2_SIZE* range = pcre2_get_ovector_pointer(memory_->data);
  return RegexMatch{.found = true, .begin = range[0], .end = range[1]};
}

}  // namespace latte
