#include "records/fused.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "records/buckets.hpp"
#include "records/indexing.hpp"
#include "records/output.hpp"
#include "records/splitter.hpp"
#include "records/varint.hpp"

namespace pario::records {
namespace {

constexpr std::uint64_t kWriting = 1 << 20;  // bytes of output that are put together, and of a long record that are read at a time

constexpr std::uint64_t kMaking = 3;  // bytes of memory while the index is made, for one of heads

/// Where records of one bucket came to lie.
struct Written {
  std::uint64_t where = 0, bucket = 0, records = 0;
  std::vector<std::byte> heads = {};  ///< of each record: its identity less the one before, its length
};

/// What the index needs of records that are not written yet, or are.
class Heads {
 public:
  void add(const Heaped& record) {
    std::byte head[2 * kLongestNumber];
    std::byte* const end = put_number(put_number(head, record.identity - identity_), record.length);
    heads_.insert(heads_.end(), head, end);
    identity_ = record.identity;
    ++records_;
  }
  std::uint64_t records() const { return records_; }
  /// Those of a stretch; then there are none.
  Written take(std::uint64_t where, std::uint64_t bucket) {
    heads_.shrink_to_fit();
    Written out{where, bucket, records_, std::move(heads_)};
    *this = {};
    return out;
  }

 private:
  std::vector<std::byte> heads_;
  std::uint64_t identity_ = 0, records_ = 0;
};

/// What the threads share.
struct Job {
  const ShuffleRequest& request;
  const Source& source;
  const ShufflePlan& plan;
  ShuffleKeys keys;
  Output& output;
  Meter& meter;
  std::atomic<std::uint64_t> next = 0;  ///< chunk of the input
  std::atomic<std::uint64_t> end = 0;   ///< of the output
  std::atomic<std::uint64_t> kept = 0;  ///< bytes of heads, and of the index that is made of them
};

/// Puts records into buckets; one thread's.
class Filler {
 public:
  static base::Result<std::unique_ptr<Filler>> make(Job& job) {
    base::Result<Buffer> memory = Buffer::make(job.plan.buffer * job.plan.buckets);
    base::Result<OutputCursor> cursor = OutputCursor::make(job.output, kWriting);
    base::Result<Reader> reader = Reader::make(job.source, kWriting);
    if (!memory.ok()) return memory.error();
    if (!cursor.ok()) return cursor.error();
    if (!reader.ok()) return reader.error();
    return std::unique_ptr<Filler>(new Filler(job, std::move(*memory), std::move(*cursor), std::move(*reader)));
  }

  base::Status add(const Heaped& record) {
    const std::uint32_t bucket = KeyRange{}.part_of(job_.keys.of(record.identity), job_.plan.buckets);
    if (!record.inside) return copy(bucket, record);
    if (job_.plan.buffer - fillings_[bucket].used < record.length)
      if (base::Status status = flush(bucket); !status) return status;
    Filling& filling = fillings_[bucket];
    if (record.length != 0) std::memcpy(memory_.data() + bucket * job_.plan.buffer + filling.used, record.bytes, record.length);
    filling.used += record.length;
    filling.heads.add(record);
    return {};
  }
  base::Status finish() {
    for (std::uint32_t bucket = 0; bucket < job_.plan.buckets; ++bucket)
      if (base::Status status = flush(bucket); !status) return status;
    return {};
  }
  std::vector<Written> take() { return std::move(written_); }

 private:
  struct Filling {
    std::uint64_t used = 0;
    Heads heads;
  };
  Filler(Job& job, Buffer memory, OutputCursor cursor, Reader reader)
      : job_(job), memory_(std::move(memory)), cursor_(std::move(cursor)), reader_(std::move(reader)), fillings_(job.plan.buckets) {}

  base::Status flush(std::uint32_t bucket) {
    Filling& filling = fillings_[bucket];
    if (filling.heads.records() == 0) return {};
    const std::uint64_t where = job_.end.fetch_add(filling.used);
    base::Status status = cursor_.seek(0, where);
    if (status) status = cursor_.put({memory_.data() + bucket * job_.plan.buffer, filling.used});
    if (status) status = cursor_.flush();
    if (status) status = keep(filling.heads.take(where, bucket));
    filling.used = 0;
    return status;
  }

