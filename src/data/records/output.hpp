// The output of a shuffle: one or several files, published when all of them are complete.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/base.hpp"
#include "core/file/publication.hpp"
#include "data/records/disk.hpp"
#include "data/records/ranks.hpp"
#include "data/records/team.hpp"

namespace pario::records {

/// The files of an output. Any thread may write; incomplete pages of ranges are collected in memory
/// until they are full.
class Output {
 public:
  /// Reserves `expected` bytes for a single file.
  static base::Result<std::unique_ptr<Output>> make(const std::vector<std::string>& names,
                                                    std::uint64_t expected, Caching caching);
  /// An output that all ranks write. The first rank alone completes it, after all have called
  /// flush(). `number`: of the work, equal on all ranks. Collective.
  static base::Result<std::unique_ptr<Output>> make_together(const Ranks& ranks,
                                                             const std::vector<std::string>& names,
                                                             std::uint64_t expected,
                                                             Caching caching, std::uint64_t number);

  std::uint32_t shards() const { return static_cast<std::uint32_t>(shards_.size()); }
  /// Sets the offset of a shard in the whole output; that of the first is 0. begin_of() waits for
  /// it; an Error if the work is stopped.
  void begins(std::uint32_t shard, std::uint64_t offset);
  base::Result<std::uint64_t> begin_of(std::uint32_t shard, const Meter& meter);
  std::optional<std::uint64_t> known_begin(std::uint32_t shard);

  /// Writes data at `offset` of a shard. Both are aligned except in the first and the last page.
  base::Status write(std::uint32_t shard, std::uint64_t offset, std::span<const std::byte> data);
  /// Writes this rank's bytes to the disk.
  base::Status flush() const;
  /// Completes the shards at `size` bytes in all, with `trailer` zeros each, and flushes them to
  /// the disk.
  base::Status complete(std::uint64_t size, std::uint64_t trailer);
  /// Publishes the shards; replaces existing files.
  base::Status publish();
  base::Status finish(std::uint64_t size, std::uint64_t trailer) {
    base::Status status = complete(size, trailer);
    return status ? publish() : status;
  }
  /// A path by which this process can open a shard before it is published.
  std::string path_of(std::uint32_t shard) const {
    return "/proc/self/fd/" + std::to_string(shards_[shard].file.number());
  }

 private:
  struct Shard {
    std::string name;
    Disk file;
    std::optional<file::Publication> publication;  ///< of a shared output: on the first rank only
    Disk parts = {};  ///< of a shared output, for writes smaller than a page
    std::uint64_t begin = 0;
    bool is_known = false;
  };
  /// An incomplete page.
  struct Page {
    Buffer memory;
    std::uint64_t filled = 0;
  };

  Output() = default;
  /// Opens a shared output, which the first rank creates before the others open it.
  static base::Result<std::unique_ptr<Output>> make_shared(const std::vector<std::string>& names,
                                                           std::uint64_t expected, Caching caching,
                                                           bool first, std::uint64_t number);
  base::Status add(const std::string& name, Caching caching);
  base::Status add_shared(const std::string& name, Caching caching, bool first,
                          std::uint64_t number);
  base::Status preallocate(std::uint64_t expected);
  base::Status write_part(std::uint32_t shard, std::uint64_t offset,
                          std::span<const std::byte> data);
  base::Status close(Shard& shard, std::uint64_t size);

  std::vector<Shard> shards_;
  bool shared_ = false;
  std::mutex mutex_;
  std::condition_variable told_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, Page> pages_;
};

/// Writes bytes to a file that is not yet published.
base::Result<std::unique_ptr<Output>> write_aside(const std::string& path,
                                                  std::span<const std::byte> bytes);
/// Writes and publishes a file. An interrupted call changes nothing, and the next one removes its
/// stale parts.
base::Status write_whole(const std::string& path, std::span<const std::byte> bytes);

/// Writes a range of the output from its beginning to its end. For one thread.
class OutputCursor {
 public:
  static base::Result<OutputCursor> make(Output& output, std::uint64_t buffer);
  /// Continues at `offset` of `shard`.
  base::Status seek(std::uint32_t shard, std::uint64_t offset);
  base::Status put(std::span<const std::byte> data);
  /// Writes the buffer.
  base::Status flush();

 private:
  OutputCursor(Output& output, Buffer memory) : output_(&output), memory_(std::move(memory)) {}

  Output* output_;
  Buffer memory_;
  std::uint32_t shard_ = 0;
  std::uint64_t base_ = 0;             ///< of the shard, where the memory begins; aligned
  std::uint64_t begin_ = 0, end_ = 0;  ///< of the memory that is to be written
};

}  // namespace pario::records
