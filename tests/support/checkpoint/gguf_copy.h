// A GGUF file in memory whose entries and tensors tests change before they write it again.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "src/checkpoint/gguf/gguf_header.h"
#include "src/checkpoint/gguf/gguf_types.h"
#include "tests/support/checkpoint/gguf_writer.h"

namespace latte::testing_support {

struct GgufCopy {
  struct Item {
    std::vector<int64_t> shape;  // outermost dimension first
    uint32_t type;
    std::string bytes;
  };
  std::map<std::string, std::string> entries;  // key → entry
  std::map<std::string, Item> tensors;

  // The content of a good file of one part.
  static GgufCopy Of(const std::string& file) {
    const std::string path = "copy";
    const GgufHeader header = ParseGgufHeader(std::as_bytes(std::span(file)), path).value();
    GgufCopy out;
    for (const auto& [key, value] : header.metadata.entries()) {
      const auto type = static_cast<uint32_t>(value.type);
      const std::string_view bytes(reinterpret_cast<const char*>(value.bytes.data()),
                                   value.bytes.size());
      out.entries[key] = value.is_array
                             ? GgufArrayEntry(key, type, static_cast<uint64_t>(value.count), bytes)
                             : GgufEntry(key, type, bytes);
    }
    for (const auto& [name, tensor] : header.tensors)
      out.tensors[name] = {
          tensor.shape, NumberOf(tensor.dtype_name),
          file.substr(static_cast<size_t>(tensor.begin), static_cast<size_t>(tensor.bytes))};
    return out;
  }

  // The file, with the tensors one after another.
  std::string Bytes() const {
    constexpr size_t kAlignment = 32;
    GgufImage image;
    for (const auto& [key, entry] : entries) image.entries.push_back(entry);
    for (const auto& [name, item] : tensors) {
      image.data.resize((image.data.size() + kAlignment - 1) / kAlignment * kAlignment);
      std::string info = GgufString(name) + GgufNumber(static_cast<uint32_t>(item.shape.size()));
      for (size_t i = item.shape.size(); i-- > 0;) info += GgufNumber<int64_t>(item.shape[i]);
      image.tensors.push_back(info + GgufNumber(item.type) +
                              GgufNumber(uint64_t{image.data.size()}));
      image.data += item.bytes;
    }
    return image.Bytes();
  }

 private:
  static uint32_t NumberOf(std::string_view name) {
    uint32_t number = 0;
    for (;; ++number) {
      const auto type = FindGgufType(number);
      if (type && (*type)->name == name) return number;
    }
  }
};

}  // namespace latte::testing_support
