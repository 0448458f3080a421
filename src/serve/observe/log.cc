#include "src/serve/observe/log.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/async_logger.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/details/thread_pool.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include "src/base/limits/out_of_memory.h"
#include "src/serve/observe/log_text.h"

namespace latte {
namespace {

// A line must fit PIPE_BUF (4096 bytes), so that a pipe that poll calls ready takes it whole.
constexpr size_t kMostLineBytes = 3900;
constexpr size_t kMostMessageBytes = 1000;
constexpr size_t kMostValueBytes = 500;
constexpr auto kClosingTime = std::chrono::milliseconds(500);
constexpr int kPollMilliseconds = 50;

// Writes lines to a file descriptor. The log's thread alone calls it, but for the public functions.
class FdSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit FdSink(int fd) : fd_(fd) {}

  // From now on it does not wait long for a reader.
  void Close() { closing_.store(true, std::memory_order_relaxed); }
  int64_t failed() const { return failed_.load(std::memory_order_relaxed); }
  // Before the first message. `dropped`: lines that were not written so far; `note`: the text of
  // the line that says so.
  void SayDropped(std::function<int64_t()> dropped, std::function<std::string(int64_t)> note) {
    dropped_ = std::move(dropped);
    note_ = std::move(note);
  }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    NoteDropped(message);
    if (!Write(message)) failed_.fetch_add(1, std::memory_order_relaxed);
  }
  void flush_() override {}

  // Says how many lines are missing before `message`.
  void NoteDropped(const spdlog::details::log_msg& message) {
    const int64_t dropped = dropped_();
    if (dropped == noted_) return;
    const std::string text = note_(dropped - noted_);
    if (Write({message.time, {}, message.logger_name, spdlog::level::warn, text})) noted_ = dropped;
  }

  bool Write(const spdlog::details::log_msg& message) {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    return WriteAll(line.data(), line.size());
  }

  bool WriteAll(const char* data, size_t size) {
    while (size > 0) {
      if (!WaitForReader()) return false;
      const ssize_t written = ::write(fd_, data, size);
      if (written < 0 && errno != EINTR && errno != EAGAIN) return false;
      if (written <= 0) continue;
      data += written;
      size -= static_cast<size_t>(written);
    }
    return true;
  }

  bool WaitForReader() {
    while (true) {
      pollfd poll{.fd = fd_, .events = POLLOUT, .revents = 0};
      // All lines together get kClosingTime, however many there are.
      const bool late = give_up_at_ && std::chrono::steady_clock::now() >= *give_up_at_;
      const int ready = ::poll(&poll, 1, late ? 0 : kPollMilliseconds);
      if (ready > 0) return true;
      if (late || (ready < 0 && errno != EINTR)) return false;
      if (!give_up_at_ && closing_.load(std::memory_order_relaxed))
        give_up_at_ = std::chrono::steady_clock::now() + kClosingTime;
    }
  }

  int fd_;
  std::atomic<bool> closing_ = false;
  std::atomic<int64_t> failed_ = 0;
  std::function<int64_t()> dropped_;
  std::function<std::string(int64_t)> note_;
  int64_t noted_ = 0;  // dropped lines that a line has told of
  std::optional<std::chrono::steady_clock::time_point> give_up_at_;
};

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      break;
  }
  return spdlog::level::err;
}

constexpr auto kLevels = std::to_array<std::pair<std::string_view, LogLevel>>({
    {"debug", LogLevel::kDebug},
    {"info", LogLevel::kInfo},
    {"warning", LogLevel::kWarning},
    {"error", LogLevel::kError},
});

Result<LogLevel> ParseLevel(std::string_view text) {
  for (const auto& [name, level] : kLevels)
    if (name == text) return level;
  return InvalidArgument(
      fmt::format("log_level: expected debug, info, warning or error, found '{}'", text));
}

// Signals are for other threads. The log's own, SIGPIPE, would end the process with the program
// that reads its lines.
void BlockSignals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

bool NeedsQuotes(std::string_view escaped) {
  return escaped.empty() || escaped.find_first_of(" =\"\\,") != std::string_view::npos;
}

void AppendText(std::string_view text, bool json, std::string* out) {
  const size_t begin = out->size();
  AppendEscaped(text, kMostValueBytes, out);
  if (!json && !NeedsQuotes(std::string_view(*out).substr(begin))) return;
  out->insert(begin, 1, '"');
  out->push_back('"');
}

// Six decimals without the zeros at the end: seconds are easier to read without exponents.
void AppendDecimals(double value, std::string* out) {
  if (!(std::abs(value) < 1e15)) {
    fmt::format_to(std::back_inserter(*out), "{:g}", value);
    return;
  }
  fmt::format_to(std::back_inserter(*out), "{:.6f}", value);
  out->resize(out->find_last_not_of('0') + 1);
  if (out->back() == '.') out->pop_back();
}

