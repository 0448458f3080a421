#include "apps/terminal/line_editor.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <histedit.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include "apps/terminal/pastes.h"
#include "apps/terminal/screen.h"
#include "src/text/unicode/unicode.h"

namespace latte {
namespace {

constexpr size_t kMaxPasteBytes = size_t{64} << 20;
constexpr const char* kPastesOn = "\x1b[?2004h";  // the terminal marks what is pasted
constexpr const char* kPastesOff = "\x1b[?2004l";
constexpr std::string_view kPasteEnd = "\x1b[201~";

std::wstring Wide(std::string_view text) {
  std::wstring out;
  while (!text.empty()) {
    const Utf8Step step = DecodeUtf8(text);
    out += static_cast<wchar_t>(step.code_point);
    text.remove_prefix(static_cast<size_t>(step.bytes));
  }
  return out;
}

std::string Narrow(std::wstring_view text) {
  std::string out;
  for (const wchar_t c : text) AppendUtf8(static_cast<char32_t>(c), &out);
  return out;
}

// The keys that libedit's own table does not have.
struct Key {
  const wchar_t* keys;
  const wchar_t* command;
};
constexpr Key kKeys[] = {
    {L"\\e[200~", L"latte-paste"},  {L"\\e[A", L"ed-prev-history"},
    {L"\\e[B", L"ed-next-history"}, {L"\\e[C", L"ed-next-char"},
    {L"\\e[D", L"ed-prev-char"},    {L"\\e[H", L"ed-move-to-beg"},
    {L"\\e[F", L"ed-move-to-end"},  {L"\\eOH", L"ed-move-to-beg"},
    {L"\\eOF", L"ed-move-to-end"},  {L"\\e[1~", L"ed-move-to-beg"},
    {L"\\e[4~", L"ed-move-to-end"}, {L"\\e[3~", L"ed-delete-next-char"},
    {L"\\e[1;5C", L"em-next-word"}, {L"\\e[1;5D", L"ed-prev-word"},
    {L"^R", L"em-inc-search-prev"}, {L"^L", L"ed-clear-screen"},
};

}  // namespace

class LineEditor::Impl {
 public:
  Impl(const Interrupts& interrupts, const Interrupts& resizes, HistoryFile file)
      : interrupts_(interrupts), resizes_(resizes), file_(std::move(file)) {}

  ~Impl() {
    if (edit_ != nullptr) el_end(edit_);
    if (history_ != nullptr) history_wend(history_);
    if (!has_modes_) return;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &modes_);
    std::fputs(kPastesOff, stderr);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Status Start() {
    if (tcgetattr(STDIN_FILENO, &modes_) != 0)
      return Fail(Code::kUnavailable,
                  fmt::format("the terminal cannot be used: {}", std::strerror(errno)));
    has_modes_ = true;
    edit_ = el_init("latte", stdin, stderr, stderr);
    history_ = history_winit();
    if (edit_ == nullptr || history_ == nullptr)
      return Fail(Code::kUnavailable, "the terminal cannot be used: libedit does not start");
    Bind();
    LATTE_RETURN_IF_ERROR(LoadHistory());
    std::fputs(kPastesOn, stderr);
    Quiet();
    return {};
  }

  Result<LineEvent> Next(std::string_view prompt, std::string* line) {
    prompt_ = Prompt(prompt);
    stopped_ = false;
    int count = 0;
    const wchar_t* typed = el_wgets(edit_, &count);
    Quiet();
    if (typed == nullptr || count <= 0) {
      if (stopped_) return LineEvent::kInterrupted;
      return LineEvent::kEnd;
    }
    std::wstring_view text(typed, static_cast<size_t>(count));
    while (text.ends_with(L'\n') || text.ends_with(L'\r')) text.remove_suffix(1);
    const std::string shown = Narrow(text);
    *line = pastes_.Expand(shown);
    Remember(std::wstring(text), *line);
    return pastes_.BeginsWithLines(shown) ? LineEvent::kPaste : LineEvent::kLine;
  }

 private:
  static Impl* Of(EditLine* edit) {
    void* self = nullptr;
    el_wget(edit, EL_CLIENTDATA, &self);
    return static_cast<Impl*>(self);
  }
  static wchar_t* ShowPrompt(EditLine* edit) { return Of(edit)->prompt_.data(); }
  static int Read(EditLine* edit, wchar_t* c) { return Of(edit)->ReadCharacter(c); }
  static unsigned char Paste(EditLine* edit, wint_t) { return Of(edit)->TakePaste(); }

  void Bind() {
    el_wset(edit_, EL_CLIENTDATA, this);
    el_wset(edit_, EL_SIGNAL, 0);  // signals arrive on descriptors
    el_wset(edit_, EL_EDITOR, L"emacs");
    el_wset(edit_, EL_PROMPT_ESC, &Impl::ShowPrompt, L'\1');
    el_wset(edit_, EL_GETCFN, &Impl::Read);
    el_wset(edit_, EL_HIST, history_w, history_);
    el_wset(edit_, EL_ADDFN, L"latte-paste", L"insert what is pasted", &Impl::Paste);
    el_source(edit_, nullptr);  // ~/.editrc
    for (const Key& key : kKeys) el_wset(edit_, EL_BIND, key.keys, key.command, nullptr);
  }

