#include "latte/status.h"

#include <array>

namespace latte {
namespace {

struct Row {
  std::string_view name;
  int http;
  int exit;
};
// In the order of Code.
constexpr std::array<Row, 9> kRows = {{
    {"ok", 200, 0},
    {"invalid_argument", 400, 2},
    {"not_found", 404, 2},
    {"unsupported", 400, 2},
    {"corrupt", 422, 2},
    {"exhausted", 429, 1},
    {"cancelled", 499, 1},
    {"unavailable", 503, 1},
    {"internal", 500, 3},
}};

const Row& RowOf(Code code) { return kRows[static_cast<size_t>(code)]; }

constexpr size_t kMaxMessageBytes = 2000;
constexpr size_t kEndBytes = 500;  // kept from the end, which says what to do
constexpr std::string_view kGap = " … ";

// Where the code point that holds byte `at` begins.
size_t CodePointBegin(std::string_view text, size_t at) {
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

std::string WithoutMiddle(std::string text) {
  if (text.size() <= kMaxMessageBytes) return text;
  const size_t begin = CodePointBegin(text, kMaxMessageBytes - kEndBytes - kGap.size());
  size_t end = text.size() - kEndBytes;
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
  return text.replace(begin, end - begin, kGap);
}

}  // namespace

inline namespace v0_2 {

std::string_view CodeName(Code code) { return RowOf(code).name; }
int HttpStatus(Code code) { return RowOf(code).http; }
int ExitCode(Code code) { return RowOf(code).exit; }

std::string ToString(const Error& error) {
  return WithoutMiddle(std::string(CodeName(error.code)) + ": " + error.message);
}

tl::unexpected<Error> Fail(Code code, std::string message) {
  return tl::unexpected<Error>(Error{code, WithoutMiddle(std::move(message))});
}

}  // namespace v0_2
}  // namespace latte
