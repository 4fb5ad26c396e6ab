#include "parallel/engine/collective_calls.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "parallel/engine/report.hpp"

namespace pario::engine {
namespace {

constexpr std::uint32_t kRead = 1, kControl = 2, kKind = kRead | kControl;

/// Encodes the function of a call: the lowest bits are its kind, which must be the same on all
/// ranks; the others are a hash of the name.
std::uint32_t encode_call(const Call& call) {
  const auto name = static_cast<std::uint32_t>(base::xxh64(call.name));
  const std::uint32_t read = call.moves_data && call.direction == plan::Direction::read ? kRead : 0;
  return (name << 2) | read | (call.moves_data ? 0 : kControl);
}

bool is_same_call(std::uint32_t a, std::uint32_t b, bool compare_names) {
  if (((a ^ b) & kKind) != 0) return false;
  return a == b || (!compare_names && (a & kControl) == 0);
}

}  // namespace

/// The reason why a call failed before it began; plain words, sent unchanged.
struct CollectiveCalls::Explanation {
  std::uint32_t failed = 0;
  std::uint64_t check = 0;
  comm::ErrorRecord error = {};
  std::array<char, 40> call = {};
};

CollectiveCalls::CollectiveCalls(std::shared_ptr<comm::Comm> comm, std::string path,
                                 std::uint64_t memory, const Call& call)
    : comm_(std::move(comm)), path_(std::move(path)) {
  if (comm_->size() == 1) return;
  comm::Watchdog watch = watchdog(call);
  exchange_ = std::make_unique<exchange::Exchange>(comm_, memory, watch.patience());
}

comm::Watchdog CollectiveCalls::watchdog(const Call& call) const {
  return {*comm_, call.limits, {.path = path_, .call = call.name, .say = say}};
}

/// Adds call and path: the failures of a Comm lack them.
base::Error CollectiveCalls::complete_error(base::Error error, const Call& call) const {
  if (*error.operation == 0) error.operation = call.name;
  if (error.path.empty()) error.path = path_;
  return error;
}

void CollectiveCalls::miss(const Call& call) {
  const std::scoped_lock lock(missed_mutex_);
  missed_ = call;
  has_missed_ = true;
}

std::optional<Call> CollectiveCalls::take_missed_call() {
  if (!has_missed_) return std::nullopt;
  const std::scoped_lock lock(missed_mutex_);
  has_missed_ = false;
  return std::exchange(missed_, std::nullopt);
}

bool CollectiveCalls::needs_no_meeting(plan::Direction direction, bool compare_names) {
  make_up_for_missed_call();
  return run_ahead_ && run_ahead_->series().continues(direction) && !compare_names &&
         !comm_->has_failed();
}

std::uint64_t CollectiveCalls::begin_without_meeting(plan::Direction direction, const char* name) {
  comm_->note_call(name);
  if (run_ahead_->series().is_turn(direction)) run_ahead_->turn(++sequence_, direction);
  run_ahead_->series().count_call();
  return ++sequence_;
}

/// The other ranks have not waited for this rank in a call of a series: it only has to be counted.
void CollectiveCalls::make_up_for_missed_call() {
  if (!has_missed_ || !run_ahead_ || !run_ahead_->series().is_open()) return;
  std::optional<Call> missed = take_missed_call();
  if (!missed) return;
  if (!missed->moves_data || !run_ahead_->series().continues(missed->direction))
    return miss(*missed);
  run_ahead_->pass(begin_without_meeting(missed->direction, missed->name));
  if (missed->error) defer_error(complete_error(*missed->error, *missed));
}

void CollectiveCalls::defer_error(const base::Error& error) {
  if (deferred_) return;
  deferred_ = error;
  if (deferred_->rank < 0) deferred_->rank = comm_->rank();
}

base::Result<CollectiveCalls::Notices> CollectiveCalls::meet(const Call& call) {
  make_up_for_missed_call();
  if (run_ahead_ && !call.keeps_series) run_ahead_->series().end(call.moves_data);
  std::optional<Call> missed = take_missed_call();
  while (true) {
    const base::Result<Notices> notices = exchange_notices(call, missed);
    if (!notices) return complete_error(notices.error(), call);
    const Verdict verdict = judge(*notices, call);
    if (verdict.meeting == Meeting::good) {
      const base::Status shared = share_earlier_errors(call);
      return shared ? notices : shared.error();
    }
    const Call* const earlier = find_missed_call(verdict, call, missed);
    base::Error error =
        end_failed_meeting(verdict.meeting, *notices, earlier != nullptr ? *earlier : call);
    if (earlier == nullptr || comm_->has_failed()) return error;
    missed.reset();
  }
}

/// Returns the call that this rank has missed if the other ranks are in it; null: they are not.
const Call* CollectiveCalls::find_missed_call(const Verdict& verdict, const Call& call,
                                              const std::optional<Call>& missed) const {
  const bool is_theirs = verdict.meeting == Meeting::of_missed_call &&
                         !is_same_call(own_.call, verdict.call, call.compare_names);
  return missed && is_theirs ? &*missed : nullptr;
}

/// Collective, after a meeting that is not good: returns the reason. The ranks number their next
/// calls alike, though some may be in another call, or have been in a series.
base::Error CollectiveCalls::end_failed_meeting(Meeting meeting, Notices notices,
                                                const Call& call) {
  if (run_ahead_) run_ahead_->series().end(false);
  base::Error error = share_error(meeting, call);
  if (meeting == Meeting::mismatched)
    sequence_ = std::ranges::max(notices, {}, &exchange::Notice::sequence).sequence;
  return error;
}

base::Result<CollectiveCalls::Notices> CollectiveCalls::exchange_notices(
    const Call& call, const std::optional<Call>& missed) {
  comm_->announce(call.name);
  if (run_ahead_) run_ahead_->enter_meeting();
  comm::Watchdog watch = watchdog(call);
  own_ = {.sequence = ++sequence_,
          .call = encode_call(call),
          .failed = call.error ? 1U : 0U,
          .missed = missed ? encode_call(*missed) : 0,
          .deferred = static_cast<std::uint16_t>(deferred_ ? 1 : 0),
          .needs = call.needs,
          .check = call.check,
          .summary = call.summary};
  return exchange_ ? exchange_->meet(own_, watch.patience()) : Notices(&own_, 1);
}

/// Compares the notices of all ranks; the result is the same on all ranks.
CollectiveCalls::Verdict CollectiveCalls::judge(Notices notices, const Call& call) const {
  const auto is_same = [&](std::uint32_t a, std::uint32_t b) {
    return is_same_call(a, b, call.compare_names);
  };
  const auto agrees = [&](const exchange::Notice& notice) {
    return notice.sequence == notices[0].sequence && notice.check == notices[0].check &&
           is_same(notice.call, notices[0].call);
  };
  if (std::ranges::any_of(notices, [](const auto& notice) { return notice.failed != 0; }))
    return {Meeting::refused};
  if (std::ranges::all_of(notices, agrees)) return {Meeting::good};
  const auto leads = std::ranges::find(notices, 0U, &exchange::Notice::missed);
  if (leads == notices.end()) return {Meeting::mismatched};
  const bool has_missed = std::ranges::any_of(
      notices, [&](const auto& notice) { return !is_same(notice.call, leads->call); });
  const bool explained = std::ranges::all_of(notices, [&](const auto& notice) {
    return is_same(notice.call, leads->call) ||
           (notice.missed != 0 && is_same(notice.missed, leads->call));
  });
  return {has_missed && explained ? Meeting::of_missed_call : Meeting::mismatched, leads->call};
}

/// Collective: returns the reason why the call could not begin. Ranks in different calls: a rank
/// with a deferred error may have left the others because of it.
base::Error CollectiveCalls::share_error(Meeting meeting, const Call& call) {
  const std::optional<base::Error> reason =
      meeting == Meeting::mismatched ? std::exchange(deferred_, std::nullopt) : call.error;
  Explanation mine{.failed = reason ? 1U : 0U, .check = call.check};
  if (reason) mine.error = comm::to_record(complete_error(*reason, call));
  std::string_view(call.name).copy(mine.call.data(), mine.call.size() - 1);
  std::vector<Explanation> all(static_cast<std::size_t>(comm_->size()), mine);
  if (comm_->size() > 1)
    if (base::Status status = gather(&mine, sizeof mine, all.data(), call); !status)
      return complete_error(status.error(), call);
  const auto failed = std::ranges::find(all, 1U, &Explanation::failed);
  if (failed == all.end()) return describe_mismatch(all, call);
  base::Error error = comm::from_record(failed->error);
  error.rank = static_cast<int>(failed - all.begin());
  return error;
}

/// Collective, after a good meeting: lets the ranks that do not know it return the deferred error
/// of the lowest rank.
base::Status CollectiveCalls::share_earlier_errors(const Call& call) {
  const std::span<const exchange::Notice> notices = exchange_ ? exchange_->notices() : Notices();
  const auto first = std::ranges::find(notices, 1U, &exchange::Notice::deferred);
  if (first == notices.end()) return {};
  const comm::ErrorRecord mine = deferred_ ? comm::to_record(*deferred_) : comm::ErrorRecord{};
  std::vector<comm::ErrorRecord> all(notices.size());
  if (base::Status status = gather(&mine, sizeof mine, all.data(), call); !status)
    return complete_error(status.error(), call);
  if (!std::exchange(deferred_, std::nullopt))
    earlier_ = comm::from_record(all[static_cast<std::size_t>(first - notices.begin())]);
  return {};
}

base::Error CollectiveCalls::describe_mismatch(std::span<const Explanation> all,
                                               const Call& call) const {
  std::vector<std::pair<std::string, std::vector<int>>> calls;  // in the order of the lowest ranks
  std::vector<int> others;                                      // with other arguments than rank 0
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const std::string name = all[rank].call.data();
    auto known = std::ranges::find(calls, name, [](const auto& one) { return one.first; });
    if (known == calls.end()) known = calls.insert(calls.end(), {name, {}});
    known->second.push_back(static_cast<int>(rank));
    if (all[rank].check != all[0].check || known != calls.begin())
      others.push_back(static_cast<int>(rank));
  }
  base::Error error{.number = EINVAL,
                    .operation = call.name,
                    .path = path_,
                    .rank = others.empty() ? 0 : others.front()};
  if (calls.size() == 1) {
    error.detail = comm::format_ranks(others) +
                   " and rank 0 do not make the same call with the same arguments";
    return error;
  }
  for (const auto& [name, ranks] : calls)
    error.detail += (error.detail.empty() ? "" : ", ") + comm::format_ranks(ranks) +
                    (ranks.size() == 1 ? " is in " : " are in ") + name;
  return error;
}

base::Status CollectiveCalls::agree(const base::Status& mine, const Call& call) {
  if (!exchange_) return mine;
  comm::Watchdog watch = watchdog(call);
  const base::Status all = exchange_->agree(mine, watch.patience());
  return all ? all : complete_error(all.error(), call);
}

base::Status CollectiveCalls::run(const plan::Plan& plan, const pattern::Access& access,
                                  exchange::WindowFile& file, const Call& call,
                                  exchange::Counters& counters) {
  comm::Watchdog watch = watchdog(call);
  const base::Status done = exchange_->run(plan, access, file, watch.patience(), counters);
  return done ? done : complete_error(done.error(), call);
}

base::Status CollectiveCalls::gather(const void* mine, std::size_t each, void* all,
                                     const Call& call) {
  comm::Watchdog watch = watchdog(call);
  return comm_->allgather(mine, each, all, watch.patience());
}

}  // namespace pario::engine
