// Downloads through a transport that is scripted: no network.
#include "src/hub/download.h"

#include <deque>
#include <numeric>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/base/file.h"
#include "src/hub/download_worker.h"
#include "tests/support/scratch_dir.h"

namespace latte::download_test {
namespace {

constexpr std::string_view kHub = "https://hub.example";
constexpr std::string_view kStorage = "https://storage.example";

// The content and the behaviour of the scripted servers.
struct World {
  std::string content;
  std::mutex mutex;
  std::vector<HubRequest> requests;
  std::deque<std::function<void(HttpHead*, std::string*)>> changes;  // of answers of the storage
  std::deque<NetError> errors;                                       // before they answer
  bool ranges = true;

  bool SentTokenTo(std::string_view origin) {
    for (const HubRequest& request : requests)
      for (const std::string& header : request.headers)
        if (request.url.starts_with(origin) && header == "Authorization: Bearer hf_x") return true;
    return false;
  }
};

class ScriptedHttp final : public Http {
 public:
  explicit ScriptedHttp(World* world) : world_(world) {}

  tl::expected<HttpHead, NetError> Get(const HubRequest& request, const HttpBody& body) override {
    HttpHead head;
    std::string answer;
    {
      const std::lock_guard lock(world_->mutex);
      world_->requests.push_back(request);
      if (request.url.starts_with(kHub)) {
        head.status = 302;
        head.headers["location"] = std::string(kStorage) + "/blob";
        return head;
      }
      if (!world_->errors.empty()) {
        const NetError error = world_->errors.front();
        world_->errors.pop_front();
        return tl::unexpected(error);
      }
      Answer(request, &head, &answer);
      if (!world_->changes.empty()) {
        world_->changes.front()(&head, &answer);
        world_->changes.pop_front();
      }
    }
    if (!body.begin(head)) return head;
    const auto bytes = std::as_bytes(std::span(answer));
    for (size_t at = 0; at < bytes.size(); at += 7)
      if (!body.write(bytes.subspan(at, std::min<size_t>(7, bytes.size() - at))))
        return tl::unexpected(NetError{NetError::Kind::kRejected, "refused"});
    return head;
  }

 private:
  void Answer(const HubRequest& request, HttpHead* head, std::string* answer) {
    *answer = world_->content;
    head->status = 200;
    for (const std::string& header : request.headers) {
      size_t begin = 0;
      size_t last = 0;
      if (!world_->ranges || sscanf(header.c_str(), "Range: bytes=%zu-%zu", &begin, &last) != 2)
        continue;
      head->status = 206;
      head->headers["content-range"] =
          fmt::format("bytes {}-{}/{}", begin, last, world_->content.size());
      *answer = world_->content.substr(begin, last + 1 - begin);
    }
  }

  World* world_;
};

class Downloads : public testing::Test {
 protected:
  Downloads() : folder_(scratch_.path(), "org/name") {
    world_.content.resize(100);
    std::iota(world_.content.begin(), world_.content.end(), '\0');
    options_.connections = 3;
    options_.least_range = 10;
    options_.retry = {.retries = 2, .base = 0.001, .longest_wait = 1};
    EXPECT_TRUE(folder_.Create());
  }

  Status Run() {
    HubEnvironment hub;
    hub.endpoint = kHub;
    hub.token = "hf_x";
    Download download(
        {hub, "org/name", std::string(40, 'a')}, folder_, files_, options_,
        [this]() -> Result<std::unique_ptr<Http>> {
          return std::make_unique<ScriptedHttp>(&world_);
        },
        stop_);
    const Status status = download.Run([] {});
    done_ = download.done();
    return status;
  }

  // The blob is there and right, and nothing else is.
  void ExpectDone(const Status& status) {
    ASSERT_TRUE(status) << status.error().message;
    EXPECT_EQ(*ReadFile(folder_.Blob(file_), 1000), world_.content);
    EXPECT_EQ(done_, file_.size);
    EXPECT_EQ(MissingBytes(folder_.Blob(file_), file_.size), file_.size);
  }

