#include "src/jobs/convert/checkpoint_writer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/check.h"
#include "src/base/json_out.h"
#include "src/tensor/dtype.h"

namespace latte {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSingle = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";
constexpr int64_t kMostAtOnce = 64 << 20;  // bytes written between two checks for interruption

int64_t ElementBytes(std::string_view dtype_name) {
  for (const DTypeInfo& info : kDTypes)
    if (info.stored == dtype_name) return info.bytes;
  LATTE_CHECK(false, "dtype {}", dtype_name);
  return 0;
}

tl::unexpected<Error> WriteError(const std::string& path, int err) {
  return Fail(Code::kUnavailable,
              fmt::format("{}: cannot be written: {}; what was written of the copy is removed",
                          path, std::strerror(err)));
}

// Writes all of `bytes` at `offset`; returns errno or 0.
int WriteAt(int fd, std::span<const std::byte> bytes, int64_t offset) {
  while (!bytes.empty()) {
    const ssize_t n = pwrite(fd, bytes.data(), bytes.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    bytes = bytes.subspan(static_cast<size_t>(n));
    offset += n;
  }
  return 0;
}

// Sets the size of a new file and allocates its blocks if the file system can; returns errno or 0.
int Reserve(int fd, int64_t bytes) {
  if (fallocate(fd, 0, 0, bytes) == 0) return 0;
  if (errno != EOPNOTSUPP && errno != ENOSYS) return errno;
  return ftruncate(fd, bytes) == 0 ? 0 : errno;
}

// The u64 length and the JSON that describes the tensors of a file. Wide dtypes come first, so
// every tensor is aligned. Spaces pad the header to a whole cache line: rows that begin inside a
// line cost kernels a second line with every load. Sets the offset of each tensor after the header.
std::string SafetensorsHeader(const std::vector<TensorPlan>& plan,
                              const std::vector<size_t>& tensors) {
  // Writes text directly: an ordered document searches its keys linearly, and there are thousands.
  std::string text = R"({"__metadata__":{"format":"pt"})";
  int64_t offset = 0;
  for (const size_t i : tensors) {
    const int64_t end = offset + plan[i].bytes();
    const JsonOut entry = {
        {"dtype", plan[i].dtype_name}, {"shape", plan[i].shape}, {"data_offsets", {offset, end}}};
    text += fmt::format(",{}:{}", Dump(plan[i].name), Dump(entry));
    offset = end;
  }
  text += '}';
  constexpr size_t kLine = 64;
  const size_t rest = (sizeof(uint64_t) + text.size()) % kLine;
  text.append((kLine - rest) % kLine, ' ');
  const uint64_t size = text.size();  // little-endian, like every machine that Latte supports
  std::string head(sizeof(size), '\0');
  std::memcpy(head.data(), &size, sizeof(size));
  return head + text;
}

}  // namespace

int64_t TensorPlan::bytes() const {
  int64_t elements = 1;
  for (const int64_t size : shape) elements *= size;
  return elements * ElementBytes(dtype_name);
}

Result<CheckpointWriter> CheckpointWriter::Begin(const std::string& dir,
                                                 std::vector<TensorPlan> plan,
                                                 const WriterOptions& options) {
  CheckpointWriter writer;
  writer.dir_ = dir;
  writer.options_ = options;
  writer.plan_ = std::move(plan);
  LATTE_ASSIGN_OR_RETURN(writer.folder_, FindCheckpointFolder(dir, options.source, options.force));
  LATTE_ASSIGN_OR_RETURN(StagingFolder staging, StagingFolder::Make(writer.folder_.path));
  writer.staging_.emplace(std::move(staging));
  // Leftovers are now removed: an earlier copy may have been restored, and there may be more room.
  LATTE_ASSIGN_OR_RETURN(writer.folder_, FindCheckpointFolder(dir, options.source, options.force));
  writer.PlaceTensors(options.shard_bytes);
  LATTE_RETURN_IF_ERROR(writer.CheckRoom());
  LATTE_RETURN_IF_ERROR(writer.OpenFiles());
  return writer;
}

CheckpointWriter::CheckpointWriter(CheckpointWriter&& other) noexcept
    : dir_(std::move(other.dir_)),
      options_(std::move(other.options_)),
      folder_(std::move(other.folder_)),
      staging_(std::exchange(other.staging_, {})),
      plan_(std::move(other.plan_)),
      places_(std::move(other.places_)),
      files_(std::exchange(other.files_, {})),
      bytes_(other.bytes_),
      interrupted_(other.interrupted_.load()) {}

CheckpointWriter::~CheckpointWriter() {
  for (const File& file : files_)
    if (file.fd >= 0) close(file.fd);
}

void CheckpointWriter::PlaceTensors(int64_t shard_bytes) {
  int64_t filled = 0;
  for (size_t i = 0; i < plan_.size(); ++i) {
    const int64_t bytes = plan_[i].bytes();
    if (files_.empty() || (filled > 0 && filled + bytes > shard_bytes)) {
      files_.emplace_back();
      filled = 0;
    }
    files_.back().tensors.push_back(i);
    filled += bytes;
    bytes_ += bytes;
  }
  places_.resize(plan_.size());
  for (size_t f = 0; f < files_.size(); ++f) {
    File& file = files_[f];
    file.name = files_.size() == 1
                    ? std::string(kSingle)
                    : fmt::format("model-{:05}-of-{:05}.safetensors", f + 1, files_.size());
    std::stable_sort(file.tensors.begin(), file.tensors.end(), [this](size_t a, size_t b) {
      return ElementBytes(plan_[a].dtype_name) > ElementBytes(plan_[b].dtype_name);
    });
    file.head = SafetensorsHeader(plan_, file.tensors);
    file.bytes = static_cast<int64_t>(file.head.size());
    for (const size_t i : file.tensors) {
      places_[i] = {f, file.bytes};
      file.bytes += plan_[i].bytes();
    }
  }
}

Status CheckpointWriter::CheckRoom() const {
  std::error_code error;
  const fs::space_info space = fs::space(staging_->path(), error);
  if (error)
    return {};  // if the file system does not report its free space, writing shows whether
                // it is full
  int64_t needed = 0;
  for (const File& file : files_) needed += file.bytes;
  if (static_cast<uint64_t>(needed) <= space.available) return {};
  return Exhausted(fmt::format(
      "{}: expected room for {:.2f} GB, found {:.2f} GB free; free some, or write elsewhere", dir_,
      static_cast<double>(needed) / 1e9, static_cast<double>(space.available) / 1e9));
}

Status CheckpointWriter::OpenFiles() {
  for (File& file : files_) {
    const std::string path = fmt::format("{}/{}", staging_->path(), file.name);
    const std::string shown = fmt::format("{}/{}", dir_, file.name);
    file.fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file.fd < 0) return WriteError(shown, errno);
    if (const int err = Reserve(file.fd, file.bytes); err != 0) return WriteError(shown, err);
    const int err = WriteAt(file.fd, std::as_bytes(std::span(file.head)), 0);
    if (err != 0) return WriteError(shown, err);
  }
  return {};
}

