#include "src/serve/observe/log.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/async.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "src/base/json_out.h"

namespace latte {
namespace {

constexpr size_t kMostQueued = 8192;  // lines

bool IsPlainChar(char c) { return c > 0x20 && c < 0x7f && c != '"' && c != '=' && c != '\\'; }

// A word as it is, anything else as a JSON string.
void AppendText(std::string_view text, std::string* out) {
  if (!text.empty() && std::all_of(text.begin(), text.end(), IsPlainChar)) {
    out->append(text);
  } else {
    out->append(Dump(JsonOut(text)));
  }
}

void AppendValue(const LogField& field, std::string* out) {
  if (const auto* text = std::get_if<std::string_view>(&field.value)) return AppendText(*text, out);
  if (const auto* number = std::get_if<int64_t>(&field.value))
    fmt::format_to(std::back_inserter(*out), "{}", *number);
  if (const auto* real = std::get_if<double>(&field.value))
    fmt::format_to(std::back_inserter(*out), "{:.4g}", *real);
}

std::string_view LevelName(LogLevel level) {
  constexpr std::string_view kNames[] = {"debug", "info", "warning", "error"};
  return kNames[static_cast<size_t>(level)];
}

spdlog::level::level_enum LevelOf(LogLevel level) {
  constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info,
                                                   spdlog::level::warn, spdlog::level::err};
  return kLevels[static_cast<size_t>(level)];
}

std::string UtcNow() {
  const auto now = std::chrono::system_clock::now();
  const auto since = now.time_since_epoch();
  const auto milliseconds =
      std::chrono::duration_cast<std::chrono::milliseconds>(since).count() % 1000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(now)), milliseconds);
}

}  // namespace

std::string LogText(std::string_view message, std::initializer_list<LogField> fields) {
  std::string out(message);
  for (const LogField& field : fields) {
    fmt::format_to(std::back_inserter(out), " {}=", field.name);
    AppendValue(field, &out);
  }
  return out;
}

std::string LogJson(LogLevel level, std::string_view time, std::string_view message,
                    std::initializer_list<LogField> fields) {
  JsonOut out = {{"time", time}, {"level", LevelName(level)}, {"message", message}};
  for (const LogField& field : fields)
    std::visit([&](const auto& value) { out[std::string(field.name)] = value; }, field.value);
  return Dump(out);
}

struct Log::State {
  explicit State(const Options& chosen) : options(chosen) {
    auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    logger = std::make_shared<spdlog::async_logger>("latte", std::move(sink), pool,
                                                    spdlog::async_overflow_policy::overrun_oldest);
    logger->set_level(LevelOf(options.level));
    logger->set_pattern(options.json ? "%v" : "%Y-%m-%d %H:%M:%S.%e %l %v");
  }
  Options options;
  std::shared_ptr<spdlog::details::thread_pool> pool =
      std::make_shared<spdlog::details::thread_pool>(kMostQueued, 1);
  std::shared_ptr<spdlog::async_logger> logger;
};

Log::Log(const Options& options) : state_(std::make_unique<State>(options)) {}
Log::~Log() = default;

void Log::Write(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  if (level < state_->options.level) return;
  const std::string line =
      state_->options.json ? LogJson(level, UtcNow(), message, fields) : LogText(message, fields);
  state_->logger->log(LevelOf(level), spdlog::string_view_t(line.data(), line.size()));
}

int64_t Log::dropped() const { return static_cast<int64_t>(state_->pool->overrun_counter()); }

Result<LogLevel> ParseLogLevel(std::string_view name) {
  for (const LogLevel level :
       {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarning, LogLevel::kError})
    if (LevelName(level) == name) return level;
  return InvalidArgument(
      fmt::format("log_level: expected debug, info, warning or error, found {}", name));
}

}  // namespace latte
