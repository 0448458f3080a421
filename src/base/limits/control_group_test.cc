#include "src/base/limits/control_group.h"

#include <filesystem>
#include <fstream>
#include <map>

#include <gtest/gtest.h>

#include "src/base/limits/processors.h"
#include "tests/support/scratch_dir.h"

namespace latte::control_group_test {
namespace {

namespace fs = std::filesystem;

// Lines of /proc/self/mountinfo.
constexpr const char* kOther = "23 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n";
constexpr const char* kUnified =
    "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr const char* kCpu =
    "33 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct\n";
constexpr const char* kCpuset = "34 31 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n";
constexpr const char* kMemory = "35 31 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

class ControlGroup : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) const {
    const fs::path at = dir_.File(path);
    fs::create_directories(at.parent_path());
    std::ofstream(at) << text;
  }
  // The groups as the process sees them.
  void Process(const std::string& mounts, const std::string& groups) const {
    Write("proc/self/mountinfo", kOther + mounts);
    Write("proc/self/cgroup", groups);
  }
  void WriteAll(const std::string& folder, const std::map<std::string, std::string>& files) const {
    for (const auto& [name, text] : files) Write("sys/fs/cgroup/" + folder + "/" + name, text);
  }
  std::optional<double> Share() const { return GroupProcessors(dir_.path()); }
  std::optional<int64_t> Limit() const { return ReadGroupMemory(dir_.path()).limit; }
  std::optional<int64_t> Left() const { return ReadGroupMemory(dir_.path()).left; }

  testing_support::ScratchDir dir_;
};

TEST_F(ControlGroup, IsNoLimitWhereThereIsNone) {
  EXPECT_EQ(Share(), std::nullopt);
  EXPECT_EQ(Limit(), std::nullopt);
  Process("", "");
  EXPECT_EQ(Share(), std::nullopt);
  Process(kUnified, "0::/\n");
  EXPECT_EQ(Share(), std::nullopt);
  EXPECT_EQ(Left(), std::nullopt);
}

TEST_F(ControlGroup, QuotaOfVersion2) {
  Process(kUnified, "0::/box\n");
  const auto share = [&](const std::string& text) {
    WriteAll("box", {{"cpu.max", text}});
    return Share();
  };
  EXPECT_EQ(share("50000 100000\n"), 0.5);
  EXPECT_EQ(share("250000 100000\n"), 2.5);
  EXPECT_EQ(share("1000 1000000\n"), 0.001);
  EXPECT_EQ(share("max 100000\n"), std::nullopt);
}

TEST_F(ControlGroup, QuotaThatMakesNoSenseIsNone) {
  Process(std::string(kUnified) + kCpu, "2:cpu,cpuacct:/box\n0::/box\n");
  for (const char* text :
       {"", "\n", "50000", "50000 0", "0 100000", "-1 100000", "x 100000", "50000 100000 7",
        "50000x 100000", "99999999999999999999 1", "max max"}) {
    WriteAll("box", {{"cpu.max", text}});
    EXPECT_EQ(Share(), std::nullopt) << text;
  }
  for (const auto& [quota, period] :
       std::vector<std::pair<std::string, std::string>>{{"-1\n", "100000\n"},
                                                        {"50000\n", ""},
                                                        {"", "100000\n"},
                                                        {"50000\n", "0\n"},
                                                        {"5 5", "9"}}) {
    WriteAll("cpu,cpuacct/box", {{"cpu.cfs_quota_us", quota}, {"cpu.cfs_period_us", period}});
    EXPECT_EQ(Share(), std::nullopt) << quota << period;
  }
  fs::create_directories(
      dir_.File("sys/fs/cgroup/other/cpu.max"));  // a folder where a file should be
  Process(kUnified, "0::/other\n");
  EXPECT_EQ(Share(), std::nullopt);
}

