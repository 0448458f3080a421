#include "src/comm/launch/processes.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/strings.h"

namespace latte {
namespace {

constexpr std::chrono::seconds kUntilKilled(3);
constexpr std::chrono::milliseconds kPoll(10);

struct Process {
  pid_t parent = 0;
  char state = ' ';  // Z: it has ended, and its parent has not asked how
};

// /proc/PID/stat: number, name in parentheses, state, parent.
std::optional<Process> ReadProcess(const std::filesystem::path& folder) {
  std::ifstream file(folder / "stat");
  std::string text;
  if (!std::getline(file, text)) return std::nullopt;
  std::istringstream rest(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  Process out;
  if (!(rest >> out.state >> out.parent)) return std::nullopt;
  return out;
}

std::map<pid_t, Process> AllProcesses() {
  std::map<pid_t, Process> out;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    if (!IsDigits(name)) continue;
    if (const auto process = ReadProcess(entry.path())) out.emplace(std::stoi(name), *process);
  }
  return out;
}

bool IsBelow(const std::map<pid_t, Process>& all, pid_t pid, pid_t ancestor) {
  for (size_t steps = 0; steps < all.size(); ++steps) {
    const auto found = all.find(pid);
    if (found == all.end()) return false;
    if (found->second.parent == ancestor) return true;
    pid = found->second.parent;
  }
  return false;
}

// The processes below this one that run. Orphans that have ended are forgotten; how the launcher
// has ended is still to be asked.
std::vector<pid_t> Running(pid_t launcher) {
  std::vector<pid_t> out;
  const std::map<pid_t, Process> all = AllProcesses();
  for (const auto& [pid, process] : all) {
    if (!IsBelow(all, pid, getpid())) continue;
    if (process.state != 'Z' && process.state != 'X') out.push_back(pid);
    const bool is_orphan = process.parent == getpid() && pid != launcher;
    if (process.state == 'Z' && is_orphan) waitpid(pid, nullptr, WNOHANG);
  }
  return out;
}

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

Result<std::unique_ptr<ChildProcesses>> ChildProcesses::Start(
    std::vector<std::string> words, const std::vector<std::string>& variables, int inherited) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::vector<std::string> environment;
  for (char** one = environ; *one != nullptr; ++one) environment.emplace_back(*one);
  environment.insert(environment.end(), variables.begin(), variables.end());
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
  // Or a rank could hold a listening socket of the server.
  if (inherited >= 0) posix_spawn_file_actions_adddup2(&files, inherited, kInherited);
  posix_spawn_file_actions_addclosefrom_np(&files, kInherited + (inherited >= 0 ? 1 : 0));
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, words.front().c_str(), &files, &attributes,
                                 Pointers(words).data(), Pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error == 0) return std::unique_ptr<ChildProcesses>(new ChildProcesses(pid));
  return Fail(error == ENOENT ? Code::kNotFound : Code::kUnavailable,
              fmt::format("{}: {}", words.front(), std::strerror(error)));
}

ChildProcesses::~ChildProcesses() {
  if (!Ended()) kill(launcher_, SIGTERM);
  const auto late = std::chrono::steady_clock::now() + kUntilKilled;
  while (!Ended() && std::chrono::steady_clock::now() < late) std::this_thread::sleep_for(kPoll);
  // Processes that are just being started may be seen in the next round.
  while (!Ended() || !Running(launcher_).empty()) {
    for (const pid_t pid : Running(launcher_)) kill(pid, SIGKILL);
    std::this_thread::sleep_for(kPoll);
  }
}

std::optional<ProcessEnd> ChildProcesses::Ended() {
  int status = 0;
  if (end_ || waitpid(launcher_, &status, WNOHANG) != launcher_) return end_;
  const bool by_signal = WIFSIGNALED(status);
  end_ = {by_signal, by_signal ? fmt::format("signal {}", WTERMSIG(status))
                               : fmt::format("exit code {}", WEXITSTATUS(status))};
  return end_;
}

bool ChildProcesses::WaitForEnd(std::chrono::milliseconds most) {
  const auto end = std::chrono::steady_clock::now() + most;
  while (!Ended() || !Running(launcher_).empty()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(kPoll);
  }
  return true;
}

}  // namespace latte
