#include "parallel/engine/kept_bytes.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

namespace pario::engine {
namespace {

constexpr std::size_t kPiecesAtOnce = 64;

/// Describes runs of a file whose bytes follow each other in memory.
pattern::Access access_of(std::byte* data, const std::vector<base::Extent>& runs) {
  if (runs.empty()) return {};
  const auto [origin, bytes, layout] = describe_runs(runs);
  return {.buffer = data, .view = {.displacement = origin, .filetype = layout}, .bytes = bytes};
}

}  // namespace

RunLayout describe_runs(const std::vector<base::Extent>& runs) {
  RunLayout found{.origin = runs.front().begin};
  std::vector<std::int64_t> places(runs.size());
  std::vector<std::uint64_t> lengths(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    places[i] = static_cast<std::int64_t>(runs[i].begin - found.origin);
    lengths[i] = runs[i].length();
    found.bytes += runs[i].length();
  }
  found.layout = pattern::TypeMap::make_indexed(pattern::TypeMap::block(1), places, lengths);
  return found;
}

void KeptBytes::add(const pattern::Access& access, base::Extent span) {
  pattern::Walker walker(access);
  std::array<std::span<std::byte>, kPiecesAtOnce> pieces;
  while (true) {
    std::size_t used = 0;
    const base::Extent run = walker.next(span, pieces, used);
    if (run.empty()) return;
    append_run(run);
    for (const auto piece : std::span(pieces).first(used))
      data_.insert(data_.end(), piece.begin(), piece.end());
  }
}

void KeptBytes::append_run(base::Extent where) {
  hull_ = base::hull(hull_, where);
  if (!runs_.empty() && runs_.back().where.end == where.begin)
    runs_.back().where.end = where.end;
  else
    runs_.push_back({where, data_.size()});
}

bool KeptBytes::overlaps(base::Extent where) const {
  const auto meets = [where](base::Extent other) {
    return !base::intersection(where, other).empty();
  };
  return meets(hull_) &&
         std::ranges::any_of(runs_, [&](const Run& run) { return meets(run.where); });
}

/// Returns the end of the runs that form one extent of the file together with `first`.
KeptBytes::Runs KeptBytes::find_end_of_joined(Runs first, base::Extent& joined) {
  joined = first->where;
  auto next = first + 1;
  for (; next != runs_.end() && next->where.begin <= joined.end; ++next)
    joined.end = std::max(joined.end, next->where.end);
  return next;
}

/// Copies runs into `image` in the order in which they were added.
void KeptBytes::copy_in_order(Runs first, Runs last, std::uint64_t begin, std::byte* image) {
  std::sort(first, last, [](const Run& a, const Run& b) { return a.place < b.place; });
  for (auto run = first; run != last; ++run)
    std::memcpy(image + (run->where.begin - begin), data_.data() + run->place, run->where.length());
}

KeptBytes::Batch KeptBytes::take_batch() {
  Batch batch{.data = std::unique_ptr<std::byte[]>(new std::byte[data_.size()])};
  std::vector<base::Extent> joined;
  std::byte* image = batch.data.get();
  std::ranges::sort(runs_, {}, [](const Run& run) { return run.where.begin; });
  for (auto first = runs_.begin(); first != runs_.end();) {
    base::Extent where;
    const auto last = find_end_of_joined(first, where);
    copy_in_order(first, last, where.begin, image);
    joined.push_back(where);
    image += where.length();
    first = last;
  }
  batch.access = access_of(batch.data.get(), joined);
  data_.clear();
  runs_.clear();
  hull_ = {};
  return batch;
}

}  // namespace pario::engine
