#include "data/records/fused.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "data/records/buckets.hpp"
#include "data/records/index_files.hpp"
#include "data/records/output.hpp"
#include "data/records/splitter.hpp"
#include "data/records/varint.hpp"

namespace pario::records {
namespace {

constexpr std::uint64_t kFusedWriting = kSumPiece;  // bytes of output that are written together,
                                                    // and of a long record that are read together

/// The bytes that an appending thread has to write now: the rest of a page from earlier threads
/// (`before`), and the first `own` bytes of its own.
struct Due {
  std::uint64_t begin = 0, before = 0, own = 0;
  std::byte left[kAlignment] = {};
};

/// Writes the rest that earlier threads left; the thread's own bytes follow.
base::Status begin_writing(const Due& due, OutputCursor& cursor) {
  base::Status status = cursor.seek(0, due.begin);
  return status ? cursor.put({due.left, due.before}) : status;
}

/// A buffer of records of one bucket: their bytes, and from its end downwards for each record the
/// identity less the one before, and the length.
class Filling {
 public:
  Filling() = default;
  explicit Filling(std::span<std::byte> buffer) : buffer_(buffer) {}
  bool has_room(std::uint64_t length) const {
    return buffer_.size() - used_ - heads_ >= length + 2 * kLongestNumber;
  }
  void add(const Heaped& record) {
    if (record.inside && record.length != 0)
      std::memcpy(buffer_.data() + used_, record.bytes, record.length);
    if (record.inside) used_ += record.length;
    const auto head = heads() + static_cast<std::ptrdiff_t>(heads_);
    const auto end = put_number(put_number(head, record.identity - identity_), record.length);
    heads_ += static_cast<std::uint64_t>(end - head);
    identity_ = record.identity;
    ++records_;
  }
  std::uint64_t records() const { return records_; }
  std::span<const std::byte> bytes() const { return buffer_.first(used_); }
  void clear() { *this = Filling(buffer_); }

  /// Calls `visit` with identity and length of each record.
  template <class Visit>
  void visit(const Visit& visit) const {
    std::reverse_iterator<const std::byte*> head = heads();
    for (std::uint64_t i = 0, identity = 0; i < records_; ++i) {
      identity += take_number(head);
      visit(identity, take_number(head));
    }
  }

 private:
  std::reverse_iterator<std::byte*> heads() const {
    return std::reverse_iterator(buffer_.data() + buffer_.size());
  }

  std::span<std::byte> buffer_;
  std::uint64_t used_ = 0, heads_ = 0, identity_ = 0, records_ = 0;
};

/// The growing output and its index: one run of records after the other. Threads write whole pages
/// at once; the thread that fills an incomplete last page writes it. Any thread.
class Growing {
 public:
  Growing(const ShuffleRequest& request, const Source& source, const ShufflePlan& plan)
      : limit_(plan.heap_limit) {
    index_.bucketing({request.seed, plan.buckets});
    index_.expect_bucketed(source.records(), std::min(limit_, 4 * source.records()));
  }

  base::Status append(std::uint32_t bucket, const Filling& filling, Due& due) {
    const std::scoped_lock lock(mutex_);
    if (base::Status status = add_run(bucket, filling); !status) return status;
    const std::span<const std::byte> bytes = filling.bytes();
    const std::uint64_t whole = base::round_down(end_ + bytes.size(), kAlignment),
                        own = whole > begin_ ? whole - end_ : 0;
    if (whole > begin_) take_left(due, whole);
    due.own = own;
    std::ranges::copy(bytes.subspan(own), left_ + (end_ + own - begin_));
    end_ += bytes.size();
    return {};
  }

  /// Appends a record that is too long for a buffer: a run of its own, which its thread writes
  /// completely, after the rest of a page.
  base::Status append_long(std::uint32_t bucket, const Filling& filling, std::uint64_t length,
                           Due& due) {
    const std::scoped_lock lock(mutex_);
    if (base::Status status = add_run(bucket, filling); !status) return status;
    take_left(due, end_ + length);
    end_ += length;
    return {};
  }

  // After all threads have appended.
  void take_rest(Due& due) { take_left(due, end_); }
  std::uint64_t bytes() const { return end_; }
  IndexBuilder& index() { return index_; }

 private:
  base::Status add_run(std::uint32_t bucket, const Filling& filling) {
    index_.run(bucket);
    std::uint64_t at = end_;
    filling.visit([&](std::uint64_t identity, std::uint64_t length) {
      index_.begin(at);
      index_.identity(identity);
      at += length;
    });
    if (index_.bytes() <= limit_) return {};
    return base::Error{.number = ENOMEM,
                       .operation = "shuffle",
                       .detail = "the index of the records needs more memory than was expected"};
  }
  /// Moves the rest of a page to `due`; the next one begins at `next`.
  void take_left(Due& due, std::uint64_t next) {
    due.begin = begin_;
    due.before = end_ - begin_;
    std::copy_n(left_, due.before, due.left);
    begin_ = next;
  }

