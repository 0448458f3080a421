// Messages between a front and its ranks, over the control connection (comm/control/rank.h), in the
// encoding of wire.h. The front sets Request::id, which identifies a request and its events.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "latte/engine.h"

namespace latte {

// To rank 0.
struct FrontMessage {
  enum class Kind : int64_t { kSubmit, kCancel, kDelivered, kSavePrefixes };
  Kind kind = Kind::kSavePrefixes;
  Request request;    // kSubmit
  RequestId id = 0;   // kCancel
  int64_t bytes = 0;  // kDelivered: of reports with events that the front has dealt with
};

// Rank 0 sends all but kFailed, which any rank sends.
struct RankMessage {
  enum class Kind : int64_t { kLoaded, kReport, kSaved, kFailed };
  Kind kind = Kind::kFailed;
  EngineOptions options;  // kLoaded: resolved
  EngineStats stats;      // kLoaded, kReport
  int64_t taken = 0;      // kReport: kSubmit messages that were dealt with, since the start
  std::vector<TokenEvent> events;  // kReport
  Error error;                     // kSaved, kFailed; kSaved: kOk if all was saved
};

std::string ToBytes(const FrontMessage& message);
std::string ToBytes(const RankMessage& message);
// A kReport with these events.
std::string ReportBytes(const RankMessage& message, std::span<const TokenEvent> events);

// Errors: kCorrupt. Options and requests are still to be validated.
[[nodiscard]] Result<FrontMessage> ReadFrontMessage(std::string_view bytes);
[[nodiscard]] Result<RankMessage> ReadRankMessage(std::string_view bytes);

}  // namespace latte
