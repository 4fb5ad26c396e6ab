// Conversion of events of process logs (docs/log-format.md, Events) to rows of the table model
// (python/pario/see/tables/model.py, EVENT).
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include "bindings/bindings.hpp"
#include "bindings/gil.hpp"
#include "core/base/base.hpp"
#include "core/trace/columns.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace pario::bindings {
namespace {

using trace::Event;

template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Rows = nb::ndarray<std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Order = Vector<std::int64_t>;

/// A row of EVENT of the table model.
struct __attribute__((packed)) Row {
  std::int32_t process;
  std::uint8_t thread, flags, kind, layer;
  std::int32_t function, file;
  std::uint32_t count;
  double start, end, duration;
  std::int64_t offset, length;
};
static_assert(sizeof(Row) == 60);

constexpr std::uint8_t kCommunication = 255;  // layer of events that are not I/O
constexpr unsigned kMaxThreads = 8;
constexpr std::size_t kRange = 1 << 18;  // rows that a thread permutes at a time

/// The meaning of a function id; the last row of a table stands for ids outside the table. In
/// Python four int32.
struct Function {
  std::int32_t name, kind, layer, reserved;
};

/// The events of one block, as Python describes them: four uint64.
struct Chunk {
  std::uint64_t at, bytes, events, compressed;
};

/// The conversion of numbers of one process to those of the job. The last element of a table stands
/// for numbers out of range.
struct Mapping {
  std::int32_t process;
  std::uint64_t ticks0;
  double seconds0, seconds_per_tick;
  std::span<const Function> functions;
  std::span<const std::int32_t> files, communicators;
};

template <class T>
const T& at(std::span<const T> table, std::size_t index) {
  return table[std::min(index, table.size() - 1)];
}

Row to_row(const Event& event, const Mapping& map) {
  const Function& function = at(map.functions, event.function);
  const bool communication = function.layer == kCommunication;
  const double start =
      map.seconds0 + static_cast<double>(static_cast<std::int64_t>(event.start - map.ticks0)) *
                         map.seconds_per_tick;
  const double duration = static_cast<double>(event.duration) * map.seconds_per_tick;
  return {.process = map.process,
          .thread = event.thread,
          .flags = event.flags,
          .kind = static_cast<std::uint8_t>(function.kind),
          .layer = static_cast<std::uint8_t>(function.layer),
          .function = function.name,
          .file = at(communication ? map.communicators : map.files, event.file),
          .count = event.count,
          .start = start,
          .end = event.count > 1 ? start + event.span * 1e-6 : start + duration,
          .duration = duration,
          .offset = static_cast<std::int64_t>(event.offset),
          .length = static_cast<std::int64_t>(event.length)};
}

/// The decoder of one worker, which reuses its buffers for every chunk.
class Decoder {
 public:
  /// Decodes a chunk. False: the chunk does not match its header.
  bool decode(const std::uint8_t* payload, const Chunk& chunk, const Mapping& map, Row* out) {
    events_.resize(chunk.events);
    if (!(chunk.compressed ? inflate(payload, chunk) : copy(payload, chunk))) return false;
    for (const Event& event : events_) *out++ = to_row(event, map);
    return true;
  }

 private:
  bool inflate(const std::uint8_t* payload, const Chunk& chunk) {
    columns_.resize(chunk.events * sizeof(Event));
    if (ZSTD_decompress(columns_.data(), columns_.size(), payload, chunk.bytes) != columns_.size())
      return false;
    trace::decode_columns(columns_.data(), events_);
    return true;
  }

  bool copy(const std::uint8_t* payload, const Chunk& chunk) {
    if (chunk.bytes != chunk.events * sizeof(Event)) return false;
    std::memcpy(events_.data(), payload, chunk.bytes);
    return true;
  }

  std::vector<Event> events_;
  std::vector<std::byte> columns_;
};

/// Calls `work(index)` for 0 .. count - 1 on a few threads, each with its own `Worker`.
template <class Worker, class Work>
void in_parallel(std::size_t count, const Work& work) {
  std::atomic<std::size_t> next{0};
  auto run = [&] {
    Worker worker;
    for (std::size_t i = next++; i < count; i = next++) work(worker, i);
  };
  std::vector<std::jthread> threads;
  const std::size_t wanted = std::min<std::size_t>(
      {count, kMaxThreads, std::max(1u, std::thread::hardware_concurrency())});
  for (std::size_t i = 1; i < wanted; ++i) threads.emplace_back(run);
  run();
}

void require(bool condition, const char* what) {
  if (!condition) throw std::invalid_argument(what);
}

/// Returns the first row of each chunk in the output.
std::vector<std::size_t> first_rows(std::span<const Chunk> chunks, std::size_t bytes,
                                    std::size_t rows) {
  std::vector<std::size_t> first;
  std::size_t total = 0;
  for (const Chunk& chunk : chunks) {
    require(chunk.at <= bytes && chunk.bytes <= bytes - chunk.at,
            "decode_events: a chunk lies outside the log");
    require(chunk.events <= rows - total, "decode_events: more events than rows");
    first.push_back(total);
    total += chunk.events;
  }
  require(total == rows, "decode_events: more rows than events");
  return first;
}

std::uint64_t checksum(const Vector<std::uint8_t>& payload) {
  return base::xxh64(payload.data(), payload.size());
}

std::int64_t frame_events(const Vector<std::uint8_t>& frame) {
  const unsigned long long size = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR ||
      size % sizeof(Event) != 0)
    return -1;
  return static_cast<std::int64_t>(size / sizeof(Event));
}

