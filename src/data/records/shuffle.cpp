#include "data/records/shuffle.hpp"

#include <algorithm>
#include <cerrno>

#include "core/file/publication.hpp"
#include "data/records/arranged.hpp"
#include "data/records/buckets.hpp"
#include "data/records/compressed.hpp"
#include "data/records/fused.hpp"
#include "data/records/index_files.hpp"
#include "data/records/output.hpp"
#include "data/records/packed.hpp"
#include "data/records/philox.hpp"
#include "data/records/source.hpp"
#include "data/records/splitter.hpp"

namespace pario::records {
namespace {

constexpr std::uint64_t kShuffleWriting = kSumPiece;  // bytes of output written at a time, and of a
                                                      // record read from the input

constexpr std::uint64_t kAhead = 12;  // records that are prefetched while one is copied

class Shuffler {
 public:
  Shuffler(const ShuffleRequest& request, const Source& source, const ShufflePlan& plan,
           const Show& show)
      : request_(request),
        source_(source),
        plan_(plan),
        keys_(request.seed, request.key_bits),
        meter_(show, 2 * source.size() / request.ranks.count) {}

  base::Result<ShuffleOutcome> run();

 private:
  base::Status begin();
  base::Status make_heap();
  base::Status fill();
  base::Status share();
  base::Status share_skipped();
  base::Status share_begins(const base::Status& mine);
  base::Status prepare_writing();
  void place();
  base::Status set_last_begin();
  base::Status finish();
  base::Status fill_some(BucketWriter& writer);
  base::Status divide_large();
  base::Result<std::vector<Bucket>> divide(const Bucket& bucket);
  base::Status divide_some(const Bucket& bucket, BucketWriter& writer);
  base::Status write();
  base::Status write_some(unsigned worker);
  base::Result<std::span<std::byte>> memory_of(unsigned worker, std::uint64_t size);
  base::Status enter(std::uint32_t shard, std::uint64_t offset, OutputCursor& cursor);
  base::Status write_bucket(std::size_t number, const SortedBucket& sorted, Reader& reader,
                            OutputCursor& cursor);
  void set_begins(std::size_t number, const SortedBucket& sorted);
  base::Result<std::vector<Bucket>> into_buckets(
      KeyRange keys, std::uint32_t count, const std::function<base::Status(BucketWriter&)>& work);
  /// The first record of a shard; first_of(shards()) is the number of records.
  std::uint64_t first_of(std::uint32_t shard) const {
    return static_cast<std::uint64_t>(static_cast<unsigned __int128>(records_) * shard /
                                      output_->shards());
  }
  std::uint32_t shard_of(std::uint64_t record) const;

