#include "apps/terminal/history_file.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/json.h"
#include "src/base/json_out.h"
#include "src/base/strings.h"

namespace latte {
namespace {

namespace fs = std::filesystem;

std::string EnvironmentPath(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// An open file that no other process has locked.
class LockedFile {
 public:
  explicit LockedFile(const std::string& path) {
    fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd_ >= 0 && flock(fd_, LOCK_EX) != 0) Close();
  }
  ~LockedFile() { Close(); }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;

  bool is_open() const { return fd_ >= 0; }

  bool Read(std::string* text) const {
    char bytes[1 << 16];
    ssize_t n = 0;
    while ((n = read(fd_, bytes, sizeof(bytes))) > 0) text->append(bytes, static_cast<size_t>(n));
    return n == 0;
  }
  bool Write(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t n = write(fd_, text.data(), text.size());
      if (n < 0) return false;
      text.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }
  bool Clear() const { return ftruncate(fd_, 0) == 0; }

 private:
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  int fd_ = -1;
};

tl::unexpected<Error> Lost(const std::string& path) {
  return Fail(Code::kUnavailable,
              fmt::format("the history in {} cannot be used: {}", path, std::strerror(errno)));
}

std::string LineOf(const std::string& message) { return Dump(JsonOut(message)) + "\n"; }

std::vector<std::string> Messages(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::string_view line = TakePiece(&text, '\n');
    const Result<Json> parsed = Json::Parse(line, "history");
    if (!parsed || !parsed->is_string()) continue;
    out.push_back(parsed->AsString().value());
  }
  return out;
}

}  // namespace

std::string HistoryPath() {
  const std::string state = EnvironmentPath("XDG_STATE_HOME");
  if (state.starts_with('/')) return state + "/latte/history";
  const std::string home = EnvironmentPath("HOME");
  return home.empty() ? "" : home + "/.local/state/latte/history";
}

Result<std::vector<std::string>> HistoryFile::Load() const {
  if (path_.empty() || access(path_.c_str(), F_OK) != 0) return std::vector<std::string>();
  const LockedFile file(path_);
  std::string text;
  if (!file.is_open() || !file.Read(&text)) return Lost(path_);
  std::vector<std::string> messages = Messages(text);
  const bool grown = messages.size() > 2 * kMessages;
  if (messages.size() > kMessages)
    messages.erase(messages.begin(), messages.end() - static_cast<ptrdiff_t>(kMessages));
  if (!grown) return messages;
  std::string kept;
  for (const std::string& message : messages) kept += LineOf(message);
  if (!file.Clear() || !file.Write(kept)) return Lost(path_);
  return messages;
}

Status HistoryFile::Append(const std::string& message) const {
  if (path_.empty() || message.size() > kMessageBytes) return {};
  std::error_code error;
  fs::create_directories(fs::path(path_).parent_path(), error);
  const LockedFile file(path_);
  if (!file.is_open() || !file.Write(LineOf(message))) return Lost(path_);
  return {};
}

}  // namespace latte
