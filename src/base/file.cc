#include "src/base/file.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/files/map_guard.h"
#include "src/base/files/output_file.h"

namespace latte {
namespace {

// Owns a file descriptor for the length of a scope.
struct Fd {
  int fd = -1;
  ~Fd() {
    if (fd >= 0) close(fd);
  }
};

tl::unexpected<Error> FileError(const std::string& path, int err) {
  const bool missing = err == ENOENT || err == ENOTDIR;
  const bool short_of = err == ENOMEM || err == EMFILE || err == ENFILE;  // memory, descriptors
  const Code code = missing ? Code::kNotFound : short_of ? Code::kExhausted : Code::kUnavailable;
  return Fail(code, fmt::format("{}: cannot be read: {}", path, std::strerror(err)));
}

// Opens a regular file and returns its size. O_NONBLOCK: opening a FIFO must not hang.
Result<int64_t> OpenRegular(const std::string& path, Fd& out) {
  out.fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (out.fd < 0) return FileError(path, errno);
  struct stat st = {};
  if (fstat(out.fd, &st) != 0) return FileError(path, errno);
  if (!S_ISREG(st.st_mode))
    return Corrupt(fmt::format("{}: expected a regular file, found {}", path,
                               S_ISDIR(st.st_mode) ? "a directory" : "a device, pipe or socket"));
  return static_cast<int64_t>(st.st_size);
}

// A path for a message that a signal handler prints: bytes that are not printable ASCII as \x1b.
std::string PlainPath(const std::string& path) {
  std::string out;
  for (const char c : path)
    out += c >= 0x20 && c < 0x7f ? std::string(1, c)
                                 : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return out;
}

}  // namespace

Result<std::string> ReadFile(const std::string& path, int64_t max_bytes) {
  Fd file;
  LATTE_ASSIGN_OR_RETURN(const int64_t size, OpenRegular(path, file));
  if (size > max_bytes)
    return Corrupt(fmt::format("{}: expected at most {} bytes, found {}", path, max_bytes, size));
  std::string out(static_cast<size_t>(size), '\0');
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t n = read(file.fd, out.data() + done, out.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FileError(path, errno);
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  out.resize(done);
  return out;
}

Status WriteFile(const std::string& path, std::span<const std::byte> bytes) {
  LATTE_ASSIGN_OR_RETURN(OutputFile file, OutputFile::CreateOwn(path));
  LATTE_RETURN_IF_ERROR(file.Write(bytes));
  return file.Commit();
}

bool Exists(const std::string& path) {
  struct stat st = {};
  return lstat(path.c_str(), &st) == 0;
}

bool IsRegularFile(const std::string& path) {
  struct stat st = {};
  return stat(path.c_str(), &st) == 0 && S_ISREG(st.st_mode);
}

bool IsDirectory(const std::string& path) {
  struct stat st = {};
  return stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

Result<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path) {
  Fd file;
  LATTE_ASSIGN_OR_RETURN(const int64_t size, OpenRegular(path, file));
  const std::byte* data = nullptr;
  if (size > 0) {  // mmap refuses length 0
    void* map = mmap(nullptr, static_cast<size_t>(size), PROT_READ, MAP_SHARED, file.fd, 0);
    if (map == MAP_FAILED) return FileError(path, errno);
    data = static_cast<const std::byte*>(map);
    // Where the file system has them, pages of 2 MiB are read, and translated, at once.
    madvise(map, static_cast<size_t>(size), MADV_HUGEPAGE);
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(path, data, static_cast<size_t>(size)));
}

MappedFile::MappedFile(std::string path, const std::byte* data, size_t size)
    : path_(std::move(path)),
      data_(data),
      size_(size),
      lost_(fmt::format("latte: unavailable: {}: expected the {} bytes that were there when the "
                        "file was opened, found that it can no longer be read: another program "
                        "truncated it, or its disk failed; start again with a whole file\n",
                        PlainPath(path_), size_)) {
  if (data_ != nullptr) guard_ = GuardMap(data_, size_, lost_.c_str());
}

MappedFile::~MappedFile() {
  ForgetMap(guard_);
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
}

void ReadAhead(std::span<const std::byte> bytes) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto at = reinterpret_cast<uintptr_t>(bytes.data());
  const uintptr_t begin = at / page * page;
  if (!bytes.empty())
    madvise(reinterpret_cast<void*>(begin), at + bytes.size() - begin, MADV_WILLNEED);
}

std::optional<int64_t> BytesReadFromDisk() {
  std::ifstream file("/proc/self/io");
  int64_t bytes = 0;
  for (std::string name; file >> name >> bytes;)
    if (name == "read_bytes:") return bytes;
  return std::nullopt;
}

}  // namespace latte
