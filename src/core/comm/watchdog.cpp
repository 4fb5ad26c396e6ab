#include <algorithm>
#include <cerrno>
#include <string>

#include "core/comm/comm.hpp"

namespace pario::comm {
namespace {

using std::chrono::nanoseconds;
using namespace std::chrono_literals;

constexpr nanoseconds kAnswers = 3s;  // time limit for answers of other nodes

std::vector<int> world_ranks(const Comm& comm, std::vector<int> ranks) {
  std::ranges::transform(ranks, ranks.begin(), [&](int rank) { return comm.world_rank(rank); });
  std::ranges::sort(ranks);
  return ranks;
}

/// The text on missing ranks in brackets; empty: nothing is known.
std::string remarks_on(const Comm& comm, const Attendance& attendance) {
  std::string text = attendance.remarks;
  if (!attendance.silent.empty())
    text += (text.empty() ? "" : "; ") + format_ranks(world_ranks(comm, attendance.silent)) +
            ": on another node";
  return text.empty() ? text : " (" + text + ")";
}

}  // namespace

std::string seconds_text(std::chrono::milliseconds time) {
  std::string text = std::to_string(static_cast<double>(time.count()) / 1000);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

Patience Watchdog::patience() {
  std::uint64_t interval = Patience::kUsualInterval;
  for (const nanoseconds limit : {nanoseconds(limits_.report), nanoseconds(limits_.give_up)})
    if (limit > 0ms)
      interval =
          std::min(interval, Patience::interval_within(static_cast<std::uint64_t>(limit.count())));
  return {.interval_ns = interval,
          .look = [this](std::uint64_t waited_ns) { return look(nanoseconds(waited_ns)); },
          .progress = [this] { comm_.progress(); }};
}

base::Status Watchdog::look(nanoseconds waited) {
  if (base::Status status = limits_.interrupt ? limits_.interrupt() : base::Status(); !status)
    return status;
  if (base::Status status = comm_.check(limits_.silence_s); !status) return status;
  if (limits_.report > 0ms && waited >= due_) check_attendance(waited);
  if (limits_.give_up == 0ms || waited < limits_.give_up) return {};
  const nanoseconds last(comm_.last_keep_alive());
  if (nanoseconds(base::monotonic_ns()) - last < limits_.give_up) return {};
  return base::Error{
      .number = ETIMEDOUT,
      .operation = subject_.call,
      .path = subject_.path,
      .detail = "waited " + seconds_text(limits_.give_up) + " s (hint pario_patience)"};
}

/// Looks for missing ranks: one rank of each node asks the other nodes; the lowest node that asked
/// reports.
void Watchdog::check_attendance(nanoseconds waited) {
  if (stage_ == Stage::finished) return;
  if (stage_ == Stage::waiting) {
    if (!comm_.claim_report()) {
      stage_ = Stage::finished;
      return;
    }
    stage_ = Stage::asking;
    asked_ = waited;
  }
  const Attendance attendance = comm_.attendance();
  if (!attendance.complete && waited < asked_ + kAnswers) return;
  if (attendance.missing.empty() && !attendance.reported) return postpone_report(waited);
  stage_ = Stage::finished;
  if (!attendance.reported) report(attendance);
}

/// Delays the report of a call at which all ranks have arrived: the file is slow, or a rank has
/// just arrived.
void Watchdog::postpone_report(nanoseconds waited) {
  comm_.release_report();
  stage_ = Stage::waiting;
  due_ = 2 * waited;
}

void Watchdog::report(const Attendance& attendance) const {
  std::string text = std::string(subject_.call) + " of " + subject_.path + " has waited " +
                     seconds_text(limits_.report) + " s for " +
                     format_ranks(world_ranks(comm_, attendance.missing)) + "; " +
                     format_ranks(world_ranks(comm_, attendance.present)) +
                     (attendance.present.size() == 1 ? " has come" : " have come");
  subject_.say(text + remarks_on(comm_, attendance) + ". pario_watchdog=0 turns this message off");
}

}  // namespace pario::comm
