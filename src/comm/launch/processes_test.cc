#include "src/comm/launch/processes.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/scratch_dir.h"

namespace latte::processes_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::unique_ptr<ChildProcesses> Shell(const std::string& script,
                                      const std::vector<std::string>& variables = {}) {
  return ChildProcesses::Start({"sh", "-c", script}, variables).value();
}

// The number that a process writes.
pid_t NumberIn(const std::filesystem::path& path) {
  for (int i = 0; i < 6000; ++i) {
    pid_t pid = 0;
    if (std::ifstream(path) >> pid) return pid;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return 0;
}

bool IsThere(pid_t pid) { return pid > 0 && kill(pid, 0) == 0; }

TEST(Processes, TheEndIsTold) {
  const auto good = Shell("exit 3");
  EXPECT_TRUE(good->WaitForEnd(seconds(60)));
  EXPECT_FALSE(good->Ended()->by_signal);
  EXPECT_EQ(good->Ended()->text, "exit code 3");
  const auto killed = Shell("kill -9 $$");
  EXPECT_TRUE(killed->WaitForEnd(seconds(60)));
  EXPECT_TRUE(killed->Ended()->by_signal);
  EXPECT_EQ(killed->Ended()->text, "signal 9");
  const auto running = Shell("sleep 1000");
  EXPECT_FALSE(running->Ended());
  EXPECT_FALSE(running->WaitForEnd(milliseconds(20)));
}

TEST(Processes, AProgramThatIsNotThere) {
  const auto started = ChildProcesses::Start({"latte-no-such-program"}, {});
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, Code::kNotFound);
  EXPECT_EQ(started.error().message, "latte-no-such-program: No such file or directory");
}

TEST(Processes, TheyGetVariablesNoInputAndNoOpenFiles) {
  const testing_support::ScratchDir dir;
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);  // as a server's, which an exec keeps
  const auto shell =
      Shell(fmt::format(
                "read line; set -- /proc/$$/fd/*; echo \"$LATTE_TEST_VARIABLE:$line:$#\" > {0}/a; "
                "mv {0}/a {0}/done",
                dir.path()),
            {"LATTE_TEST_VARIABLE=x y"});
  EXPECT_TRUE(shell->WaitForEnd(seconds(60)));
  std::string line;
  std::getline(std::ifstream(dir.File("done")), line);
  EXPECT_EQ(line, "x y::4") << "0, 1, 2 and the folder that is listed";
  close(ends[0]);
  close(ends[1]);
}

TEST(Processes, OneOpenFileIsGivenOn) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const auto shell =
      ChildProcesses::Start({"sh", "-c", "set -- /proc/$$/fd/*; echo $# >&3"}, {}, ends[1]).value();
  close(ends[1]);
  std::string text(16, ' ');
  const ssize_t size = read(ends[0], text.data(), text.size());
  EXPECT_EQ(text.substr(0, static_cast<size_t>(std::max<ssize_t>(size, 0))), "5\n");
  EXPECT_EQ(read(ends[0], text.data(), text.size()), 0) << "its end closes the pair";
  close(ends[0]);
}

// As ranks are to mpirun: in process groups of their own, and one that is stopped.
TEST(Processes, NoneIsLeft) {
  const testing_support::ScratchDir dir;
  const std::string path = dir.path();
  auto shell = Shell(
      fmt::format("setsid sh -c 'trap \"\" TERM; echo $$ > {0}/deaf; while :; do sleep 1; done' & "
                  "setsid sh -c 'echo $$ > {0}/stopped; kill -STOP $$' & wait",
                  path));
  const pid_t deaf = NumberIn(dir.File("deaf"));
  const pid_t stopped = NumberIn(dir.File("stopped"));
  ASSERT_TRUE(IsThere(deaf));
  ASSERT_TRUE(IsThere(stopped));
  shell.reset();
  EXPECT_FALSE(IsThere(deaf));
  EXPECT_FALSE(IsThere(stopped));
}

TEST(Processes, OrphansEndToo) {
  const testing_support::ScratchDir dir;
  const std::string path = dir.path();
  auto shell =
      Shell(fmt::format("setsid sh -c 'echo $$ > {}/orphan; sleep 1000' & "
                        "while [ ! -s {}/orphan ]; do sleep 0.01; done; kill -9 $$",
                        path, path));
  const pid_t orphan = NumberIn(dir.File("orphan"));
  while (!shell->Ended()) std::this_thread::sleep_for(milliseconds(5));
  EXPECT_TRUE(IsThere(orphan));
  EXPECT_FALSE(shell->WaitForEnd(milliseconds(20)));
  shell.reset();
  EXPECT_FALSE(IsThere(orphan));
}

}  // namespace
}  // namespace latte::processes_test
