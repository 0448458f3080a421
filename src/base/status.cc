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

}  // namespace

std::string_view CodeName(Code code) { return RowOf(code).name; }
int HttpStatus(Code code) { return RowOf(code).http; }
int ExitCode(Code code) { return RowOf(code).exit; }

std::string ToString(const Error& error) {
  return std::string(CodeName(error.code)) + ": " + error.message;
}

}  // namespace latte
