#include "apps/terminal/line_editor.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <histedit.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include "apps/tell.h"
#include "apps/terminal/keys.h"
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

// libedit gets a key of several bytes as one character, which is bound to the key's command: it
// would take the end of a key that it does not know for text, and so would its search with every
// key. The characters are the C1 controls, which no one types; kFirstKey is the first of
// KeyCommands.
constexpr wchar_t kFirstKey = 0x80;
constexpr bool IsC1(char32_t c) { return c >= 0x80 && c < 0xa0; }

// The rows of the screen that a line has before and after that of the cursor.
struct LineRows {
  int before = 0;
  int after = 0;
};

std::string MovedBy(int rows) {
  if (rows == 0) return "";
  return fmt::format("\x1b[{}{}", std::abs(rows), rows < 0 ? 'A' : 'B');
}

// Clears a line and moves the cursor to its beginning. Row by row: a terminal may keep what it
// clears at once, up to its last row, above the screen.
std::string Cleared(const LineRows& rows) {
  std::string out = fmt::format("\r{}\x1b[K", MovedBy(-rows.before));
  for (int i = 0; i < rows.before + rows.after; ++i) out += "\x1b[B\x1b[K";
  return out += MovedBy(-rows.before - rows.after);
}

// A character as libedit reads it in the name of a key.
std::wstring Octal(wchar_t c) {
  return c > 0xff ? std::wstring(1, c) : Wide(fmt::format("\\{:03o}", static_cast<int>(c)));
}

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
    LoadHistory();
    Quiet();
    return {};
  }

  Result<LineEvent> Next(std::string_view prompt, std::string* line) {
    shown_prompt_ = Wide(prompt);
    prompt_ = Prompt(shown_prompt_);
    stopped_ = false;
    while (resizes_.Take()) continue;  // of the time before: no line was on the screen
    el_resize(edit_);
    std::fputs(kPastesOn, stderr);  // a shell turns it off when it stops the program
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
    last_shown_ = text;
    last_line_ = *line;
    return pastes_.BeginsWithLines(shown) ? LineEvent::kPaste : LineEvent::kLine;
  }

  // A message of one line returns as it was edited, with its marks; one of several lines is a mark.
  void Remember(const std::string& message) {
    if (message.find_first_not_of(" \t\n") == std::string::npos) return;
    const std::wstring shown = message == last_line_ ? last_shown_ : Wide(pastes_.Insert(message));
    HistEventW event;
    history_w(history_, &event, H_ENTER, shown.c_str());
    const Status kept = file_.Append(message);
    if (!kept) Warn(kept.error());
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
    el_wset(edit_, EL_PROMPT_ESC, &Impl::ShowPrompt, L'\1');
    el_wset(edit_, EL_GETCFN, &Impl::Read);
    el_wset(edit_, EL_HIST, history_w, history_);
    el_wset(edit_, EL_ADDFN, L"latte-paste", L"insert what is pasted", &Impl::Paste);
    BindEmacs();
    el_source(edit_, nullptr);  // ~/.editrc
    LeaveViMode();
    BindKeys();
  }

  void BindEmacs() {
    el_wset(edit_, EL_EDITOR, L"emacs");
    el_wset(edit_, EL_BIND, L"^R", L"em-inc-search-prev", nullptr);
    el_wset(edit_, EL_BIND, L"^L", L"ed-clear-screen", nullptr);
    el_wset(edit_, EL_BIND, L"-r", L"\\033", nullptr);  // KeyCommands has these keys
  }

  void BindKeys() {
    wchar_t key = kFirstKey;
    for (const KeyCommand& command : KeyCommands())
      el_wset(edit_, EL_BIND, Octal(key++).c_str(), command.command, nullptr);
  }

  // libedit's vi mode writes outside its memory with some keys. False: the editor was not in it.
  bool LeaveViMode() {
    const wchar_t* editor = nullptr;
    if (el_wget(edit_, EL_EDITOR, &editor) != 0 || std::wstring_view(editor) != L"vi") return false;
    BindEmacs();
    std::fputs(
        "latte: note: keys of vi (bind -v in ~/.editrc) are not supported: keys are as in emacs\n",
        stderr);
    return true;
  }

  // Whether ~/.editrc binds a key. libedit prints the command of a key, or an error if it has none.
  bool IsBoundByUser(std::string_view key) {
    std::wstring name;
    for (const wchar_t c : Wide(key)) name += Octal(c);
    char* printed = nullptr;
    size_t size = 0;
    std::FILE* output = open_memstream(&printed, &size);
    std::FILE* errors = std::fopen("/dev/null", "w");
    if (output != nullptr && errors != nullptr) {
      el_wset(edit_, EL_SETFP, 1, output);
      el_wset(edit_, EL_SETFP, 2, errors);
      el_wset(edit_, EL_BIND, name.c_str(), nullptr);
      el_wset(edit_, EL_SETFP, 1, stderr);
      el_wset(edit_, EL_SETFP, 2, stderr);
    }
    if (errors != nullptr) std::fclose(errors);
    if (output != nullptr) std::fclose(output);
    std::free(printed);
    return size > 0;
  }

  void LoadHistory() {
    HistEventW event;
    history_w(history_, &event, H_SETSIZE, static_cast<int>(HistoryFile::kMessages));
    history_w(history_, &event, H_SETUNIQUE, 1);
    const Result<std::vector<std::string>> messages = file_.Load();
    if (!messages) return Warn(messages.error());
    for (const std::string& message : *messages)
      history_w(history_, &event, H_ENTER, Wide(pastes_.Insert(message)).c_str());
  }

  // A conversation needs no history: one warning is enough.
  void Warn(const Error& error) {
    if (std::exchange(warned_, true)) return;
    latte::Warn(error.message);
  }

  // libedit loses a control sequence at the end of a prompt: the last character, a space, stands
  // behind it.
  static std::wstring Prompt(std::wstring text) {
    if (!ShowsColour(STDERR_FILENO) || text.empty()) return text;
    text.insert(text.size() - 1, L"\1\x1b[0m\1");
    return L"\1\x1b[1;32m\1" + text;
  }

  // Nothing is echoed into an answer, and no line is limited to the 4,095 bytes of the kernel's own
  // editing.
  void Quiet() const {
    termios quiet = modes_;
    quiet.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    quiet.c_cc[VMIN] = 1;
    quiet.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &quiet);
  }

  // As libedit's own: 1 with a character, 0 at the end, −1 when the line is given up.
  int ReadCharacter(wchar_t* c) {
    if (LeaveViMode()) BindKeys();  // ~/.editrc may bind a key to a command that reads "bind -v"
    while (true) {
      *c = 0;
      const bool taken = BeginsWithKey() ? TakeKey(c) : TakeCharacter(c);
      if (*c != 0) return 1;
      if (taken) continue;
      const Filled filled = Fill();
      if (filled == Filled::kInterrupted) return -1;
      if (filled == Filled::kEnd) return 0;
    }
  }

  bool BeginsWithKey() const { return plain_ == 0 && input_.starts_with('\x1b'); }

  // Takes the key at the front of the input; a key that means nothing gives no character. False: a
  // part is missing.
  bool TakeKey(wchar_t* c) {
    const std::string key = input_.substr(0, KeyBytes(input_));
    if (key.empty()) return false;
    if (key.size() > 1 && IsBoundByUser(key)) {
      plain_ = key.size();
      return true;
    }
    input_.erase(0, key.size());
    if (const auto found = FindKeyCommand(key.substr(1)))
      *c = kFirstKey + static_cast<wchar_t>(*found);
    return true;
  }

  bool TakeCharacter(wchar_t* c) {
    const Utf8Step step = DecodeUtf8(input_);
    if (step.bytes == 0 || step.cut_off) return false;
    const auto bytes = static_cast<size_t>(step.bytes);
    input_.erase(0, bytes);
    plain_ -= std::min(plain_, bytes);
    if (!IsC1(step.code_point)) *c = static_cast<wchar_t>(step.code_point);
    return true;
  }

  enum class Filled { kSome, kEnd, kInterrupted };

  // Waits for input.
  Filled Fill() {
    while (true) {
      pollfd ready[] = {
          {STDIN_FILENO, POLLIN, 0}, {interrupts_.fd(), POLLIN, 0}, {resizes_.fd(), POLLIN, 0}};
      if (poll(ready, 3, -1) < 0 && errno != EINTR) return Filled::kEnd;
      if (interrupts_.Take()) {
        stopped_ = true;
        LeaveLine();
        return Filled::kInterrupted;
      }
      TakeResizes();
      if (ready[0].revents == 0) continue;
      char bytes[1 << 12];
      const ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return Filled::kEnd;
      input_.append(bytes, static_cast<size_t>(n));
      return Filled::kSome;
    }
  }

  void TakeResizes() {
    bool resized = false;
    bool continued = false;
    while (const int signal = resizes_.TakeSignal()) {
      resized = true;
      continued = continued || signal == SIGCONT;
    }
    if (resized) ShowLineAgain(continued);
  }

  // After a change of the width, a terminal has broken the line again. After Ctrl-Z and fg, a shell
  // has begun a new line, and set its modes.
  void ShowLineAgain(bool on_new_line) {
    std::fputs(Cleared(on_new_line ? LineRows{} : Rows()).c_str(), stderr);
    std::fputs(kPastesOn, stderr);
    el_wset(edit_, EL_PREP_TERM, 0);
    el_wset(edit_, EL_PREP_TERM, 1);
    el_resize(edit_);
    el_wset(edit_, EL_REFRESH);
  }

  // Moves the cursor to the last row of the line, which stays on the screen. A search, which shows
  // a second line, does so itself.
  void LeaveLine() const {
    const LineInfoW* line = el_wline(edit_);
    const bool in_search = std::find(line->buffer, line->lastchar, L'\n') != line->lastchar;
    if (!in_search) std::fputs(MovedBy(Rows().after).c_str(), stderr);
  }

  LineRows Rows() const {
    const LineInfoW* line = el_wline(edit_);
    const int columns = ColumnsOf(STDIN_FILENO);
    const auto row_at = [&](const wchar_t* end) {
      return RowAtEnd(shown_prompt_ + std::wstring(line->buffer, end), columns);
    };
    const int row = row_at(line->cursor);
    return {.before = row, .after = row_at(line->lastchar) - row};
  }

  unsigned char TakePaste() {
    size_t searched = 0;
    size_t end = 0;
    bool too_long = false;
    while ((end = input_.find(kPasteEnd, searched)) == std::string::npos) {
      searched = input_.size() - std::min(input_.size(), kPasteEnd.size() - 1);
      if (input_.size() > kMaxPasteBytes) {
        too_long = true;
        input_.erase(0, std::exchange(searched, 0));
      }
      if (Fill() != Filled::kSome) return CC_EOF;
    }
    const std::string text = PastedText(std::string_view(input_).substr(0, end));
    input_.erase(0, end + kPasteEnd.size());
    if (too_long) return CC_ERROR;
    if (el_winsertstr(edit_, Wide(pastes_.Insert(text)).c_str()) < 0) return CC_ERROR;
    return CC_REFRESH;
  }

  const Interrupts& interrupts_;
  const Interrupts& resizes_;
  HistoryFile file_;
  Pastes pastes_;
  std::wstring last_shown_;  // the line that Next read last, with marks
  std::string last_line_;    // the same without marks
  std::wstring prompt_;
  std::wstring shown_prompt_;  // without its colour
  std::string input_;          // bytes read from the terminal but not yet used
  size_t plain_ = 0;           // bytes at the front of the input that libedit gets as they are
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

void LineEditor::Remember(const std::string& message) { impl_->Remember(message); }

Result<LineEvent> LineEditor::Next(std::string_view prompt, std::string* line) {
  return impl_->Next(prompt, line);
}

}  // namespace latte
