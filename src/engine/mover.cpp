#include "engine/mover.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <map>

namespace pario::engine {
namespace {

using plan::Direction;

/// Memory in smaller pieces than this is copied together rather than given to the kernel piece by piece.
constexpr std::uint64_t kSmallPiece = 2048;
constexpr std::size_t kMostPieces = IOV_MAX;

bool not_supported(const base::Error& error) {
  return error.number == ENOLCK || error.number == ENOTSUP || error.number == ENOSYS || error.number == EINVAL;
}

/// A lock on a stretch of the file against other processes.
class Locked {
 public:
  Locked(storage::File& file, base::Extent where, bool exclusive) : file_(file), where_(where), status_(file.lock(where, exclusive)) {}
  ~Locked() {
    if (status_.ok()) static_cast<void>(file_.unlock(where_));
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  const base::Status& status() const { return status_; }

 private:
  storage::File& file_;
  base::Extent where_;
  base::Status status_;
};

}  // namespace

bool visible_at_once(const Terms& terms) {
  const layout::Traits& traits = layout::traits(terms.layout.kind);
  const bool merges = terms.hints.pario_merge_collectives > 0 && !terms.atomic;
  return !merges && (terms.one_node || (traits.byte_coherent && traits.locks_across_nodes));
}

Images::Image Images::take(std::size_t size) {
  const std::scoped_lock lock(mutex_);
  if (kept_ && kept_size_ >= size) return {*this, std::move(kept_), kept_size_};
  return {*this, std::unique_ptr<std::byte[]>(new std::byte[size]), size};
}

void Images::put(std::unique_ptr<std::byte[]> data, std::size_t size) {
  const std::scoped_lock lock(mutex_);
  if (kept_ && kept_size_ >= size) return;
  kept_ = std::move(data);
  kept_size_ = size;
}

std::shared_ptr<std::shared_mutex> process_lock(const std::string& path) {
  static auto* mutex = new std::mutex;
  static auto* locks = new std::map<std::string, std::weak_ptr<std::shared_mutex>>;  // never destroyed: threads may outlive main
  const std::scoped_lock lock(*mutex);
  std::erase_if(*locks, [](const auto& entry) { return entry.second.expired(); });
  std::shared_ptr<std::shared_mutex> found = (*locks)[path].lock();
  if (!found) (*locks)[path] = found = std::make_shared<std::shared_mutex>();
  return found;
}

base::Result<std::uint64_t> Mover::move(Direction direction, const pattern::Access& access, const pattern::Summary& summary) {
  if (access.bytes == 0) return std::uint64_t{0};
  if (!terms_.atomic) return carry_out(direction, access, summary);
  const bool exclusive = direction == Direction::write;
  std::unique_lock<std::shared_mutex> alone(threads_, std::defer_lock);
  std::shared_lock<std::shared_mutex> together(threads_, std::defer_lock);
  exclusive ? alone.lock() : together.lock();
  const Locked locked(file_, summary.span, exclusive);
  if (!locked.status()) return locked.status().error();
  return carry_out(direction, access, summary);
}

/// Automatic sieving of writes needs all ranks at one gate, and none bears others who write the file.
bool Mover::may_sieve(Direction direction) {
  if (direction == Direction::read) return true;
  return (terms_.one_node || terms_.hints.romio_ds_write == hints::Choice::enable) && claim_.granted();
}

base::Result<std::uint64_t> Mover::plainly(Direction direction, const std::function<Count()>& move) {
  if (direction == Direction::read) return move();
  const Passage passage(gate_, false);
  return passage.status() ? move() : Count(passage.status().error());
}

base::Result<std::uint64_t> Mover::carry_out(Direction direction, const pattern::Access& access, const pattern::Summary& summary) {
  const base::Extent span = summary.span;
  const bool one_run = span.length() == access.bytes && summary.pieces <= 1;
  if (one_run && access.memory.contiguous()) return plainly(direction, [&] { return whole(direction, access, span); });
  const plan::IndependentPlan plan = plan::plan_independent(direction, summary, terms_.layout, terms_.hints);
  const std::uint64_t window = direction == Direction::write ? terms_.hints.ind_wr_buffer_size : terms_.hints.ind_rd_buffer_size;
  if (one_run && access.bytes / std::max<std::uint64_t>(summary.memory_pieces, 1) < kSmallPiece)
    return windows(direction, access, span, window, false);
  if (plan.way != plan::Independent::sieve || !may_sieve(direction))
    return plainly(direction, [&] { return runs(direction, access, summary, span); });
  figures_.sieved = true;
  return windows(direction, access, span, plan.window == 0 ? window : plan.window, plan.lock);
}

base::Result<std::uint64_t> Mover::whole(Direction direction, const pattern::Access& access, base::Extent span) {
  std::byte* memory = access.buffer + access.memory.true_lower();
  return direction == Direction::write ? put(span, memory) : get(span, memory);
}

base::Result<std::uint64_t> Mover::runs(Direction direction, const pattern::Access& access, const pattern::Summary& summary,
                                        base::Extent span) {
  pattern::Walker walker(access);
  std::vector<std::span<std::byte>> pieces(std::clamp<std::size_t>(summary.memory_pieces, 1, kMostPieces));
  std::uint64_t moved = 0;
  while (true) {
    std::size_t used = 0;
    const base::Extent run = walker.next(span, pieces, used);
    if (run.empty()) return moved;
    const Count count = vectored(direction, run, std::span(pieces).first(used));
    if (!count) return count.error();
    moved += *count;
    if (*count < run.length()) return moved;  // the end of the file
  }
}

base::Result<std::uint64_t> Mover::vectored(Direction direction, base::Extent run, std::span<const std::span<std::byte>> pieces) {
  if (pieces.size() == 1) return direction == Direction::write ? put(run, pieces[0].data()) : get(run, pieces[0].data());
  std::vector<iovec> vector(pieces.size());
  std::ranges::transform(pieces, vector.begin(), [](std::span<std::byte> piece) { return iovec{piece.data(), piece.size()}; });
  const Timer timer(figures_.tally.file_ns);
  if (direction == Direction::read) {
    const Count count = file_.read_vector(run.begin, vector);
    if (count) count_read(*count);
    return count;
  }
  if (const base::Status status = file_.write_vector(run.begin, vector); !status) return status.error();
  count_write(run);
  return run.length();
}

Mover::Touched Mover::touched(const pattern::Access& access, base::Extent stretch) {
  const std::uint64_t begin = std::max(access.position, access.view.position_of(stretch.begin));
  const std::uint64_t end = std::min(access.position + access.bytes, access.view.position_of(stretch.end));
  if (begin >= end) return {};
  return {{access.view.offset_of(begin), access.view.offset_of(end - 1) + 1}, end - begin};
}

/// The next window that begins with the first byte of the access that is left, up to a multiple of `window`.
base::Extent Mover::next_stretch(const pattern::Access& access, base::Extent rest, std::uint64_t window) {
  const std::uint64_t position = std::max(access.position, access.view.position_of(rest.begin));
  if (position >= access.position + access.bytes) return {rest.end, rest.end};
  const std::uint64_t begin = std::max(rest.begin, access.view.offset_of(position));
  return {begin, std::min(rest.end, base::round_down(begin, window) + window)};
}

base::Result<std::uint64_t> Mover::windows(Direction direction, const pattern::Access& access, base::Extent span, std::uint64_t window,
                                           bool lock) {
  const Images::Image image = images_.take(std::min(window, span.length()));
  const bool overlapping = access.view.filetype.overlapping();  // positions and offsets are then no two views of the same
  pattern::Walker walker(access);
  std::uint64_t moved = 0;
  for (base::Extent rest = span; !rest.empty();) {
    const base::Extent plain{rest.begin, std::min(rest.end, base::round_down(rest.begin, window) + window)};
    const base::Extent stretch = overlapping ? plain : next_stretch(access, rest, window);
    if (stretch.empty()) break;
    rest.begin = stretch.end;
    const Touched what = overlapping ? Touched{stretch, 0} : touched(access, stretch);
    const Count count =
        direction == Direction::write ? write_window(walker, what, image.data(), lock) : read_window(walker, what.hull, image.data());
    if (!count) return count;
    moved += *count;
    if (!overlapping && *count < what.bytes) break;  // the end of the file
  }
  return moved;
}

base::Result<std::uint64_t> Mover::read_window(pattern::Walker& walker, base::Extent stretch, std::byte* image) {
  const Count count = get(stretch, image);
  if (!count) return count.error();
  const Timer timer(figures_.tally.copy_ns);
  return walker.scatter(base::Extent::at(stretch.begin, *count), image);
}

base::Result<std::uint64_t> Mover::write_window(pattern::Walker& walker, const Touched& what, std::byte* image, bool lock) {
  if (what.bytes == what.hull.length()) {
    timed(figures_.tally.copy_ns, [&] { return walker.gather(what.hull, image, {}); });
    return plainly(Direction::write, [&] { return put(what.hull, image); });
  }
  if (!lock || terms_.atomic) {
    std::unique_lock<std::shared_mutex> alone(threads_, std::defer_lock);
    if (!terms_.atomic) alone.lock();
    return modify_window(walker, what, image);
  }
  const std::scoped_lock alone(threads_);
  const Locked locked(file_, what.hull, true);
  if (locked.status()) return modify_window(walker, what, image);
  if (not_supported(locked.status().error())) return plainly(Direction::write, [&] { return write_runs(walker, what.hull); });
  return locked.status().error();
}

base::Result<std::uint64_t> Mover::modify_window(pattern::Walker& walker, const Touched& what, std::byte* image) {
  const Passage passage(gate_, true);
  if (!passage.status()) return passage.status().error();
  const Count count = get(what.hull, image);
  if (!count) return count.error();
  std::memset(image + *count, 0, what.hull.length() - *count);
  ++figures_.tally.modified;
  figures_.tally.hole_bytes += what.hull.length() - what.bytes;
  const std::uint64_t gathered = walker.gather(what.hull, image, {});
  const Count written = put(what.hull, image);
  return written ? Count(gathered) : written;
}

/// Where the file cannot be locked nothing may be written back that is not this rank's own.
base::Result<std::uint64_t> Mover::write_runs(pattern::Walker& walker, base::Extent stretch) {
  std::array<std::span<std::byte>, 64> pieces;
  std::uint64_t moved = 0;
  while (true) {
    std::size_t used = 0;
    const base::Extent run = walker.next(stretch, pieces, used);
    if (run.empty()) return moved;
    const Count count = vectored(Direction::write, run, std::span(pieces).first(used));
    if (!count) return count;
    moved += *count;
  }
}

base::Result<std::uint64_t> Mover::get(base::Extent where, std::byte* to) {
  const Timer timer(figures_.tally.file_ns);
  const Count count = file_.read(where.begin, {to, where.length()});
  if (count) count_read(*count);
  return count;
}

base::Result<std::uint64_t> Mover::put(base::Extent where, const std::byte* from) {
  const Timer timer(figures_.tally.file_ns);
  if (const base::Status status = file_.write(where.begin, {from, where.length()}); !status) return status.error();
  count_write(where);
  return where.length();
}

void Mover::count_write(base::Extent where) {
  ++figures_.tally.file_writes;
  figures_.tally.file_write_bytes += where.length();
  figures_.tally.whole_units += where.begin % terms_.layout.unit == 0 && where.end % terms_.layout.unit == 0;
}

void Mover::count_read(std::uint64_t bytes) {
  ++figures_.tally.file_reads;
  figures_.tally.file_read_bytes += bytes;
}

base::Status Mover::verify(const pattern::Access& access, base::Extent span) {
  const std::uint64_t window = terms_.hints.ind_rd_buffer_size;
  const Images::Image image = images_.take(std::min(window, span.length()));
  std::vector<std::byte> expected(std::min(window, span.length()));
  pattern::Walker walker(access);
  for (base::Extent rest = span; !rest.empty();) {
    const base::Extent stretch{rest.begin, std::min(rest.end, base::round_down(rest.begin, window) + window)};
    rest.begin = stretch.end;
    const Count count = file_.read(stretch.begin, {image.data(), stretch.length()});
    if (!count) return count.error();
    std::memset(image.data() + *count, 0, stretch.length() - *count);
    std::memcpy(expected.data(), image.data(), stretch.length());
    walker.gather(stretch, expected.data(), {});
    const std::byte* difference = std::mismatch(image.data(), image.data() + stretch.length(), expected.data()).first;
    if (difference == image.data() + stretch.length()) continue;
    const std::uint64_t offset = stretch.begin + static_cast<std::uint64_t>(difference - image.data());
    return base::Error{.number = EIO,
                       .operation = "verify",
                       .path = file_.path(),
                       .where = base::Extent::at(offset, 1),
                       .detail = "byte " + std::to_string(offset) + " of the file is not the one that was written"};
  }
  return {};
}

}  // namespace pario::engine
