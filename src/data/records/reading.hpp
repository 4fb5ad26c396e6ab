// Batches of records on their way into memory: what lies together is read together.
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

namespace pario::records {

/// Memory that is used again when nobody holds it any more: of no more buffers than were held at
/// the same time. Any thread; what was taken outlives the pool.
class Pool : public std::enable_shared_from_this<Pool> {
 public:
  /// At least `size` bytes.
  base::Result<std::shared_ptr<Buffer>> take(std::uint64_t size);
  /// Buffers that nobody holds.
  std::size_t spare();

 private:
  static constexpr std::size_t kMost = 16;
  void give_back(Buffer buffer);

  std::mutex mutex_;
  std::vector<Buffer> free_;
};

/// Data sets as one: the records of the second come behind those of the first. Any thread.
class Files {
 public:
  /// `direct`: past the page cache where bytes are not in it, and where the file system can.
  static base::Result<Files> open(std::vector<std::shared_ptr<const Dataset>> datasets,
                                  Caching caching);
  std::uint64_t count() const { return begins_.back(); }

  /// Where a record lies: extents of different data sets never meet.
  struct Place {
    std::size_t dataset;
    std::uint64_t record;  ///< of its data set
    base::Extent where;
  };
  Place place_of(std::uint64_t number) const;
  bool together(const Place& place) const { return files_[place.dataset].cached != nullptr; }
  const Format& format_of(const Place& place) const { return datasets_[place.dataset]->format(); }
  const std::string& path_of(const Place& place) const { return datasets_[place.dataset]->path(); }
  /// What has to be read for [begin, end) of the file of `place`, so that it can go past the page
  /// cache.
  base::Extent aligned(const Place& place, base::Extent where) const;
  /// EBADMSG if the bytes of a record are damaged.
  base::Status check(const Place& place, std::span<const std::byte> record) const {
    return datasets_[place.dataset]->check(place.record, record);
  }
  /// Into `out`, which is as long as `where`, and aligned where that is.
  base::Status read(const Place& place, base::Extent where, std::span<std::byte> out) const;

 private:
  struct File {
    std::shared_ptr<const Disk> cached;  ///< of the Dataset; null: a directory
    std::optional<Disk> direct;
  };
  std::vector<std::shared_ptr<const Dataset>> datasets_;
  std::vector<File> files_;
  std::vector<std::uint64_t> begins_;  ///< of each data set, and the end
};

struct Failure {
  std::uint64_t number;  ///< of the record
  base::Error error;
};

/// The records of some batches, in the order in which they were asked for. Needs its Files until
/// all tasks are done.
class Reading {
 public:
  static base::Result<std::unique_ptr<Reading>> plan(const Files& files,
                                                     std::vector<std::uint64_t> numbers,
                                                     Pool& pool);

  std::size_t tasks() const { return tasks_.size(); }
  /// Tasks may be done by any threads at the same time, each once.
  void carry_out(std::size_t task);
  std::uint64_t bytes() const { return bytes_; }

  // When all tasks are done.
  const std::vector<std::uint64_t>& numbers() const { return numbers_; }
  /// Where in memory() the data of each lie; empty where it failed.
  const std::vector<base::Extent>& data() const { return data_; }
  const std::vector<Failure>& failures() const { return failures_; }
  const std::shared_ptr<Buffer>& memory() const { return memory_; }

 private:
  /// Neighbours in a file, read at once.
  struct Run {
    std::size_t first, last;  ///< of sorted_
    base::Extent where;
    std::uint64_t at;  ///< in memory
  };
  Reading(const Files& files, std::vector<std::uint64_t> numbers)
      : files_(files), numbers_(std::move(numbers)) {}
  void sort();
  std::uint64_t find_runs();
  void find_tasks();
  void read(const Run& run);
  void take(std::size_t number, std::uint64_t at);
  void fail(const Run& run, const base::Error& error);
  void add_failure(std::size_t number, const base::Error& error);

  const Files& files_;
  std::vector<std::uint64_t> numbers_;
  std::vector<Files::Place> places_;
  std::vector<std::size_t> sorted_;  ///< numbers of places_, as they lie
  std::vector<Run> runs_;
  std::vector<std::size_t> tasks_;  ///< where each ends in runs_
  std::vector<base::Extent> data_;
  std::uint64_t bytes_ = 0;  ///< of memory_ that are used
  std::shared_ptr<Buffer> memory_;
  std::mutex mutex_;
  std::vector<Failure> failures_;
};

}  // namespace pario::records
