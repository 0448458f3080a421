#include "src/serve/observe/process_stats.h"

#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

namespace latte {
namespace {

double CpuSeconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

int64_t CountOpenFiles() {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/fd"), closedir);
  if (folder == nullptr) return 0;
  int64_t count = 0;
  while (const dirent* entry = readdir(folder.get()))
    if (entry->d_name[0] != '.') ++count;
  return count - 1;  // without the one that reads the folder
}

// The time at which the machine started, in seconds since 1970.
double BootTime() {
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("btime ")) return std::stod(line.substr(6));
  return 0;
}

// proc(5): "pid (name) state …"; the name may hold spaces and parentheses. Field 22 is the start in
// clock ticks since the boot, 23 the virtual size in bytes, 24 the resident pages.
void ReadStat(ProcessStats* stats) {
  std::ifstream file("/proc/self/stat");
  std::string text;
  std::getline(file, text);
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return;
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 22; ++field) fields >> skipped;
  int64_t start_ticks = 0;
  int64_t resident_pages = 0;
  if (!(fields >> start_ticks >> stats->virtual_bytes >> resident_pages)) return;
  stats->resident_bytes = resident_pages * sysconf(_SC_PAGESIZE);
  const double boot = BootTime();
  if (boot > 0)
    stats->start_time =
        boot + static_cast<double>(start_ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace

ProcessStats ReadProcessStats() {
  ProcessStats stats;
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) == 0)
    stats.cpu_seconds = CpuSeconds(usage.ru_utime) + CpuSeconds(usage.ru_stime);
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) stats.max_files = static_cast<int64_t>(limit.rlim_cur);
  stats.open_files = CountOpenFiles();
  ReadStat(&stats);
  return stats;
}

}  // namespace latte
