// Server-sent events whose names are the types of their data: of /v1/responses and /v1/messages.
// For tests.
#pragma once

#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "src/base/json_out.h"

namespace latte::testing_support {

// The data of a stream's events. Checks that each has the name of its type.
inline std::vector<JsonOut> NamedEvents(std::string_view sse) {
  std::vector<JsonOut> out;
  while (!sse.empty()) {
    const size_t line = sse.find('\n');
    const size_t end = sse.find("\n\n");
    EXPECT_TRUE(sse.starts_with("event: ") && end != std::string_view::npos) << sse;
    if (end == std::string_view::npos) break;
    const std::string_view data = sse.substr(line + 1, end - line - 1);
    EXPECT_TRUE(data.starts_with("data: ")) << data;
    out.push_back(JsonOut::parse(data.substr(6)));
    EXPECT_EQ(out.back()["type"], sse.substr(7, line - 7));
    sse.remove_prefix(end + 2);
  }
  return out;
}

}  // namespace latte::testing_support
