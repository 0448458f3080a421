#include "src/jobs/npy.h"

#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace latte {
namespace {

constexpr std::string_view kMagic("\x93NUMPY\x01\x00", 8);
constexpr size_t kPrefix = 10;  // magic, version, header length
constexpr std::string_view kDict = "{'descr': '<f4', 'fortran_order': False, 'shape': (";

std::string NpyHeader(int64_t rows, int64_t columns) {
  std::string dict = fmt::format("{}{}, {}), }}", kDict, rows, columns);
  while ((kPrefix + dict.size() + 1) % 64 != 0) dict += ' ';
  dict += '\n';
  std::string out(kMagic);
  out += static_cast<char>(dict.size() & 0xff);
  out += static_cast<char>(dict.size() >> 8);
  return out + dict;
}

bool HoldsMatrix(std::string_view text) {
  if (!text.starts_with(kMagic) || text.size() < kPrefix) return false;
  text.remove_prefix(kPrefix);
  if (!text.starts_with(kDict)) return false;
  text.remove_prefix(kDict.size());
  const std::string_view shape = text.substr(0, text.find(')'));
  const size_t comma = shape.find(", ");  // a matrix has two sizes
  return comma != std::string_view::npos && comma > 0 && comma + 2 < shape.size() &&
         shape.find(',', comma + 1) == std::string_view::npos;
}

}  // namespace

FileKind NpyMatrix() { return {"a matrix of float32 (.npy) from an earlier run", HoldsMatrix}; }

Result<NpyWriter> NpyWriter::Create(const std::string& path, int64_t rows, int64_t columns) {
  LATTE_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path, NpyMatrix()));
  const std::string header = NpyHeader(rows, columns);
  LATTE_RETURN_IF_ERROR(file.Write(std::as_bytes(std::span(header))));
  return NpyWriter(std::move(file));
}

Status NpyWriter::Append(const TensorView& rows) {
  const std::span<const float> values(rows.Ptr<float>(), static_cast<size_t>(rows.elements()));
  return file_.Write(std::as_bytes(values));
}

Status NpyWriter::Close() { return file_.Commit(); }

}  // namespace latte
