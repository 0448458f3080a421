#include "apps/terminal/interrupts.h"

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
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

LateInterrupt::LateInterrupt(const Interrupts& interrupts, std::function<void()> on_late) {
  if (interrupts.fd() < 0) return;
  end_fd_ = eventfd(0, EFD_CLOEXEC);
  if (end_fd_ < 0) return;  // only the notice is missing then
  try {
    watch_ =
        std::thread([this, fd = interrupts.fd(), late = std::move(on_late)] { Watch(fd, late); });
  } catch (const std::system_error&) {  // no thread is free
  }
}

LateInterrupt::~LateInterrupt() {
  if (watch_.joinable()) {
    const uint64_t end = 1;
    while (write(end_fd_, &end, sizeof(end)) < 0 && errno == EINTR) continue;
    watch_.join();
  }
  if (end_fd_ >= 0) close(end_fd_);
}

void LateInterrupt::Watch(int interrupts_fd, const std::function<void()>& on_late) const {
  constexpr int kLateMs = 500;
  pollfd either[] = {{end_fd_, POLLIN, 0}, {interrupts_fd, POLLIN, 0}};
  while (poll(either, 2, -1) < 0 && errno == EINTR) continue;
  const bool ends = either[0].revents != 0 || poll(either, 1, kLateMs) != 0;
  if (!ends && poll(either + 1, 1, 0) > 0) on_late();
}

}  // namespace latte
