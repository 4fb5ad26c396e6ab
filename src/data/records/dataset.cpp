#include "data/records/dataset.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

namespace pario::records {

base::Result<Dataset> Dataset::open(const std::string& path, bool verify) {
  base::Result<Index> index = open_index(path);
  return index.ok() ? open(path, std::move(*index), verify) : base::Result<Dataset>(index.error());
}

base::Result<Dataset> Dataset::open(const std::string& path, Index index, bool verify) {
  const bool checked = verify && has_checksums(index);
  if (base::Status status = verify ? index.verify_sections(checks_offsets(index)) : base::Status();
      !status)
    return status.error();
  Dataset dataset(path, std::move(index), checked);
  if (dataset.index_.kind() == Kind::directory) return dataset;
  base::Result<Disk> file = Disk::open(path, O_RDONLY, Caching::page_cache);
  if (!file.ok()) return file.error();
  dataset.file_ = std::make_shared<const Disk>(std::move(*file));
  return dataset;
}

base::Status Dataset::read(std::uint64_t record, std::uint64_t offset,
                           std::span<std::byte> out) const {
  if (out.empty()) return {};
  std::optional<Disk> own;
  if (!file_) {
    base::Result<Disk> opened =
        Disk::open(path_ + "/" + std::string(index_.name(record)), O_RDONLY, Caching::page_cache);
    if (!opened.ok()) return opened.error();
    own = std::move(*opened);
  }
  const Disk& file = own ? *own : *file_;
  const std::uint64_t at = offset + (own ? 0 : index_.span(record).begin);
  const base::Result<std::uint64_t> got = file.read(at, out);
  if (!got.ok()) return got.error();
  if (*got == out.size()) return {};
  return base::Error{.number = ESTALE,
                     .operation = "read record",
                     .path = file.path(),
                     .where = base::Extent::at(at, out.size()),
                     .detail = "the file is shorter than its index says"};
}

base::Result<base::Extent> Dataset::read(std::uint64_t record, std::span<std::byte> out) const {
  base::Status status = read(record, 0, out);
  if (status) status = check(record, out);
  return status ? base::Result<base::Extent>(format().payload(out)) : status.error();
}

base::Status Dataset::check_unchanged() const {
  const bool has_index_within = index_.kind() == Kind::packed;
  if (!file_ || file_->remote() || has_index_within) return {};
  const base::Result<FileFacts> now = file_->facts();
  if (!now.ok()) return now.error();
  const Fingerprint& then = index_.fingerprint();
  if (now->size == then.size && now->modified == then.modified) return {};
  if (now->size < index_.whole().end) return {};  // the reads of missing records tell
  if (now->size != then.size) {
    const base::Result<Fingerprint> found = fingerprint_of(*file_, index_.whole());
    if (found.ok() && found->ends == then.ends) return {};
  }
  return stale_error(path_, "it was modified since it was opened");
}

base::Status Dataset::check(std::uint64_t record, std::span<const std::byte> bytes) const {
  const char* damage = checked_ ? find_damage(index_, record, bytes) : nullptr;
  return damage == nullptr ? base::Status() : damage_error(path_, record, damage);
}

namespace {

constexpr std::uint64_t kRecordsAtATime = 64;

class Verification {
 public:
  Verification(const Dataset& dataset, std::size_t most, Meter& meter)
      : dataset_(dataset), most_(most), meter_(meter) {}

  base::Status work() {
    std::vector<std::byte> memory;
    for (std::uint64_t first = next_.fetch_add(kRecordsAtATime);
         first < dataset_.count() && !meter_.is_stopped(); first = next_.fetch_add(kRecordsAtATime))
      for (std::uint64_t record = first;
           record < std::min(dataset_.count(), first + kRecordsAtATime); ++record)
        check(record, memory);
    return {};
  }
  std::vector<Damage> found() {
    std::ranges::sort(found_, {}, &Damage::record);
    return std::move(found_);
  }

 private:
  void check(std::uint64_t record, std::vector<std::byte>& memory) {
    const std::string damage = damage_of(record, memory);
    if (!damage.empty()) tell(record, damage);
    meter_.add(dataset_.index().span(record).length());
  }

  std::string damage_of(std::uint64_t record, std::vector<std::byte>& memory) {
    RecordCheck check(dataset_.index(), record);
    const std::uint64_t length = dataset_.index().span(record).length();
    for (std::uint64_t done = 0; done < length; done += kSumPiece) {
      memory.resize(std::min(length - done, kSumPiece));
      if (base::Status status = dataset_.read(record, done, memory); !status)
        return status.error().text();
      check.add(memory);
    }
    const char* damage = check.damage();
    return damage == nullptr ? "" : damage;
  }

  void tell(std::uint64_t record, std::string what) {
    const std::scoped_lock lock(mutex_);
    if (found_.size() < most_) found_.push_back({record, std::move(what)});
  }

  const Dataset& dataset_;
  std::size_t most_;
  Meter& meter_;
  std::atomic<std::uint64_t> next_ = 0;
  std::mutex mutex_;
  std::vector<Damage> found_;
};

}  // namespace

base::Result<std::vector<Damage>> verify(const Dataset& dataset, unsigned threads, std::size_t most,
                                         const Show& show) {
  if (base::Status status = dataset.index().verify_sections(checks_offsets(dataset.index()));
      !status)
    return status.error();
  if (dataset.file() && dataset.file()->remote()) dataset.file()->expect_sequential();
  Meter meter(show, dataset.index().whole().length());
  Verification verification(dataset, most, meter);
  base::Status status =
      run_team(std::max(1U, threads), meter, [&](unsigned) { return verification.work(); });
  if (!status) return status.error();
  return verification.found();
}

}  // namespace pario::records