  std::mutex mutex_;
  IndexBuilder index_;
  std::uint64_t limit_;
  std::uint64_t begin_ = 0, end_ = 0;  ///< of the rest of a page, which is not written yet
  std::byte left_[kAlignment] = {};
};

/// The data shared by the threads.
struct FillState {
  const ShuffleRequest& request;
  const Source& source;
  const ShufflePlan& plan;
  ShuffleKeys keys;
  Output& output;
  Meter& meter;
  Damages damages;
  Growing growing{request, source, plan};
  std::atomic<std::uint64_t> next = 0;  ///< chunk of the input
};

/// Puts records into buckets. For one thread.
class Filler {
 public:
  static base::Result<std::unique_ptr<Filler>> make(FillState& state) {
    base::Result<Buffer> memory =
        Buffer::make(state.plan.buffer * state.plan.buckets, Pages::large);
    base::Result<OutputCursor> cursor = OutputCursor::make(state.output, kFusedWriting);
    base::Result<Reader> reader = Reader::make(state.source, kFusedWriting);
    if (!memory.ok()) return memory.error();
    if (!cursor.ok()) return cursor.error();
    if (!reader.ok()) return reader.error();
    return std::unique_ptr<Filler>(
        new Filler(state, std::move(*memory), std::move(*cursor), std::move(*reader)));
  }

  base::Status add(const Heaped& record) {
    const std::uint32_t bucket =
        KeyRange{}.part_of(state_.keys.of(record.identity), state_.plan.buckets);
    if (!record.inside) return copy(bucket, record);
    if (!fillings_[bucket].has_room(record.length))
      if (base::Status status = flush(bucket); !status) return status;
    fillings_[bucket].add(record);
    return {};
  }
  base::Status finish() {
    for (std::uint32_t bucket = 0; bucket < state_.plan.buckets; ++bucket)
      if (base::Status status = flush(bucket); !status) return status;
    return {};
  }

 private:
  Filler(FillState& state, Buffer memory, OutputCursor cursor, Reader reader)
      : state_(state),
        memory_(std::move(memory)),
        cursor_(std::move(cursor)),
        reader_(std::move(reader)) {
    for (std::uint32_t bucket = 0; bucket < state.plan.buckets; ++bucket)
      fillings_.emplace_back(memory_.span().subspan(bucket * state.plan.buffer, state.plan.buffer));
  }

  base::Status flush(std::uint32_t bucket) {
    Filling& filling = fillings_[bucket];
    if (filling.records() == 0) return {};
    Due due;
    base::Status status = state_.growing.append(bucket, filling, due);
    if (status && due.before + due.own != 0) status = begin_writing(due, cursor_);
    if (status) status = cursor_.put(filling.bytes().first(due.own));
    if (status) status = cursor_.flush();
    filling.clear();
    return status;
  }

  base::Status copy(std::uint32_t bucket, const Heaped& record) {
    std::byte head[2 * kLongestNumber];
    Filling filling(head);
    filling.add(record);
    Due due;
    base::Status status = state_.growing.append_long(bucket, filling, record.length, due);
    if (status) status = begin_writing(due, cursor_);
    if (status)
      status = copy_record(state_.source, record, state_.damages, reader_, cursor_, state_.meter);
    return status ? cursor_.flush() : status;
  }

  FillState& state_;
  Buffer memory_;
  OutputCursor cursor_;
  Reader reader_;
  std::vector<Filling> fillings_;
};

base::Status fill_some(FillState& state) {
  base::Result<std::unique_ptr<Filler>> filler = Filler::make(state);
  if (!filler.ok()) return filler.error();
  base::Result<std::unique_ptr<Splitter>> splitter =
      make_splitter(state.source, state.plan.chunk, state.plan.inline_limit, state.damages);
  if (!splitter.ok()) return splitter.error();
  const std::uint64_t size = state.source.size(), chunk = state.plan.chunk;
  for (std::uint64_t begin = chunk * state.next++; begin < size && !state.meter.is_stopped();
       begin = chunk * state.next++) {
    const base::Extent where{begin, std::min(size, begin + chunk)};
    base::Status status =
        (*splitter)->split(where, [&](const Heaped& record) { return (*filler)->add(record); });
    if (!status) return status;
    state.meter.add(where.length());
  }
  return (*filler)->finish();
}

base::Status fill(FillState& state) {
  base::Status status =
      run_team(state.plan.threads, state.meter, [&](unsigned) { return fill_some(state); });
  base::Result<OutputCursor> cursor = OutputCursor::make(state.output, kAlignment);
  if (status) status = cursor.status();
  Due due;
  state.growing.take_rest(due);
  if (status) status = begin_writing(due, *cursor);
  return status ? cursor->flush() : status;
}

}  // namespace

base::Result<std::uint64_t> shuffle_into_buckets(const ShuffleRequest& request,
                                                 const Source& source, const ShufflePlan& plan,
                                                 SkippedRecords& skipped, const Show& show) {
  const auto output = Output::make(request.outputs, source.size(),
                                   plan.direct ? Caching::direct : Caching::page_cache);
  if (!output.ok()) return output.error();
  Meter meter(show, source.size());
  FillState state{request,
                  source,
                  plan,
                  ShuffleKeys(request.seed),
                  **output,
                  meter,
                  {request.damaged, &skipped}};
  base::Status status = fill(state);
  if (status) status = source.check_unchanged();
  if (status) status = (*output)->complete(state.growing.bytes(), format_of(request.kind).trailer);
  if (!status) return status.error();
  Indexed indexed{std::move(state.growing.index()), state.growing.bytes()};
  const std::uint64_t records = indexed.builder.count();
  status = publish_with_indexes(**output, request.outputs, {&indexed, 1}, request.kind);
  return status ? base::Result<std::uint64_t>(records) : status.error();
}

}  // namespace pario::records
