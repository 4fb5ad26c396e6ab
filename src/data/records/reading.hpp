// Reads batches of records into memory; joins reads of neighbouring records.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/base.hpp"
#include "data/records/dataset.hpp"
#include "data/records/disk.hpp"
#include "data/records/team.hpp"

namespace pario::records {

/// Buffers that are reused when they are no longer referenced; their number is the most that were
/// in use at the same time. Any thread; buffers may outlive the pool.
class Pool : public std::enable_shared_from_this<Pool> {
 public:
  /// Returns a buffer of at least `size` bytes.
  base::Result<std::shared_ptr<Buffer>> take(std::uint64_t size);
  /// The number of unused buffers.
  std::size_t spare();

 private:
  static constexpr std::size_t kMost = 16;
  void give_back(Buffer buffer);

  std::mutex mutex_;
  std::vector<Buffer> free_;
};

/// Several data sets as one: the records of each follow those of the one before. Any thread.
class Files {
 public:
  /// `direct`: direct I/O for bytes that are not in the page cache, if the file system can.
  static base::Result<Files> open(std::vector<std::shared_ptr<const Dataset>> datasets,
                                  Caching caching);
  std::uint64_t count() const { return begins_.back(); }

  /// The place of a record. Extents of different data sets do not overlap.
  struct Place {
    std::size_t dataset;
    std::uint64_t record;  ///< of its data set
    base::Extent where;
  };
  Place place_of(std::uint64_t number) const;
  bool together(const Place& place) const { return files_[place.dataset].cached != nullptr; }
  /// True if reads of the file of `place` wait for a server.
  bool remote(const Place& place) const {
    return together(place) && files_[place.dataset].cached->remote();
  }
  /// Bytes of records.
  std::uint64_t bytes_of(std::span<const std::uint64_t> numbers) const;
  /// True if one of the files is remote.
  bool any_remote() const;
  const Format& format_of(const Place& place) const { return datasets_[place.dataset]->format(); }
  const std::string& path_of(const Place& place) const { return datasets_[place.dataset]->path(); }
  /// Extends a range of the file of `place` so that direct I/O can read it.
  base::Extent align(const Place& place, base::Extent where) const;
  /// EBADMSG if the bytes of a record are damaged.
  base::Status check(const Place& place, std::span<const std::byte> record) const {
    return datasets_[place.dataset]->check(place.record, record);
  }
  /// Reads a range into `out`, which has its length, and is aligned if the range is.
  base::Status read(const Place& place, base::Extent where, std::span<std::byte> out) const;

 private:
  struct OpenDataset {
    std::shared_ptr<const Disk> cached;  ///< of the Dataset; null: a directory
    std::optional<Disk> direct;
  };
  std::vector<std::shared_ptr<const Dataset>> datasets_;
  std::vector<OpenDataset> files_;
  std::vector<std::uint64_t> begins_;  ///< of each data set, and the end
};

struct Failure {
  std::size_t position;  ///< of the record in Reading::numbers()
  base::Error error;
};

/// Reads the records of some batches; they keep the requested order. Its Files must exist until all
/// tasks are done.
class Reading {
 public:
  /// Unneeded bytes between neighbours are read to save requests, as far as the memory for all is
  /// at most `most`. Bytes between records of an object are read, but not kept. `threads`: tasks of
  /// local files are so small that each of so many threads gets one.
  static std::unique_ptr<Reading> plan(const Files& files, std::vector<std::uint64_t> numbers,
                                       std::uint64_t most, unsigned threads = 1);
  /// Takes the memory of the bytes; before the tasks.
  base::Status take_memory(Pool& pool);
  /// Uses memory of bytes() bytes that the caller owns, instead.
  void use_memory(std::span<std::byte> memory) { span_ = memory; }

  std::size_t tasks() const { return tasks_.size(); }
  /// Executes a task. Any threads may execute tasks at the same time, each task once.
  void carry_out(std::size_t task);
  /// Executes all tasks by at most `threads` threads. `skip`: continues after a record that cannot
  /// be read, otherwise returns its Error.
  base::Status carry_out_all(unsigned threads, bool skip, const Show& show);
  std::uint64_t bytes() const { return bytes_; }

  // After all tasks are done:
  const std::vector<std::uint64_t>& numbers() const { return numbers_; }
  /// The extent of the data of each record in the memory; empty if it failed.
  const std::vector<base::Extent>& data() const { return data_; }
  const std::vector<Failure>& failures() const { return failures_; }
  /// The memory of the pool.
  const std::shared_ptr<Buffer>& memory() const { return memory_; }

 private:
  /// Neighbouring records of a file, read together.
  struct Run {
    std::size_t first, last;  ///< of sorted_
    base::Extent where;
    std::uint64_t at;      ///< in memory
    std::uint64_t needed;  ///< bytes of the records
    bool compact;  ///< memory has the records one after the other, without bytes between them
  };
  /// Bytes that are read, and those of records among them.
  struct Traffic {
    std::uint64_t requested = 0, needed = 0;
  };
  Reading(const Files& files, std::vector<std::uint64_t> numbers)
      : files_(files), numbers_(std::move(numbers)) {}
  void sort();
  void find_runs(std::uint64_t most_gap);
  Run join_neighbours(std::size_t first, std::uint64_t most_gap) const;
  bool is_too_much(std::uint64_t most) const;
  void find_tasks(std::uint64_t least);
  void read(const Run& run);
  void take(std::size_t number, std::uint64_t at);
  void fail(const Run& run, const base::Error& error);
  void add_failure(std::size_t number, const base::Error& error);
  base::Status first_failure();

  const Files& files_;
  std::vector<std::uint64_t> numbers_;
  std::vector<Files::Place> places_;
  std::vector<std::size_t> sorted_;  ///< indices of places_, in the order of the files
  std::vector<Run> runs_;
  std::vector<std::size_t> tasks_;  ///< the end of each in runs_
  std::vector<base::Extent> data_;
  std::uint64_t bytes_ = 0;         ///< of memory_ that are used
  Traffic local_, remote_;          ///< of files, and of servers
  std::shared_ptr<Buffer> memory_;  ///< null: memory of the caller
  std::span<std::byte> span_;
  std::mutex mutex_;
  std::vector<Failure> failures_;
};

}  // namespace pario::records
