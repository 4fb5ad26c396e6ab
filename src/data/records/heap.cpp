#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "data/records/buckets.hpp"

namespace pario::records {
namespace {

class MemoryHeap final : public Heap {
 public:
  explicit MemoryHeap(Buffer memory) : memory_(std::move(memory)) {}

  base::Result<std::uint64_t> put(std::span<const std::byte> piece) override {
    const std::uint64_t where = used_.fetch_add(piece.size());
    if (where + piece.size() > memory_.size())
      return base::Error{.number = ENOMEM,
                         .operation = "shuffle",
                         .detail = "records need more memory than was expected"};
    std::memcpy(memory_.data() + where, piece.data(), piece.size());
    return where;
  }
  base::Status get(std::uint64_t where, std::span<std::byte> piece) override {
    std::memcpy(piece.data(), memory_.data() + where, piece.size());
    return {};
  }
  void forget(base::Extent) override {}

 private:
  Buffer memory_;
  std::atomic<std::uint64_t> used_ = 0;
};

base::Status with_room(const Disk& file, std::uint64_t expected) {
  base::Status status = file.preallocate(expected);
  if (!status)
    status.error().detail = "room for the temporary file; --tmp names another directory for it";
  return status;
}

class FileHeap final : public Heap {
 public:
  explicit FileHeap(Disk file) : file_(std::move(file)) {}

  base::Result<std::uint64_t> put(std::span<const std::byte> piece) override {
    const std::uint64_t where = used_.fetch_add(piece.size());
    base::Status status = file_.write(where, piece);
    if (status) return where;
    status.error().detail = "the temporary file; --tmp names another directory for it";
    return status.error();
  }
  base::Status get(std::uint64_t where, std::span<std::byte> piece) override {
    const base::Result<std::uint64_t> got = file_.read(where, piece);
    if (!got.ok()) return got.error();
    return *got == piece.size()
               ? base::Status()
               : base::Status(base::Error{.number = EIO,
                                          .operation = "pread",
                                          .path = file_.path(),
                                          .detail = "the temporary file has become shorter"});
  }
  void forget(base::Extent where) override { file_.forget(where); }

 private:
  Disk file_;
  std::atomic<std::uint64_t> used_ = 0;
};

/// Pieces of rank r are at r << kRankShift.
class SharedHeap final : public Heap {
 public:
  /// `own`: the file of this rank, which is never published and is removed with this object.
  SharedHeap(file::Publication own, std::vector<std::string> names, Caching caching, unsigned rank)
      : own_(std::move(own)),
        names_(std::move(names)),
        caching_(caching),
        rank_(rank),
        files_(names_.size()) {}

  base::Status preallocate(std::uint64_t expected) {
    base::Result<Disk> file = Disk::of(own_, names_[rank_]);
    if (!file.ok()) return file.error();
    if (base::Status status = with_room(*file, expected); !status) return status;
    files_[rank_] = std::make_unique<FileHeap>(std::move(*file));
    return {};
  }
  base::Result<std::uint64_t> put(std::span<const std::byte> piece) override {
    const base::Result<std::uint64_t> where = files_[rank_]->put(piece);
    return where.ok() ? base::Result<std::uint64_t>(*where | std::uint64_t{rank_} << kRankShift)
                      : where;
  }
  base::Status get(std::uint64_t where, std::span<std::byte> piece) override {
    const base::Result<FileHeap*> file = file_of(where);
    return file.ok() ? (*file)->get(where & kWithin, piece) : file.status();
  }
  void forget(base::Extent where) override {
    if (const base::Result<FileHeap*> file = file_of(where.begin); file.ok())
      (*file)->forget(base::Extent::at(where.begin & kWithin, where.length()));
  }
  base::Status publish() override {
    if (::fsync(own_.descriptor()) == 0) return {};
    return base::Error{.number = errno, .operation = "fsync", .path = names_[rank_]};
  }

 private:
  static constexpr unsigned kRankShift = 44;
  static constexpr std::uint64_t kWithin = (std::uint64_t{1} << kRankShift) - 1;

  base::Result<FileHeap*> file_of(std::uint64_t where) {
    const std::uint64_t rank = where >> kRankShift;
    const std::scoped_lock lock(mutex_);
    if (!files_[rank]) {
      base::Result<Disk> file = Disk::open(names_[rank], O_RDWR, caching_);
      if (!file.ok()) return file.error();
      files_[rank] = std::make_unique<FileHeap>(std::move(*file));
    }
    return files_[rank].get();
  }

  file::Publication own_;
  std::vector<std::string> names_;  ///< of each rank
  Caching caching_;
  unsigned rank_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<FileHeap>>
      files_;  ///< of each rank; those of others are opened when needed
};

/// The target of which a rank's file is a temporary file; it is never published.
constexpr std::string_view kHeap = ".shuffle-";
std::string heap_target(std::string_view output, std::uint64_t rank) {
  constexpr std::size_t kMostDigits = 20;
  return file::part_label(output, file::kLongestPartLabel - kHeap.size() - kMostDigits) +
         std::string(kHeap) + std::to_string(rank);
}

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

}  // namespace

std::string heap_path(const std::string& directory, std::string_view output, std::uint64_t rank,
                      std::uint64_t number) {
  return file::part_path(directory + "/" + heap_target(output, rank), number);
}

bool is_own_heap(std::string_view name, std::string_view output) {
  std::string beginning = heap_target(output, 0);
  beginning.pop_back();
  const std::string_view label = file::label_of_own_part(name);
  return label.starts_with(beginning) && is_digits(label.substr(beginning.size()));
}

base::Result<std::unique_ptr<Heap>> make_memory_heap(std::uint64_t most) {
  base::Result<Buffer> memory = Buffer::make(most);
  if (!memory.ok()) return memory.error();
  return std::unique_ptr<Heap>(std::make_unique<MemoryHeap>(std::move(*memory)));
}

base::Result<std::unique_ptr<Heap>> make_file_heap(const std::string& directory,
                                                   std::uint64_t expected, Caching caching) {
  // If the file has a name, that is removed at the end of this function.
  const auto made = file::Publication::of_file(
      directory + "/shuffle", {.mode = 0600, .flags = open_flag(caching), .nameless = true});
  if (!made.ok()) return made.error();
  base::Result<Disk> file = Disk::of(*made, directory);
  if (!file.ok()) return file.error();
  if (base::Status status = with_room(*file, expected); !status) return status.error();
  return std::unique_ptr<Heap>(std::make_unique<FileHeap>(std::move(*file)));
}

base::Result<std::unique_ptr<Heap>> make_shared_heap(const std::string& directory,
                                                     const std::string& output,
                                                     std::uint64_t number, const Ranks& ranks,
                                                     std::uint64_t expected, Caching caching) {
  std::vector<std::string> names;
  names.reserve(ranks.count);
  for (unsigned rank = 0; rank < ranks.count; ++rank)
    names.push_back(heap_path(directory, base_name_of(output), rank, number));
  auto own =
      file::Publication::of_file(directory + "/" + heap_target(base_name_of(output), ranks.rank),
                                 {.flags = open_flag(caching), .number = number});
  if (!own.ok()) return own.error();
  auto heap = std::make_unique<SharedHeap>(std::move(*own), std::move(names), caching, ranks.rank);
  if (base::Status status = heap->preallocate(expected); !status) return status.error();
  return std::unique_ptr<Heap>(std::move(heap));
}

}  // namespace pario::records
