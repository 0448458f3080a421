#include "src/comm/mpi/mpi.h"

#include <string>

#include <gtest/gtest.h>

namespace latte::mpi_test {
namespace {

// The text of the error; these machines need no MPI.
std::string Refusal(const char* module) {
  const auto world = ConnectMpi({}, module);
  if (world) return "none";
  EXPECT_EQ(world.error().code, Code::kUnsupported);
  return world.error().message;
}

TEST(ConnectMpi, WithoutModuleItSaysWhatToInstall) {
  const std::string text = Refusal("");  // tests do not lie where the program does
  EXPECT_NE(text.find("several ranks need liblatte_mpi.so, which is not in /"), std::string::npos)
      << text;
  EXPECT_NE(text.find("apt-get install openmpi-bin"), std::string::npos) << text;
}

TEST(ConnectMpi, AModuleThatCannotBeLoadedIsNamed) {
  const std::string text = Refusal("/nowhere/liblatte_mpi.so");
  EXPECT_NE(text.find("cannot load /nowhere/liblatte_mpi.so: "), std::string::npos) << text;
  EXPECT_NE(text.find("apt-get install openmpi-bin"), std::string::npos) << text;
}

TEST(ConnectMpi, AModuleOfAnotherVersionIsRefused) {
  EXPECT_NE(Refusal(LATTE_OTHER_MODULE).find("has version 0, but this program needs version 1"),
            std::string::npos);
}

TEST(ConnectMpi, AnotherLibraryIsNoModule) {
  EXPECT_EQ(Refusal("libm.so.6"),
            "libm.so.6 has no version, but this program needs version 1: install both from one "
            "build of Latte");
}

}  // namespace
}  // namespace latte::mpi_test