  Status LoadHistory() {
    HistEventW event;
    history_w(history_, &event, H_SETSIZE, static_cast<int>(HistoryFile::kMessages));
    history_w(history_, &event, H_SETUNIQUE, 1);
    LATTE_ASSIGN_OR_RETURN(const std::vector<std::string> messages, file_.Load());
    for (const std::string& message : messages)
      history_w(history_, &event, H_ENTER, Wide(pastes_.Insert(message)).c_str());
    return {};
  }

  void Remember(const std::wstring& typed, const std::string& message) {
    if (message.find_first_not_of(" \t\n") == std::string::npos) return;
    HistEventW event;
    history_w(history_, &event, H_ENTER, typed.c_str());
    const Status kept = file_.Append(message);
    if (kept || std::exchange(warned_, true)) return;
    std::fputs(fmt::format("latte: warning: {}\n", kept.error().message).c_str(), stderr);
  }

  static std::wstring Prompt(std::string_view text) {
    const bool colour = ShowsColour(STDERR_FILENO);
    return colour ? L"\1\x1b[1;32m\1" + Wide(text) + L"\1\x1b[0m\1" : Wide(text);
  }

  // Nothing is echoed into an answer, and no line is limited to the 4,095 bytes of the kernel's own editing.
  void Quiet() const {
    termios quiet = modes_;
    quiet.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    quiet.c_cc[VMIN] = 1;
    quiet.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &quiet);
  }

  // As libedit's own: 1 with a character, 0 at the end, −1 when the line is given up.
  int ReadCharacter(wchar_t* c) {
    while (true) {
      const Utf8Step step = DecodeUtf8(input_);
      if (step.bytes > 0 && !step.cut_off) {
        input_.erase(0, static_cast<size_t>(step.bytes));
        *c = static_cast<wchar_t>(step.code_point);
        return 1;
      }
      const int filled = Fill();
      if (filled <= 0) return filled;
    }
  }

  // Waits for input. 1: there is some; 0: the end; −1: Ctrl-C.
  int Fill() {
    while (true) {
      pollfd ready[] = {
          {STDIN_FILENO, POLLIN, 0}, {interrupts_.fd(), POLLIN, 0}, {resizes_.fd(), POLLIN, 0}};
      if (poll(ready, 3, -1) < 0 && errno != EINTR) return 0;
      if (interrupts_.Take()) {
        stopped_ = true;
        return -1;
      }
      if (resizes_.Take()) Resize();
      if (ready[0].revents == 0) continue;
      char bytes[1 << 12];
      const ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return 0;
      input_.append(bytes, static_cast<size_t>(n));
      return 1;
    }
  }

  // After Ctrl-Z and fg, the terminal has the modes of the shell.
  void Resize() {
    el_wset(edit_, EL_PREP_TERM, 0);
    el_wset(edit_, EL_PREP_TERM, 1);
    std::fputs(kPastesOn, stderr);
    el_resize(edit_);
    el_wset(edit_, EL_REFRESH);
  }

  unsigned char TakePaste() {
    size_t searched = 0;
    size_t end = 0;
    while ((end = input_.find(kPasteEnd, searched)) == std::string::npos) {
      if (input_.size() > kMaxPasteBytes) return CC_ERROR;
      searched = input_.size() - std::min(input_.size(), kPasteEnd.size() - 1);
      if (Fill() <= 0) return CC_EOF;
    }
    const std::string text = PastedText(std::string_view(input_).substr(0, end));
    input_.erase(0, end + kPasteEnd.size());
    if (el_winsertstr(edit_, Wide(pastes_.Insert(text)).c_str()) < 0) return CC_ERROR;
    return CC_REFRESH;
  }

  const Interrupts& interrupts_;
  const Interrupts& resizes_;
  HistoryFile file_;
  Pastes pastes_;
  std::wstring prompt_;
  std::string input_;  // bytes read from the terminal but not yet used
  bool stopped_ = false;
  bool warned_ = false;
  termios modes_ = {};  // of the terminal before
  bool has_modes_ = false;
  EditLine* edit_ = nullptr;
  HistoryW* history_ = nullptr;
};

LineEditor::LineEditor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LineEditor::~LineEditor() = default;

Result<std::unique_ptr<LineEditor>> LineEditor::Open(const Interrupts& interrupts,
                                                     const Interrupts& resizes,
                                                     HistoryFile history) {
  auto impl = std::make_unique<Impl>(interrupts, resizes, std::move(history));
  LATTE_RETURN_IF_ERROR(impl->Start());
  return std::unique_ptr<LineEditor>(new LineEditor(std::move(impl)));
}

Result<LineEvent> LineEditor::Next(std::string_view prompt, std::string* line) {
  return impl_->Next(prompt, line);
}

}  // namespace latte
