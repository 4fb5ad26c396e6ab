// Packs many small files into one.
#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "core/file/publication.hpp"
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
    meter_.expect(offsets_.back() / request.ranks.count);
  }

  /// Packs. Each step has the same outcome on all ranks.
  base::Result<std::uint64_t> run() {
    using Step = base::Status (Packer::*)();
    for (const Step step :
         {&Packer::begin, &Packer::pack_own, &Packer::share_sums, &Packer::finish})
      if (base::Status status = request_.ranks.together((this->*step)()); !status)
        return status.error();
    return files_.size();
  }

 private:
  /// Makes the output. EINVAL: the ranks see different files.
  base::Status begin() {
    const Ranks& ranks = request_.ranks;
    const auto numbers = ranks.exchange({}, {file::random_part_number(), digest()});
    if (!numbers.ok()) return numbers.error();
    for (unsigned rank = 0; rank < ranks.count; ++rank)
      if ((*numbers)[rank][1] != numbers->front()[1])
        return base::Error{.number = EINVAL,
                           .operation = "pack",
                           .path = request_.directory,
                           .rank = static_cast<int>(rank),
                           .detail = "this rank sees other files than rank 0"};
    const Caching caching = offsets_.back() >= kDirectFrom ? Caching::direct : Caching::page_cache;
    auto output = Output::make_together(ranks, {request_.output}, offsets_.back(), caching,
                                        numbers->front()[0]);
    if (!output.ok()) return output.error();
    output_ = std::move(*output);
    own_ = {share_of(ranks.rank), share_of(ranks.rank + 1)};
    next_ = own_.begin;
    return {};
  }

  /// A number of the names, sizes and times of all files.
  std::uint64_t digest() const {
    std::uint64_t sum = 0;
    for (const TreeFile& file : files_) {
      const std::uint64_t facts[] = {file.size, static_cast<std::uint64_t>(file.modified)};
      sum = base::xxh64(file.name.data(), file.name.size(), sum);
      sum = base::xxh64(facts, sizeof facts, sum);
    }
    return sum;
  }

  /// The first file that a rank packs: all ranks pack about the same number of bytes.
  std::uint64_t share_of(unsigned rank) const {
    if (rank == request_.ranks.count) return files_.size();
    const auto at = static_cast<std::uint64_t>(static_cast<unsigned __int128>(offsets_.back()) *
                                               rank / request_.ranks.count);
    return rank == 0 ? 0
                     : static_cast<std::uint64_t>(std::ranges::lower_bound(offsets_, at) -
                                                  offsets_.begin());
  }

  base::Status pack_own() {
    base::Status status =
        run_team(std::max(1U, request_.threads), meter_, [&](unsigned) { return work(); });
    return status && !request_.ranks.alone() ? output_->flush() : status;
  }

  /// Sends the checksums of the records to all ranks.
  base::Status share_sums() {
    const std::vector<std::uint64_t> mine(sums_.begin() + static_cast<std::ptrdiff_t>(own_.begin),
                                          sums_.begin() + static_cast<std::ptrdiff_t>(own_.end));
    const auto all = request_.ranks.exchange({}, mine);
    if (!all.ok()) return all.error();
    auto out = sums_.begin();
    for (const auto& each : *all)
      for (const std::uint64_t sum : each) *out++ = static_cast<std::uint32_t>(sum);
    return {};
  }

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
    while (next_ < own_.end &&
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

  /// Writes the index after the records, and publishes the file, on the first rank.
  base::Status finish() {
    if (!request_.ranks.first()) return {};
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
  base::Extent own_;  ///< the files that this rank packs
  std::uint64_t next_ = 0;
};

}  // namespace

base::Result<std::uint64_t> pack(const PackRequest& request, const Show& show) {
  base::Result<std::vector<TreeFile>> files = files_of(request.directory);
  if (base::Status status = request.ranks.together(files.status()); !status) return status.error();
  return Packer(request, std::move(*files), show).run();
}

}  // namespace pario::records
