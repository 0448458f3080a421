// One request of an API from its parsing to its last event. `batch` and `serve` share it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "latte/request.h"

#include "src/api/common/answer.h"
#include "src/api/common/request.h"
#include "src/base/json_out_fwd.h"

namespace latte {

// Thread-compatible. Answers are collected, and written by the writer of their API.
class ApiRunning {
 public:
  // `id` is unique among answers; `created` is in seconds since 1970. `model` must outlive it.
  ApiRunning(ApiRequest request, const ApiModel* model, std::string id, int64_t created);
  ApiRunning(ApiRunning&&) noexcept;
  ApiRunning& operator=(ApiRunning&&) noexcept;
  ~ApiRunning();

  size_t prompts() const;
  // The engine's request of prompt i, moved out. The caller sets its user_data and submits it.
  Request TakePrompt(size_t i);

  // Takes an event of prompt i. Appends to `sse`, if the reply is a stream, the server-sent events
  // that it makes ("data: {…}\n\n"), with those that end the stream. Requires: not done().
  void Add(size_t i, const TokenEvent& event, std::string* sse);

  // Appends an error that is not of the engine's events, and ends the stream. Requires: a stream,
  // not done().
  void Fail(const Error& error, std::string* sse);
  // Of AnswerWriter. Requires: a stream, not done().
  void KeepAlive(std::string* sse);

  // Every choice of every prompt has ended, or one has failed.
  bool done() const;
  const std::optional<Error>& error() const;  // of the first choice that failed
  const ApiReply& reply() const;
  ApiUsage usage() const;

  // The whole answer, a JSON object. Requires: done(), no error, not a stream.
  std::string Body() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace latte