  /// A record that is too long for a buffer is a stretch of its own.
  base::Status copy(std::uint32_t bucket, const Heaped& record) {
    const std::uint64_t where = job_.end.fetch_add(record.length);
    base::Status status = cursor_.seek(0, where);
    for (std::uint64_t done = 0; status && done < record.length && !job_.meter.stopped(); done += kWriting) {
      const auto bytes = reader_.read(base::Extent::at(record.identity + done, std::min(record.length - done, kWriting)));
      status = bytes.ok() ? cursor_.put(*bytes) : bytes.status();
    }
    if (status) status = cursor_.flush();
    Heads heads;
    heads.add(record);
    return status ? keep(heads.take(where, bucket)) : status;
  }

  base::Status keep(Written written) {
    const std::uint64_t kept = job_.kept += sizeof(Written) + kMaking * written.heads.size();
    written_.push_back(std::move(written));
    if (kept <= job_.plan.heap_limit) return {};
    return base::Error{.number = ENOMEM, .operation = "shuffle", .detail = "the index of the records needs more memory than was expected"};
  }

  Job& job_;
  Buffer memory_;
  OutputCursor cursor_;
  Reader reader_;
  std::vector<Filling> fillings_;
  std::vector<Written> written_;
};

base::Result<std::vector<Written>> fill_some(Job& job) {
  base::Result<std::unique_ptr<Filler>> filler = Filler::make(job);
  if (!filler.ok()) return filler.error();
  base::Result<std::unique_ptr<Splitter>> splitter = make_splitter(job.source, job.plan.chunk, job.plan.inline_limit);
  if (!splitter.ok()) return splitter.error();
  const std::uint64_t size = job.source.size(), chunk = job.plan.chunk;
  for (std::uint64_t begin = chunk * job.next++; begin < size && !job.meter.stopped(); begin = chunk * job.next++) {
    const base::Extent where{begin, std::min(size, begin + chunk)};
    base::Status status = (*splitter)->split(where, [&](const Heaped& record) { return (*filler)->add(record); });
    if (!status) return status.error();
    job.meter.add(where.length());
  }
  base::Status status = (*filler)->finish();
  return status ? base::Result<std::vector<Written>>((*filler)->take()) : status.error();
}

base::Result<std::vector<Written>> fill(Job& job) {
  std::vector<std::vector<Written>> found(job.plan.threads);
  base::Status status = run_team(job.plan.threads, job.meter, [&](unsigned worker) -> base::Status {
    base::Result<std::vector<Written>> some = fill_some(job);
    if (some.ok()) found[worker] = std::move(*some);
    return some.status();
  });
  if (!status) return status.error();
  std::vector<Written> all;
  for (auto& some : found) std::ranges::move(some, std::back_inserter(all));
  std::ranges::sort(all, {}, &Written::where);
  return all;
}

/// What was written is forgotten on the way, for both would be much.
IndexBuilder index_of(std::vector<Written>& all, const Bucketing& bucketing) {
  IndexBuilder builder;
  builder.bucketing(bucketing);
  std::uint64_t at = 0;
  for (Written& written : all) {
    builder.stretch(written.bucket);
    const std::byte* head = written.heads.data();
    for (std::uint64_t i = 0, identity = 0; i < written.records; ++i) {
      builder.begin(at);
      builder.identity(identity += take_number(head));
      at += take_number(head);
    }
    written.heads = {};
  }
  return builder;
}

}  // namespace

base::Result<std::uint64_t> shuffle_into_buckets(const ShuffleRequest& request, const Source& source, const ShufflePlan& plan,
                                                 const Show& show) {
  const auto output = Output::make(request.outputs, source.size(), plan.direct ? Caching::direct : Caching::page_cache);
  if (!output.ok()) return output.error();
  Meter meter(show, source.size());
  Job job{request, source, plan, ShuffleKeys(request.seed), **output, meter};
  base::Result<std::vector<Written>> written = fill(job);
  if (!written.ok()) return written.error();
  base::Status status = source.unchanged();
  if (status) status = (*output)->settle(source.size(), format_of(request.kind).trailer);
  if (!status) return status.error();
  IndexBuilder builder = index_of(*written, {request.seed, plan.buckets});
  const std::uint64_t records = builder.count();
  const base::Result<Fingerprint> fingerprint = fingerprint_of((*output)->path_of(0), {0, source.size()});
  if (!fingerprint.ok()) return fingerprint.error();
  const auto index = write_aside(index_path(request.outputs[0]), builder.finish(request.kind, source.size(), *fingerprint));
  status = index.status();
  if (status) status = (*index)->give_names();  // first: without it nobody would know what is in which bucket of the output
  if (status) status = (*output)->give_names();
  return status ? base::Result<std::uint64_t>(records) : status.error();
}

}  // namespace pario::records
