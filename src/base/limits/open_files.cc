#include "src/base/limits/open_files.h"

#include <algorithm>
#include <limits>

#include <sys/resource.h>

namespace latte {

int64_t RaiseOpenFiles() {
  constexpr int64_t kUsual = 1024;
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kUsual;
  rlimit raised = limit;
  raised.rlim_cur = raised.rlim_max;
  if (raised.rlim_cur != limit.rlim_cur && setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  constexpr auto kMost = static_cast<rlim_t>(std::numeric_limits<int64_t>::max());
  return static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, kMost));
}

}  // namespace latte