  testing_support::ScratchDir scratch_;
  RepoFolder folder_;
  World world_;
  HubFile file_{"w.safetensors", 100,
                "bce0aff19cf5aa6a7469a30d61d04e4376e4bbf6381052ee9e7f33925c954d52"};
  std::vector<HubFile> files_ = {file_};
  DownloadOptions options_;
  std::atomic<bool> stop_ = false;
  int64_t done_ = 0;
};

TEST_F(Downloads, RangesMakeTheFileAndTheTokenStaysAtTheHub) {
  ExpectDone(Run());
  EXPECT_TRUE(world_.SentTokenTo(kHub));
  EXPECT_FALSE(world_.SentTokenTo(kStorage));
}

TEST_F(Downloads, GoesOnAfterErrorsThatPass) {
  using Kind = NetError::Kind;
  for (const Kind kind : {Kind::kBroken, Kind::kStalled, Kind::kConnect, Kind::kName}) {
    world_.errors = {{kind, "x"}, {kind, "x"}};
    ExpectDone(Run());
    std::remove(folder_.Blob(file_).c_str());
  }
}

TEST_F(Downloads, GivesUpAfterRetriesAndKeepsWhatHasArrived) {
  options_.connections = 1;
  world_.changes.push_back([](HttpHead*, std::string* answer) { answer->resize(33); });
  for (int i = 0; i < 3; ++i) world_.errors.push_back({NetError::Kind::kBroken, "cut off"});
  world_.changes.push_back([](HttpHead*, std::string* answer) { answer->clear(); });
  world_.changes.push_back([](HttpHead*, std::string* answer) { answer->clear(); });
  const Status first = Run();
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().message.find("w.safetensors: "), 0u) << first.error().message;
  world_.errors.clear();
  world_.changes.clear();
  stop_ = false;
  ExpectDone(Run());
}

TEST_F(Downloads, AServerThatSendsTheFileAsAWhole) {
  world_.ranges = false;
  ExpectDone(Run());
}

TEST_F(Downloads, ServersThatNeverAgreeOnAnETag) {
  for (int connections : {1, 3}) {
    options_.connections = connections;
    for (int i = 0; i < 9; ++i)
      world_.changes.push_back([i](HttpHead* head, std::string* answer) {
        head->headers["etag"] = fmt::format("\"{}\"", i);
        answer->resize(answer->size() / 2);
      });
    ExpectDone(Run());
    std::remove(folder_.Blob(file_).c_str());
    world_.changes.clear();
  }
}

TEST_F(Downloads, EqualFilesAreOneDownload) {
  files_ = {file_, file_, file_};
  files_[1].path = "second";
  files_[2].path = "third";
  std::vector<std::string> complete;
  options_.complete = [&](const HubFile& file) -> Status {
    complete.push_back(file.path);
    return {};
  };
  ExpectDone(Run());
  EXPECT_EQ(complete, std::vector<std::string>{file_.path});
  for (const HubRequest& request : world_.requests)
    EXPECT_EQ(request.url.find("second") + request.url.find("third"), 2 * std::string::npos);
}

TEST_F(Downloads, WrongBytesAreNeverKept) {
  for (int i = 0; i < 20; ++i)
    world_.changes.push_back([](HttpHead*, std::string* answer) { answer->back() ^= 1; });
  const Status status = Run();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kCorrupt);
  EXPECT_NE(status.error().message.find("checksum"), std::string::npos);
  EXPECT_FALSE(Exists(folder_.Blob(file_)));
  EXPECT_FALSE(Exists(folder_.Blob(file_) + ".latte.incomplete"));
}

TEST_F(Downloads, AFileThatCannotBeReadIsNotCalledWrong) {
  options_.connections = 1;
  for (int i = 0; i < 20; ++i)
    world_.changes.push_back([this](HttpHead*, std::string*) {
      std::remove((folder_.Blob(file_) + ".latte.incomplete").c_str());
    });
  const Status status = Run();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kUnavailable);
  EXPECT_EQ(status.error().message.find("fetched"), std::string::npos) << status.error().message;
}

TEST_F(Downloads, WrongBytesOnceAreFetchedAgain) {
  std::vector<std::string> notes;
  options_.note = [&](const std::string& line) { notes.push_back(line); };
  world_.changes.push_back([](HttpHead*, std::string* answer) { answer->back() ^= 1; });
  ExpectDone(Run());
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("fetching it again"), std::string::npos);
}

TEST_F(Downloads, StopsWhenAsked) {
  stop_ = true;
  EXPECT_EQ(Run().error().code, Code::kCancelled);
}

TEST(KindOfBody, ComparesWhatIsSentWithWhatIsAsked) {
  std::string why;
  const auto kind = [&](int status, std::map<std::string, std::string> headers, ByteRange range,
                        const std::string& tag = "") {
    return KindOfBody({status, std::move(headers), {}}, range, 100, tag, &why);
  };
  EXPECT_EQ(kind(206, {{"content-range", "bytes 5-9/100"}}, {5, 10}), BodyKind::kRange);
  EXPECT_EQ(kind(206, {{"content-range", "bytes 5-9/101"}}, {5, 10}), BodyKind::kWrong);
  EXPECT_EQ(kind(206, {{"content-range", "bytes 0-4/100"}}, {5, 10}), BodyKind::kWrong);
  EXPECT_EQ(kind(206, {}, {5, 10}), BodyKind::kWrong);
  EXPECT_EQ(kind(200, {}, {0, 100}), BodyKind::kWhole);
  EXPECT_EQ(kind(200, {{"content-length", "99"}}, {0, 100}), BodyKind::kWrong);
  EXPECT_EQ(kind(200, {{"content-length", "100"}}, {5, 10}), BodyKind::kUndivided);
  EXPECT_EQ(kind(200, {{"content-encoding", "gzip"}}, {0, 100}), BodyKind::kWrong);
  EXPECT_EQ(kind(200, {{"etag", "\"b\""}}, {5, 10}, "\"a\""), BodyKind::kChanged);
  EXPECT_EQ(kind(206, {{"content-range", "bytes 5-9/100"}, {"etag", "\"b\""}}, {5, 10}, "\"a\""),
            BodyKind::kChanged);
  EXPECT_EQ(RangeHeaders({5, 10}, 100, "W/\"a\"").size(), 2u) << "a weak tag proves nothing";
  EXPECT_EQ(RangeHeaders({5, 10}, 100, "\"a\"").back(), "If-Range: \"a\"");
}

}  // namespace
}  // namespace latte::download_test
