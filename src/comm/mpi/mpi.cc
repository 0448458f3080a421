#include "src/comm/mpi/mpi.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/comm/exchange.h"
#include "src/comm/mpi/api.h"
#include "src/comm/mpi/transport.h"

namespace latte {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModuleName = "liblatte_mpi.so";
constexpr const char* kInstall =
    "install Open MPI (Debian: apt-get install openmpi-bin libopenmpi-dev), then run make build";

// Folders that may contain the module.
std::vector<fs::path> ModulePlaces() {
  std::error_code ignored;
  std::vector<fs::path> places;
  Dl_info info = {};
  if (dladdr(reinterpret_cast<const void*>(&ConnectMpi), &info) != 0) {
    places.push_back(fs::canonical(info.dli_fname, ignored).parent_path());  // of liblatte
  }
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  places.push_back(program);
  places.push_back((program / LATTE_BIN_TO_LIB).lexically_normal());
  std::erase(places, fs::path());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

Result<fs::path> FindModule() {
  const std::vector<fs::path> places = ModulePlaces();
  std::error_code ignored;
  for (const fs::path& place : places) {
    if (fs::is_regular_file(place / kModuleName, ignored)) return place / kModuleName;
  }
  std::vector<std::string> looked;
  for (const fs::path& place : places) looked.push_back(place.string());
  return Unsupported(fmt::format("several ranks need {}, which is not in {}: {}", kModuleName,
                                 fmt::join(looked, ", "), kInstall));
}

// Never unloaded: MPI cannot be started twice.
Result<const latte_mpi_api*> LoadModule(const fs::path& file) {
  // Open MPI's own plugins look for its symbols in the global scope.
  void* module = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (module == nullptr) {
    return Unsupported(fmt::format("cannot load {}: {}; {}", file.string(), dlerror(), kInstall));
  }
  const auto version =
      reinterpret_cast<latte_mpi_version_function*>(dlsym(module, LATTE_MPI_VERSION_SYMBOL));
  const auto functions =
      reinterpret_cast<latte_mpi_functions_function*>(dlsym(module, LATTE_MPI_FUNCTIONS_SYMBOL));
  if (version == nullptr || functions == nullptr || version() != LATTE_MPI_API_VERSION) {
    return Unsupported(fmt::format(
        "{} has {}, but this program needs version {}: install both from one build of Latte",
        file.string(), version == nullptr ? "no version" : fmt::format("version {}", version()),
        LATTE_MPI_API_VERSION));
  }
  return functions();
}

}  // namespace

bool StartedByMpi() {
  return std::getenv("PMIX_RANK") != nullptr || std::getenv("PMI_RANK") != nullptr ||
         std::getenv("OMPI_COMM_WORLD_RANK") != nullptr;
}

Result<std::unique_ptr<Communicator>> ConnectMpi(const CommOptions& options,
                                                 const fs::path& module) {
  fs::path file = module;
  if (file.empty()) {
    LATTE_ASSIGN_OR_RETURN(file, FindModule());
  }
  LATTE_ASSIGN_OR_RETURN(const latte_mpi_api* mpi, LoadModule(file));
  LATTE_ASSIGN_OR_RETURN(std::unique_ptr<Transport> transport, StartMpi(*mpi));
  return MakeWorld(std::move(transport), options);
}

}  // namespace latte
