#include "src/jobs/convert/quant_errors.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "src/base/json_out.h"
#include "src/jobs/convert/quant_scheme.h"

namespace latte {
namespace {

// In the order in which a token meets them.
constexpr std::string_view kErrorKinds[] = {
    "attention", "indexer", "dense MLP", "experts", "shared experts", "lm_head", "drafting layers"};

std::string_view KindOfMatrix(std::string_view name, int64_t layers) {
  constexpr std::string_view kLayer = "model.layers.";
  if (name.starts_with(kLayer)) {
    const std::string_view number = name.substr(kLayer.size());
    int64_t layer = 0;
    std::from_chars(number.data(), number.data() + number.size(), layer);
    if (layer >= layers) return "drafting layers";
  }
  const auto has = [name](std::string_view part) { return name.find(part) != name.npos; };
  if (has(".indexer.")) return "indexer";
  if (has(".self_attn.")) return "attention";
  if (has(".shared_experts.")) return "shared experts";
  if (has(".experts.")) return "experts";
  return has(".mlp.") ? "dense MLP" : "lm_head";
}

size_t PlaceOfKind(std::string_view kind) {
  return static_cast<size_t>(std::find(std::begin(kErrorKinds), std::end(kErrorKinds), kind) -
                             std::begin(kErrorKinds));
}

double Ratio(double squared_error, double squared) {
  return squared > 0 ? std::sqrt(squared_error / squared) : 0;
}

}  // namespace

void QuantErrors::Add(std::string_view name, double squared_error, double squared) {
  const std::string_view kind = KindOfMatrix(name, layers_);
  const auto at = std::lower_bound(
      kinds_.begin(), kinds_.end(), PlaceOfKind(kind),
      [](const QuantError& one, size_t place) { return PlaceOfKind(one.kind) < place; });
  const auto i = at - kinds_.begin();
  if (at == kinds_.end() || at->kind != kind) {
    kinds_.insert(at, QuantError{.kind = std::string(kind)});
    sums_.insert(sums_.begin() + i, Sums());
  }
  QuantError& one = kinds_[static_cast<size_t>(i)];
  Sums& sums = sums_[static_cast<size_t>(i)];
  sums.squared_error += squared_error;
  sums.squared += squared;
  const double relative = Ratio(squared_error, squared);
  ++one.matrices;
  one.relative = Ratio(sums.squared_error, sums.squared);
  total_ += relative;
  ++matrices_;
  if (relative <= one.largest && !one.worst.empty()) return;
  one.largest = relative;
  one.worst = ModuleOf(name);
}

double QuantErrors::mean() const {
  return total_ / static_cast<double>(std::max<int64_t>(matrices_, 1));
}

QuantError QuantErrors::worst() const {
  QuantError out;
  for (const QuantError& one : kinds_)
    if (one.largest > out.largest) out = one;
  return out;
}

JsonOut QuantErrorsJson(const QuantErrors& errors) {
  JsonOut out = JsonOut::array();
  for (const QuantError& one : errors.kinds())
    out.push_back({{"kind", one.kind},
                   {"matrices", one.matrices},
                   {"relative_error", one.relative},
                   {"max_relative_error", one.largest},
                   {"worst_matrix", one.worst}});
  return out;
}

std::string QuantErrorsText(const QuantErrors& errors) {
  std::string out = fmt::format("{:<16} {:>9} {:>9} {:>9}\n", "relative error", "matrices",
                                "together", "largest");
  for (const QuantError& one : errors.kinds())
    out += fmt::format("{:<16} {:>9} {:>9.5f} {:>9.5f}  {}\n", one.kind, one.matrices, one.relative,
                       one.largest, one.worst);
  return out;
}

}  // namespace latte
