#include "src/serve/observe/records/request_gauges.h"

#include <array>
#include <cstddef>
#include <string>

namespace latte {
namespace {

struct RecordList {
  const char* name;
  size_t RequestRecords::*entries;
};
constexpr auto kRecordLists = std::to_array<RecordList>({
    {"request_ids", &RequestRecords::request_ids},
    {"views", &RequestRecords::views},
    {"figures", &RequestRecords::figures},
    {"generations", &RequestRecords::generations},
    {"prompts", &RequestRecords::prompts},
    {"parsing", &RequestRecords::parsing},
});

prometheus::Gauge& ByteGauge(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add({});
}

}  // namespace

RequestGauges::RequestGauges(prometheus::Registry& registry)
    : unsent_bytes_(
          ByteGauge(registry, "latte:unsent_bytes", "Bytes that wait for clients to read them.")),
      body_bytes_(ByteGauge(registry, "latte:body_bytes",
                            "Bodies of requests that arrive or wait to be parsed.")) {
  auto& family = prometheus::BuildGauge()
                     .Name("latte:request_records")
                     .Help("Entries in the server's lists of requests that are being answered.")
                     .Register(registry);
  for (const RecordList& list : kRecordLists)
    records_.emplace_back(family.Add({{"list", list.name}}));
}

void RequestGauges::Set(const ServerSnapshot& state) {
  unsent_bytes_.Set(static_cast<double>(state.http.unsent_bytes));
  body_bytes_.Set(static_cast<double>(state.http.body_bytes));
  for (size_t i = 0; i < kRecordLists.size(); ++i)
    records_[i].get().Set(static_cast<double>(state.records.*kRecordLists[i].entries));
}

}  // namespace latte
