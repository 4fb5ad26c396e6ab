#include "data/archive/sink.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

namespace pario::archive {
namespace {

constexpr std::size_t kAhead = 64;             // frames that may wait for a slow one
constexpr std::uint64_t kLot = 8 << 20;        // bytes that are sent to the disk together
constexpr std::size_t kEndOfTar = 2 * kBlock;  // zeros after the last member

}  // namespace

Sink::Sink(std::string directory, const Division& division, int level, records::Meter& meter)
    : directory_(std::move(directory)), division_(division), level_(level), meter_(meter) {
  if (!division.pieces.empty()) rows_.reserve(division.pieces.back().last);
}

Sink::~Sink() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

base::Status Sink::put(std::size_t number, Packed packed) {
  std::unique_lock lock(mutex_);
  while (number >= next_ + kAhead && !meter_.is_stopped())
    moved_.wait_for(lock, std::chrono::milliseconds(50));
  waiting_.emplace(number, std::move(packed));
  return writing_ ? base::Status{} : write_next(lock);
}

/// Writes the frames that are next, without the lock; other threads leave their frames to this one.
base::Status Sink::write_next(std::unique_lock<std::mutex>& lock) {
  writing_ = true;
  base::Status status;
  for (auto first = waiting_.find(next_); status && first != waiting_.end();
       first = waiting_.find(next_)) {
    Packed packed = std::move(first->second);
    waiting_.erase(first);
    const std::size_t number = next_;
    lock.unlock();
    status = write(number, std::move(packed));
    lock.lock();
    ++next_;
    moved_.notify_all();
  }
  writing_ = false;
  return status;
}

base::Status Sink::write(std::size_t number, Packed packed) {
  const std::uint32_t shard = division_.pieces[number].shard;
  if (descriptor_ < 0)
    if (base::Status status = open(shard); !status) return status;
  for (Placed& placed : packed.rows) {
    placed.row.shard = shard;
    placed.row.offset += plain_;
    rows_.push_back(placed);
  }
  if (packed.plain > 0) {  // else a hole
    if (base::Status status = append(packed.frame); !status) return status;
    frames_.push_back({static_cast<std::uint32_t>(packed.frame.size()), packed.plain});
    plain_ += packed.plain;
  }
  const bool last =
      number + 1 == division_.pieces.size() || division_.pieces[number + 1].shard != shard;
  return last ? close() : base::Status{};
}

base::Status Sink::open(std::uint32_t shard) {
  path_ = directory_ + "/" + shard_name(shard);
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  at_ = plain_ = sent_ = 0;
  frames_.clear();
  return descriptor_ >= 0 ? base::Status{}
                          : base::Error{.number = errno, .operation = "open", .path = path_};
}

base::Status Sink::append(const Bytes& bytes) {
  const long done = base::write_all(descriptor_, bytes.data(), bytes.size(), at_);
  if (done < 0)
    return base::Error{.number = static_cast<int>(-done), .operation = "write", .path = path_};
  at_ += bytes.size();
  if (at_ - sent_ >= kLot) send();
  return {};
}

/// Starts to write dirty pages, so that the disk works while other threads compress. fsync reports
/// the errors.
void Sink::send() {
  const auto length = static_cast<off_t>(at_ - sent_);
  static_cast<void>(
      ::sync_file_range(descriptor_, static_cast<off_t>(sent_), length, SYNC_FILE_RANGE_WRITE));
  sent_ = at_;
}

base::Status Sink::close() {
  const Bytes zeros(kEndOfTar);
  const base::Result<Bytes> end = Compressor(level_).frame(zeros);
  if (!end.ok()) return end.error();
  frames_.push_back({static_cast<std::uint32_t>(end->size()), kEndOfTar});
  base::Status status = append(*end);
  if (status) status = append(table_of(frames_));
  if (status && ::fsync(descriptor_) != 0)
    status = base::Error{.number = errno, .operation = "fsync", .path = path_};
  if (::close(std::exchange(descriptor_, -1)) != 0 && status)
    status = base::Error{.number = errno, .operation = "close", .path = path_};
  written_ += at_;
  return status;
}

std::vector<Row> Sink::rows(const std::vector<Entry>& entries) const {
  std::vector<std::uint64_t> names(entries.size());
  for (std::size_t i = 1; i < entries.size(); ++i)
    names[i] = names[i - 1] + entries[i - 1].name.size();
  std::vector<Row> out;
  out.reserve(rows_.size());
  for (const Placed& placed : rows_) {
    out.push_back(placed.row);
    out.back().name = names[placed.entry];
  }
  return out;
}

std::string Sink::names(const std::vector<Entry>& entries) {
  std::string out;
  for (const Entry& entry : entries) out += entry.name;
  return out;
}

}  // namespace pario::archive
