// A member whose targets have a limited speed.
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "core/file/member.hpp"
#include "core/file/transfer.hpp"

namespace pario::file {
namespace {

using Clock = std::chrono::steady_clock;

class ThrottledFile final : public Member {
 public:
  ThrottledFile(std::unique_ptr<File> inner, double bytes_per_second, double seconds_per_call)
      : Member(inner->path(), inner->layout()),
        inner_(std::move(inner)),
        bytes_per_second_(bytes_per_second),
        seconds_per_call_(seconds_per_call),
        free_at_(layout().targets) {}

  Capabilities capabilities() const override { return inner_->capabilities(); }
  base::Result<std::uint64_t> size() override { return inner_->size(); }
  base::Status resize(std::uint64_t size) override { return inner_->resize(size); }
  base::Status preallocate(std::uint64_t size) override { return inner_->preallocate(size); }
  base::Status sync() override { return inner_->sync(); }
  base::Status lock(base::Extent where, bool exclusive) override {
    return inner_->lock(where, exclusive);
  }
  base::Result<bool> try_lock(base::Extent where, bool exclusive) override {
    return inner_->try_lock(where, exclusive);
  }
  base::Status unlock(base::Extent where) override { return inner_->unlock(where); }
  base::Status refresh() override { return inner_->refresh(); }
  base::Status close() override { return inner_->close(); }
  std::string striping_trouble() const override { return inner_->striping_trouble(); }

 private:
  long attempt_read(std::uint64_t offset, std::span<const iovec> pieces) override {
    wait_for(base::Extent::at(offset, total_length(pieces)));
    std::vector<iovec> now(pieces.begin(), pieces.end());
    return as_attempt(inner_->read_vector(offset, now));
  }
  long attempt_write(std::uint64_t offset, std::span<const iovec> pieces) override {
    const std::uint64_t length = total_length(pieces);
    wait_for(base::Extent::at(offset, length));
    std::vector<iovec> now(pieces.begin(), pieces.end());
    return as_attempt(inner_->write_vector(offset, now), length);
  }

  std::vector<std::uint64_t> bytes_of_targets(base::Extent where) const;
  void wait_for(base::Extent where) { std::this_thread::sleep_until(reserve(where)); }
  Clock::time_point reserve(base::Extent where);

  std::unique_ptr<File> inner_;
  double bytes_per_second_, seconds_per_call_;
  std::mutex mutex_;
  std::vector<Clock::time_point> free_at_;  ///< by target: the end of its calls
};

std::vector<std::uint64_t> ThrottledFile::bytes_of_targets(base::Extent where) const {
  std::vector<std::uint64_t> bytes(layout().targets);
  const std::uint64_t unit = layout().unit, row = unit * layout().targets;
  const std::uint64_t rows = where.length() / row;
  for (auto& each : bytes) each = rows * unit;
  for (std::uint64_t at = where.begin + rows * row; at < where.end;) {
    const std::uint64_t end = std::min(base::round_down(at, unit) + unit, where.end);
    bytes[layout().target_of(at)] += end - at;
    at = end;
  }
  return bytes;
}

/// Reserves time of the targets; returns the time at which all of them have finished.
Clock::time_point ThrottledFile::reserve(base::Extent where) {
  const auto bytes = bytes_of_targets(where);
  const std::scoped_lock guard(mutex_);
  const auto now = Clock::now();
  auto done = now;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == 0) continue;
    const std::chrono::duration<double> cost(seconds_per_call_ +
                                             static_cast<double>(bytes[i]) / bytes_per_second_);
    free_at_[i] = std::max(free_at_[i], now) + std::chrono::duration_cast<Clock::duration>(cost);
    done = std::max(done, free_at_[i]);
  }
  return done;
}

}  // namespace

std::unique_ptr<File> make_throttled(std::unique_ptr<File> inner, double bytes_per_second,
                                     double seconds_per_call) {
  return std::make_unique<ThrottledFile>(std::move(inner), bytes_per_second, seconds_per_call);
}

}  // namespace pario::file
