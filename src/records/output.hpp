// What a shuffle writes: one file or several, which have their names when all of them are whole.
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

#include "base/base.hpp"
#include "records/disk.hpp"
#include "records/team.hpp"

namespace pario::records {

/// Several threads write into it. Stretches that do not begin or end on a page are put together in memory until their pages are full.
class Output {
 public:
  /// A single one of `expected` bytes gets its room at once.
  static base::Result<std::unique_ptr<Output>> make(const std::vector<std::string>& names, std::uint64_t expected, Caching caching);
  /// One that several ranks write: the first makes it before the others ask for it, and it alone finishes it, when all have flushed what
  /// they wrote. `number`: of the run, the same for all ranks.
  static base::Result<std::unique_ptr<Output>> make_shared(const std::vector<std::string>& names, std::uint64_t expected, Caching caching,
                                                           bool first, std::uint64_t number);
  ~Output();

  std::uint32_t shards() const { return static_cast<std::uint32_t>(shards_.size()); }
  /// Where in all of the output a shard begins. Told by whoever comes to know it, the first is 0; who asks waits (or the work is stopped:
  /// an Error).
  void begins(std::uint32_t shard, std::uint64_t offset);
  base::Result<std::uint64_t> begin_of(std::uint32_t shard, const Meter& meter);
  std::optional<std::uint64_t> known_begin(std::uint32_t shard);

  /// `offset`: within the shard, aligned as the data is, but for the first and last page.
  base::Status write(std::uint32_t shard, std::uint64_t offset, std::span<const std::byte> data);
  /// What this rank wrote is on the disk.
  base::Status flush() const;
  /// The shards end here, with `trailer` zeros; they are on the disk.
  base::Status settle(std::uint64_t size, std::uint64_t trailer);
  /// What is settled gets its name, in the place of what had it.
  base::Status give_names();
  base::Status finish(std::uint64_t size, std::uint64_t trailer) {
    base::Status status = settle(size, trailer);
    return status ? give_names() : status;
  }
  /// A path that leads this process to a shard as long as it has no name.
  std::string path_of(std::uint32_t shard) const { return "/proc/self/fd/" + std::to_string(shards_[shard].file.number()); }

 private:
  struct Shard {
    std::string name;
    Disk file;
    std::string aside;  ///< name until it is whole; empty: it has none, or it is the first rank's
    Disk parts = {};    ///< of a shared one, for what is less than a page
    std::uint64_t begin = 0;
    bool told = false;
  };
  /// A page of which some bytes are there.
  struct Page {
    Buffer memory;
    std::uint64_t filled = 0;
  };

  Output() = default;
  base::Status add(const std::string& name, Caching caching);
  base::Status add_shared(const std::string& name, Caching caching, bool first, std::uint64_t number);
  base::Status preallocate(std::uint64_t expected);
  base::Status write_part(std::uint32_t shard, std::uint64_t offset, std::span<const std::byte> data);
  base::Status close(Shard& shard, std::uint64_t size);
  base::Status give_name(Shard& shard) const;

  std::vector<Shard> shards_;
  bool shared_ = false;
  std::mutex mutex_;
  std::condition_variable told_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, Page> pages_;
};

/// A file of these bytes, without its name.
base::Result<std::unique_ptr<Output>> write_aside(const std::string& path, std::span<const std::byte> bytes);
/// Writes a file and gives it its name when it is whole; interrupted, nothing is changed, and nothing left that the next one does not
/// remove.
base::Status write_whole(const std::string& path, std::span<const std::byte> bytes);

/// Writes a stretch of the output from its beginning to its end; one thread's.
class OutputCursor {
 public:
  static base::Result<OutputCursor> make(Output& output, std::uint64_t buffer);
  /// What comes next belongs to `offset` of `shard`.
  base::Status seek(std::uint32_t shard, std::uint64_t offset);
  base::Status put(std::span<const std::byte> data);
  /// What is in the buffer is written.
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
