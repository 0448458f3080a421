// The log of a server: lines of text or JSON on standard error, written by a separate thread. A
// caller never waits: if lines arrive faster than they can be written, the oldest are dropped and
// counted, and a line in their place gives their number. Callers must never log prompts or answers.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "latte/status.h"

namespace latte {

// A field of a line. Views must live until the call returns.
class LogValue {
 public:
  LogValue(std::string_view text) : value_(text) {}
  LogValue(const std::string& text) : value_(std::string_view(text)) {}
  LogValue(const char* text) : value_(std::string_view(text)) {}
  LogValue(bool value) : value_(value) {}
  LogValue(std::integral auto value) : value_(static_cast<int64_t>(value)) {}
  LogValue(std::floating_point auto value) : value_(static_cast<double>(value)) {}

  // Numbers have six decimals at most.
  void Append(bool json, std::string* out) const;

 private:
  std::variant<std::string_view, int64_t, double, bool> value_;
};

struct LogField {
  std::string_view key;  // letters and '_'
  LogValue value;
};

enum class LogLevel { kDebug, kInfo, kWarning, kError };

struct LogOptions {
  std::string level = "info";   // debug, info, warning or error
  std::string format = "text";  // or json
  int fd = 2;                   // standard error
  size_t queue_lines = 4096;
};

// Thread-safe.
class Log {
 public:
  // Errors: kInvalidArgument for a level or format that does not exist; kExhausted without memory
  // or threads.
  [[nodiscard]] static Result<Log> Create(const LogOptions& options);
  Log(Log&&) noexcept;
  Log& operator=(Log&&) noexcept;
  // Writes what is left. If no process reads it, the log gives up after half a second.
  ~Log();

  // "2026-11-27T09:30:00.123Z info request id=4f… status=200", or
  // {"time":"…","level":"info","message":"request","id":"4f…","status":200}. `message` is a
  // constant of the program. Long values are cut.
  void Write(LogLevel level, std::string_view message, std::span<const LogField> fields);

  using Fields = std::initializer_list<LogField>;
  void Debug(std::string_view message, Fields fields = {}) {
    Write(LogLevel::kDebug, message, fields);
  }
  void Info(std::string_view message, Fields fields = {}) {
    Write(LogLevel::kInfo, message, fields);
  }
  void Warning(std::string_view message, Fields fields = {}) {
    Write(LogLevel::kWarning, message, fields);
  }
  void Error(std::string_view message, Fields fields = {}) {
    Write(LogLevel::kError, message, fields);
  }

  // Lines that were not written, because there were too many or because writing failed.
  int64_t dropped() const;

 private:
  struct Impl;
  explicit Log(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace latte
