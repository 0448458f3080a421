// A prompt in, text out as it is made. Usage: hello_engine [MODEL [PROMPT]]
#include <iostream>

#include "latte/engine.h"

namespace {

int Fail(const latte::Error& error) {
  std::cerr << "hello_engine: " << latte::ToString(error) << "\n";
  return latte::ExitCode(error.code);
}

}  // namespace

int main(int argc, char** argv) {
  latte::EngineOptions options;
  if (argc > 1) options.model = argv[1];
  auto engine = latte::Engine::Create(options);
  if (!engine) return Fail(engine.error());

  latte::Error failure{latte::Code::kOk, ""};
  bool done = false;
  (*engine)->SetEventSink([&](std::span<const latte::TokenEvent> events) {
    for (const latte::TokenEvent& event : events) {
      std::cout << event.text << std::flush;
      if (event.finish == latte::FinishReason::kError) failure = event.error;
      if (event.finish) done = true;
    }
  });

  latte::Request request;
  request.prompt = argc > 2 ? argv[2] : "Once upon a time";
  request.echo = true;
  if (const auto id = (*engine)->Submit(request); !id) return Fail(id.error());
  while (!done)
    if (const latte::Status status = (*engine)->Step(); !status) return Fail(status.error());
  std::cout << "\n";
  return failure.code == latte::Code::kOk ? 0 : Fail(failure);
}
