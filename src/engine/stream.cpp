#include "engine/stream.hpp"

#include <algorithm>
#include <cerrno>

namespace pario::engine {
namespace {

using Notices = std::span<const exchange::Notice>;

/// Which function: the lowest bit is the direction, which must always be the same; the others are of the name.
std::uint32_t word_of(const Call& call) {
  const auto name = static_cast<std::uint32_t>(base::xxh64(call.name));
  return (name << 1) | (call.direction == plan::Direction::read ? 1 : 0);
}

bool differs(const exchange::Notice& a, const exchange::Notice& b, bool names) {
  return a.check != b.check || ((a.call ^ b.call) & (names ? ~0u : 1u)) != 0;
}

}  // namespace

Stream::Stream(std::shared_ptr<comm::Comm> comm, std::string path, std::uint64_t memory, const Call& call)
    : comm_(std::move(comm)), path_(std::move(path)) {
  if (comm_->size() == 1) return;
  Watch watch(*comm_, nullptr, 0, call.limits, path_, call.name);
  exchange_ = std::make_unique<exchange::Exchange>(comm_, memory, watch.patience());
}

/// Failures of a Comm know nothing of files.
base::Error Stream::located(base::Error error, const Call& call) const {
  if (*error.operation == 0) error.operation = call.name;
  if (error.path.empty()) error.path = path_;
  return error;
}

base::Result<Notices> Stream::convene(const Call& call) {
  Watch watch(*comm_, exchange_.get(), ++sequence_, call.limits, path_, call.name);
  own_ = {.sequence = sequence_,
          .call = word_of(call),
          .failed = static_cast<std::uint32_t>(call.failed),
          .check = call.check,
          .summary = call.summary};
  base::Result<Notices> notices = exchange_ ? exchange_->meet(own_, watch.patience()) : Notices(&own_, 1);
  if (!notices) return located(notices.error(), call);
  const bool failed = std::ranges::any_of(*notices, [](const auto& notice) { return notice.failed != 0; });
  if (failed || !different(*notices, call).empty()) return refusal(*notices, call);
  return notices;
}

/// Ranks that are in another call than rank 0.
std::vector<int> Stream::different(Notices notices, const Call& call) const {
  std::vector<int> ranks;
  for (std::size_t rank = 1; rank < notices.size(); ++rank)
    if (differs(notices[0], notices[rank], call.compare_names)) ranks.push_back(static_cast<int>(rank));
  return ranks;
}

base::Error Stream::refusal(Notices notices, const Call& call) const {
  for (std::size_t rank = 0; rank < notices.size(); ++rank)
    if (notices[rank].failed != 0)
      return {.number = static_cast<int>(notices[rank].failed),
              .operation = call.name,
              .path = path_,
              .rank = static_cast<int>(rank),
              .detail = "this rank cannot take part in the call"};
  const std::vector<int> ranks = different(notices, call);
  return {.number = EINVAL,
          .operation = call.name,
          .path = path_,
          .rank = ranks.front(),
          .detail = comm::named(ranks) + " and rank 0 do not make the same call with the same arguments"};
}

base::Status Stream::agree(const base::Status& mine, const Call& call) {
  if (!exchange_) return mine;
  Watch watch(*comm_, exchange_.get(), sequence_, call.limits, path_, call.name);
  const base::Status all = exchange_->agree(mine, watch.patience());
  return all ? all : located(all.error(), call);
}

base::Status Stream::run(const plan::Plan& plan, const pattern::Access& access, exchange::Sink& sink, exchange::ChooseHoles choose,
                         const void* context, const Call& call, exchange::Tally& tally) {
  Watch watch(*comm_, exchange_.get(), sequence_, call.limits, path_, call.name);
  const base::Status done = exchange_->run(plan, access, sink, choose, context, watch.patience(), tally);
  return done ? done : located(done.error(), call);
}

base::Status Stream::gather(const void* mine, std::size_t each, void* all, const Call& call) {
  Watch watch(*comm_, nullptr, 0, call.limits, path_, call.name);
  return comm_->allgather(mine, each, all, watch.patience());
}

}  // namespace pario::engine
