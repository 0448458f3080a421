// The users other than its owner who may change a file or a folder.
#pragma once

#include <string>

#include <sys/stat.h>

namespace latte {

// "user 1000, whom it belongs to", "everybody (mode 777)", "the members of group dev (mode 775)";
// empty if only this process's user and root may write. A group that has no member but the user is
// the user's own, as umask 002 expects.
std::string WhoElseMayWrite(const struct stat& info);

}  // namespace latte
