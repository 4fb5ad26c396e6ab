#include "data/records/reading.hpp"

#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <tuple>

namespace pario::records {
namespace {

constexpr std::uint64_t kGap = 16 << 10;          // unneeded bytes that are read to save a request
constexpr std::uint64_t kLongestRun = 1 << 20;    // of several records
constexpr std::uint64_t kLeastDirect = 16 << 10;  // for shorter reads whole pages cost too much
// An answer takes as long as so many bytes of one connection; a server has many.
constexpr std::uint64_t kRemoteGap = 128 << 10, kLeastGap = 4 << 10, kLongestRemoteRun = 2 << 20;
/// Of runs with gaps, whose bytes are in memory beside the records while they are copied.
constexpr std::uint64_t kLongestSparseRun = 512 << 10;
// Bytes that are read for each needed one, from local files and from servers.
constexpr std::uint64_t kMostLocalTraffic = 2, kMostRemoteTraffic = 4;
constexpr std::uint64_t kTask = 256 << 10;  // bytes that a thread reads as one task
constexpr std::uint64_t kTooMany = 1ULL
                                   << 60;  // bytes of memory, which only a damaged index can demand

}  // namespace

base::Result<std::shared_ptr<Buffer>> Pool::take(std::uint64_t size) {
  std::optional<Buffer> buffer, useless;
  {
    const std::scoped_lock lock(mutex_);
    const auto fits = std::ranges::find_if(
        free_, [&](const Buffer& one) { return one.size() >= size && one.size() <= 4 * size; });
    if (fits != free_.end()) {
      buffer = std::move(*fits);
      free_.erase(fits);
    } else if (!free_.empty()) {
      useless = std::move(free_.front());
      free_.erase(free_.begin());
    }
  }
  if (!buffer) {
    useless.reset();  // too small: freed, so that unusable buffers do not accumulate
    const std::uint64_t room = std::max<std::uint64_t>(size + size / 8, 1);
    base::Result<Buffer> made = Buffer::make(
        room, Pages::large);  // fewer page faults, and fewer pages pinned by direct reads
    if (!made.ok()) return made.error();
    buffer = std::move(*made);
  }
  return std::shared_ptr<Buffer>(new Buffer(std::move(*buffer)),
                                 [pool = shared_from_this()](Buffer* used) {
                                   pool->give_back(std::move(*used));
                                   delete used;
                                 });
}

std::size_t Pool::spare() {
  const std::scoped_lock lock(mutex_);
  return free_.size();
}

void Pool::give_back(Buffer buffer) {
  const std::scoped_lock lock(mutex_);
  if (free_.size() < kMost) free_.push_back(std::move(buffer));
}

base::Result<Files> Files::open(std::vector<std::shared_ptr<const Dataset>> datasets,
                                Caching caching) {
  Files files;
  files.begins_.push_back(0);
  for (const auto& dataset : datasets) {
    OpenDataset& file = files.files_.emplace_back();
    files.begins_.push_back(files.begins_.back() + dataset->count());
    if (base::Status status = dataset->check_unchanged(); !status) return status.error();
    file.cached = dataset->file();
    if (!file.cached || file.cached->remote() || caching == Caching::page_cache) continue;
    // The file that has the name by now may be another one, which the index does not describe.
    base::Result<Disk> direct = Disk::open("/proc/self/fd/" + std::to_string(file.cached->number()),
                                           O_RDONLY, Caching::direct);
    if (direct.ok() && direct->direct()) file.direct = std::move(*direct);
  }
  files.datasets_ = std::move(datasets);
  return files;
}

Files::Place Files::place_of(std::uint64_t number) const {
  const std::size_t dataset =
      static_cast<std::size_t>(std::ranges::upper_bound(begins_, number) - begins_.begin()) - 1;
  const std::uint64_t record = number - begins_[dataset];
  return {dataset, record, datasets_[dataset]->index().span(record)};
}

std::uint64_t Files::bytes_of(std::span<const std::uint64_t> numbers) const {
  std::uint64_t bytes = 0;
  for (const std::uint64_t number : numbers) bytes += place_of(number).where.length();
  return bytes;
}

bool Files::any_remote() const {
  return std::ranges::any_of(
      files_, [](const OpenDataset& file) { return file.cached && file.cached->remote(); });
}

base::Extent Files::align(const Place& place, base::Extent where) const {
  if (!files_[place.dataset].direct || where.length() < kLeastDirect) return where;
  return {base::round_down(where.begin, kAlignment), base::round_up(where.end, kAlignment)};
}

base::Status Files::read(const Place& place, base::Extent where, std::span<std::byte> out) const {
  const OpenDataset& file = files_[place.dataset];
  if (!file.cached) return datasets_[place.dataset]->read(place.record, 0, out);
  const bool whole_pages =
      where.length() >= kLeastDirect && (where.begin | where.end) % kAlignment == 0;
  const base::Extent present =
      base::intersection(where, {0, datasets_[place.dataset]->index().whole().end});
  const bool direct = file.direct && whole_pages && !file.cached->in_memory(present);
  const base::Result<std::uint64_t> got =
      (direct ? *file.direct : *file.cached).read(where.begin, out);
  if (!got.ok()) {
    base::Error error = got.error();
    error.path = path_of(place);
    return error;
  }
  if (*got >= present.length()) return {};
  return base::Error{.number = ESTALE,
                     .operation = "read records",
                     .path = path_of(place),
                     .where = where,
                     .detail = "the file is shorter than its index says"};
}

std::unique_ptr<Reading> Reading::plan(const Files& files, std::vector<std::uint64_t> numbers,
                                       std::uint64_t most, unsigned threads) {
  std::unique_ptr<Reading> reading(new Reading(files, std::move(numbers)));
  reading->sort();
  std::uint64_t gap = files.any_remote() ? kRemoteGap : kGap;
  do {
    reading->find_runs(gap);
    gap = gap > kLeastGap ? gap / 2 : 0;
  } while (reading->is_too_much(most) && gap != 0);
  reading->find_tasks(std::min(kTask, reading->bytes_ / std::max(1U, threads)));
  return reading;
}

bool Reading::is_too_much(std::uint64_t most) const {
  return bytes_ > most || local_.requested > kMostLocalTraffic * local_.needed ||
         remote_.requested > kMostRemoteTraffic * remote_.needed;
}

base::Status Reading::take_memory(Pool& pool) {
  base::Result<std::shared_ptr<Buffer>> memory = pool.take(bytes_);
  if (!memory.ok()) return memory.error();
  memory_ = std::move(*memory);
  span_ = memory_->span();
  return {};
}

void Reading::sort() {
  places_.reserve(numbers_.size());
  for (const std::uint64_t number : numbers_) places_.push_back(files_.place_of(number));
  sorted_.resize(numbers_.size());
  std::iota(sorted_.begin(), sorted_.end(), 0U);
  std::ranges::sort(sorted_, {}, [&](std::size_t i) {
    return std::tuple(places_[i].dataset, places_[i].where.begin);
  });
  data_.resize(numbers_.size());
}

/// Joins places to runs over at most `most_gap` bytes, and gives them their places in memory.
void Reading::find_runs(std::uint64_t most_gap) {
  runs_.clear();
  bytes_ = 0;
  local_ = remote_ = {};
  for (std::size_t i = 0; i < sorted_.size(); i = runs_.back().last) {
    Run run = join_neighbours(i, most_gap);
    const Files::Place& place = places_[sorted_[i]];
    Traffic& traffic = files_.remote(place) ? remote_ : local_;
    traffic.requested += run.where.length();
    traffic.needed += run.needed;
    run.where = files_.align(place, run.where);
    const std::uint64_t length = run.compact ? run.needed : run.where.length();
    if (!run.compact && length >= kLeastDirect) bytes_ = base::round_up(bytes_, kAlignment);
    run.at = bytes_;
    bytes_ = std::min(bytes_ + length, kTooMany);
    runs_.push_back(run);
  }
}

/// The run that begins with the record `first` of sorted_. Without its place in memory.
Reading::Run Reading::join_neighbours(std::size_t first, std::uint64_t most_gap) const {
  const Files::Place& place = places_[sorted_[first]];
  const bool remote = files_.remote(place);
  const std::uint64_t gap = std::min(remote ? kRemoteGap : kGap, most_gap);
  const auto is_sparse = [&](std::uint64_t length, std::uint64_t needed) {
    return remote && needed < length - length / 8;
  };
  Run run{.first = first,
          .last = first + 1,
          .where = place.where,
          .at = 0,
          .needed = place.where.length(),
          .compact = false};
  for (; run.last < sorted_.size() && files_.together(place); ++run.last) {
    const Files::Place& next = places_[sorted_[run.last]];
    if (next.dataset != place.dataset || next.where.begin > run.where.end + gap) break;
    const base::Extent where{run.where.begin, std::max(run.where.end, next.where.end)};
    const std::uint64_t needed = run.needed + next.where.length();
    const bool sparse = is_sparse(where.length(), needed);
    if (where.length() > (sparse ? kLongestSparseRun : remote ? kLongestRemoteRun : kLongestRun))
      break;
    run.where = where;
    run.needed = needed;
    run.compact = sparse;
  }
  return run;
}

/// Divides the runs into tasks of at least `least` bytes; a run of a remote file is one.
void Reading::find_tasks(std::uint64_t least) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    bytes += runs_[i].where.length();
    const bool remote = files_.remote(places_[sorted_[runs_[i].first]]);
    if (bytes < least && i + 1 < runs_.size() && !remote) continue;
    tasks_.push_back(i + 1);
    bytes = 0;
  }
}

