// The inputs and outputs of an engine as messages between processes (wire.h): requests, events,
// counters.
#pragma once

#include <span>
#include <vector>

#include "latte/engine.h"

#include "src/engine/group/wire.h"

namespace latte {

// A message may hold several of them, in any order that both ends know.
void Write(const Request& request, WireWriter& to);
void Write(const TokenEvent& event, WireWriter& to);
void Write(const EngineStats& stats, WireWriter& to);
void Write(const Error& error, WireWriter& to);

// The reader fails at what Write does not write. Values come from another process: a request is
// still to be validated.
Request ReadRequest(WireReader& from);
TokenEvent ReadEvent(WireReader& from);
EngineStats ReadStats(WireReader& from);
Error ReadError(WireReader& from);

// The ends of all answers to a request that an engine has not taken.
void AddRefusal(const Request& request, const Error& error, std::vector<TokenEvent>& events);

void WriteEvents(std::span<const TokenEvent> events, WireWriter& to);
std::vector<TokenEvent> ReadEvents(WireReader& from);

}  // namespace latte
