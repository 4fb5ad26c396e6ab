#include "core/file/block_cache.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "core/base/descriptor.hpp"
#include "core/base/transfers.hpp"
#include "core/file/cached_files.hpp"

namespace pario::file {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMost = 10ULL << 30;
constexpr std::uint64_t kPieces = BlockCache::kBlock / BlockCache::kPiece;
constexpr std::int64_t kBetweenUses = 60'000'000'000;  // nanoseconds between two noted uses
/// The share of the limit that is freed at once, because listing the directory takes time.
constexpr std::uint64_t kShareFreed = 8;
/// The byte whose lock protects the directory; those of blocks are behind it.
constexpr std::uint64_t kDirectoryByte = 0;

/// The end of the file of a block.
struct Sums {
  std::uint64_t piece[kPieces] = {};
  std::uint64_t all = 0;  ///< of the bytes before

  std::uint64_t sum() const { return base::xxh64(piece, sizeof piece); }
};

std::uint64_t sum_of(std::span<const std::byte> bytes) {
  return base::xxh64(bytes.data(), bytes.size());
}

bool read_whole(int number, std::uint64_t offset, std::span<std::byte> out) {
  return base::pread_all(number, out, offset).bytes == out.size();
}

bool write_whole(int number, std::uint64_t offset, std::span<const std::byte> bytes) {
  return base::pwrite_all(number, bytes, offset).bytes == bytes.size();
}

/// Reads a part of a block of `length` bytes, and compares the checksums of its pieces. False: it
/// is not cached, or damaged.
bool read_part(int number, std::uint64_t length, base::Extent part, std::span<std::byte> out) {
  Sums sums;
  if (!read_whole(number, length, std::as_writable_bytes(std::span(&sums, 1))) ||
      sums.all != sums.sum())
    return false;
  const base::Extent whole{base::round_down(part.begin, BlockCache::kPiece),
                           std::min(base::round_up(part.end, BlockCache::kPiece), length)};
  std::vector<std::byte> bytes(whole.length());
  if (!read_whole(number, whole.begin, bytes)) return false;
  for (std::uint64_t at = 0; at < bytes.size(); at += BlockCache::kPiece) {
    const auto piece =
        std::span(bytes).subspan(at, std::min(BlockCache::kPiece, bytes.size() - at));
    if (sum_of(piece) != sums.piece[(whole.begin + at) / BlockCache::kPiece]) return false;
  }
  std::memcpy(out.data(), bytes.data() + (part.begin - whole.begin), out.size());
  return true;
}

std::uint64_t byte_of(const std::string& path) { return 1 + (base::xxh64(path) >> 2); }

/// Locks a byte of a file against all other threads of the node until it is destroyed; does not on
/// a file system without locks. The first 8 bytes of the file are the sum of all blocks.
class Lock {
 public:
  Lock(const std::string& directory, std::uint64_t byte)
      : file_(::open((directory + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)),
        byte_(byte) {
    base::lock_byte(file_.number(), F_WRLCK, byte_, true);
  }
  // A child that was forked meanwhile shares the open description, and so the lock.
  ~Lock() { base::lock_byte(file_.number(), F_UNLCK, byte_, false); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  std::uint64_t sum() const {
    std::uint64_t sum = UINT64_MAX / 2;
    return read_whole(file_.number(), 0, std::as_writable_bytes(std::span(&sum, 1)))
               ? sum
               : UINT64_MAX / 2;
  }
  void set_sum(std::uint64_t sum) const {
    static_cast<void>(::pwrite(file_.number(), &sum, sizeof sum, 0) == sizeof sum);
  }

 private:
  base::Descriptor file_;
  std::uint64_t byte_;
};

}  // namespace

BlockCache::BlockCache(std::string directory, std::uint64_t most)
    : directory_(std::move(directory)), most_(most) {
  std::error_code ignored;
  fs::create_directories(directory_, ignored);
}

base::Result<std::shared_ptr<BlockCache>> BlockCache::of_environment() {
  const char* given = std::getenv("PARIO_BLOCK_CACHE");  // NOLINT(concurrency-mt-unsafe)
  if (given == nullptr || *given == '\0') return std::shared_ptr<BlockCache>();
  const std::string text = given;
  const std::size_t colon = text.rfind(':');
  const std::string last = colon == text.npos ? "/" : text.substr(colon + 1);
  const bool sized = last.find('/') == last.npos;  // else it is a part of the directory
  const std::string directory = sized ? text.substr(0, colon) : text;
  const auto size = sized ? base::parse_byte_size(last) : kMost;
  if (size && *size >= kBlock + sizeof(Sums) && !directory.empty())
    return std::make_shared<BlockCache>(directory, *size);
  return base::Error{.number = EINVAL,
                     .operation = "PARIO_BLOCK_CACHE",
                     .path = text,
                     .detail =
                         "expected DIRECTORY or DIRECTORY:SIZE with at least 2 MiB, such as"
                         " /scratch/blocks:200G"};
}

std::uint64_t BlockCache::bytes() const {
  return sum_of_bytes(list_cached_files(directory_, ".block"));
}

BlockCache::Block BlockCache::block_at(const std::string& url, const ObjectFacts& facts,
                                       std::uint64_t offset) const {
  const std::uint64_t number = offset / kBlock;
  const std::string object = url + '\n' + facts.version + '\n' + std::to_string(facts.size);
  char name[64];
  std::snprintf(name, sizeof name, "/%016llx-%016llx-%llu.block",
                static_cast<unsigned long long>(base::xxh64(object)),
                static_cast<unsigned long long>(base::xxh64(object.data(), object.size(), 1)),
                static_cast<unsigned long long>(number));
  return {directory_ + name, {number * kBlock, std::min((number + 1) * kBlock, facts.size)}};
}

base::Status BlockCache::read(const std::string& url, const ObjectFacts& facts,
                              std::uint64_t offset, std::span<std::byte> out, const Fetch& fetch) {
  if (facts.version.empty()) return fetch(offset, out);
  while (!out.empty()) {
    const Block block = block_at(url, facts, offset);
    const std::uint64_t length = std::min<std::uint64_t>(out.size(), block.where.end - offset);
    if (base::Status status = read_block(block, offset, out.first(length), fetch); !status)
      return status;
    offset += length;
    out = out.subspan(length);
  }
  return {};
}

base::Status BlockCache::read_block(const Block& block, std::uint64_t offset,
                                    std::span<std::byte> out, const Fetch& fetch) {
  const base::Extent part = base::Extent::at(offset - block.where.begin, out.size());
  const auto read_cached = [&] {
    const base::Descriptor file(::open(block.path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.is_open() || !read_part(file.number(), block.where.length(), part, out)) return false;
    note_use(block.path, kBetweenUses);
    return true;
  };
  if (read_cached()) return {};
  const Lock lock(directory_, byte_of(block.path));
  if (read_cached()) return {};  // another thread or process has fetched it
  std::vector<std::byte> bytes(block.where.length());
  if (base::Status status = fetch(block.where.begin, bytes); !status) return status;
  std::memcpy(out.data(), bytes.data() + part.begin, out.size());
  store(block, bytes);
  return {};
}

/// Writes a block, if it can be written.
void BlockCache::store(const Block& block, std::span<const std::byte> bytes) {
  const std::uint64_t whole = bytes.size() + sizeof(Sums);
  if (whole > most_) return;
  Sums sums;
  for (std::uint64_t at = 0; at < bytes.size(); at += kPiece)
    sums.piece[at / kPiece] =
        sum_of(bytes.subspan(at, std::min<std::uint64_t>(kPiece, bytes.size() - at)));
  sums.all = sums.sum();
  base::Result<Publication> file = reserve(block.path, whole);
  if (file.ok() && write_whole(file->descriptor(), 0, bytes) &&
      write_whole(file->descriptor(), bytes.size(), std::as_bytes(std::span(&sums, 1))))
    static_cast<void>(file->publish(Publication::Existing::replace));
}

/// Reserves bytes for the file of a block, and makes it. ENOSPC: it exceeds the limit. The sum has
/// its bytes from now on, so that the remains of a killed process are within the limit.
base::Result<Publication> BlockCache::reserve(const std::string& path, std::uint64_t bytes) const {
  const Lock lock(directory_, kDirectoryByte);
  std::uint64_t sum = lock.sum() + bytes;
  if (sum > most_) sum = make_room(bytes) + bytes;
  if (sum > most_) return base::path_error("open", path, ENOSPC);
  lock.set_sum(sum);
  return Publication::of_file(path, {.mode = 0600, .durable = false});
}

/// Removes the least recently used blocks, as far as `needed` does not fit beside them; returns the
/// sum of the others and of the blocks that are being written.
std::uint64_t BlockCache::make_room(std::uint64_t needed) const {
  remove_stale_parts(directory_,
                     [](std::string_view name) { return !label_of_own_part(name).empty(); });
  // The parts first: one that gets its name meanwhile is counted twice, not left out.
  const std::uint64_t parts =
      list_cached_files(directory_, kPartEnding).size() * (kBlock + sizeof(Sums));
  std::vector<CachedFile> blocks = list_cached_files(directory_, ".block");
  const std::uint64_t sum = sum_of_bytes(blocks) + parts;
  if (sum + needed <= most_) return sum;
  const std::uint64_t less = most_ - most_ / kShareFreed;
  return parts +
         remove_least_recently_used(std::move(blocks), less - std::min(needed + parts, less));
}

}  // namespace pario::file
