#include "data/records/arranged.hpp"

#include <algorithm>
#include <utility>

namespace pario::records {

IndexBuilder arrange(const Index& index, const ShuffleKeys& keys,
                     const std::vector<std::uint64_t>& skipped) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> order(index.count());
  const std::uint64_t start = index.whole().begin;
  for (std::uint64_t record = 0; record < index.count(); ++record)
    order[record] = {keys.of(index.span(record).begin - start), record};
  std::ranges::sort(order);
  IndexBuilder builder;
  std::uint64_t at = 0;
  for (const auto& [key, record] : order) {
    if (std::ranges::binary_search(skipped, record)) continue;
    builder.begin(at);
    if (index.has_names())
      builder.name(index.name(record), index.mode(record), index.modification_time(record));
    if (index.has_sums()) builder.sum(index.sum(record));
    at += index.span(record).length();
  }
  return builder;
}

}  // namespace pario::records
