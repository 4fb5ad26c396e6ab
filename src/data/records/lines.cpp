// Lines: every line feed ends a record; binary zeros and carriage returns are ordinary bytes.
#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <vector>

#include "data/records/formats.hpp"

namespace pario::records {
namespace {

constexpr std::uint64_t kSearched = 4 << 20;  // bytes that a thread searches at a time

/// Makes threads report their line ends in the order of the file.
class Turns {
 public:
  /// False: the work was stopped.
  bool wait_for(std::uint64_t turn, const Meter& meter) {
    std::unique_lock lock(mutex_);
    while (turn_ != turn && !meter.is_stopped())
      changed_.wait_for(lock, std::chrono::milliseconds(100));
    return turn_ == turn;
  }
  void pass() {
    const std::scoped_lock lock(mutex_);
    ++turn_;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t turn_ = 0;
};

class LineSearch {
 public:
  LineSearch(const Search& search, IndexBuilder& out)
      : search_(search), out_(out), from_(search.where.begin - (search.at_record ? 0 : 1)) {}

  base::Status work() {
    base::Result<Buffer> buffer = Buffer::make(kSearched);
    if (!buffer.ok()) return buffer.error();
    std::vector<std::uint32_t> begins;
    for (std::uint64_t turn = next_++; !search_.meter.is_stopped(); turn = next_++) {
      const std::uint64_t begin = from_ + turn * kSearched;
      if (begin >= search_.where.end) break;
      const auto bytes = buffer->span().first(std::min(kSearched, search_.where.end - begin));
      const base::Result<std::uint64_t> got = search_.file.read(begin, bytes);
      if (!got.ok()) return got.error();
      find(bytes.first(*got), begins);
      if (!turns_.wait_for(turn, search_.meter)) break;
      for (const std::uint32_t at : begins)
        if (begin + at < search_.where.end) out_.begin(begin + at);
      turns_.pass();
      search_.meter.add(*got);
    }
    return {};
  }

 private:
  static void find(std::span<const std::byte> bytes, std::vector<std::uint32_t>& begins) {
    begins.clear();
    const std::byte* const end = bytes.data() + bytes.size();
    for (const std::byte* at = bytes.data(); at != end;) {
      const auto* feed =
          static_cast<const std::byte*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
      if (feed == nullptr) break;
      at = feed + 1;
      begins.push_back(static_cast<std::uint32_t>(at - bytes.data()));
    }
  }

  const Search& search_;
  IndexBuilder& out_;
  std::uint64_t from_;  ///< the first byte to search
  Turns turns_;
  std::atomic<std::uint64_t> next_ = 0;
};

}  // namespace

base::Result<std::uint64_t> find_lines(const Search& search, IndexBuilder& out) {
  if (search.where.empty()) return search.where.end;
  if (search.at_record) out.begin(search.where.begin);
  LineSearch lines(search, out);
  if (base::Status status =
          run_team(search.threads, search.meter, [&](unsigned) { return lines.work(); });
      !status)
    return status.error();
  return search.where.end;
}

base::Extent line_payload(std::span<const std::byte> record) {
  std::size_t end = record.size();
  if (end > 0 && record[end - 1] == std::byte{'\n'}) {
    --end;
    if (end > 0 && record[end - 1] == std::byte{'\r'}) --end;
  }
  return {0, end};
}

}  // namespace pario::records
