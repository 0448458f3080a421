#include "src/layers/mla/calibration.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

#include "src/base/check.h"
#include "src/base/file.h"
#include "src/base/json.h"
#include "src/base/json_out.h"
#include "src/kernels/cpu/targets.h"

namespace latte {
namespace {

struct NamedCurve {
  std::string_view name;
  RateCurve MlaRates::*curve;
  bool required = true;
};
constexpr std::array kCurves = {
    NamedCurve{"expand", &MlaRates::expand}, NamedCurve{"mha", &MlaRates::mha},
    NamedCurve{"absorb", &MlaRates::absorb}, NamedCurve{"decode", &MlaRates::decode},
    NamedCurve{"indexer", &MlaRates::indexer, /*required=*/false}};

JsonOut ToJson(const RateCurve& curve) {
  JsonOut out = JsonOut::array();
  for (const RateCurve::Point& p : curve.points) out.push_back({p.size, p.gflops});
  return out;
}

Result<RateCurve> ParseCurve(const Json& json) {
  RateCurve out;
  for (size_t i = 0; json.is_array() && i < json.size(); ++i) {
    const Json pair = json.At(i);
    if (!pair.is_array() || pair.size() != 2)
      return Corrupt(fmt::format("{}: expected [size, gflops]", pair.path()));
    LATTE_ASSIGN_OR_RETURN(const double size, pair.At(0).AsDouble());
    LATTE_ASSIGN_OR_RETURN(const double gflops, pair.At(1).AsDouble());
    const double least = out.points.empty() ? 0.0 : out.points.back().size;
    if (size <= least || gflops <= 0)
      return Corrupt(fmt::format("{}: expected a size above {} and a positive rate, found {}, {}",
                                 pair.path(), least, size, gflops));
    out.points.push_back({size, gflops});
  }
  if (out.points.empty())
    return Corrupt(fmt::format("{}: expected a list of [size, gflops]", json.path()));
  return out;
}

}  // namespace

double RateCurve::At(double size) const {
  LATTE_CHECK(!points.empty());
  if (size <= points.front().size) return points.front().gflops;
  for (size_t i = 1; i < points.size(); ++i) {
    const auto [low, low_rate] = points[i - 1];
    const auto [high, high_rate] = points[i];
    if (size <= high)
      return low_rate + (high_rate - low_rate) * std::log(size / low) / std::log(high / low);
  }
  return points.back().gflops;
}

MlaRates MlaRates::Typical(const Machine& machine) {
  // For two threads. With one row, products are bound by memory, with many by arithmetic.
  const auto scaled = [](double peak) {
    return MlaRates{.expand = {{{1, 10}, {64, 0.6 * peak}}},
                    .mha = {{{1, 0.1 * peak}, {64, 0.6 * peak}}},
                    .absorb = {{{1, 10}, {64, 0.6 * peak}}},
                    .decode = {{{1, 0.15 * peak}, {16, 0.65 * peak}, {128, 0.8 * peak}}},
                    .indexer = {{{1, 0.5 * peak}, {8, 0.65 * peak}}}};
  };
  if (machine.Has(x86::kAmx))  // rounded from a calibration on two Sapphire Rapids cores
    return {.expand = {{{1, 23}, {8, 160}, {64, 500}, {512, 800}}},
            .mha = {{{4, 400}, {16, 1000}}},
            .absorb = {{{1, 22}, {16, 110}, {64, 140}}},
            .decode = {{{16, 500}, {64, 1000}}},
            .indexer = {{{1, 150}, {8, 200}}},  // of the f32 peak, as below
            .memory_gbps = 37};
  if (machine.Has(x86::kAvx512Bf16))  // rounded from a calibration on two Zen 4 cores
    return {.expand = {{{1, 29}, {8, 190}, {64, 300}, {512, 360}}},
            .mha = {{{4, 180}, {16, 370}}},
            .absorb = {{{1, 29}, {4, 110}, {16, 170}}},
            .decode = {{{16, 350}, {64, 400}}},
            .indexer = {{{1, 130}, {8, 180}}},  // of the f32 peak, as below
            .memory_gbps = 34};
  if (machine.Has(x86::kAvx512)) return scaled(200);
  if (machine.Has(x86::kAvx2))  // rounded from a calibration on a Zen 3 core
    return {.expand = {{{1, 12}, {8, 36}, {64, 60}, {512, 70}}},
            .mha = {{{4, 33}, {16, 78}}},
            .absorb = {{{1, 12}, {16, 30}, {64, 45}}},
            .decode = {{{16, 65}, {64, 78}}},
            .indexer = {{{1, 60}, {8, 75}}},
            .memory_gbps = 20};
  return scaled(4);
}

JsonOut ToJson(const MlaRates& rates, const Machine& machine) {
  JsonOut out{{"isa", Name(machine.isa)}, {"memory_gbps", rates.memory_gbps}};
  for (const NamedCurve& named : kCurves) out[std::string(named.name)] = ToJson(rates.*named.curve);
  return out;
}

Result<MlaRates> LoadRates(const std::string& path, const Machine& machine) {
  LATTE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, int64_t{1} << 20));
  LATTE_ASSIGN_OR_RETURN(const Json json, Json::Parse(text, path));
  LATTE_ASSIGN_OR_RETURN(const std::string found, json.GetString("isa"));
  if (found != Name(machine.isa))
    return InvalidArgument(fmt::format(
        "{}: expected rates of {}, found rates of {}; run `latte bench calibrate` again", path,
        Name(machine.isa), found));
  MlaRates out = MlaRates::Typical(machine);
  LATTE_ASSIGN_OR_RETURN(out.memory_gbps, json.GetDouble("memory_gbps"));
  if (out.memory_gbps <= 0)
    return Corrupt(fmt::format("{}: 'memory_gbps': expected a positive number, found {}", path,
                               out.memory_gbps));
  for (const auto& [name, curve, required] : kCurves) {
    if (!required && !json.Find(name)) continue;
    LATTE_ASSIGN_OR_RETURN(const Json value, json.Get(name));
    LATTE_ASSIGN_OR_RETURN(out.*curve, ParseCurve(value));
  }
  return out;
}

std::string DefaultRatesPath() {
  const auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  if (std::getenv("LATTE_RATES") != nullptr) return variable("LATTE_RATES");
  if (const std::string cache = variable("XDG_CACHE_HOME"); !cache.empty())
    return cache + "/latte/rates.json";
  const std::string home = variable("HOME");
  return home.empty() ? "" : home + "/.cache/latte/rates.json";
}

FoundRates MachineRates(const Machine& machine) {
  const std::string path = DefaultRatesPath();
  if (path.empty()) return {MlaRates::Typical(machine), ""};
  Result<MlaRates> rates = LoadRates(path, machine);
  if (rates) return {*std::move(rates), ""};
  const Error& error = rates.error();
  const bool named = std::getenv("LATTE_RATES") != nullptr;
  if (!named && error.code != Code::kCorrupt) return {MlaRates::Typical(machine), ""};
  return {MlaRates::Typical(machine), error.message + "; rates typical of the processor are used"};
}

}  // namespace latte
