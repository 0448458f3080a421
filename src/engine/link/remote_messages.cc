#include "src/engine/link/remote_messages.h"

#include "src/engine/group/wire_fields.h"
#include "src/engine/link/engine_messages.h"

namespace latte {
namespace {

std::string Take(WireWriter& out) {
  const std::vector<std::byte> bytes = out.Take();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

WireReader ReaderOf(std::string_view bytes) {
  return WireReader(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

// The reader fails unless it is one of the first `count`.
template <class Kind>
Kind ReadKind(WireReader& from, Kind last) {
  const int64_t value = from.Int();
  if (value < 0 || value > static_cast<int64_t>(last)) from.Fail();
  return static_cast<Kind>(value);
}

void ReadReport(RankMessage& out, WireReader& from) {
  out.taken = from.Int();
  out.stats = ReadStats(from);
  out.events = ReadEvents(from);
}

}  // namespace

std::string ToBytes(const FrontMessage& message) {
  WireWriter out;
  out.Int(static_cast<int64_t>(message.kind));
  switch (message.kind) {
    case FrontMessage::Kind::kSubmit:
      Write(message.request, out);
      break;
    case FrontMessage::Kind::kCancel:
      out.Int(static_cast<int64_t>(message.id));
      break;
    case FrontMessage::Kind::kDelivered:
      out.Int(message.bytes);
      break;
    case FrontMessage::Kind::kSavePrefixes:
      break;
  }
  return Take(out);
}

std::string ReportBytes(const RankMessage& message, std::span<const TokenEvent> events) {
  WireWriter out;
  out.Int(static_cast<int64_t>(RankMessage::Kind::kReport));
  out.Int(message.taken);
  Write(message.stats, out);
  WriteEvents(events, out);
  return Take(out);
}

std::string ToBytes(const RankMessage& message) {
  if (message.kind == RankMessage::Kind::kReport) return ReportBytes(message, message.events);
  WireWriter out;
  out.Int(static_cast<int64_t>(message.kind));
  if (message.kind == RankMessage::Kind::kLoaded) {
    WriteFields(message.options, out);
    Write(message.stats, out);
  } else {
    Write(message.error, out);
  }
  return Take(out);
}

Result<FrontMessage> ReadFrontMessage(std::string_view bytes) {
  WireReader from = ReaderOf(bytes);
  FrontMessage out;
  out.kind = ReadKind(from, FrontMessage::Kind::kSavePrefixes);
  if (out.kind == FrontMessage::Kind::kSubmit) out.request = ReadRequest(from);
  if (out.kind == FrontMessage::Kind::kCancel) out.id = static_cast<uint64_t>(from.Int());
  if (out.kind == FrontMessage::Kind::kDelivered) out.bytes = from.Int();
  if (!from.ok())
    return Corrupt("the front has sent a message that ranks of this build do not know");
  return out;
}

Result<RankMessage> ReadRankMessage(std::string_view bytes) {
  WireReader from = ReaderOf(bytes);
  RankMessage out;
  out.kind = ReadKind(from, RankMessage::Kind::kFailed);
  switch (out.kind) {
    case RankMessage::Kind::kLoaded:
      ReadFields(out.options, from);
      out.stats = ReadStats(from);
      break;
    case RankMessage::Kind::kReport:
      ReadReport(out, from);
      break;
    case RankMessage::Kind::kSaved:
    case RankMessage::Kind::kFailed:
      out.error = ReadError(from);
      break;
  }
  if (!from.ok()) return Corrupt("it has sent a message that fronts of this build do not know");
  return out;
}

}  // namespace latte