std::vector<std::size_t> decode_events(const Vector<std::uint8_t>& log,
                                       const Vector<std::uint64_t>& chunk_table,
                                       std::int32_t process, std::uint64_t ticks0, double seconds0,
                                       double seconds_per_tick,
                                       const Vector<std::int32_t>& functions,
                                       const Vector<std::int32_t>& files,
                                       const Vector<std::int32_t>& communicators, const Rows& out) {
  require(out.shape(1) == sizeof(Row), "decode_events: rows are not rows of EVENT");
  require(functions.size() >= 4 && files.size() > 0 && communicators.size() > 0,
          "decode_events: a table is empty");
  const std::span chunks(reinterpret_cast<const Chunk*>(chunk_table.data()),
                         chunk_table.size() / 4);
  const auto first = first_rows(chunks, log.size(), out.shape(0));
  const Mapping map{process,
                    ticks0,
                    seconds0,
                    seconds_per_tick,
                    {reinterpret_cast<const Function*>(functions.data()), functions.size() / 4},
                    {files.data(), files.size()},
                    {communicators.data(), communicators.size()}};
  auto* rows = reinterpret_cast<Row*>(out.data());
  std::vector<char> failed(chunks.size());
  {
    const Released released;
    in_parallel<Decoder>(chunks.size(), [&](Decoder& decoder, std::size_t i) {
      failed[i] = !decoder.decode(log.data() + chunks[i].at, chunks[i], map, rows + first[i]);
    });
  }
  std::vector<std::size_t> bad;
  for (std::size_t i = 0; i < failed.size(); ++i)
    if (failed[i]) bad.push_back(i);
  return bad;
}

/// Calls `work(first, last)` for pieces of 0 .. count on a few threads.
template <class Work>
void in_ranges(std::size_t count, const Work& work) {
  struct Nothing {};
  in_parallel<Nothing>((count + kRange - 1) / kRange, [&](Nothing&, std::size_t i) {
    work(i * kRange, std::min(count, (i + 1) * kRange));
  });
}

/// Sets rows[i] = old rows[order[i]], a third of each row at a time: this needs a third of the
/// memory of a copy and reads sequentially, unlike a walk of the permutation's cycles in place.
void permute_rows(const Rows& rows, const Order& order) {
  require(order.size() == rows.shape(0) && rows.shape(1) == sizeof(Row),
          "permute_rows: rows and order do not fit");
  using Part = std::array<std::byte, sizeof(Row) / 3>;
  const Released released;
  const auto part = std::make_unique_for_overwrite<Part[]>(order.size());
  for (std::size_t at = 0; at < sizeof(Row); at += sizeof(Part)) {
    in_ranges(order.size(), [&](std::size_t first, std::size_t last) {
      for (std::size_t i = first; i < last; ++i)
        std::memcpy(&part[i], rows.data() + order.data()[i] * sizeof(Row) + at, sizeof(Part));
    });
    in_ranges(order.size(), [&](std::size_t first, std::size_t last) {
      for (std::size_t i = first; i < last; ++i)
        std::memcpy(rows.data() + i * sizeof(Row) + at, &part[i], sizeof(Part));
    });
  }
}

}  // namespace

void add_events(nb::module_& module) {
  module.def("checksum", &checksum, "payload"_a, "XXH64 of the payload of a block.");
  module.def("frame_events", &frame_events, "frame"_a,
             "Number of events that a compressed chunk says it holds; -1: it is not a chunk.");
  module.def("decode_events", &decode_events, "log"_a, "chunks"_a, "process"_a, "ticks0"_a,
             "seconds0"_a, "seconds_per_tick"_a, "functions"_a, "files"_a, "communicators"_a,
             "out"_a,
             "Decodes chunks (offset, bytes, events, compressed) of a log into rows of EVENT; "
             "returns the chunks that could not be.");
  module.def("permute_rows", &permute_rows, "rows"_a, "order"_a,
             "rows[i] = rows[order[i]] for all rows.");
}

}  // namespace pario::bindings
