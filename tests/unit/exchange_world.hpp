// Files in memory, random accesses of many ranks, and the expected result of each byte.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/comm/comm.hpp"
#include "parallel/exchange/exchange.hpp"
#include "pattern_model.hpp"

namespace pario::exchange {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kWithoutRaces = true;  // ranks that write the same byte race
#else
inline constexpr bool kWithoutRaces = false;
#endif

/// Stores bytes by offset, so that files may be sparse and long.
class MemoryFile : public WindowFile {
 public:
  base::Status write(std::uint64_t offset, std::span<const std::byte> data) override {
    const std::scoped_lock lock(mutex_);
    ++writes;
    if (fails && fails(offset, true))
      return base::Error{
          .number = ENOSPC, .operation = "pwrite", .where = base::Extent::at(offset, data.size())};
    for (const std::byte byte : data) bytes[offset++] = byte;
    return {};
  }
  base::Result<std::uint64_t> read(std::uint64_t offset, std::span<std::byte> data) override {
    const std::scoped_lock lock(mutex_);
    ++reads;
    if (fails && fails(offset, false))
      return base::Error{
          .number = EIO, .operation = "pread", .where = base::Extent::at(offset, data.size())};
    const std::uint64_t end = size();
    std::fill(data.begin(), data.end(), std::byte{0});
    for (auto at = bytes.lower_bound(offset); at != bytes.end() && at->first < offset + data.size();
         ++at)
      data[at->first - offset] = at->second;
    const std::uint64_t got = offset < end ? std::min<std::uint64_t>(end - offset, data.size()) : 0;
    read_bytes += got;
    return got;
  }
  std::uint64_t size() const { return bytes.empty() ? 0 : bytes.rbegin()->first + 1; }

  std::map<std::uint64_t, std::byte> bytes;
  std::function<bool(std::uint64_t offset, bool writing)> fails;
  std::uint64_t writes = 0, reads = 0, read_bytes = 0;

 private:
  std::mutex mutex_;
};

/// One rank's request, and the offset of each data byte in file and memory.
struct Request {
  pattern::FileView view;
  pattern::TypeMap memory = pattern::TypeMap::block(1);
  std::vector<std::uint64_t> file;
  std::uint64_t position = 0;
  std::uint64_t memory_stride = 1;  ///< data byte i lies at i * memory_stride

  std::size_t memory_size() const { return file.size() * memory_stride; }
  pattern::Access access(std::byte* buffer) const {
    return {buffer, memory, view, position, file.size()};
  }
};

/// Data byte `i` of a rank in call `call`.
inline std::byte value_of(int rank, int call, std::size_t i) {
  return static_cast<std::byte>(
      (i * 7 + static_cast<std::size_t>(rank) * 31 + static_cast<std::size_t>(call) * 101) % 255 +
      1);
}

inline void spread_in_memory(pattern::Random& random, Request& request) {
  if (!random.one_in(3)) return;
  request.memory_stride = 2;
  request.memory = pattern::TypeMap::block(1).with_extent(0, 2);
}

/// Distributes runs of the file in `unit`s to ranks at random; some runs are left out.
inline std::vector<Request> disjoint_requests(pattern::Random& random, int ranks,
                                              std::uint64_t unit, std::uint64_t origin,
                                              bool holes) {
  std::vector<Request> requests(static_cast<std::size_t>(ranks));
  std::vector<std::vector<std::pair<std::int64_t, pattern::TypeMap>>> parts(requests.size());
  std::uint64_t at = 0;
  for (std::uint64_t runs = random.upto(120); runs > 0; --runs) {
    const std::uint64_t length = unit * (1 + random.upto(random.one_in(4) ? 40 : 3));
    const auto rank = static_cast<std::size_t>(random.between(holes ? -1 : 0, ranks - 1));
    if (rank < requests.size()) {
      parts[rank].emplace_back(static_cast<std::int64_t>(at), pattern::TypeMap::block(length));
      for (std::uint64_t i = 0; i < length; ++i) requests[rank].file.push_back(origin + at + i);
    }
    at += length;
  }
  for (std::size_t rank = 0; rank < requests.size(); ++rank) {
    requests[rank].view = {origin, 1, pattern::TypeMap::sequence(parts[rank])};
    spread_in_memory(random, requests[rank]);
  }
  return requests;
}

/// Gives every rank a random file type.
inline std::vector<Request> any_requests(pattern::Random& random, int ranks, std::uint64_t unit,
                                         std::uint64_t origin) {
  std::vector<Request> requests(static_cast<std::size_t>(ranks));
  for (Request& request : requests) {
    const pattern::Sample sample = random.ascending(3, static_cast<std::int64_t>(unit));
    request.view = {origin + unit * random.upto(50), 1, sample.layout};
    spread_in_memory(random, request);
    if (sample.model.bytes.empty()) continue;
    request.position = unit * random.upto(20);
    const std::uint64_t bytes = random.one_in(5) ? 0 : unit * random.upto(400 / unit);
    for (std::uint64_t i = 0; i < bytes; ++i)
      request.file.push_back(request.view.displacement +
                             static_cast<std::uint64_t>(sample.model.at(request.position + i)));
  }
  return requests;
}

inline base::Extent hull_of(const std::vector<Request>& requests) {
  base::Extent hull = {};
  for (const Request& request : requests)
    for (const std::uint64_t at : request.file) hull = base::hull(hull, base::Extent::at(at, 1));
  return hull;
}

/// A random valid plan.
inline plan::Plan any_plan(pattern::Random& random, plan::Direction direction,
                           const std::vector<Request>& requests, int nodes, std::uint64_t unit) {
  plan::Plan plan;
  plan.way = plan::Way::windows;
  plan.direction = direction;
  plan.span = hull_of(requests);
  plan.window = 16 * (1 + random.upto(20));
  plan.slots = static_cast<std::uint32_t>(random.between(1, 6));
  for (int node = 0; node < nodes; ++node)
    if (random.one_in(2)) plan.aggregators.push_back(node);
  if (plan.aggregators.empty())
    plan.aggregators.push_back(static_cast<int>(random.between(0, nodes - 1)));
  plan.writers = static_cast<std::uint32_t>(random.between(1, 3));
  plan.cyclic = random.one_in(2);
  plan.targets = plan.cyclic ? 3 : 1;
  plan.granule = unit;
  const plan::Holes ways[] = {plan::Holes::runs, plan::Holes::modify, plan::Holes::choose};
  plan.holes = ways[random.upto(2)];
  plan.request_bytes = random.upto(100);  // choose: either way may be cheaper
  plan.whole = random.one_in(2);
  return plan;
}

/// Distributes ranks to nodes at random.
inline std::vector<int> any_nodes(pattern::Random& random, int ranks, int nodes) {
  std::vector<int> node_of;
  for (int rank = 0; rank < ranks; ++rank)
    node_of.push_back(rank < nodes ? rank : static_cast<int>(random.between(0, nodes - 1)));
  return node_of;
}

/// Makes a collective call like the engine.
inline base::Status call(Exchange& exchange, std::uint64_t sequence, const plan::Plan& plan,
                         const pattern::Access& access, WindowFile& sink, Counters& counters) {
  Notice notice;
  notice.sequence = sequence;
  notice.summary = pattern::summarise(access);
  if (const auto met = exchange.meet(notice, {}); !met.ok()) return met.error();
  return exchange.agree(exchange.run(plan, access, sink, {}, counters), {});
}

}  // namespace pario::exchange