TEST_F(ControlGroup, ListsThatMakeNoSenseAreNone) {
  WriteAll("", {{"cpu.max", "50000 100000\n"}, {"memory.max", "1000\n"}});
  for (const char* mounts : {"", "\n\n", "- - - - - - -\n", "29 23 0:26 / /sys/fs/cgroup rw -\n",
                             "29 23 0:26 / /sys/fs/cgroup rw - cgroup2\n", "cgroup2 cgroup2 rw"}) {
    Process(mounts, "0::/\n");
    EXPECT_EQ(Share(), std::nullopt) << mounts;
  }
  for (const char* groups : {"", "\n", "0\n", "0:\n", "::\n", "1:cpu\n", "7:name=systemd:/\n"}) {
    Process(kUnified, groups);
    EXPECT_EQ(Share(), std::nullopt) << groups;
    EXPECT_EQ(Left(), std::nullopt) << groups;
  }
  Process(kUnified, "0::/\n");
  EXPECT_EQ(Share(), 0.5);
}

TEST_F(ControlGroup, TheSmallestQuotaAroundAGroupHolds) {
  Process(kUnified, "0::/pods/pod/box\n");
  WriteAll("pods/pod/box", {{"cpu.max", "400000 100000\n"}});
  WriteAll("pods/pod", {{"cpu.max", "150000 50000\n"}});
  EXPECT_EQ(Share(), 3.0);
  WriteAll("pods", {{"cpu.max", "max 100000\n"}});
  EXPECT_EQ(Share(), 3.0);
  WriteAll("", {{"cpu.max", "200000 100000\n"}});
  EXPECT_EQ(Share(), 2.0);
  WriteAll("pods/pod/box", {{"cpu.max", "100000 100000\n"}});
  EXPECT_EQ(Share(), 1.0);
  WriteAll("pods/other", {{"cpu.max", "1000 100000\n"}});
  EXPECT_EQ(Share(), 1.0);
}

TEST_F(ControlGroup, QuotaOfVersion1) {
  Process(std::string(kCpuset) + kCpu, "7:cpuset:/set\n4:cpu,cpuacct:/a/b\n");
  WriteAll("cpu,cpuacct/a", {{"cpu.cfs_quota_us", "300000\n"}, {"cpu.cfs_period_us", "100000\n"}});
  WriteAll("cpu,cpuacct/a/b", {{"cpu.cfs_quota_us", "-1\n"}, {"cpu.cfs_period_us", "100000\n"}});
  WriteAll("cpu,cpuacct/set", {{"cpu.cfs_quota_us", "1000\n"}, {"cpu.cfs_period_us", "100000\n"}});
  WriteAll("cpuset/set", {{"cpu.cfs_quota_us", "1000\n"}, {"cpu.cfs_period_us", "100000\n"}});
  EXPECT_EQ(Share(), 3.0);
  WriteAll("cpu,cpuacct/a/b", {{"cpu.cfs_quota_us", "5000\n"}, {"cpu.cfs_period_us", "10000\n"}});
  EXPECT_EQ(Share(), 0.5);
}

// systemd's hybrid layout: version 2 counts processes, version 1 has the controllers, or some.
TEST_F(ControlGroup, BothVersionsSideBySide) {
  const std::string unified =
      "36 31 0:32 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
  Process(unified + kCpu + kMemory, "9:memory:/m\n4:cpu,cpuacct:/c\n0::/u\n");
  fs::create_directories(dir_.File("sys/fs/cgroup/unified/u"));
  WriteAll("cpu,cpuacct/c", {{"cpu.cfs_quota_us", "200000\n"}, {"cpu.cfs_period_us", "100000\n"}});
  WriteAll("memory/m", {{"memory.limit_in_bytes", "9000\n"}, {"memory.usage_in_bytes", "2000\n"}});
  EXPECT_EQ(Share(), 2.0);
  EXPECT_EQ(Left(), 7000);
  Process(unified + kCpu, "4:cpu,cpuacct:/c\n0::/u\n");
  WriteAll("unified/u", {{"memory.max", "5000\n"}, {"memory.current", "1000\n"}});
  EXPECT_EQ(Share(), 2.0);
  EXPECT_EQ(Left(), 4000);
}

// A container that shares the host's namespace sees its group by the host's path, mounted as the
// top of what it can read.
TEST_F(ControlGroup, MountMayBeginAtTheOwnGroup) {
  Process("29 23 0:26 /docker/1f /sys/fs/cgroup ro - cgroup2 cgroup rw\n", "0::/docker/1f/inner\n");
  WriteAll("", {{"cpu.max", "150000 100000\n"}, {"memory.max", "3000\n"}});
  EXPECT_EQ(Share(), 1.5);
  EXPECT_EQ(Limit(), 3000);
  WriteAll("inner", {{"cpu.max", "50000 100000\n"}, {"memory.max", "max\n"}});
  EXPECT_EQ(Share(), 0.5);
  Process("29 23 0:26 /docker/1f /sys/fs/cgroup ro - cgroup2 cgroup rw\n", "0::/docker/1f\n");
  EXPECT_EQ(Share(), 1.5);
}

