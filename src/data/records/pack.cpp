// Packs many small files into one.
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <numeric>

#include "data/records/dataset.hpp"
#include "data/records/output.hpp"
#include "data/records/packed.hpp"
#include "data/records/philox.hpp"
#include "data/records/tree.hpp"

namespace pario::records {
namespace {

constexpr std::uint64_t kAtATime = 4 << 20;     // bytes of files that a thread packs at a time
constexpr std::uint64_t kDirectFrom = 1 << 27;  // of the output

class Packer {
 public:
  Packer(const PackRequest& request, std::vector<TreeFile> files, const Show& show)
      : request_(request),
        files_(std::move(files)),
        sums_(files_.size()),
        offsets_(files_.size() + 1),
        meter_(show) {
    if (request.shuffle) shuffle();
    for (std::size_t i = 0; i < files_.size(); ++i) offsets_[i + 1] = offsets_[i] + files_[i].size;
    meter_.expect(offsets_.back());
  }

  base::Result<std::uint64_t> run() {
    const Caching caching = offsets_.back() >= kDirectFrom ? Caching::direct : Caching::page_cache;
    auto output = Output::make({request_.output}, offsets_.back(), caching);
    if (!output.ok()) return output.error();
    output_ = std::move(*output);
    base::Status status =
        run_team(std::max(1U, request_.threads), meter_, [&](unsigned) { return work(); });
    if (status) status = finish();
    return status ? base::Result<std::uint64_t>(files_.size()) : status.error();
  }

 private:
  /// The order of a shuffled file of these records.
  void shuffle() {
    const ShuffleKeys keys(request_.seed);
    std::vector<std::pair<std::uint64_t, std::size_t>> order;
    order.reserve(files_.size());
    for (std::size_t i = 0; i < files_.size(); ++i) order.emplace_back(keys.of(i), i);
    std::ranges::sort(order);
    std::vector<TreeFile> shuffled;
    shuffled.reserve(files_.size());
    for (const auto& [key, i] : order) shuffled.push_back(std::move(files_[i]));
    files_ = std::move(shuffled);
  }

  base::Status work() {
    base::Result<OutputCursor> cursor = OutputCursor::make(*output_, kSumPiece);
    base::Result<Buffer> memory = Buffer::make(kSumPiece);
    if (!cursor.ok()) return cursor.error();
    if (!memory.ok()) return memory.error();
    for (base::Extent some = take(); !some.empty() && !meter_.is_stopped(); some = take()) {
      if (base::Status status = cursor->seek(0, offsets_[some.begin]); !status) return status;
      for (std::uint64_t file = some.begin; file < some.end && !meter_.is_stopped(); ++file)
        if (base::Status status = put(file, *memory, *cursor); !status) return status;
    }
    return cursor->flush();
  }

  /// Takes the files that a thread packs next.
  base::Extent take() {
    const std::scoped_lock lock(mutex_);
    const std::uint64_t begin = next_;
    while (next_ < files_.size() &&
           (next_ == begin || offsets_[next_ + 1] - offsets_[begin] <= kAtATime))
      ++next_;
    return {begin, next_};
  }

  base::Status put(std::uint64_t number, const Buffer& memory, OutputCursor& cursor) {
    const TreeFile& file = files_[number];
    const base::Result<Disk> input =
        Disk::open(request_.directory + "/" + file.name, O_RDONLY, Caching::page_cache);
    if (!input.ok()) return input.error();
    std::uint64_t sum = 0;
    for (std::uint64_t done = 0; done < file.size || done == 0; done += kSumPiece) {
      const auto piece = memory.span().first(std::min(file.size - done, kSumPiece));
      const base::Result<std::uint64_t> got = input->read(done, piece);
      if (!got.ok()) return got.error();
      if (*got != piece.size())
        return base::Error{.number = ESTALE,
                           .operation = "pack",
                           .path = input->path(),
                           .detail = "it has become shorter while it was packed"};
      sum = add_to_sum(sum, piece);
      if (base::Status status = cursor.put(piece); !status) return status;
    }
    sums_[number] = static_cast<std::uint32_t>(sum);
    meter_.add(file.size);
    return {};
  }

  /// Writes the index after the records, and publishes the file.
  base::Status finish() {
    IndexBuilder builder;
    for (std::size_t i = 0; i < files_.size(); ++i) {
      builder.begin(offsets_[i]);
      builder.name(files_[i].name, files_[i].mode, files_[i].modified);
      builder.sum(sums_[i]);
    }
    const std::uint64_t end = offsets_.back();
    const auto tail = packed_tail(end, builder.finish(Kind::packed, end, {.size = end}));
    base::Result<OutputCursor> cursor = OutputCursor::make(*output_, kSumPiece);
    if (!cursor.ok()) return cursor.error();
    base::Status status = cursor->seek(0, end);
    if (status) status = cursor->put(tail);
    if (status) status = cursor->flush();
    return status ? output_->finish(end + tail.size(), 0) : status;
  }

  const PackRequest& request_;
  std::vector<TreeFile> files_;
  std::vector<std::uint32_t> sums_;
  std::vector<std::uint64_t> offsets_;
  Meter meter_;
  std::unique_ptr<Output> output_;
  std::mutex mutex_;
  std::uint64_t next_ = 0;
};

}  // namespace

base::Result<std::uint64_t> pack(const PackRequest& request, const Show& show) {
  base::Result<std::vector<TreeFile>> files = files_of(request.directory);
  return files.ok() ? Packer(request, std::move(*files), show).run()
                    : base::Result<std::uint64_t>(files.error());
}

}  // namespace pario::records
