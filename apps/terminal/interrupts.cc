#include "apps/terminal/interrupts.h"

#include <utility>

#include <sys/signalfd.h>
#include <unistd.h>

namespace latte {
namespace {

bool IsIgnored(int signal) {
  struct sigaction action = {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

Interrupts::Interrupts() { sigemptyset(&signals_); }

Interrupts::Interrupts(Interrupts&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), signals_(other.signals_) {}

Interrupts& Interrupts::operator=(Interrupts&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(signals_, other.signals_);
  return *this;
}

Interrupts::~Interrupts() {
  if (fd_ >= 0) close(fd_);
}

Result<Interrupts> Interrupts::Catch(std::initializer_list<int> signals) {
  Interrupts out;
  for (const int signal : signals)
    if (signal != SIGHUP || !IsIgnored(signal)) sigaddset(&out.signals_, signal);
  out.fd_ = signalfd(-1, &out.signals_, SFD_NONBLOCK | SFD_CLOEXEC);
  if (out.fd_ < 0 || pthread_sigmask(SIG_BLOCK, &out.signals_, nullptr) != 0)
    return Fail(Code::kUnavailable, "Ctrl-C cannot be caught: no file descriptor is free");
  return out;
}

int Interrupts::TakeSignal() const {
  signalfd_siginfo info;
  const bool arrived = fd_ >= 0 && read(fd_, &info, sizeof(info)) == sizeof(info);
  return arrived ? static_cast<int>(info.ssi_signo) : 0;
}

bool Interrupts::TakeFirst() const {
  if (!Take()) return false;
  Release();
  return true;
}

void Interrupts::Release() const { pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr); }

}  // namespace latte
