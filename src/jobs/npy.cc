#include "src/jobs/npy.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>

namespace latte {
namespace {

tl::unexpected<Error> WriteError(const std::string& path) {
  return Fail(Code::kUnavailable,
              fmt::format("{}: cannot be written: {}", path, std::strerror(errno)));
}

std::string Header(int64_t rows, int64_t columns) {
  std::string dict =
      fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows, columns);
  constexpr size_t kPrefix = 10;  // magic, version, header length
  while ((kPrefix + dict.size() + 1) % 64 != 0) dict += ' ';
  dict += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(dict.size() & 0xff);
  out += static_cast<char>(dict.size() >> 8);
  return out + dict;
}

}  // namespace

Result<NpyWriter> NpyWriter::Create(const std::string& path, int64_t rows, int64_t columns) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return WriteError(path);
  NpyWriter writer(path, file);
  const std::string header = Header(rows, columns);
  if (std::fwrite(header.data(), 1, header.size(), file) != header.size()) return WriteError(path);
  return writer;
}

NpyWriter::NpyWriter(NpyWriter&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, nullptr)) {}

NpyWriter::~NpyWriter() {
  if (file_ != nullptr) std::fclose(static_cast<std::FILE*>(file_));
}

Status NpyWriter::Append(const TensorView& rows) {
  const auto count = static_cast<size_t>(rows.elements());
  if (std::fwrite(rows.Ptr<float>(), sizeof(float), count, static_cast<std::FILE*>(file_)) != count)
    return WriteError(path_);
  return {};
}

Status NpyWriter::Close() {
  if (std::fclose(static_cast<std::FILE*>(std::exchange(file_, nullptr))) != 0)
    return WriteError(path_);
  return {};
}

}  // namespace latte
