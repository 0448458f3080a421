// The list of prefix files, with their sizes and their order of use. Does not access the disk.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <unordered_map>

namespace latte {

// Thread-compatible.
class PrefixIndex {
 public:
  // A file that is there now, used last of all. A name that is known changes its size.
  void Add(const std::string& name, int64_t bytes);
  void Remove(const std::string& name);  // of a name that is not known: nothing
  void Touch(const std::string& name);   // likewise

  bool Contains(const std::string& name) const { return files_.contains(name); }
  // The least recently used file. Requires: files() > 0.
  const std::string& Oldest() const { return order_.front(); }
  int64_t files() const { return static_cast<int64_t>(files_.size()); }
  int64_t bytes() const { return bytes_; }

 private:
  struct File {
    int64_t bytes;
    std::list<std::string>::iterator place;
  };
  std::list<std::string> order_;  // least recently used first
  std::unordered_map<std::string, File> files_;
  int64_t bytes_ = 0;
};

}  // namespace latte
