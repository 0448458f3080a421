#include "src/engine/link/rank_world.h"

#include <chrono>
#include <cstring>

#include <fmt/format.h>

#include "src/engine/group/follower.h"
#include "src/engine/group/group_settings.h"
#include "src/engine/group/messages.h"
#include "src/engine/group/wire.h"
#include "src/engine/link/dp_engine.h"
#include "src/engine/route/spread_rule.h"

namespace latte {
namespace {

// Ranks load at different speeds, from a network file system perhaps.
constexpr std::chrono::hours kLoading(2);

// Every rank calls it.
Status AgreeOn(const RankLayout& layout, Communicator& world) {
  struct Told {
    int64_t groups = 0;
    int64_t whole_experts = 0;
    int64_t cache_ranks = 0;
  };
  std::vector<Told> all(static_cast<size_t>(world.size()));
  const Told mine{layout.groups, layout.whole_experts ? 1 : 0, layout.cache_ranks};
  world.AllGatherEqual(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].groups != mine.groups)
      return InvalidArgument(
          fmt::format("dp: expected the same on all ranks, found {} on rank {} and {} on rank {}",
                      all[rank].groups, rank, mine.groups, world.rank()));
    if (all[rank].cache_ranks != mine.cache_ranks)
      return InvalidArgument(
          fmt::format("dcp: expected the same on all ranks, found {} on rank {} and {} on rank {}",
                      all[rank].cache_ranks, rank, mine.cache_ranks, world.rank()));
    if (all[rank].whole_experts != mine.whole_experts)
      return InvalidArgument(fmt::format(
          "ep: expected whole experts on all ranks or on none, found them only on rank {}",
          mine.whole_experts != 0 ? static_cast<size_t>(world.rank()) : rank));
  }
  return {};
}

std::vector<std::byte> WriteEngine(const Settings& settings, const ModelKey& key) {
  WireWriter out;
  out.List(std::span<const std::byte>(WriteSettings(settings)));
  out.List(std::span<const std::byte>(key));
  return out.Take();
}

}  // namespace

RankWorld::RankWorld(std::unique_ptr<Communicator> world, const RankLayout& layout)
    : world_(std::move(world)),
      comms_{.world = world_.get(), .group = world_.get(), .groups = layout.groups},
      whole_experts_(layout.whole_experts),
      on_this_machine_(layout.on_this_machine),
      followers_(comms_, Followers::Of::kWorld) {
  const int rank = world_->rank();
  if (layout.cache_ranks > 1) {
    cache_ = world_->Split(rank / static_cast<int>(layout.cache_ranks), rank);
    comms_.cache = cache_.get();
    followers_ = Followers(comms_, Followers::Of::kWorld);
  }
  if (layout.groups == 1) return;
  const auto ranks_per_group = static_cast<int>(world_->size() / layout.groups);
  group_ = world_->Split(rank / ranks_per_group, rank);
  // Ranks that lead no group are in a part of their own, which nothing uses.
  leaders_ = world_->Split(rank % ranks_per_group == 0 ? 0 : 1, rank);
  comms_.group = group_.get();
  comms_.group_index = rank / ranks_per_group;
  if (layout.cache_ranks == 1) {
    across_ = world_->Split(rank % ranks_per_group, rank);
    comms_.across = across_.get();
  }
  if (group_->rank() == 0) comms_.leaders = leaders_.get();
  followers_ = Followers(comms_, Followers::Of::kWorld);
}

Result<std::unique_ptr<RankWorld>> RankWorld::Create(std::unique_ptr<Communicator> world,
                                                     const RankLayout& layout) {
  std::unique_ptr<RankWorld> out;
  Status agreed;
  LATTE_RETURN_IF_ERROR(CatchLostRanks([&] {
    agreed = AgreeOn(layout, *world);
    if (agreed) out.reset(new RankWorld(std::move(world), layout));
  }));
  LATTE_RETURN_IF_ERROR(agreed);
  return out;
}

RankWorld::~RankWorld() {
  if (!leads() || lost_) return;
  // A follower that is lost now has nothing left to compute.
  (void)CatchLostRanks([&] { followers_.Stop(); });
}

RankShare RankWorld::share() const {
  return {comms_.group->rank(), comms_.group->size(), whole_experts_};
}