void Reading::carry_out(std::size_t task) {
  for (std::size_t i = task == 0 ? 0 : tasks_[task - 1]; i < tasks_[task]; ++i) read(runs_[i]);
}

base::Status Reading::carry_out_all(unsigned threads, bool skip, const Show& show) {
  Meter meter(show);
  std::atomic<std::size_t> next = 0;
  const auto workers = static_cast<unsigned>(std::min<std::size_t>(threads, tasks_.size()));
  return run_team(workers, meter, [&](unsigned) -> base::Status {
    for (std::size_t task = next++; task < tasks_.size() && !meter.is_stopped(); task = next++) {
      carry_out(task);
      base::Status status = skip ? base::Status() : first_failure();
      if (!status) return status;
    }
    return {};
  });
}

void Reading::read(const Run& run) {
  const Files::Place& first = places_[sorted_[run.first]];
  const std::uint64_t length = run.where.length();
  const auto sparse = std::make_unique_for_overwrite<std::byte[]>(run.compact ? length : 0);
  const std::span<std::byte> memory =
      run.compact ? std::span(sparse.get(), length) : span_.subspan(run.at, length);
  if (base::Status status = files_.read(first, run.where, memory); !status)
    return fail(run, status.error());
  std::uint64_t end = run.at;  // of the records that were copied
  for (std::size_t i = run.first; i < run.last; ++i) {
    const base::Extent where = places_[sorted_[i]].where;
    const std::uint64_t offset = where.begin - run.where.begin;
    if (!run.compact) {
      take(sorted_[i], run.at + offset);
      continue;
    }
    std::ranges::copy(memory.subspan(offset, where.length()), span_.subspan(end).begin());
    take(sorted_[i], end);
    end += where.length();
  }
}

