#include "src/api/common/json_text.h"

#include "src/base/json_out.h"
#include "tests/support/property.h"

namespace latte::json_text_test {
namespace {

std::string Written(std::string_view text) {
  std::string out;
  AppendJsonString(text, &out);
  return out;
}

TEST(JsonText, IsWhatDumpWrites) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text = {'a', static_cast<char>(byte), 'b'};
    EXPECT_EQ(Written(text), Dump(JsonOut(text))) << byte;
  }
  for (const char* text : {"", "é\xC3", "\xE2\x80", "🙂", "\xF0\x9F\x99\xF0\x9F\x99\x82",
                           "\xED\xA0\x80", "\xC0\xAF", "a\xFF\xFE\"\\\x7F", "\xF4\x90\x80\x80"})
    EXPECT_EQ(Written(text), Dump(JsonOut(text))) << text;
}

TEST(JsonText, IsWhatDumpWritesForAnyBytes) {
  testing_support::CheckProperty(
      2'000, 200, [](const std::string& text) { RC_ASSERT(Written(text) == Dump(JsonOut(text))); });
}

}  // namespace
}  // namespace latte::json_text_test
