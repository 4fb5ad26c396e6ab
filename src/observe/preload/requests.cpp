#include "observe/preload/requests.hpp"

#include <algorithm>
#include <bit>

#include "core/base/base.hpp"

namespace pario::preload {
namespace {

constexpr std::uint32_t kFewest = 128, kLargest = 1 << 17;

bool moves_data(trace::Op op) { return op == trace::Op::read || op == trace::Op::write; }

}  // namespace

void RequestTable::begin(std::uint32_t most) {
  const std::uint32_t size = std::bit_ceil(2 * std::clamp(most, kFewest / 2, kLargest / 2));
  if (size > size_) {
    auto* entries = reinterpret_cast<Request*>(base::map_memory(size * sizeof(Request)));
    if (entries == nullptr) return;
    if (entries_ != nullptr) base::unmap(entries_, size_ * sizeof(Request));
    entries_ = entries;
    size_ = size;
  } else if (used_ != 0) {
    std::fill_n(entries_, size_, Request{});
  }
  used_ = 0;
}

std::uint32_t RequestTable::home(std::uint64_t data) const {
  return static_cast<std::uint32_t>(data * 0x9E3779B97F4A7C15ull >> 40) & (size_ - 1);
}

bool RequestTable::add(const Request& request) {
  if (4 * used_ >= 3 * size_) return false;  // also without memory
  std::uint32_t at = home(request.data);
  while (entries_[at].start != 0) at = (at + 1) & (size_ - 1);
  entries_[at] = request;
  ++used_;
  return true;
}

bool RequestTable::take(std::uint64_t data, Request& out) {
  if (used_ == 0) return false;
  for (std::uint32_t at = home(data); entries_[at].start != 0; at = (at + 1) & (size_ - 1)) {
    if (entries_[at].data != data) continue;
    out = entries_[at];
    close_gap(at);
    --used_;
    return true;
  }
  return false;
}

/// Moves entries whose search would now end at the gap.
void RequestTable::close_gap(std::uint32_t gap) {
  const std::uint32_t mask = size_ - 1;
  for (std::uint32_t at = (gap + 1) & mask; entries_[at].start != 0; at = (at + 1) & mask) {
    const std::uint32_t distance = (at - home(entries_[at].data)) & mask;
    if (distance < ((at - gap) & mask)) continue;
    entries_[gap] = entries_[at];
    gap = at;
  }
  entries_[gap] = {};
}

void begin_request(RequestTable& table, const Request& request) {
  Request earlier;
  if (table.take(request.data, earlier))
    count_completion(earlier, static_cast<std::int64_t>(earlier.asked), request.start);
  if (table.add(request)) trace::begin_request(request.record);
}

void RequestFiles::add(trace::Record* record) {
  if (record == nullptr) return;
  ++requests_;
  for (std::size_t i = 0; i < used_; ++i)
    if (shares_[i].record == record || i == kMost - 1) {
      ++shares_[i].requests;
      return;
    }
  shares_[used_++] = {record, 1};
}

void RequestFiles::count(Symbol symbol, Span span, bool failed) const {
  if (used_ == 0) return count_alone(symbol, span, failed);
  const std::uint64_t duration = span.end - span.start;
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < used_; ++i) {
    const auto moment = [&](std::uint64_t requests) {
      return span.start + static_cast<std::uint64_t>(static_cast<unsigned __int128>(duration) *
                                                     requests / requests_);
    };
    const std::uint64_t after = before + shares_[i].requests;
    count_row(symbol, shares_[i].record, {moment(before), moment(after)}, failed);
    before = after;
  }
}

void count_completion(const Request& request, std::int64_t result, std::uint64_t now) {
  const trace::Op op = op_of(request.symbol);
  trace::end_request(request.record, now - std::min(now, request.start));
  trace::count(request.record, {.function = id_of(request.symbol),
                                .op = op,
                                .start = now,
                                .end = now,
                                .offset = request.offset,
                                .asked = request.asked,
                                .result = result < 0       ? -1
                                          : moves_data(op) ? result
                                                           : 0,
                                .flags = trace::kAsync,
                                .open_flags = request.open_flags,
                                .data = result > 0 ? request.data_written : nullptr});
}

}  // namespace pario::preload
