// The record of one request, with times in seconds since the load began.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace latte {

struct ServeRecord {
  double due_s = 0;             // when it should be sent
  double start_s = 0;           // when it was sent
  double end_s = 0;             // when its last token arrived, or its failure
  std::vector<double> event_s;  // of a stream: when each piece of text arrived
  int64_t prompt_tokens = 0;
  int64_t output_tokens = 0;
  int64_t cached_tokens = 0;  // of the prompt, as the server reports
  bool counted = false;       // the server reported the token counts
  std::string error_kind;     // empty: it succeeded
  std::string error;          // one line

  bool ok() const { return error_kind.empty(); }
};

}  // namespace latte