std::string TextLine(std::string_view message, std::span<const LogField> fields) {
  std::string line;
  AppendEscaped(message, kMostMessageBytes, &line);
  for (const LogField& field : fields) {
    const size_t before = line.size();
    fmt::format_to(std::back_inserter(line), " {}=", field.key);
    field.value.Append(/*json=*/false, &line);
    if (line.size() <= kMostLineBytes) continue;
    line.resize(before);
    return line + " truncated=true";
  }
  return line;
}

// The members after the level, without the closing brace.
std::string JsonLine(std::string_view message, std::span<const LogField> fields) {
  std::string line = "\"message\":\"";
  AppendEscaped(message, kMostMessageBytes, &line);
  line += '"';
  for (const LogField& field : fields) {
    const size_t before = line.size();
    fmt::format_to(std::back_inserter(line), ",\"{}\":", field.key);
    field.value.Append(/*json=*/true, &line);
    if (line.size() <= kMostLineBytes) continue;
    line.resize(before);
    return line + ",\"truncated\":true";
  }
  return line;
}

std::string Line(bool json, std::string_view message, std::span<const LogField> fields) {
  return json ? JsonLine(message, fields) : TextLine(message, fields);
}

}  // namespace

void LogValue::Append(bool json, std::string* out) const {
  if (const auto* text = std::get_if<std::string_view>(&value_)) {
    AppendText(*text, json, out);
  } else if (const auto* flag = std::get_if<bool>(&value_)) {
    *out += *flag ? "true" : "false";
  } else if (const auto* number = std::get_if<int64_t>(&value_)) {
    fmt::format_to(std::back_inserter(*out), "{}", *number);
  } else {
    const double value = std::get<double>(value_);
    if (json && !std::isfinite(value)) {
      *out += "null";  // JSON has no other word for it
    } else {
      AppendDecimals(value, out);
    }
  }
}

struct Log::Impl {
  ~Impl() {
    if (sink) sink->Close();
  }

  LogLevel level = LogLevel::kInfo;
  bool json = false;
  std::shared_ptr<FdSink> sink;
  std::shared_ptr<spdlog::async_logger> logger;
  std::shared_ptr<spdlog::details::thread_pool> pool;  // ends first, and writes what is left
};

Log::Log(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Log::Log(Log&&) noexcept = default;
Log& Log::operator=(Log&&) noexcept = default;
Log::~Log() = default;

Result<Log> Log::Create(const LogOptions& options) {
  return CatchExhaustion([&]() -> Result<Log> {
    auto impl = std::make_unique<Impl>();
    LATTE_ASSIGN_OR_RETURN(impl->level, ParseLevel(options.level));
    if (options.format != "text" && options.format != "json")
      return InvalidArgument(
          fmt::format("log_format: expected text or json, found '{}'", options.format));
    impl->json = options.format == "json";
    constexpr const char* kText = "%Y-%m-%dT%H:%M:%S.%eZ %l %v";
    constexpr const char* kJson = R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v})";
    impl->sink = std::make_shared<FdSink>(options.fd);
    impl->sink->set_formatter(std::make_unique<spdlog::pattern_formatter>(
        impl->json ? kJson : kText, spdlog::pattern_time_type::utc));
    impl->pool = std::make_shared<spdlog::details::thread_pool>(
        std::max<size_t>(options.queue_lines, 1), /*threads_n=*/1, BlockSignals);
    impl->logger = std::make_shared<spdlog::async_logger>(
        "latte", impl->sink, impl->pool, spdlog::async_overflow_policy::overrun_oldest);
    impl->logger->set_level(spdlog::level::trace);  // Write filters
    // The pool's thread calls it, which the pool outlives.
    impl->sink->SayDropped(
        [sink = impl->sink.get(), pool = impl->pool.get()] {
          return static_cast<int64_t>(pool->overrun_counter()) + sink->failed();
        },
        [json = impl->json](int64_t lines) {
          const LogField field{"lines", lines};
          return Line(json, "lines are missing here: the log was not read", {&field, 1});
        });
    return Log(std::move(impl));
  });
}

void Log::Write(LogLevel level, std::string_view message, std::span<const LogField> fields) {
  if (level < impl_->level) return;
  const std::string line = Line(impl_->json, message, fields);
  impl_->logger->log(ToSpdlog(level), spdlog::string_view_t(line.data(), line.size()));
}

int64_t Log::dropped() const {
  return static_cast<int64_t>(impl_->pool->overrun_counter()) + impl_->sink->failed();
}

}  // namespace latte
