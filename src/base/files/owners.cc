#include "src/base/files/owners.h"

#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

namespace latte {
namespace {

constexpr size_t kAccountEntryBytes = 1 << 16;

// The name of the process's user; empty if unknown.
std::string EffectiveUserName() {
  std::vector<char> buffer(kAccountEntryBytes);
  passwd entry = {};
  passwd* found = nullptr;
  getpwuid_r(geteuid(), &entry, buffer.data(), buffer.size(), &found);
  return found == nullptr || found->pw_name == nullptr ? "" : found->pw_name;
}

// The name of a group, and whether it has no member but the process's user: that of root, and the
// one that carries the user's name.
struct OwnerGroup {
  std::string name;
  bool own = false;
};

OwnerGroup OwnerGroupOf(gid_t id) {
  std::vector<char> buffer(kAccountEntryBytes);
  group entry = {};
  group* found = nullptr;
  getgrgid_r(id, &entry, buffer.data(), buffer.size(), &found);
  if (found == nullptr || found->gr_name == nullptr) return {fmt::to_string(id), id == 0};
  const std::string user = EffectiveUserName();
  bool own = id == 0 || (id == getegid() && found->gr_name == user);
  for (char** member = found->gr_mem; own && member != nullptr && *member != nullptr; ++member)
    own = *member == user;
  return {found->gr_name, own};
}

}  // namespace

std::string WhoElseMayWrite(const struct stat& info) {
  const unsigned mode = info.st_mode & 07777u;
  if (info.st_uid != geteuid() && info.st_uid != 0)
    return fmt::format("user {}, whom it belongs to", info.st_uid);
  if ((mode & S_IWOTH) != 0) return fmt::format("everybody (mode {:o})", mode);
  if ((mode & S_IWGRP) == 0) return "";
  const OwnerGroup owner = OwnerGroupOf(info.st_gid);
  return owner.own ? "" : fmt::format("the members of group {} (mode {:o})", owner.name, mode);
}

}  // namespace latte
