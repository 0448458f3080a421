#include "src/jobs/report/model_table.h"

#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "src/base/draw/bar.h"
#include "src/base/json_out.h"
#include "src/jobs/report/record_table.h"

namespace latte {
namespace {

constexpr std::string_view kPhases[] = {"prefill", "decode"};
constexpr int kBarColumns = 24;

std::string Short(double value) {
  return value >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
}

// "24.31 tokens/s: a step of 1 sequence in 41.14 ms, 71 % of the memory's rate".
std::string Speed(const JsonOut& record, std::string_view phase) {
  const JsonOut& own = record[std::string(phase)];
  const auto batch = record["batch"].get<int64_t>();
  const std::string work =
      phase == "prefill" ? fmt::format("{} tokens", record["prompt"].get<int64_t>())
                         : fmt::format("a step of {} sequence{}", batch, batch == 1 ? "" : "s");
  std::string out =
      fmt::format("{} tokens/s: {} in {} ms", Short(own["tokens_per_s"].get<double>()), work,
                  Short(own["ms"].get<double>()));
  const JsonOut& memory = own["memory_fraction"];
  if (memory.is_number())
    out += fmt::format(", {:.0f} % of the memory's rate", memory.get<double>() * 100);
  return out;
}

JsonOut RateOrNone(double amount, double ms) {
  return amount > 0 && ms > 0 ? JsonOut(amount * 1e-6 / ms) : JsonOut();
}

// A row for each operation of a phase. Their times are means, the phase's is a median, so shares
// are of their sum.
JsonOut Operations(const JsonOut& phase) {
  double whole = 0;
  for (const JsonOut& op : phase["ops"]) whole += op["ms"].get<double>();
  JsonOut out = JsonOut::object();
  for (const auto& [name, op] : phase["ops"].items()) {
    const double ms = op["ms"].get<double>();
    const bool bounded = op["bound_ms"].get<double>() > 0;
    out[name] = {{"ms", ms},
                 {"% of time", whole > 0 ? JsonOut(100 * ms / whole) : JsonOut()},
                 {"GFLOP/s", RateOrNone(op["flops"].get<double>(), ms)},
                 {"GB/s", RateOrNone(op["bytes"].get<double>(), ms)},
                 {"at least ms", bounded ? op["bound_ms"] : JsonOut()},
                 {"of the step", Bar(whole > 0 ? ms / whole : 0, kBarColumns)}};
  }
  return out;
}

JsonOut Memory(const JsonOut& ranks) {
  JsonOut out = JsonOut::array();
  for (const JsonOut& rank : ranks)
    out.push_back({{"rank", std::ssize(out)},
                   {"weights, MB", rank["weight_bytes"].get<double>() * 1e-6},
                   {"cache, MB", rank["cache_bytes"].get<double>() * 1e-6}});
  return out;
}

// The rates of the machine, sampled while each phase ran.
JsonOut MachineTable(const JsonOut& record) {
  constexpr std::pair<std::string_view, std::string_view> kRates[] = {
      {"peak_f32_gflops", "f32 GFLOP/s"},       {"peak_bf16_gflops", "bf16 GFLOP/s"},
      {"peak_int8_gops", "int8 Gop/s"},         {"peak_amx_bf16_gflops", "AMX bf16 GFLOP/s"},
      {"peak_amx_int8_gops", "AMX int8 Gop/s"}, {"dram_gbps", "memory GB/s"}};
  JsonOut out = JsonOut::object();
  for (const std::string_view phase : kPhases) {
    if (!record.contains(phase)) continue;
    JsonOut& row = out[std::string(phase)];
    for (const auto& [key, title] : kRates) {
      const JsonOut& own = record[std::string(phase)];
      row[std::string(title)] = own.contains(key) ? own[std::string(key)] : JsonOut();
    }
  }
  return out;
}

}  // namespace

std::string ModelTable(const JsonOut& record) {
  JsonOut out = JsonOut::object();
  for (const std::string_view phase : kPhases)
    if (record.contains(phase)) out[std::string(phase)] = Speed(record, phase);
  out["model"] =
      fmt::format("{}, {} layers ({})", record["model"].get<std::string>(),
                  record["layers"].get<int64_t>(), record["architecture"].get<std::string>());
  out["threads"] = record["threads"];
  out["cached before"] = fmt::format("{} tokens", record["depth"].get<int64_t>());
  out["memory"] = Memory(record["ranks"]);
  for (const std::string_view phase : kPhases)
    if (record.contains(phase))
      out[fmt::format("operations of {}", phase)] = Operations(record[std::string(phase)]);
  out["rates of the machine"] = MachineTable(record);
  return RecordTable(out);
}

}  // namespace latte
