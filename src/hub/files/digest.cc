#include "src/hub/files/digest.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/strings.h"

namespace latte {
namespace {

constexpr size_t kBlockBytes = 1 << 20;

class Digest {
 public:
  explicit Digest(const EVP_MD* kind) : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    good_ = context_ != nullptr && EVP_DigestInit_ex(context_.get(), kind, nullptr) == 1;
  }

  void Add(const void* data, size_t size) {
    good_ = good_ && EVP_DigestUpdate(context_.get(), data, size) == 1;
  }

  // Hexadecimal digits; empty if the library failed.
  std::string Finish() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
    unsigned size = 0;
    if (!good_ || EVP_DigestFinal_ex(context_.get(), bytes.data(), &size) != 1) return "";
    return InHex({reinterpret_cast<const char*>(bytes.data()), size});
  }

 private:
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context_;
  bool good_ = false;
};

tl::unexpected<Error> CannotRead(const std::string& path) {
  return Fail(Code::kUnavailable,
              fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
}

// Feeds the file to `digest`; returns its length.
Result<int64_t> AddFile(int fd, const std::string& path, const std::atomic<bool>& stop,
                        const BytesRead& read, Digest* digest) {
  std::vector<char> block(kBlockBytes);
  int64_t size = 0;
  while (true) {
    if (stop.load()) return Fail(Code::kCancelled, "stopped");
    const ssize_t n = pread(fd, block.data(), block.size(), size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return CannotRead(path);
    if (n == 0) return size;
    digest->Add(block.data(), static_cast<size_t>(n));
    size += n;
    if (read) read(n);
  }
}

}  // namespace

Status VerifyOpenFile(int fd, const HubFile& file, const std::atomic<bool>& stop,
                      const BytesRead& read) {
  Digest digest(file.is_large() ? EVP_sha256() : EVP_sha1());
  const std::string header = fmt::format("blob {}", file.size);
  if (!file.is_large()) digest.Add(header.c_str(), header.size() + 1);
  LATTE_ASSIGN_OR_RETURN(const int64_t size, AddFile(fd, file.path, stop, read, &digest));
  if (size != file.size)
    return Corrupt(fmt::format("{}: expected {} bytes, found {}", file.path, file.size, size));
  if (const std::string found = digest.Finish(); found != file.oid)
    return Corrupt(fmt::format("{}: expected the checksum {} of the repository's listing, found {}",
                               file.path, file.oid, found));
  return {};
}

Status VerifyFile(const std::string& path, const HubFile& file, const std::atomic<bool>& stop,
                  const BytesRead& read) {
  // O_NONBLOCK: opening a FIFO must not wait.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return CannotRead(path);
  struct stat info = {};
  const bool regular = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  const Status verified = regular ? VerifyOpenFile(fd, file, stop, read)
                                  : Corrupt(fmt::format("{}: expected a regular file", file.path));
  close(fd);
  return verified;
}

}  // namespace latte
