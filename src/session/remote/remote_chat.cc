#include "src/session/remote/remote_chat.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "src/base/fields/fields.h"
#include "src/base/json_out.h"
#include "src/base/timer.h"
#include "src/http/client/sse.h"
#include "src/session/remote/answer_chunk.h"

namespace latte {
namespace {

constexpr auto kPollEvery = std::chrono::milliseconds(50);
constexpr std::string_view kFunction = "/v1/chat/completions";

using LogitBias = std::vector<std::pair<int32_t, float>>;

void Set(const LogitBias& bias, JsonOut* member) {
  *member = JsonOut::object();
  for (const auto& [token, value] : bias) (*member)[fmt::to_string(token)] = value;
}
template <class T>
void Set(const T& value, JsonOut* member) {
  *member = value;
}

// Adds the chosen fields of T as members of a request.
template <class T>
void AddChosen(const ChatParams& params, const T& values, JsonOut* body) {
  T::VisitFields([&](const Field& field, auto member, auto...) {
    if (params.chosen.contains(field.name))
      Set(member(values), &(*body)[std::string(JsonKey(field))]);
  });
}

}  // namespace

// One answer while it arrives. Timers of the client may outlive it: they share it, and do nothing
// then.
class RemoteChat::Answering : public std::enable_shared_from_this<Answering> {
 public:
  Answering(HttpClient* client, const Callback& on_step) : client_(client), on_step_(on_step) {}

  void Run(HttpRequest request) {
    call_ = client_->Start(
        std::move(request),
        {.on_head = [self = shared_from_this()](const HttpResponse& head) { self->head_ = head; },
         .on_body = [self = shared_from_this()](std::string_view piece) { self->OnBody(piece); },
         .on_end = [self = shared_from_this()](const Status& status,
                                               HttpFailure) { self->OnEnd(status); }});
    Poll();
    while (!over_) client_->Run();
    Show(splitter_.Finish());
  }

  const Status& status() const { return status_; }
  const std::string& content() const { return content_; }

  ChatAnswer Take() {
    answer_.end = cancelled_            ? ChatEnd::kCancelled
                  : finish_ == "length" ? ChatEnd::kLength
                                        : ChatEnd::kStop;
    if (first_s_ > 0) {
      answer_.prompt_seconds = first_s_;
      answer_.generate_seconds = last_s_ - first_s_;
    }
    if (usage_) {
      answer_.prompt_tokens = usage_->prompt_tokens;
      answer_.reused_tokens = usage_->cached_tokens;
      answer_.generated_tokens = usage_->completion_tokens;
    }
    return std::move(answer_);
  }

 private:
  void Poll() {
    if (over_) return;
    if (on_step_ && !on_step_({})) return Cancel();
    client_->After(kPollEvery, [self = shared_from_this()] { self->Poll(); });
  }

  void OnBody(std::string_view piece) {
    if (over_) return;
    if (!IsEventStream(head_)) {
      head_.body += piece;
      return;
    }
    const Status read = sse_.Add(piece, [&](const SseEvent& event) {
      if (!over_ && event.data != kAnswerDone) OnChunk(event.data);
    });
    if (!read && !over_) Fail(read.error());
  }

  void OnChunk(std::string_view data) {
    Result<AnswerChunk> chunk = ParseAnswerChunk(data);
    if (!chunk) return Fail(chunk.error());
    if (chunk->usage) usage_ = chunk->usage;
    if (!chunk->finish_reason.empty()) finish_ = chunk->finish_reason;
    if (chunk->is_token()) {
      ++answer_.generated_tokens;
      last_s_ = SecondsSince(start_);
      if (first_s_ == 0) first_s_ = last_s_;
    }
    content_ += chunk->text;
    Show(PieceOf(chunk->reasoning, chunk->text));
  }

  // Servers send reasoning apart from the text, which then gets the marks that the models' own
  // texts have, or leave it in the text.
  AnswerPiece PieceOf(const std::string& reasoning, const std::string& text) {
    AnswerPiece out;
    if (!reasoning.empty()) {
      comes_apart_ = true;
      if (!std::exchange(in_thought_, true))
        out.opening = splitter_.Finish().Content() + "<think>\n";
      out.reasoning = reasoning;
    }
    if (text.empty()) return out;
    if (!comes_apart_) return splitter_.Push(text);
    if (std::exchange(in_thought_, false)) out.closing = "\n</think>\n\n";
    out.events.push_back({.text = text});
    return out;
  }

  void Show(const AnswerPiece& piece) {
    if (piece.empty()) return;
    answer_.text += piece.Thought() + piece.Content();
    if (on_step_ && !on_step_(piece) && !over_) Cancel();
  }

