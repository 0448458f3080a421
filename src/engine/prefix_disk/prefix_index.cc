#include "src/engine/prefix_disk/prefix_index.h"

namespace latte {

void PrefixIndex::Add(const std::string& name, int64_t bytes) {
  Remove(name);
  files_.emplace(name, File{bytes, order_.insert(order_.end(), name)});
  bytes_ += bytes;
}

void PrefixIndex::Remove(const std::string& name) {
  const auto it = files_.find(name);
  if (it == files_.end()) return;
  const File file = it->second;
  files_.erase(it);
  order_.erase(file.place);  // `name` may be this very element: last
  bytes_ -= file.bytes;
}

void PrefixIndex::Touch(const std::string& name) {
  const auto it = files_.find(name);
  if (it != files_.end()) order_.splice(order_.end(), order_, it->second.place);
}

}  // namespace latte
