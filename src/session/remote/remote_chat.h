// A conversation with a server, through /v1/chat/completions as a stream. Holds the messages, and
// sends all of them with every question.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "latte/status.h"

#include "src/base/json_out_fwd.h"
#include "src/session/conversation.h"
#include "src/session/remote/api_server.h"

namespace latte {

struct RemoteChatSettings {
  std::string model;  // empty: the first one that the server lists
  std::optional<std::string> system;
  std::optional<bool> thinking;  // not set: as the server does
  ChatParams params;
};

// Thread-compatible. Reasoning that comes apart from the text is part of ChatAnswer::text, between
// <think> and </think>; it is not sent to the server again.
class RemoteChat final : public Conversation {
 public:
  // Errors: of ApiServer; kInvalidArgument if the server cannot be used as an address; kCancelled
  // if `interrupted`.
  [[nodiscard]] static Result<std::unique_ptr<RemoteChat>> Open(
      const ApiAddress& address, const HttpClientOptions& options, RemoteChatSettings settings,
      ApiServer::Interrupted interrupted = {});

  // `on_step` is called at least every 50 ms. A cancelled answer closes the connection.
  // Errors: of the connection and of the server, with its address, on one line.
  [[nodiscard]] Result<ChatAnswer> Ask(std::string text, const Callback& on_step) override;
  void Reset() override { messages_.clear(); }
  bool Undo() override;

  std::vector<ChatMessage> Messages() const override;
  [[nodiscard]] Status SetMessages(std::vector<ChatMessage> messages) override;
  [[nodiscard]] Status SetSystem(std::optional<std::string> text) override;
  const ChatParams& params() const override { return settings_.params; }
  bool leaves_rest_to_server() const override { return true; }
  [[nodiscard]] Status SetParams(ChatParams params) override;

  const std::string& model() const { return settings_.model; }

 private:
  struct Message {
    std::string role;
    std::string content;
  };
  class Answering;

  RemoteChat(ApiServer server, RemoteChatSettings settings)
      : server_(std::move(server)), settings_(std::move(settings)) {}
  std::string Body() const;

  ApiServer server_;
  RemoteChatSettings settings_;
  std::vector<Message> messages_;  // without the system message
};

}  // namespace latte
