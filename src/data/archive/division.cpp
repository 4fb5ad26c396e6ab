#include "data/archive/division.hpp"

#include <algorithm>
#include <iterator>
#include <ranges>

#include "data/archive/header.hpp"

namespace pario::archive {
namespace {

/// The approximate bytes of a member in a tar.
std::uint64_t weight_of(const Entry& entry) {
  return 2 * kBlock + base::round_up(entry.data_size(), kBlock);
}

class Divider {
 public:
  Divider(const std::vector<Entry>& entries, std::uint32_t shards, std::uint64_t shard_size)
      : entries_(entries) {
    for (const Entry& entry : entries) all_ += weight_of(entry);
    const std::uint64_t wanted = shards != 0 ? shards : (all_ + shard_size - 1) / shard_size;
    division_.shards = static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(wanted, 1, std::max<std::size_t>(1, entries.size())));
  }

  Division divide() {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (must_close(i)) close(i);
      add(i);
    }
    close(entries_.size());
    division_.shards = division_.pieces.empty() ? 0 : division_.pieces.back().shard + 1;
    return std::move(division_);
  }

 private:
  /// The shard of a member: the one that would contain its middle if all had the same size.
  std::uint32_t shard_of(std::size_t number) const {
    const std::uint64_t middle = before_ + weight_of(entries_[number]) / 2;
    const auto shard =
        static_cast<std::uint32_t>(static_cast<__uint128_t>(middle) * division_.shards / all_);
    return std::min(shard, open_.shard + 1);  // leaves no shard without members
  }

  bool must_close(std::size_t number) const {
    const bool new_shard = shard_of(number) != open_.shard;
    const bool begins_last =
        number > 0 && comes_last(entries_[number]) && !comes_last(entries_[number - 1]);
    return new_shard || begins_last || weight_ >= kFrame || entries_[number].size > kLongFrame;
  }

  void add(std::size_t number) {
    open_.shard = std::max(open_.shard, shard_of(number));
    before_ += weight_of(entries_[number]);
    if (entries_[number].size > kLongFrame) return cut(number);
    weight_ += weight_of(entries_[number]);
    open_.bytes += entries_[number].data_size();
  }

  void cut(std::size_t number) {
    const Entry& entry = entries_[number];
    for (std::uint64_t at = 0; at < entry.size; at += kLongFrame) {
      const base::Extent part = {at, std::min(at + kLongFrame, entry.size)};
      std::uint64_t bytes = 0;
      for (const base::Extent& data : entry.data) bytes += base::intersection(data, part).length();
      division_.pieces.push_back({number, number + 1, open_.shard, part, bytes});
    }
    open_.first = number + 1;
  }

  void close(std::size_t number) {
    if (open_.first == number) return;
    open_.last = number;
    division_.pieces.push_back(open_);
    open_ = {.first = number, .shard = open_.shard};
    weight_ = 0;
  }

  const std::vector<Entry>& entries_;
  Division division_;
  std::uint64_t all_ = 0, before_ = 0, weight_ = 0;
  FramePlan open_;
};

}  // namespace

bool comes_last(const Entry& entry) { return entry.linked || entry.is_directory(); }

void arrange(std::vector<Entry>& entries) {
  std::vector<Entry> links, directories;
  for (Entry& entry : entries)
    if (comes_last(entry)) (entry.linked ? links : directories).push_back(entry);
  // Few entries come last: a stable partition would move all others to new memory and back.
  std::erase_if(entries, comes_last);
  std::ranges::move(links, std::back_inserter(entries));
  std::ranges::move(directories | std::views::reverse, std::back_inserter(entries));
}

Division divide(const std::vector<Entry>& entries, std::uint32_t shards, std::uint64_t shard_size) {
  return Divider(entries, shards, shard_size).divide();
}

}  // namespace pario::archive