/// Notes that the record `number` of places_ was read to `at` in memory.
void Reading::take(std::size_t number, std::uint64_t at) {
  const Files::Place& place = places_[number];
  const std::span<const std::byte> record = span_.subspan(at, place.where.length());
  if (base::Status status = files_.check(place, record); !status)
    return add_failure(number, status.error());
  const base::Extent data = files_.format_of(place).payload(record);
  data_[number] = {at + data.begin, at + data.end};
}

void Reading::add_failure(std::size_t number, const base::Error& error) {
  const std::scoped_lock lock(mutex_);
  failures_.push_back({number, error});
}

base::Status Reading::first_failure() {
  const std::scoped_lock lock(mutex_);
  return failures_.empty() ? base::Status() : base::Status(failures_.front().error);
}

/// Reads the records of a failed run one by one, so that only unreadable ones fail. Requests to a
/// store have been repeated already: all of its records fail.
void Reading::fail(const Run& run, const base::Error& error) {
  if (run.last == run.first + 1 || files_.remote(places_[sorted_[run.first]])) {
    for (std::size_t i = run.first; i < run.last; ++i) add_failure(sorted_[i], error);
    return;
  }
  for (std::size_t i = run.first; i < run.last; ++i) {
    const base::Extent where = places_[sorted_[i]].where;
    // Not aligned, and so through the page cache: an aligned read would not fit into its place in
    // memory.
    read({.first = i,
          .last = i + 1,
          .where = where,
          .at = run.at + (where.begin - run.where.begin),
          .needed = where.length(),
          .compact = false});
  }
}

}  // namespace pario::records
