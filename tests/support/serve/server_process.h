// A server in a separate process, with an engine that the test controls.
#pragma once

#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/check.h"
#include "src/serve/server.h"
#include "tests/support/raw_client.h"

namespace latte::testing_support {

// Answers each request with max_tokens tokens, one per step. The text of token i is `text(i)`.
class TalkingEngine : public Engine {
 public:
  std::function<std::string(int64_t)> text = [](int64_t) { return std::string(" a"); };
  std::function<Status()> on_step = [] { return Status(); };
  std::function<void()> on_submit = [] {};

  Result<RequestId> Submit(Request request) override {
    on_submit();
    const std::lock_guard lock(mutex_);
    requests_.push_back(std::move(request));
    generated_.push_back(0);
    changed_.notify_all();
    return requests_.size();
  }
  void Cancel(RequestId id) override {
    const std::lock_guard lock(mutex_);
    generated_[id - 1] = requests_[id - 1].stop.max_tokens;
  }
  void SetEventSink(EventSink sink) override { sink_ = std::move(sink); }
  Status Step() override {
    std::vector<TokenEvent> events;
    {
      const std::lock_guard lock(mutex_);
      if (!HasWork()) return {};
    }
    LATTE_RETURN_IF_ERROR(on_step());
    {
      const std::lock_guard lock(mutex_);
      for (size_t i = 0; i < requests_.size(); ++i)
        if (generated_[i] < requests_[i].stop.max_tokens) events.push_back(Next(i));
    }
    if (!events.empty()) sink_(events);
    return {};
  }
  bool WaitForWork(std::chrono::steady_clock::time_point deadline) override {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, deadline, [this] { return woken_ || HasWork(); });
    woken_ = false;
    return HasWork();
  }
  void Wake() override {
    const std::lock_guard lock(mutex_);
    woken_ = true;
    changed_.notify_all();
  }
  Status SavePrefixes() override { return {}; }
  EngineStats Stats() const override { return {}; }
  const EngineOptions& options() const override { return options_; }

 private:
  bool HasWork() const {
    for (size_t i = 0; i < requests_.size(); ++i)
      if (generated_[i] < requests_[i].stop.max_tokens) return true;
    return false;
  }
  TokenEvent Next(size_t i) {
    TokenEvent event;
    event.request = i + 1;
    event.user_data = requests_[i].user_data;
    event.token = 5;
    event.text = text(generated_[i]);
    event.generated_tokens = ++generated_[i];
    if (generated_[i] == requests_[i].stop.max_tokens) event.finish = FinishReason::kLength;
    return event;
  }

  EventSink sink_;
  EngineOptions options_ = {.max_tokens = 4096};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false;
  std::vector<Request> requests_;
  std::vector<int64_t> generated_;
};

inline const ApiModel& Tiny() {
  static const ApiModel model = ApiModel::Create("tiny", ModelFiles::Load("tiny").value()).value();
  return model;
}

// Waits in steps, so that a process that lost its parent ends.
inline void SleepUntil(const std::function<bool()>& condition) {
  for (int i = 0; !condition(); ++i) {
    LATTE_CHECK(i < 6000, "the test waits too long");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// A file that the test makes and the server waits for.
class Gate {
 public:
  Gate() : path_(fmt::format("{}/gate.{}.{}", testing::TempDir(), ::getpid(), ++made_)) {}
  ~Gate() { std::remove(path_.c_str()); }
  void Open() const { std::fclose(std::fopen(path_.c_str(), "w")); }
  void Wait() const {
    SleepUntil([this] { return ::access(path_.c_str(), F_OK) == 0; });
  }

 private:
  static inline int made_ = 0;
  std::string path_;
};

class ServerProcess {
 public:
  // end_loading: ServeParts::end_loading, of a server that starts its engine again; empty: it does
  // not.
  ServerProcess(const ServeOptions& options, const EngineLoader& load,
                const std::function<void()>& end_loading = {}, const ApiModel& model = Tiny()) {
    int ends[2];
    LATTE_CHECK(::pipe(ends) == 0, "no pipe");
    child_ = ::fork();
    LATTE_CHECK(child_ >= 0, "no process");
    if (child_ == 0) Run(options, load, end_loading, model, ends[1]);
    ::close(ends[1]);
    said_ = ::fdopen(ends[0], "r");
    const std::string line = Line();
    port_ = std::atoi(line.substr(line.rfind(':') + 1).c_str());
  }
  ~ServerProcess() {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
    std::fclose(said_);
  }

  // The next line that the server says; empty if it has ended.
  std::string Line() {
    char line[1000];
    return std::fgets(line, sizeof line, said_) == nullptr ? "" : line;
  }
  void WaitUntilReady() {
    std::string line;
    do line = Line();
    while (!line.empty() && !line.starts_with("ready"));
    ASSERT_FALSE(line.empty());
  }
  void Signal() const { ::kill(child_, SIGTERM); }
  pid_t pid() const { return child_; }
  // Waits for the end: the exit status, or −1 for a signal.
  int ExitStatus() {
    int status = 0;
    ::waitpid(std::exchange(child_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  RawClient Connect() const { return RawClient::Tcp(port_); }
  RawResponse Get(std::string_view path) const {
    RawClient client = Connect();
    Send(client, fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n", path));
    return client.Receive();
  }
  RawResponse Complete(int max_tokens) const {
    RawClient client = Connect();
    Ask(client, max_tokens, /*stream=*/false);
    return client.Receive();
  }
  static void Ask(RawClient& client, int max_tokens, bool stream) {
    const std::string body =
        fmt::format(R"({{"prompt": "Once", "max_tokens": {}, "stream": {}}})", max_tokens, stream);
    Send(client, fmt::format("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                             "application/json\r\nContent-Length: {}\r\n\r\n{}",
                             body.size(), body));
  }

 private:
  static void Send(RawClient& client, const std::string& bytes) { client.Send(bytes); }
  [[noreturn]] static void Run(ServeOptions options, const EngineLoader& load,
                               const std::function<void()>& end_loading, const ApiModel& model,
                               int said) {
    options.port = 0;
    const ServeParts parts{.options = options,
                           .names = {"tiny"},
                           .version = "1",
                           .model = &model,
                           .load = load,
                           .restarts = static_cast<bool>(end_loading),
                           .end_loading = end_loading,
                           .say = [said](const std::string& text) {
                             const std::string line = text + "\n";
                             if (::write(said, line.data(), line.size()) < 0) std::_Exit(99);
                           }};
    const Status status = Serve(parts);
    std::_Exit(status ? 0 : ExitCode(status.error().code));
  }

  pid_t child_ = -1;
  FILE* said_ = nullptr;
  int port_ = 0;
};

inline Result<std::unique_ptr<Engine>> Talking() { return std::make_unique<TalkingEngine>(); }

}  // namespace latte::testing_support
