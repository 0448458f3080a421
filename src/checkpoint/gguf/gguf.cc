#include "src/checkpoint/gguf/gguf.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "src/checkpoint/gguf/gguf_header.h"
#include "src/text/unicode/printable.h"

namespace latte {

bool IsGgufPath(const std::string& path) { return path.ends_with(".gguf") && IsRegularFile(path); }

Result<GgufFiles> GgufFiles::Open(const std::string& path) {
  GgufFiles out;
  LATTE_ASSIGN_OR_RETURN(out.metadata_, out.Add(path));
  LATTE_ASSIGN_OR_RETURN(const GgufPlace place, ReadGgufPlace(out.metadata_));
  if (place.count > 1) return OpenSet(path, place);
  const std::optional<GgufPart> name = ParseGgufPart(path);
  if (name && name->count > 1)
    return Corrupt(
        fmt::format("{}: expected part {} of {}, as its name says, found no 'split.count' in its "
                    "metadata; if it is a whole model, give it another name",
                    path, name->number, name->count));
  return out;
}

Result<GgufMetadata> GgufFiles::Add(const std::string& path) {
  LATTE_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  LATTE_ASSIGN_OR_RETURN(GgufHeader header, ParseGgufHeader(file->bytes(), path));
  const auto index = static_cast<int64_t>(stored_.files.size());
  stored_.files.push_back(std::move(file));
  for (auto& [name, tensor] : header.tensors) {
    tensor.file_index = index;
    const auto [at, is_new] = stored_.tensors.try_emplace(name, std::move(tensor));
    if (!is_new)
      return Corrupt(
          fmt::format("{}: tensor '{}' stands in two parts, here and in {}", path, Printable(name),
                      stored_.files[static_cast<size_t>(at->second.file_index)]->path()));
  }
  return std::move(header.metadata);
}

const StoredTensor* GgufFiles::Find(std::string_view name) const {
  const auto it = stored_.tensors.find(name);
  return it == stored_.tensors.end() ? nullptr : &it->second;
}

std::span<const std::byte> GgufFiles::Bytes(const StoredTensor& tensor) const {
  return stored_.files[static_cast<size_t>(tensor.file_index)]->bytes().subspan(
      static_cast<size_t>(tensor.begin), static_cast<size_t>(tensor.bytes));
}

}  // namespace latte
