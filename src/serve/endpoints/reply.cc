#include "src/serve/endpoints/reply.h"

#include <utility>

#include "src/api/error_body.h"
#include "src/base/json_out.h"
#include "src/base/timer.h"

namespace latte {
namespace {

// The client left before its answer was complete; nginx's number.
constexpr int kClientLeft = 499;

}  // namespace

HttpResponse RefusalResponse(int status, std::string_view message, ErrorForm form) {
  HttpResponse response{.status = status, .body = Dump(RefusalBody(form, status, message))};
  if (status == 401) response.fields.Add("WWW-Authenticate", "Bearer");
  if (status == 503 || status == 429) response.fields.Add("Retry-After", "1");
  return response;
}

HttpResponse ErrorResponse(const Error& error, int retry_after, ErrorForm form,
                           std::string_view request_id) {
  HttpResponse response{.status = HttpStatus(error.code),
                        .body = Dump(ErrorBody(form, error, request_id))};
  if (response.status == 503 || response.status == 429)
    response.fields.Add("Retry-After", std::to_string(retry_after));
  return response;
}

Reply::Reply(std::shared_ptr<HttpExchange> exchange, HttpFields fields, ErrorForm form, Ended ended)
    : exchange_(std::move(exchange)),
      fields_(std::move(fields)),
      form_(form),
      ending_(std::make_shared<Ending>(Ending{.ended = std::move(ended)})) {}

std::shared_ptr<Reply> Reply::Create(std::shared_ptr<HttpExchange> exchange, HttpFields fields,
                                     ErrorForm form, Ended ended) {
  std::shared_ptr<Reply> reply(
      new Reply(std::move(exchange), std::move(fields), form, std::move(ended)));
  reply->OnGone({});
  return reply;
}

void Reply::Respond(HttpResponse response) {
  for (const auto& [name, value] : fields_.list()) response.fields.Add(name, value);
  const int status = response.status;
  exchange_->Respond(std::move(response));
  Complete(status);
}

void Reply::BeginEvents() {
  HttpResponse head{.content_type = "text/event-stream"};
  head.fields.Add("Cache-Control", "no-cache");
  head.fields.Add("X-Accel-Buffering", "no");  // a proxy must not collect events
  for (const auto& [name, value] : fields_.list()) head.fields.Add(name, value);
  exchange_->Begin(std::move(head));
  begun_ = true;
}

void Reply::End() {
  exchange_->End();
  Complete(200);
}

void Reply::OnGone(std::function<void()> gone) {
  exchange_->OnGone([ending = ending_, gone = std::move(gone)] {
    if (gone) gone();
    ending->Finish(kClientLeft);
  });
}

void Reply::Complete(int status) {
  exchange_->OnGone({});
  ending_->Finish(status);
}

void Reply::Ending::Finish(int status) {
  const Ended call = std::exchange(ended, {});
  if (call) call({status, SecondsSince(arrived)});
}

}  // namespace latte