  const ShuffleRequest& request_;
  const Source& source_;
  const ShufflePlan& plan_;
  ShuffleKeys keys_;
  Meter meter_;
  std::unique_ptr<Heap> heap_;
  std::unique_ptr<Output> output_;
  std::vector<Buffer> memory_{plan_.threads};  ///< of each thread: buffers, later a bucket
  std::uint64_t number_ = 0;                   ///< of the shuffle, equal on all ranks
  std::vector<Bucket> buckets_;                ///< after share(): those that this rank writes
  std::vector<std::uint64_t> records_before_, bytes_before_;  ///< of each bucket
  std::uint64_t first_record_ = 0, first_byte_ = 0;  ///< of the output, that this rank writes
  std::uint64_t last_record_ = 0;                    ///< the record after those
  std::uint64_t records_ = 0, bytes_ = 0;            ///< of all ranks
  SkippedRecords own_skipped_;                       ///< by this rank
  std::vector<std::uint64_t> skipped_;               ///< by all ranks
  Damages damages_{request_.damaged, &own_skipped_};
  std::uint64_t chunks_ = 0;             ///< this rank fills buckets from those before
  std::atomic<std::uint64_t> next_ = 0;  ///< chunk, piece or bucket
};

/// Shuffles. Each step has the same outcome on all ranks.
base::Result<ShuffleOutcome> Shuffler::run() {
  using Step = base::Status (Shuffler::*)();
  for (const Step step :
       {&Shuffler::begin, &Shuffler::fill, &Shuffler::share_skipped, &Shuffler::share,
        &Shuffler::prepare_writing, &Shuffler::write, &Shuffler::finish})
    if (base::Status status = request_.ranks.together((this->*step)()); !status)
      return status.error();
  return ShuffleOutcome{records_, bytes_, {}, skipped_.size(), own_skipped_.first()};
}

base::Status Shuffler::begin() {
  const auto numbers = request_.ranks.exchange({}, {file::random_part_number()});
  if (!numbers.ok()) return numbers.error();
  number_ = numbers->front()[0];
  if (request_.ranks.first())
    file::remove_stale_parts(request_.temporary, [&](std::string_view name) {
      return is_own_heap(name, base_name_of(request_.outputs[0]));
    });
  auto output =
      Output::make_together(request_.ranks, request_.outputs, source_.size(),
                            plan_.direct ? Caching::direct : Caching::page_cache, number_);
  if (!output.ok()) return output.error();
  output_ = std::move(*output);
  return {};
}

/// Publishes the output, with a new index for kinds that need one.
base::Status Shuffler::finish() {
  if (!request_.ranks.first()) return {};
  const std::uint64_t size = bytes_;
  if (!keeps_index(request_.kind)) {
    const base::Status status = output_->complete(size, format_of(request_.kind).trailer);
    return status ? publish_with_indexes(*output_, request_.outputs, {}, request_.kind) : status;
  }
  IndexBuilder builder = source_.index() == nullptr
                             ? IndexBuilder()
                             : arrange(*source_.index(), keys_, skipped_);  // null: no records
  std::vector<std::byte> tail;
  if (request_.kind == Kind::packed)
    tail = packed_tail(size, builder.finish(Kind::packed, size, {.size = size}));
  base::Result<OutputCursor> cursor = OutputCursor::make(*output_, kShuffleWriting);
  if (!cursor.ok()) return cursor.error();
  base::Status status = cursor->seek(0, size);
  if (status) status = cursor->put(tail);
  if (status) status = cursor->flush();
  if (status) status = output_->complete(size + tail.size(), 0);
  if (!status) return status;
  Indexed indexed{std::move(builder), size};
  return publish_with_indexes(*output_, request_.outputs,
                              {&indexed, request_.kind == Kind::packed ? 0U : 1U}, request_.kind);
}

base::Status Shuffler::make_heap() {
  const Ranks& ranks = request_.ranks;
  const Caching caching = plan_.direct ? Caching::direct : Caching::page_cache;
  const std::uint64_t whole = (plan_.way == Way::gather ? 0 : source_.size() / ranks.count) +
                              source_.records() / ranks.count * 8;
  const std::uint64_t expected = request_.compress ? 0 : whole;
  auto heap =
      !ranks.alone() ? make_shared_heap(request_.temporary, request_.outputs[0], number_, ranks,
                                        expected, caching)
      : plan_.way == Way::buckets
          ? make_file_heap(request_.temporary, expected, caching)
          : make_memory_heap(std::min(plan_.heap_limit, request_.memory));  // allocated on use
  if (heap.ok() && request_.compress && plan_.way == Way::buckets)
    heap = make_compressed_heap(std::move(*heap));
  if (!heap.ok()) return heap.error();
  heap_ = std::move(*heap);
  return {};
}

/// Memory of a worker, valid until its next call.
base::Result<std::span<std::byte>> Shuffler::memory_of(unsigned worker, std::uint64_t size) {
  const base::Status status = memory_[worker].grow(size, Pages::large);
  return status ? base::Result<std::span<std::byte>>(memory_[worker].span()) : status.error();
}

base::Result<std::vector<Bucket>> Shuffler::into_buckets(
    KeyRange keys, std::uint32_t count, const std::function<base::Status(BucketWriter&)>& work) {
  std::vector<std::vector<Bucket>> found(plan_.threads);
  base::Status status = run_team(plan_.threads, meter_, [&](unsigned worker) -> base::Status {
    const base::Result<std::span<std::byte>> memory = memory_of(worker, plan_.buffer * count);
    if (!memory.ok()) return memory.error();
    BucketWriter writer(*heap_, keys, count, plan_.buffer, *memory);
    base::Status done = work(writer);
    if (done) done = writer.finish();
    found[worker] = writer.take();
    return done;
  });
  if (!status) return status.error();
  std::vector<Bucket> buckets;
  for (auto& each : found) merge(buckets, std::move(each));
  return buckets;
}

base::Status Shuffler::fill() {
  if (base::Status status = make_heap(); !status) return status;
  const base::Extent chunks =
      request_.ranks.share_of((source_.size() + plan_.chunk - 1) / plan_.chunk);
  next_ = chunks.begin;
  chunks_ = chunks.end;
  auto buckets =
      into_buckets({}, plan_.buckets, [&](BucketWriter& writer) { return fill_some(writer); });
  if (!buckets.ok()) return buckets.error();
  buckets_ = std::move(*buckets);
  return {};
}

base::Status Shuffler::fill_some(BucketWriter& writer) {
  base::Result<std::unique_ptr<Splitter>> splitter =
      make_splitter(source_, plan_.chunk, plan_.inline_limit, damages_);
  if (!splitter.ok()) return splitter.error();
  for (std::uint64_t chunk = next_++; chunk < chunks_ && !meter_.is_stopped(); chunk = next_++) {
    const base::Extent where{chunk * plan_.chunk,
                             std::min(source_.size(), (chunk + 1) * plan_.chunk)};
    base::Status status = (*splitter)->split(
        where, [&](const Heaped& record) { return writer.add(keys_.of(record.identity), record); });
    if (!status) return status;
    meter_.add(where.length());
  }
  return {};
}

base::Status Shuffler::divide_large() {
  for (std::size_t i = 0; i < buckets_.size();) {
    if (SortedBucket::memory_for(buckets_[i]) <= plan_.bucket_limit) {
      ++i;
      continue;
    }
    auto parts = divide(buckets_[i]);
    if (!parts.ok()) return parts.error();
    const auto at = buckets_.erase(buckets_.begin() + static_cast<std::ptrdiff_t>(i));
    buckets_.insert(at, std::make_move_iterator(parts->begin()),
                    std::make_move_iterator(parts->end()));
  }
  return {};
}

base::Result<std::vector<Bucket>> Shuffler::divide(const Bucket& bucket) {
  if (bucket.keys.first == bucket.keys.last || bucket.pieces.size() < 2)
    return base::Error{.number = ENOMEM,
                       .operation = "shuffle",
                       .detail = "a bucket that cannot be divided does not fit into memory"};
  const std::uint64_t wanted = 5 * SortedBucket::memory_for(bucket) / (4 * plan_.bucket_limit) + 1;
  const auto count =
      static_cast<std::uint32_t>(std::clamp<std::uint64_t>(wanted, 2, std::max(2U, plan_.buckets)));
  next_ = 0;
  auto parts = into_buckets(bucket.keys, count,
                            [&](BucketWriter& writer) { return divide_some(bucket, writer); });
  for (const Spill& piece : bucket.pieces)
    heap_->forget(base::Extent::at(piece.where, piece.room()));
  return parts;
}

base::Status Shuffler::divide_some(const Bucket& bucket, BucketWriter& writer) {
  base::Result<Buffer> memory = Buffer::make(plan_.buffer);
  if (!memory.ok()) return memory.error();
  for (std::uint64_t number = next_++; number < bucket.pieces.size() && !meter_.is_stopped();
       number = next_++) {
    const Spill& piece = bucket.pieces[number];
    if (base::Status status = heap_->get(piece.where, memory->span().first(piece.room())); !status)
      return status;
    for (PieceReader reader(memory->span().first(piece.used)); reader.more();) {
      const Heaped record = reader.next();
      if (base::Status status = writer.add(keys_.of(record.identity), record); !status)
        return status;
    }
  }
  return {};
}

base::Status Shuffler::share_skipped() {
  const auto all = request_.ranks.exchange({}, own_skipped_.numbers());
  if (!all.ok()) return all.error();
  for (const auto& each : *all) skipped_.insert(skipped_.end(), each.begin(), each.end());
  std::ranges::sort(skipped_);
  return {};
}

/// Merges the buckets of all ranks; each rank keeps those of a contiguous part of the output.
base::Status Shuffler::share() {
  const Ranks& ranks = request_.ranks;
  if (!ranks.alone()) {
    const auto all = ranks.exchange(heap_->publish(), numbers_of(buckets_));
    if (!all.ok()) return all.error();
    buckets_.clear();
    for (const auto& each : *all) merge(buckets_, buckets_of(each));
  }
  const auto [first, behind] = ranks.share_of(buckets_.size());
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    if (i == first) first_record_ = records_;
    if (i < first) first_byte_ += buckets_[i].bytes;
    records_ += buckets_[i].records;
    bytes_ += buckets_[i].bytes;
    if (i < behind) last_record_ = records_;
  }
  buckets_.resize(behind);
  buckets_.erase(buckets_.begin(), buckets_.begin() + static_cast<std::ptrdiff_t>(first));
  return {};
}

base::Status Shuffler::prepare_writing() {
  base::Status status = divide_large();
  if (!status) return share_begins(status);
  place();
  return share_begins(set_last_begin());
}

/// Computes the places of the buckets in the output.
void Shuffler::place() {
  std::uint64_t records = first_record_, bytes = first_byte_;
  for (const Bucket& bucket : buckets_) {
    records_before_.push_back(records);
    bytes_before_.push_back(bytes);
    records += bucket.records;
    bytes += bucket.bytes;
  }
  for (std::uint32_t shard = 1; shard < output_->shards(); ++shard)
    if (first_of(shard) == records_) output_->begins(shard, bytes_);
}

/// Sets the begin of the last shard that starts in this rank's buckets, because other ranks write
/// its rest.
base::Status Shuffler::set_last_begin() {
  if (request_.ranks.alone() || first_record_ == last_record_) return {};
  const std::uint64_t first = first_of(shard_of(last_record_ - 1));
  if (first < first_record_) return {};
  const auto number = static_cast<std::size_t>(std::ranges::upper_bound(records_before_, first) -
                                               records_before_.begin()) -
                      1;
  const base::Result<std::span<std::byte>> memory =
      memory_of(0, SortedBucket::memory_for(buckets_[number]));
  if (!memory.ok()) return memory.error();
  const base::Result<SortedBucket> sorted =
      SortedBucket::load(*heap_, buckets_[number], keys_, *memory);
  if (!sorted.ok()) return sorted.error();
  set_begins(number, *sorted);
  return {};
}

/// Sends the known begins of shards, or an Error, to all ranks. Collective.
base::Status Shuffler::share_begins(const base::Status& mine) {
  std::vector<std::uint64_t> known;
  for (std::uint32_t shard = 0; shard < output_->shards(); ++shard)
    if (const auto begin = output_->known_begin(shard)) known.insert(known.end(), {shard, *begin});
  const auto all = request_.ranks.exchange(mine, known);
  if (!all.ok()) return all.error();
  for (const auto& each : *all)
    for (std::size_t i = 0; i < each.size(); i += 2)
      output_->begins(static_cast<std::uint32_t>(each[i]), each[i + 1]);
  return {};
}

base::Status Shuffler::write() {
  next_ = 0;
  base::Status status =
      run_team(plan_.threads, meter_, [&](unsigned worker) { return write_some(worker); });
  if (status) status = source_.check_unchanged();
  if (status && !request_.ranks.alone()) status = output_->flush();
  return share_begins(status);
}

base::Status Shuffler::write_some(unsigned worker) {
  std::uint64_t largest = 0;
  for (const Bucket& bucket : buckets_)
    largest = std::max(largest, SortedBucket::memory_for(bucket));
  const base::Result<std::span<std::byte>> memory = memory_of(worker, largest);
  base::Result<Reader> reader = Reader::make(source_, kShuffleWriting);
  base::Result<OutputCursor> cursor = OutputCursor::make(*output_, kShuffleWriting);
  if (!memory.ok()) return memory.error();
  if (!reader.ok()) return reader.error();
  if (!cursor.ok()) return cursor.error();
  for (std::uint64_t number = next_++; number < buckets_.size() && !meter_.is_stopped();
       number = next_++) {
    const base::Result<SortedBucket> sorted =
        SortedBucket::load(*heap_, buckets_[number], keys_, *memory);
    if (!sorted.ok()) return sorted.error();
    set_begins(number, *sorted);
    if (base::Status status = write_bucket(number, *sorted, *reader, *cursor); !status)
      return status;
  }
  return {};
}

std::uint32_t Shuffler::shard_of(std::uint64_t record) const {
  std::uint32_t shard =
      static_cast<std::uint32_t>(static_cast<unsigned __int128>(record) * output_->shards() /
                                 std::max<std::uint64_t>(records_, 1));
  while (shard + 1 < output_->shards() && first_of(shard + 1) <= record) ++shard;
  return shard;
}

/// Sets the begins of the shards that start within a sorted bucket.
void Shuffler::set_begins(std::size_t number, const SortedBucket& sorted) {
  const std::uint64_t first = records_before_[number], behind = first + sorted.count();
  std::uint64_t record = first, offset = bytes_before_[number];
  for (std::uint32_t shard = 1; shard < output_->shards(); ++shard) {
    const std::uint64_t begin = first_of(shard);
    if (begin < first || begin >= behind) continue;
    for (; record < begin; ++record) offset += sorted.length(record - first);
    output_->begins(shard, offset);
  }
}

/// Moves the cursor to `offset` of the whole output, which lies in `shard`.
base::Status Shuffler::enter(std::uint32_t shard, std::uint64_t offset, OutputCursor& cursor) {
  const base::Result<std::uint64_t> begin = output_->begin_of(shard, meter_);
  return begin.ok() ? cursor.seek(shard, offset - *begin) : base::Status(begin.error());
}

base::Status Shuffler::write_bucket(std::size_t number, const SortedBucket& sorted, Reader& reader,
                                    OutputCursor& cursor) {
  std::uint64_t record = records_before_[number], offset = bytes_before_[number],
                next_shard = record;
  for (std::uint64_t i = 0; i < sorted.count() && !meter_.is_stopped(); ++i, ++record) {
    if (record == next_shard) {
      const std::uint32_t shard = shard_of(record);
      if (base::Status status = enter(shard, offset, cursor); !status) return status;
      next_shard = first_of(shard + 1);
    }
    if (i + kAhead < sorted.count()) sorted.prefetch(i + kAhead);
    const Heaped heaped = sorted.record(i);
    base::Status status = heaped.inside
                              ? cursor.put({heaped.bytes, heaped.length})
                              : copy_record(source_, heaped, damages_, reader, cursor, meter_);
    if (!status) return status;
    offset += heaped.length;
  }
  meter_.add(buckets_[number].bytes);
  return cursor.flush();
}

}  // namespace