Status CheckpointWriter::Write(size_t i, int64_t offset, std::span<const std::byte> bytes) const {
  const auto size = static_cast<int64_t>(bytes.size());
  LATTE_CHECK(offset >= 0 && offset + size <= plan_[i].bytes(), "{} bytes at {} of '{}'", size,
              offset, plan_[i].name);
  const File& file = files_[places_[i].file];
  for (int64_t at = 0; at < size; at += kMostAtOnce) {
    LATTE_RETURN_IF_ERROR(CheckInterrupted());
    const int64_t count = std::min(kMostAtOnce, size - at);
    const int err =
        WriteAt(file.fd, bytes.subspan(static_cast<size_t>(at), static_cast<size_t>(count)),
                places_[i].begin + offset + at);
    if (err != 0) return WriteError(fmt::format("{}/{}", dir_, file.name), err);
  }
  return {};
}

Status CheckpointWriter::CheckInterrupted() const {
  if (!interrupted_ && options_.interrupted && options_.interrupted()) interrupted_ = true;
  if (!interrupted_) return {};
  return Fail(Code::kCancelled,
              fmt::format("interrupted: {} {}; what was written of the copy is removed", dir_,
                          folder_.files.empty() ? "was not written" : "is as it was"));
}

Status CheckpointWriter::AddFile(const std::string& name, const std::string& text) const {
  const std::string path = fmt::format("{}/{}", staging_->path(), name);
  const std::string shown = fmt::format("{}/{}", dir_, name);
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return WriteError(shown, errno);
  int err = WriteAt(fd, std::as_bytes(std::span(text)), 0);
  if (err == 0) err = Settle(fd);
  if (close(fd) != 0 && err == 0) err = errno;
  if (err != 0) return WriteError(shown, err);
  return {};
}

// Some file systems report a full disk only now. Returns errno or 0.
int CheckpointWriter::Settle(int fd) const {
  if (!options_.lasting || fsync(fd) == 0 || errno == EINVAL) return 0;
  return errno;
}

Status CheckpointWriter::WriteIndex() const {
  if (files_.size() < 2) return {};
  std::string map;
  for (size_t i = 0; i < plan_.size(); ++i)
    map += fmt::format("{}\n  {}: {}", i == 0 ? "" : ",", Dump(plan_[i].name),
                       Dump(files_[places_[i].file].name));
  return AddFile(std::string(kIndex),
                 fmt::format("{{\n \"metadata\": {{\"total_size\": {}}},\n \"weight_map\": {{{}\n "
                             "}}\n}}\n",
                             bytes_, map));
}

Status CheckpointWriter::CloseFiles() {
  for (File& file : files_) {
    LATTE_RETURN_IF_ERROR(CheckInterrupted());
    int err = Settle(file.fd);
    if (close(std::exchange(file.fd, -1)) != 0 && err == 0) err = errno;
    if (err != 0) return WriteError(fmt::format("{}/{}", dir_, file.name), err);
  }
  return CheckInterrupted();
}

Status CheckpointWriter::Commit() {
  LATTE_RETURN_IF_ERROR(WriteIndex());
  LATTE_RETURN_IF_ERROR(CloseFiles());
  return staging_->Publish(folder_.files);
}

}  // namespace latte
