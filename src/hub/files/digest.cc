#include "src/hub/files/digest.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <unistd.h>

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
    std::string out;
    for (unsigned i = 0; i < size; ++i) out += fmt::format("{:02x}", bytes[i]);
    return out;
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
                        Digest* digest) {
  std::vector<char> block(kBlockBytes);
  int64_t size = 0;
  while (true) {
    if (stop.load()) return Fail(Code::kCancelled, "stopped");
    const ssize_t n = read(fd, block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return CannotRead(path);
    if (n == 0) return size;
    digest->Add(block.data(), static_cast<size_t>(n));
    size += n;
  }
}

}  // namespace

Status VerifyFile(const std::string& path, const HubFile& file, const std::atomic<bool>& stop) {
  Digest digest(file.is_large() ? EVP_sha256() : EVP_sha1());
  const std::string header = fmt::format("blob {}", file.size);
  if (!file.is_large()) digest.Add(header.c_str(), header.size() + 1);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return CannotRead(path);
  const Result<int64_t> size = AddFile(fd, path, stop, &digest);
  close(fd);
  LATTE_RETURN_IF_ERROR(size);
  if (*size != file.size)
    return Corrupt(fmt::format("{}: expected {} bytes, found {}", file.path, file.size, *size));
  if (const std::string found = digest.Finish(); found != file.oid)
    return Corrupt(fmt::format("{}: expected the checksum {} of the repository's listing, found {}",
                               file.path, file.oid, found));
  return {};
}

}  // namespace latte
