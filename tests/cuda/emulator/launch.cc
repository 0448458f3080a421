// A launch: its checks, the order of its blocks, options from the environment.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>

#include "tests/cuda/emulator/block.h"

namespace latte::emulator {
namespace {

constexpr int kMostSharedBytes = 227 << 10;  // of sm_90; 163 KiB of sm_80, 99 KiB of sm_89

int MostShared(int capability) {
  return capability >= 90 ? kMostSharedBytes : (capability == 80 ? 163 : 99) << 10;
}

// Why a driver would refuse the launch; empty: it would not.
std::string Refusal(const LaunchInfo& info, const Options& options) {
  const auto number = [](int64_t n) { return std::to_string(n); };
  if (info.threads < 32 || info.threads > kMaxThreads || info.threads % 32 != 0)
    return "expected a multiple of 32 threads up to 1024, found " + number(info.threads);
  if (info.shared_bytes < 0 || info.shared_bytes > MostShared(options.capability))
    return "expected at most " + number(MostShared(options.capability)) +
           " bytes of shared memory, found " + number(info.shared_bytes);
  const Dim3& g = info.grid;
  if (g.x < 1 || g.y < 1 || g.z < 1 || g.y > 65535 || g.z > 65535)
    return "expected a grid of at least 1 and at most 65535 in y and z, found " + number(g.x) +
           "×" + number(g.y) + "×" + number(g.z);
  return "";
}

[[noreturn]] void BadVariable(const char* name, const char* expected, const char* found) {
  std::fprintf(stderr, "%s: expected %s, found \"%s\"\n", name, expected, found);
  std::exit(2);
}

uint64_t NumberFrom(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return otherwise;
  char* end = nullptr;
  const uint64_t value = std::strtoull(text, &end, 10);
  if (*end != '\0') BadVariable(name, "a number", text);
  return value;
}

Landing LandingFrom(const char* name, Landing otherwise) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return otherwise;
  const std::string value = text;
  if (value == "late") return Landing::kLate;
  if (value == "early") return Landing::kEarly;
  if (value == "random") return Landing::kRandom;
  BadVariable(name, "late, early or random", text);
}

std::vector<int64_t> BlockOrder(int64_t blocks, uint64_t seed) {
  std::vector<int64_t> order(static_cast<size_t>(blocks));
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[(seed * 7919 + i * 104729) % i]);
  return order;
}

}  // namespace

Options Options::FromEnvironment() {
  Options options;
  options.seed = NumberFrom("LATTE_EMULATOR_SEED", options.seed);
  options.landing = LandingFrom("LATTE_EMULATOR_LANDING", options.landing);
  const char* capability = "LATTE_EMULATOR_CAPABILITY";
  options.capability = static_cast<int>(NumberFrom(capability, 90));
  if (options.capability != 80 && options.capability != 89 && options.capability != 90)
    BadVariable(capability, "80, 89 or 90", std::getenv(capability));
  return options;
}

Report Launch(const LaunchInfo& info, GlobalMemory& memory, const Options& options,
              const std::function<void()>& body) {
  Report report;
  if (const std::string refusal = Refusal(info, options); !refusal.empty()) {
    report.errors.push_back("kernel " + info.name + ": " + refusal);
    return report;
  }
  const auto start = std::chrono::steady_clock::now();
  memory.BeginLaunch();
  BlockRun block(info, memory, options, &report);
  const Dim3& grid = info.grid;
  for (const int64_t i : BlockOrder(int64_t{grid.x} * grid.y * grid.z, options.seed)) {
    const auto x = static_cast<int>(i % grid.x);
    const auto y = static_cast<int>(i / grid.x % grid.y);
    const auto z = static_cast<int>(i / grid.x / grid.y);
    block.Run({x, y, z}, static_cast<int>(i), body);
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace latte::emulator
