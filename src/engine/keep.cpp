// Writes that are kept back: one independent access in order with them, collective ones merged, and when they must go to the file.
#include <unistd.h>

#include <cstdlib>
#include <set>

#include "engine/file.hpp"
#include "engine/report.hpp"
#include "trace/trace.hpp"

namespace pario::engine {
namespace {

using Count = base::Result<std::uint64_t>;

/// Independent writes of more bytes are worth a call of their own.
constexpr std::uint64_t kSmallWrite = 64 << 10;
constexpr const char* kMerged = "merged collective writes";
/// Tells this call from all that a rank may make by mistake meanwhile.
constexpr std::uint64_t kMergedCheck = 0x6d65726765640000;

/// Files of this process that have kept something back since they were opened. Never destroyed: it is needed when the process ends.
struct Keepers {
  std::mutex mutex;
  std::set<File*> files;
  pid_t process = 0;
};

Keepers& keepers() {
  static Keepers& instance = *new Keepers;
  return instance;
}

/// Something has been kept back since write_what_is_kept() last ran.
std::atomic<bool> anything_kept{false};

constexpr std::uint64_t kLookNs = 500'000'000;  // how often what is kept back is looked at

/// By a thread of its own, for ever.
base::Result<std::uint64_t> look_after_delays() {
  const base::FutexWord nobody_wakes{0};
  for (auto& all = keepers();;) {
    base::futex_wait(nobody_wakes, 0, kLookNs);
    const std::scoped_lock lock(all.mutex);
    for (File* file : all.files) file->write_late(base::monotonic_ns());
  }
}

void start_looking() {
  static Worker& thread = *new Worker;  // ends with the process
  static_cast<void>(thread.submit(std::make_shared<Task>(look_after_delays)));
}

/// Whether or not messages are wanted: nobody else will say it.
void say_lost(const base::Error& error) {
  const std::string text = "pario: the program has ended, and " + error.text() + "\n";
  static_cast<void>(base::system_call(SYS_write, STDERR_FILENO, text.data(), text.size()));
}

/// At the end of the process; not at that of a forked child, which has copies of what its parent will write.
void save_all() {
  auto& all = keepers();
  if (all.process != ::getpid()) return;
  const trace::Guard guard(trace::Guard::Kind::mpiio);
  const std::scoped_lock lock(all.mutex);
  for (File* file : all.files)
    if (const base::Status saved = file->save(); !saved) say_lost(saved.error());
}

}  // namespace

void write_what_is_kept() {
  if (!anything_kept.load(std::memory_order_relaxed) || !anything_kept.exchange(false)) return;
  const trace::Guard guard(trace::Guard::Kind::mpiio);
  auto& all = keepers();
  const std::scoped_lock lock(all.mutex);
  for (File* file : all.files) file->write_behind();
}

/// Before anything is kept.
void File::announce_keeping() {
  anything_kept = true;
  if (keeping_.exchange(true)) return;
  auto& all = keepers();
  const std::scoped_lock lock(all.mutex);
  if (all.process != ::getpid()) {
    std::atexit(save_all);
    start_looking();
  }
  all.process = ::getpid();
  all.files.insert(this);
}

void File::forget_keeping() {
  if (!keeping_) return;
  auto& all = keepers();
  const std::scoped_lock lock(all.mutex);
  all.files.erase(this);
}

void File::write_behind() {
  if (keeping_) behind_.flush();
}

void File::write_late(std::uint64_t now) {
  if (const std::uint64_t delay = terms()->hints.pario_write_behind_delay; delay > 0) behind_.hand_over_after(delay * 1'000'000'000, now);
}

base::Status File::write_merged_of_mine() {
  const Kept::Batch batch = merged_.take_mine();
  return batch.access.bytes == 0 ? base::Status() : write_kept(batch.access);
}

base::Status File::save() {
  if (!keeping_) return {};
  behind_.flush();
  behind_.leave_error(write_merged_of_mine());
  return behind_.take_error();
}

base::Status File::write_kept(const pattern::Access& access) {
  Statistics figures;
  const Count moved = and_verified(Direction::write, access, pattern::summarise(access), *terms(), figures);
  figures.behind_writes = figures.tally.file_writes;
  ledger_.add(figures);
  if (moved) return {};
  base::Error error = located(moved.error(), "write_behind");
  error.detail += (error.detail.empty() ? "" : "; ") + std::string("an earlier write of these bytes had been kept back");
  return error;
}

bool File::keeps_back(Direction direction, const pattern::Summary& summary, const Terms& terms) const {
  return direction == Direction::write && !terms.atomic && summary.bytes > 0 && summary.bytes <= kSmallWrite &&
         Kept::size_of(summary) <= terms.hints.pario_write_behind / 2;
}

/// An independent access, in order with what this rank keeps back.
Count File::in_order(Direction direction, const pattern::Access& access, const pattern::Summary& summary, const Terms& terms,
                     Statistics& figures) {
  if (keeping_ && merged_.touches(summary.span))
    if (const base::Status written = write_merged_of_mine(); !written) return written.error();
  if (keeps_back(direction, summary, terms)) {
    announce_keeping();
    behind_.keep(access, summary, terms.hints.pario_write_behind);
    ++figures.behind_calls;
    return access.bytes;
  }
  if (keeping_ && behind_.touches(summary.span)) behind_.flush();
  Count moved = and_verified(direction, access, summary, terms, figures);
  const bool ended = direction == Direction::read && moved && *moved < access.bytes;
  if (!ended || end_of_kept() == 0) return moved;
  behind_.leave_error(save());  // the end of the file may be among what is kept
  return and_verified(direction, access, summary, terms, figures);
}

bool File::merges(Direction direction, const Terms& terms) const {
  return direction == Direction::write && !terms.atomic && terms.hints.pario_merge_collectives > 0;
}

/// A collective write: kept back where it fits, else what is kept goes first.
Count File::merge(Stream& stream, const Call& call, std::span<const pattern::Summary> ranks, const pattern::Access& access,
                  const Terms& terms, Statistics& figures) {
  const std::uint64_t bound = terms.hints.pario_merge_collectives;
  if (merged_.fits(ranks, bound)) return add_to_merged(access, call, ranks, figures);
  if (!merged_.any()) return carried_out(stream, call, ranks, access, terms, figures);
  const base::Status earlier = finish_merged(stream);
  if (merged_.fits(ranks, bound)) {
    Count kept = add_to_merged(access, call, ranks, figures);
    return earlier ? kept : Count(earlier.error());
  }
  behind_.leave_error(earlier);
  const auto again = gathered(stream, call, figures);  // an exchange is of those who have met last
  return again ? carried_out(stream, call, *again, access, terms, figures) : Count(again.error());
}

Count File::add_to_merged(const pattern::Access& access, const Call& call, std::span<const pattern::Summary> ranks, Statistics& figures) {
  announce_keeping();
  merged_.add(access, call.summary.span, ranks);
  ++figures.merged_calls;
  return access.bytes;
}

base::Status File::finish_merged(Stream& stream) {
  if (!keeping_ || !merged_.any()) return {};
  const Kept::Batch batch = merged_.take();
  Statistics figures;
  figures.merged_exchanges = 1;
  Call call = call_of(kMerged, kMergedCheck);
  call.summary = pattern::summarise(batch.access);
  const auto ranks = gathered(stream, call, figures);
  base::Status status = ranks.status();
  if (ranks)
    status = carried_out(stream, call, *ranks, batch.access, *terms(), figures).status();
  else if (batch.access.bytes > 0)  // the others are elsewhere, or dead
    static_cast<void>(write_kept(batch.access));
  ledger_.add(figures);
  return status ? status : base::Status(located(status.error(), kMerged));
}

base::Status File::finish_writes() {
  finish_started();
  if (!keeping_) return {};
  Statistics figures;
  base::Status all;
  {
    const Timer timer(figures.total_ns);
    behind_.flush();
    all = finish_merged(*stream_);
  }
  ledger_.add(figures);
  base::Status mine = behind_.take_error();
  return all ? mine : all;
}

}  // namespace pario::engine
