// Heads and bodies of HTTP requests: what a request means does not depend on the packets that it
// arrives in, no limit is exceeded, and a refusal has a status and a message.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "src/base/check.h"
#include "src/http/connection/body_reader.h"
#include "src/http/connection/head_check.h"

namespace {

constexpr latte::HeadLimits kLimits = {.bytes = 2048, .fields = 20, .target = 200};
constexpr uint64_t kMostBody = 300;

std::string Text(const latte::HeadError& error) {
  LATTE_CHECK(error.status >= 400 && !error.message.empty(), "{}", error.status);
  return std::to_string(error.status) + " " + error.message;
}

// One request as its bytes arrive.
class Arrival {
 public:
  void Add(std::string_view bytes) {
    waiting_ += bytes;
    if (!body_) ReadHead();
    if (!body_ || refused_) return;
    waiting_.erase(0, body_->Take(waiting_));
    LATTE_CHECK(body_->body().size() <= kMostBody, "{}", body_->body().size());
    if (body_->error()) refused_ = Text(*body_->error());
  }
  // All that a handler would be told.
  std::string Told() {
    if (refused_) return *refused_;
    if (!body_ || !body_->done()) return "unfinished";
    std::string out = request_.method + " " + request_.path + "?" + request_.query;
    for (const auto& [name, value] : request_.fields.list()) out += "\n" + name + ":" + value;
    return out + "\n\n" + body_->body() + "\n" + waiting_;
  }

 private:
  void ReadHead() {
    if (refused_) return;
    const latte::HeadScan scan =
        latte::ScanHead(waiting_, std::exchange(scanned_, waiting_.size()), kLimits);
    if (scan.error) refused_ = Text(*scan.error);
    if (refused_ || scan.end == 0) return;
    LATTE_CHECK(scan.end <= kLimits.bytes, "{}", scan.end);
    latte::BodyFraming framing;
    const auto error = latte::ReadHead(std::string_view(waiting_).substr(0, scan.end), kLimits,
                                       &request_, &framing);
    if (error) refused_ = Text(*error);
    waiting_.erase(0, scan.end);
    body_.emplace(framing, kMostBody);
  }

  std::string waiting_;
  size_t scanned_ = 0;
  std::optional<std::string> refused_;
  latte::HttpRequest request_;
  std::optional<latte::BodyReader> body_;
};

std::string Read(std::string_view bytes, size_t piece) {
  Arrival arrival;
  for (size_t at = 0; at < bytes.size(); at += piece) arrival.Add(bytes.substr(at, piece));
  return arrival.Told();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string whole = Read(bytes, bytes.size());
  LATTE_CHECK(whole == Read(bytes, 1), "byte by byte is another request: {}", whole);
  const size_t piece = 2 + data[0] % 64;
  LATTE_CHECK(whole == Read(bytes, piece), "pieces of {} bytes are another request", piece);
  return 0;
}