// A name that only begins alike is another group, and so are its limits.
TEST_F(ControlGroup, MountOfAnotherGroupSaysNothing) {
  WriteAll("", {{"cpu.max", "50000 100000\n"}});
  for (const char* own : {"0::/docker/1f2\n", "0::/docker\n", "0::/\n", "0::/other/docker/1f\n"}) {
    Process("29 23 0:26 /docker/1f /sys/fs/cgroup ro - cgroup2 cgroup rw\n", own);
    EXPECT_EQ(Share(), std::nullopt) << own;
  }
}

// In a namespace of its own the group is "/". A mount that was made before begins above it.
TEST_F(ControlGroup, Namespaces) {
  WriteAll("", {{"cpu.max", "300000 100000\n"}});
  WriteAll("x", {{"cpu.max", "100000 100000\n"}});
  const auto share = [&](const std::string& mounted, const std::string& own) {
    Process("29 23 0:26 " + mounted + " /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
            "0::" + own + "\n");
    return Share();
  };
  EXPECT_EQ(share("/", "/"), 3.0);
  EXPECT_EQ(share("/", "/x"), 1.0);
  EXPECT_EQ(share("/..", "/"), 3.0);      // the own group's name is not known
  EXPECT_EQ(share("/../..", "/"), 3.0);   // nor are those between
  EXPECT_EQ(share("/../..", "/x"), 3.0);  // this x lies elsewhere
  EXPECT_EQ(share("/..", "/../x"), 1.0);  // a neighbour of the namespace's root
  EXPECT_EQ(share("/../..", "/../../x"), 1.0);
  EXPECT_EQ(share("/", "/../x"), std::nullopt);  // outside of what is mounted
  EXPECT_EQ(share("/..", "/../../x"), std::nullopt);
  EXPECT_EQ(share("/../y", "/"), std::nullopt);
}

TEST_F(ControlGroup, OfSeveralMountsEachThatShowsTheGroupCounts) {
  const std::string foreign = "30 23 0:26 /other /mnt/foreign rw - cgroup2 cgroup2 rw\n";
  Process(foreign + kUnified, "0::/box\n");
  Write("mnt/foreign/cpu.max", "1000 100000\n");
  WriteAll("box", {{"cpu.max", "200000 100000\n"}});
  EXPECT_EQ(Share(), 2.0);
  Process("30 23 0:26 /box /mnt/foreign rw - cgroup2 cgroup2 rw\n", "0::/box\n");
  EXPECT_EQ(Share(), 0.01);
}

TEST_F(ControlGroup, NamesMayHoldSpacesAndColons) {
  Process("29 23 0:26 / /sys/fs/cgroup/a\\040b\\134 rw - cgroup2 cgroup2 rw\n", "0::/c d:e\n");
  WriteAll("a b\\/c d:e", {{"cpu.max", "50000 100000\n"}});
  EXPECT_EQ(Share(), 0.5);
}

TEST_F(ControlGroup, MemoryOfVersion2) {
  Process(kUnified, "0::/box\n");
  WriteAll("box", {{"memory.max", "40000\n"}});
  EXPECT_EQ(Limit(), 40000);
  EXPECT_EQ(Left(), 40000);
  WriteAll("box", {{"memory.current", "30000\n"}});
  EXPECT_EQ(Left(), 10000);
  WriteAll("box", {{"memory.stat", "anon 7\nfile 9000\nactive_file 2000\ninactive_file 5000\n"}});
  EXPECT_EQ(Left(), 17000);
  WriteAll("box", {{"memory.high", "35000\n"}});
  EXPECT_EQ(Limit(), 35000);
  EXPECT_EQ(Left(), 12000);
  WriteAll("box", {{"memory.high", "max\n"}, {"memory.max", "20000\n"}});
  EXPECT_EQ(Left(), 0);
  WriteAll("box", {{"memory.max", "max\n"}});
  EXPECT_EQ(Limit(), std::nullopt);
  EXPECT_EQ(Left(), std::nullopt);
}