void RankWorld::SetShares(ModelOptions& options) const {
  options.share = share();
  if (comms_.groups > 1)
    options.expert_share = RankShare{world_->rank(), world_->size(), whole_experts_};
  if (comms_.cache != nullptr) options.head_share = HeadShare(options.share, comms_.cache->size());
}

Status RankWorld::AnnounceModel(const std::string& name, ModelOptions& options) {
  SetShares(options);
  WireWriter out;
  out.Text(name);
  out.Int(options.mtp ? 1 : 0);
  out.Int(options.mtp_optional ? 1 : 0);
  out.Int(options.larger_than_memory ? 1 : 0);
  const std::vector<std::byte> message = out.Take();
  const Status told =
      CatchLostRanks([&] { followers_.Announce(AnnouncementKind::kOpen, message); });
  lost_ = !told;
  return told;
}

// Every rank calls it: what it loaded, or that it could not.
Status RankWorld::Agree(const Result<std::unique_ptr<Model>>& share) {
  struct Loaded {
    int64_t ok = 0;
    uint64_t config = 0;
    int64_t weight_bytes = 0;
  };
  std::vector<Loaded> all(static_cast<size_t>(world_->size()));
  Loaded mine;
  if (share) mine = {1, (*share)->config().text_hash, (*share)->weight_bytes()};
  if (!share && tell_load_error_) tell_load_error_(share.error());
  world_->SetDeadline(kLoading);
  lost_ = true;  // unless all agree
  LATTE_RETURN_IF_ERROR(CatchLostRanks([&] {
    world_->AllGatherEqual(std::as_bytes(std::span(&mine, 1)),
                           std::as_writable_bytes(std::span(all)));
  }));
  world_->SetDeadline(kCallDeadline);
  if (!share) return tl::unexpected(share.error());
  weight_bytes_.clear();
  for (size_t rank = 0; rank < all.size(); ++rank) {
    weight_bytes_.push_back(all[rank].weight_bytes);
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

Result<std::unique_ptr<Model>> RankWorld::Share(Result<std::unique_ptr<Model>> share) {
  LATTE_RETURN_IF_ERROR(Agree(share));
  return std::move(*share);
}

Result<std::unique_ptr<Model>> RankWorld::ShareInGroups(Result<std::unique_ptr<Model>> share) {
  LATTE_RETURN_IF_ERROR(Agree(share));
  in_groups_.emplace(comms_, Followers::Of::kGroup);
  if (across_) in_spread_.emplace(comms_.ForSpread(), Followers::Of::kWorld);
  return std::move(*share);
}

Result<std::unique_ptr<Engine>> RankWorld::JoinEngines(const Settings& settings,
                                                       const ModelKey& key,
                                                       const MakeEngine& make) {
  const std::vector<std::byte> message = WriteEngine(settings, key);
  LATTE_RETURN_IF_ERROR(
      CatchLostRanks([&] { followers_.Announce(AnnouncementKind::kGroups, message); }));
  const auto stop = [&](const Error& error) {
    (void)CatchLostRanks([&] {
      SendToAll(*comms_.leaders, WriteOrders({.kind = GroupOrders::Kind::kStop, .orders = {}}));
      in_groups_->Stop();
    });
    return tl::unexpected(error);
  };
  Result<std::unique_ptr<EngineCore>> own = make(settings, &*in_groups_, nullptr);
  if (!own) return stop(own.error());
  Result<std::unique_ptr<SpreadEngine>> spread = MakeSpread(settings, make, **own);
  if (!spread) return stop(spread.error());
  return std::make_unique<DpEngine>(
      DpEngine::Parts{.own = std::make_unique<GroupEngine>(std::move(*own), 0, *world_),
                      .leaders = comms_.leaders,
                      .followers = &*in_groups_,
                      .spread = std::move(*spread)});
}

// The engine of spread requests, in the memory of `own`; null: requests are not spread.
Result<std::unique_ptr<SpreadEngine>> RankWorld::MakeSpread(const Settings& group,
                                                            const MakeEngine& make,
                                                            const EngineCore& own) {
  const std::optional<Settings> settings = in_spread_ ? SpreadSettings(group) : std::nullopt;
  if (!settings) return nullptr;
  LATTE_RETURN_IF_ERROR(CatchLostRanks([&] {
    SendToAll(*comms_.leaders,
              WriteOrders({.kind = GroupOrders::Kind::kSpread, .spread = true, .orders = {}}));
    in_groups_->Announce(AnnouncementKind::kSpread, {});
  }));
  Result<std::unique_ptr<EngineCore>> core = make(*settings, &*in_spread_, own.memory());
  LATTE_RETURN_IF_ERROR(
      CatchLostRanks([&] { in_spread_->Announce(AnnouncementKind::kPause, {}); }));
  if (!core) return tl::unexpected(core.error());
  return std::make_unique<SpreadEngine>(
      SpreadEngine::Parts{.core = std::move(*core), .world = &*in_spread_, .group = &*in_groups_});
}

// Another rank than 0: leads its group, or follows its leader, until the engines end.
Status RankWorld::JoinGroups(std::span<const std::byte> message, std::shared_ptr<const Model> share,
                             const Tokenizer* tokenizer, const Machine& machine) {
  if (comms_.leaders == nullptr) {
    latte::Follow({share.get(), &machine, comms_, Followers::Of::kGroup});
    return {};
  }
  WireReader in(message);
  const std::span<const std::byte> written = in.List<std::byte>();
  const std::span<const std::byte> key_bytes = in.List<std::byte>();
  ModelKey key = {};
  if (!in.ok() || key_bytes.size() != sizeof(key))
    return Corrupt("a message of rank 0: expected the settings of engines, found another");
  std::memcpy(key.data(), key_bytes.data(), key_bytes.size());
  LATTE_ASSIGN_OR_RETURN(const Settings settings, ReadSettings(written, share->config(), machine,
                                                               {group_->rank(), group_->size()}));
  Followers followers(comms_, Followers::Of::kGroup);
  LATTE_ASSIGN_OR_RETURN(auto core, EngineCore::Create({.model = share.get(),
                                                        .machine = &machine,
                                                        .tokenizer = tokenizer,
                                                        .followers = &followers},
                                                       settings, key));
  const FollowerParts parts{share.get(), &machine, comms_};
  std::optional<SpreadFollower> spread;
  if (across_) spread.emplace(parts, *core->memory());
  GroupEngine engine(std::move(core), comms_.group_index, *world_);
  FollowOrders(engine, *leaders_, [&] {
    if (!spread) EndGroup(*world_, "a step over spread requests, which this build does not have");
    followers.Announce(AnnouncementKind::kSpread, {});
    if (const Status done = spread->Follow(); !done) EndGroup(*world_, done.error().message);
  });
  followers.Stop();
  return {};
}

Status RankWorld::Follow(const Machine& machine, const Loaders& load) {
  std::vector<std::byte> message;
  Result<Announcement> first = Announcement();
  LATTE_RETURN_IF_ERROR(CatchLostRanks([&] { first = NextAnnouncement(*world_, message); }));
  if (!first) return tl::unexpected(first.error());
  if (first->kind == AnnouncementKind::kStop) return {};
  WireReader in(first->contents);
  const std::string name = in.Text();
  ModelOptions options;
  options.mtp = in.Int() != 0;
  options.mtp_optional = in.Int() != 0;
  options.larger_than_memory = in.Int() != 0;
  if (first->kind != AnnouncementKind::kOpen || !in.ok())
    return Corrupt("a message of rank 0: expected the name of a model, found another");
  SetShares(options);
  Result<std::unique_ptr<Model>> loaded = load.share(name, options);
  LATTE_RETURN_IF_ERROR(Agree(loaded));
  const std::shared_ptr<const Model> model = std::move(*loaded);
  FollowerParts parts{model.get(), &machine, comms_};
  std::optional<Tokenizer> tokenizer;
  parts.join_groups = [&](std::span<const std::byte> engine) -> Status {
    if (comms_.leaders != nullptr && !tokenizer) {
      LATTE_ASSIGN_OR_RETURN(tokenizer, load.tokenizer(name));
    }
    return JoinGroups(engine, model, tokenizer ? &*tokenizer : nullptr, machine);
  };
  return CatchLostRanks([&] { latte::Follow(parts); });
}

}  // namespace latte