base::Result<ShuffleOutcome> shuffle(const ShuffleRequest& request, const Show& show) {
  const base::Result<ShufflePreview> preview = preview_shuffle(request);
  if (!preview.ok()) return preview.error();
  const Caching caching = preview->plan.direct ? Caching::direct : Caching::page_cache;
  const base::Result<Source> source = Source::open(request.inputs, request.kind, caching);
  base::Status sound = source.status();
  const bool by_index = request.kind != Kind::lines ||
                        preview->plan.way == Way::gather;  // else lines are searched for
  if (sound && by_index) sound = source->verify_indices();
  if (base::Status status = request.ranks.together(sound); !status) return status.error();
  if (preview->plan.way == Way::fused) {
    SkippedRecords skipped;
    const base::Result<std::uint64_t> records =
        shuffle_into_buckets(request, *source, preview->plan, skipped, show);
    if (!records.ok()) return records.error();
    return ShuffleOutcome{*records, source->size(), *preview, skipped.numbers().size(),
                          skipped.first()};
  }
  base::Result<ShuffleOutcome> outcome = Shuffler(request, *source, preview->plan, show).run();
  if (!outcome.ok() && outcome.error().number == ENOMEM && request.way == Way::automatic &&
      preview->plan.way != Way::buckets) {
    // The lines are more and shorter than estimated from the first ones.
    ShuffleRequest through_buckets = request;
    through_buckets.way = Way::buckets;
    through_buckets.plan.reset();
    return shuffle(through_buckets, show);
  }
  if (outcome.ok()) outcome->preview = *preview;
  return outcome;
}

}  // namespace pario::records
