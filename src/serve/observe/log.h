// The log of the server on standard error: one line per event, as text or JSON. Writing never waits
// for the terminal: a full queue drops lines and counts them. The text of prompts and answers is
// never logged.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "latte/status.h"

namespace latte {

// A named value of a log line.
struct LogField {
  std::string_view name;
  std::variant<std::string_view, int64_t, double> value;
};

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// "level=… msg="…" id=…", or one JSON object. Values that are no plain words are quoted, control
// characters are escaped: no client can begin a line of its own.
std::string LogText(std::string_view message, std::initializer_list<LogField> fields);
std::string LogJson(LogLevel level, std::string_view time, std::string_view message,
                    std::initializer_list<LogField> fields);

// Thread-safe.
class Log {
 public:
  struct Options {
    LogLevel level = LogLevel::kInfo;
    bool json = false;
  };
  explicit Log(const Options& options);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void Write(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {});
  void Info(std::string_view message, std::initializer_list<LogField> fields = {}) {
    Write(LogLevel::kInfo, message, fields);
  }
  void Warning(std::string_view message, std::initializer_list<LogField> fields = {}) {
    Write(LogLevel::kWarning, message, fields);
  }
  void Error(std::string_view message, std::initializer_list<LogField> fields = {}) {
    Write(LogLevel::kError, message, fields);
  }

  int64_t dropped() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// "debug", "info", "warning", "error". Errors: kInvalidArgument.
[[nodiscard]] Result<LogLevel> ParseLogLevel(std::string_view name);

}  // namespace latte
