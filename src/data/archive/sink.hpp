// Writes the shards: frames arrive from several threads in any order, and are written in the order
// of their numbers.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "data/archive/division.hpp"
#include "data/archive/frames.hpp"
#include "data/archive/index.hpp"

namespace pario::archive {

/// A member, and its row with an offset that counts from its frame.
struct Placed {
  std::size_t entry = 0;
  Row row = {};
};

struct Packed {
  Bytes frame;
  std::uint32_t plain = 0;  ///< decompressed bytes
  std::vector<Placed> rows;
};

class Sink {
 public:
  Sink(std::string directory, const Division& division, int level, records::Meter& meter);
  ~Sink();
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  /// Adds a frame. Any thread; waits while the frame is far ahead of the next one to be written.
  base::Status put(std::size_t number, Packed packed);
  // After all frames have been put:
  std::vector<Row> rows(const std::vector<Entry>& entries) const;
  static std::string names(const std::vector<Entry>& entries);
  std::uint64_t written_bytes() const { return written_; }

 private:
  base::Status write_next(std::unique_lock<std::mutex>& lock);
  base::Status write(std::size_t number, Packed packed);
  base::Status open(std::uint32_t shard);
  base::Status close();
  base::Status append(const Bytes& bytes);
  void send();

  std::string directory_;
  const Division& division_;
  int level_;
  records::Meter& meter_;

  std::mutex mutex_;
  std::condition_variable moved_;
  std::map<std::size_t, Packed> waiting_;
  std::size_t next_ = 0;
  bool writing_ = false;

  // Of the writing thread:
  std::string path_;
  int descriptor_ = -1;
  std::uint64_t at_ = 0, plain_ = 0, written_ = 0;  ///< in the shard, in its tar, in all shards
  std::uint64_t sent_ = 0;                          ///< of the shard, to the disk
  std::vector<FrameSize> frames_;
  std::vector<Placed> rows_;
};

}  // namespace pario::archive
