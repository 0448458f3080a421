// Heads and bodies of HTTP requests, answers of servers and of proxies, and addresses: what they
// mean does not depend on the packets that they arrive in, no limit is exceeded, and a refusal has
// a message, for a request a status, too.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "src/base/check.h"
#include "src/http/client/proxy.h"
#include "src/http/client/response_reader.h"
#include "src/http/client/url.h"
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

constexpr latte::ResponseLimits kAnswerLimits = {.max_head_bytes = 500, .max_body_bytes = 300};

constexpr std::string_view kTooLong = "too long";

// All that a caller of the client would be told of an answer, or "none": how early a wrong one is
// refused, and how much of it is passed on before, depends on the packets.
std::string Answer(std::string_view bytes, size_t piece, bool to_connect) {
  std::string told;
  size_t body_bytes = 0;
  latte::ResponseReader reader(kAnswerLimits, to_connect,
                               {.on_head =
                                    [&](const latte::HttpResponse& head) {
                                      LATTE_CHECK(told.empty() && head.status / 100 != 1, "{}",
                                                  head.status);
                                      told = std::to_string(head.status) + " " + head.content_type;
                                      for (const auto& [name, value] : head.fields.list())
                                        told += "\n" + name + ":" + value;
                                      LATTE_CHECK(told.size() <= 500 + 100, "{}", told.size());
                                      told += "\n\n";
                                    },
                                .on_body =
                                    [&](std::string_view text) {
                                      body_bytes += text.size();
                                      told += text;
                                    }});
  for (size_t at = 0; at < bytes.size() && !reader.done(); at += piece) {
    const latte::Status added = reader.Add(bytes.substr(at, piece));
    if (!added) LATTE_CHECK(!added.error().message.empty(), "no message");
    if (!added && added.error().message.find("longer than") != std::string::npos)
      return std::string(kTooLong);
    if (!added) return "none";
    LATTE_CHECK(body_bytes <= 300 && !(to_connect && body_bytes > 0), "{}", body_bytes);
  }
  if (reader.done()) return told + (reader.keep_alive() ? "\nkept" : "");
  return reader.End() ? told + "\nended" : "none";
}

void CheckAnswer(std::string_view bytes, size_t piece, bool to_connect) {
  const std::string whole = Answer(bytes, bytes.size(), to_connect);
  const std::string single = Answer(bytes, 1, to_connect);
  // Bytes behind an answer are seen only if they arrive with it; what is read at once need not
  // wait, and only what waits is bounded.
  const auto same = [&](const std::string& told) {
    return told == whole || told == whole + "\nkept" || whole == told + "\nkept" ||
           told == kTooLong || whole == kTooLong;
  };
  LATTE_CHECK(same(single), "byte by byte is another answer: {} / {}", whole, single);
  LATTE_CHECK(same(Answer(bytes, piece, to_connect)), "pieces of {} bytes are another answer",
              piece);
}

// An address that was read is read again from its text, and leads nowhere else.
void CheckAddress(std::string_view text) {
  const latte::HttpUrl base = {.scheme = latte::HttpUrl::Scheme::kHttps,
                               .host = "h",
                               .port = 443,
                               .path = "/a/b",
                               .query = "c",
                               .socket = ""};
  for (const auto& url : {latte::ParseWebUrl(text), latte::ResolveLocation(base, text)}) {
    if (!url) continue;
    const auto again = latte::ParseWebUrl(url->Text());
    LATTE_CHECK(again && again->Text() == url->Text() && again->SameOrigin(*url), "{}",
                url->Text());
  }
  const latte::ProxyVariable variable = {"https_proxy", std::string(text)};
  const auto proxy = latte::ProxyFor(base, {variable, variable, std::string(text)});
  if (proxy && *proxy)
    for (const char c : (*proxy)->authorization) LATTE_CHECK(c >= ' ' && c < 0x7f, "{}", int{c});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  CheckAnswer(bytes, 2 + data[0] % 64, false);
  CheckAnswer(bytes, 2 + data[0] % 64, true);
  CheckAddress(bytes);
  const std::string whole = Read(bytes, bytes.size());
  LATTE_CHECK(whole == Read(bytes, 1), "byte by byte is another request: {}", whole);
  const size_t piece = 2 + data[0] % 64;
  LATTE_CHECK(whole == Read(bytes, piece), "pieces of {} bytes are another request", piece);
  return 0;
}
