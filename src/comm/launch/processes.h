// The processes with which a front starts its ranks: mpirun and its children.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "latte/status.h"

namespace latte {

struct ProcessEnd {
  bool by_signal = false;
  std::string text;  // "exit code 1", "signal 9"
};

// An interface: tests have ranks that are threads.
class RankProcesses {
 public:
  // Ends those that still run and returns when all are gone.
  virtual ~RankProcesses() = default;
  // How the launcher has ended; nullopt: it runs.
  virtual std::optional<ProcessEnd> Ended() = 0;
  // Whether all are gone in time, by themselves.
  virtual bool WaitForEnd(std::chrono::milliseconds most) = 0;
};

// One at a time, in a process that starts no others. Not thread-safe.
class ChildProcesses final : public RankProcesses {
 public:
  static constexpr int kInherited = 3;  // the first after standard error

  // Runs the program words[0], which is looked for in PATH, in a process group of its own.
  // `variables` ("NAME=value") are added to its environment. Its standard input is empty, and its
  // standard output goes to standard error. A process below it whose parent ends becomes a child of
  // this process, so that none is overlooked. inherited: a descriptor that the program gets as
  // number kInherited; -1: none. Errors: kNotFound, no such program; kUnavailable.
  [[nodiscard]] static Result<std::unique_ptr<ChildProcesses>> Start(
      std::vector<std::string> words, const std::vector<std::string>& variables,
      int inherited = -1);

  // Sends SIGTERM to the launcher, which has three seconds to end all, then SIGKILL to each process
  // that is left.
  ~ChildProcesses() override;
  ChildProcesses(const ChildProcesses&) = delete;
  ChildProcesses& operator=(const ChildProcesses&) = delete;

  std::optional<ProcessEnd> Ended() override;
  bool WaitForEnd(std::chrono::milliseconds most) override;

 private:
  explicit ChildProcesses(pid_t launcher) : launcher_(launcher) {}

  const pid_t launcher_;
  std::optional<ProcessEnd> end_;  // of the launcher; its number may have been given away then
};

}  // namespace latte