  void OnEnd(const Status& status) {
    if (over_) return;
    over_ = true;
    client_->Stop();
    status_ = status;
    if (!status) return;
    if (head_.status != 200) {
      status_ = tl::unexpected(StatusError(head_));
    } else if (!IsEventStream(head_)) {
      TakeWhole();
    }
  }

  // A server that does not stream.
  void TakeWhole() {
    if (head_.body.empty()) {
      status_ = Corrupt("the answer is empty");
    } else {
      OnChunk(head_.body);
    }
  }

  void Fail(const Error& error) {
    status_ = tl::unexpected(error);
    End();
  }
  void Cancel() {
    cancelled_ = true;
    End();
  }
  void End() {
    over_ = true;
    client_->Cancel(call_);
    client_->Stop();
  }

  HttpClient* client_;
  Callback on_step_;
  HttpClient::CallId call_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  HttpResponse head_;
  SseReader sse_;
  ChatAnswer answer_;
  std::string content_;  // without reasoning
  std::string finish_;
  std::optional<AnswerUsage> usage_;
  double first_s_ = 0;
  double last_s_ = 0;
  AnswerSplitter splitter_{/*in_thought=*/false};
  bool comes_apart_ = false;  // reasoning has come apart from the text
  bool in_thought_ = false;   // inside such reasoning
  bool cancelled_ = false;
  bool over_ = false;
  Status status_;
};

Result<std::unique_ptr<RemoteChat>> RemoteChat::Open(const ApiAddress& address,
                                                     const HttpClientOptions& options,
                                                     RemoteChatSettings settings,
                                                     ApiServer::Interrupted interrupted) {
  LATTE_ASSIGN_OR_RETURN(ApiServer server, ApiServer::Open(address, options));
  if (settings.model.empty()) {
    LATTE_ASSIGN_OR_RETURN(settings.model, server.FirstModel(std::move(interrupted)));
  }
  return std::unique_ptr<RemoteChat>(new RemoteChat(std::move(server), std::move(settings)));
}

std::string RemoteChat::Body() const {
  JsonOut messages = JsonOut::array();
  if (settings_.system) messages.push_back({{"role", "system"}, {"content", *settings_.system}});
  for (const Message& message : messages_)
    messages.push_back({{"role", message.role}, {"content", message.content}});
  JsonOut body = {{"model", settings_.model},
                  {"messages", std::move(messages)},
                  {"stream", true},
                  {"stream_options", {{"include_usage", true}}}};
  // Chat templates know one or the other name.
  if (settings_.thinking)
    body["chat_template_kwargs"] = {{"thinking", *settings_.thinking},
                                    {"enable_thinking", *settings_.thinking}};
  AddChosen(settings_.params, settings_.params.sampling, &body);
  AddChosen(settings_.params, settings_.params.stop, &body);
  return Dump(body);
}

std::vector<ChatMessage> RemoteChat::Messages() const {
  std::vector<ChatMessage> out;
  for (const Message& message : messages_) {
    ChatMessage& added = out.emplace_back();
    added.role = message.role;
    added.content = message.content;
  }
  return WithSystem(std::move(out), settings_.system);
}

Status RemoteChat::SetMessages(std::vector<ChatMessage> messages) {
  settings_.system = SystemText(messages);
  messages_.clear();
  for (ChatMessage& message : WithSystem(std::move(messages), std::nullopt))
    messages_.push_back({std::move(message.role), message.content.value_or("")});
  return {};
}

Status RemoteChat::SetSystem(std::optional<std::string> text) {
  settings_.system = std::move(text);
  return {};
}

Status RemoteChat::SetParams(ChatParams params) {
  LATTE_RETURN_IF_ERROR(CheckParams(params));
  settings_.params = std::move(params);
  return {};
}

bool RemoteChat::Undo() {
  if (messages_.size() < 2) return false;
  messages_.resize(messages_.size() - 2);
  return true;
}

Result<ChatAnswer> RemoteChat::Ask(std::string text, const Callback& on_step) {
  messages_.push_back({"user", std::move(text)});
  HttpClient& client = server_.client();
  const auto answering = std::make_shared<Answering>(&client, on_step);
  answering->Run(server_.Post(kFunction, Body()));
  if (!answering->status()) {
    messages_.pop_back();
    Error error = answering->status().error();
    const std::string origin = client.url().Origin();
    if (!error.message.starts_with(origin)) error.message = origin + ": " + error.message;
    return tl::unexpected(std::move(error));
  }
  ChatAnswer answer = answering->Take();
  if (answer.text.empty() && answer.end == ChatEnd::kCancelled) {
    messages_.pop_back();
  } else {
    messages_.push_back({"assistant", answering->content()});
  }
  return answer;
}

}  // namespace latte
