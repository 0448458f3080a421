#include "src/engine/ranks/rank_group.h"

#include <chrono>

#include <fmt/format.h>

#include "src/engine/ranks/follower.h"
#include "src/engine/ranks/wire.h"

namespace latte {
namespace {

// Ranks load at different speeds, from a network file system perhaps.
constexpr std::chrono::hours kLoading(2);

}  // namespace

RankGroup::RankGroup(std::unique_ptr<Communicator> world, bool whole_experts)
    : world_(std::move(world)), followers_(*world_), whole_experts_(whole_experts) {}

RankGroup::~RankGroup() {
  if (!leads() || lost_) return;
  // A follower that is lost now has nothing left to compute.
  (void)CatchLostRanks([&] { followers_.Stop(); });
}

Status RankGroup::AnnounceModel(const std::string& name, ModelOptions& options) {
  options.share = share();
  WireWriter out;
  out.Text(name);
  out.Int(options.mtp ? 1 : 0);
  out.Int(options.mtp_optional ? 1 : 0);
  out.Int(whole_experts_ ? 1 : 0);
  const std::vector<std::byte> message = out.Take();
  StepCall call;
  call.kind = StepCallKind::kOpen;
  call.page = message;
  const Status told = CatchLostRanks([&] { followers_.Announce(call); });
  lost_ = !told;
  return told;
}

// Every rank calls it: what it loaded, or that it could not.
Status RankGroup::Agree(const Result<std::unique_ptr<Model>>& share) {
  struct Loaded {
    int64_t ok = 0;
    uint64_t config = 0;
  };
  std::vector<Loaded> all(static_cast<size_t>(world_->size()));
  const Loaded mine{share ? 1 : 0, share ? (*share)->config().text_hash : 0};
  world_->SetDeadline(kLoading);
  lost_ = true;  // unless all agree
  LATTE_RETURN_IF_ERROR(CatchLostRanks([&] {
    world_->AllGatherEqual(std::as_bytes(std::span(&mine, 1)),
                           std::as_writable_bytes(std::span(all)));
  }));
  world_->SetDeadline(kCallDeadline);
  if (!share) return tl::unexpected(share.error());
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].ok == 0)
      return Fail(Code::kUnavailable,
                  fmt::format("rank {} could not load the model; its message says why", rank));
    if (all[rank].config != mine.config)
      return InvalidArgument(fmt::format(
          "expected the same config.json on all ranks, found another on rank {} than on rank {}",
          rank, world_->rank()));
  }
  lost_ = false;
  return {};
}

Result<std::unique_ptr<Model>> RankGroup::Share(Result<std::unique_ptr<Model>> share) {
  LATTE_RETURN_IF_ERROR(Agree(share));
  return std::make_unique<SharedModel>(std::move(*share), followers_);
}

Status RankGroup::Follow(const Machine& machine, const LoadShare& load) {
  std::vector<std::byte> message;
  Result<StepCall> call = StepCall();
  LATTE_RETURN_IF_ERROR(CatchLostRanks([&] { call = NextCall(*world_, message); }));
  if (!call) return tl::unexpected(call.error());
  if (call->kind == StepCallKind::kStop) return {};
  WireReader in(call->page);
  const std::string name = in.Text();
  ModelOptions options;
  options.mtp = in.Int() != 0;
  options.mtp_optional = in.Int() != 0;
  whole_experts_ = in.Int() != 0;
  options.share = share();
  if (call->kind != StepCallKind::kOpen || !in.ok())
    return Corrupt("a message of the leader: expected the name of a model, found another");
  const Result<std::unique_ptr<Model>> model = load(name, options);
  LATTE_RETURN_IF_ERROR(Agree(model));
  return CatchLostRanks([&] { latte::Follow({model->get(), &machine, world_.get()}); });
}

}  // namespace latte