TEST_F(ControlGroup, EachGroupLeavesWhatItsOwnUseLeaves) {
  Process(kUnified, "0::/pod/box\n");
  WriteAll("pod/box", {{"memory.max", "8000\n"}, {"memory.current", "1000\n"}});
  WriteAll("pod", {{"memory.max", "10000\n"}, {"memory.current", "9000\n"}});
  EXPECT_EQ(Limit(), 8000);
  EXPECT_EQ(Left(), 1000);
  WriteAll("pod", {{"memory.stat", "inactive_file 8500\n"}});
  EXPECT_EQ(Left(), 7000);
}

TEST_F(ControlGroup, MemoryOfVersion1) {
  Process(kMemory, "4:memory:/box\n");
  WriteAll("memory", {{"memory.limit_in_bytes", "9223372036854771712\n"},
                      {"memory.usage_in_bytes", "12345\n"}});
  WriteAll("memory/box", {{"memory.limit_in_bytes", "40000\n"},
                          {"memory.usage_in_bytes", "30000\n"},
                          {"memory.stat",
                           "inactive_file 1\nactive_file 2\nhierarchical_memory_limit 38000\n"
                           "total_inactive_file 5000\ntotal_active_file 2000\n"}});
  EXPECT_EQ(Limit(), 38000);  // that of an outer group which is not mounted
  EXPECT_EQ(Left(), 15000);
  WriteAll("memory/box", {{"memory.stat", "total_inactive_file 5000\n"}});
  EXPECT_EQ(Limit(), 40000);
  EXPECT_EQ(Left(), 15000);
  WriteAll("memory/box", {{"memory.limit_in_bytes", "-1\n"}});
  EXPECT_EQ(Limit(), 9223372036854771712);  // the outermost says: none
}

TEST_F(ControlGroup, OuterGroupsOfVersion1MayNotCountInnerOnes) {
  Process(kMemory, "4:memory:/pod/box\n");
  WriteAll("memory/pod", {{"memory.limit_in_bytes", "100\n"}, {"memory.use_hierarchy", "1\n"}});
  WriteAll("memory/pod/box",
           {{"memory.limit_in_bytes", "5000\n"}, {"memory.use_hierarchy", "0\n"}});
  EXPECT_EQ(Limit(), 100);
  WriteAll("memory/pod", {{"memory.use_hierarchy", "0\n"}});
  EXPECT_EQ(Limit(), 5000);
}

TEST_F(ControlGroup, MemoryThatMakesNoSenseIsNone) {
  Process(kUnified, "0::/box\n");
  for (const char* text :
       {"", "much", "-5", "12 kB", "18446744073709551615", "0x10", "1e9", "+5"}) {
    WriteAll("box", {{"memory.max", text}});
    EXPECT_EQ(Limit(), std::nullopt) << text;
  }
  WriteAll("box", {{"memory.max", "9223372036854775807\n"},
                   {"memory.current", "many\n"},
                   {"memory.stat", "inactive_file 9223372036854775807\nactive_file\n"}});
  EXPECT_EQ(Left(), 9223372036854775807);
  WriteAll("box", {{"memory.max", "1000\n"},
                   {"memory.current", "900\n"},
                   {"memory.stat", "inactive_file 5000\nactive_file 9223372036854775807\n"}});
  EXPECT_EQ(Left(), 1000);
}

TEST(ThreadsFor, UsesTheWholeShareWithinTheProcessors) {
  EXPECT_EQ(ThreadsFor(8, std::nullopt), 8);
  EXPECT_EQ(ThreadsFor(8, 0.001), 1);
  EXPECT_EQ(ThreadsFor(8, 0.5), 1);
  EXPECT_EQ(ThreadsFor(8, 1.0), 1);
  EXPECT_EQ(ThreadsFor(8, 2.0), 2);
  EXPECT_EQ(ThreadsFor(8, 2.5), 3);
  EXPECT_EQ(ThreadsFor(8, 7.01), 8);
  EXPECT_EQ(ThreadsFor(2, 2.5), 2);
  EXPECT_EQ(ThreadsFor(2, 1e18), 2);
  EXPECT_EQ(ThreadsFor(1, 0.0), 1);
}

}  // namespace
}  // namespace latte::control_group_test
