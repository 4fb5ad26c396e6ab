#include "data/records/packed.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

#include "data/records/disk.hpp"

namespace pario::records {
namespace {

constexpr char kPackMagic[8] = {'p', 'a', 'r', 'i', 'o', 'r', 'e', 'c'};

struct Trailer {
  std::uint64_t offset, size;  ///< of the index
  std::uint64_t checksum;      ///< XXH64 of offset and size
  char magic[8];
};
static_assert(sizeof(Trailer) == 32);

/// The end of a file.
struct Tail {
  Trailer trailer;
  std::uint64_t size;  ///< of the file
};

std::uint64_t checksum_of(const Trailer& trailer) {
  return base::xxh64(&trailer, offsetof(Trailer, checksum));
}

base::Result<Tail> tail_of(const std::string& path) {
  const base::Result<Disk> file = Disk::open(path, O_RDONLY, Caching::page_cache);
  if (!file.ok()) return file.error();
  const base::Error none{.number = EINVAL,
                         .operation = "open packed",
                         .path = path,
                         .detail =
                             "the last bytes are not those of a packed file: it is cut off, "
                             "or of another format"};
  const base::Result<FileFacts> facts = file->facts();
  if (!facts.ok()) return facts.error();
  const std::uint64_t size = facts->size;
  if (!facts->regular || size < sizeof(Trailer)) return none;
  Trailer trailer;
  const auto got =
      file->read(size - sizeof trailer, {reinterpret_cast<std::byte*>(&trailer), sizeof trailer});
  if (!got.ok()) return got.error();
  const bool right = *got == sizeof trailer &&
                     std::memcmp(trailer.magic, kPackMagic, sizeof kPackMagic) == 0 &&
                     trailer.checksum == checksum_of(trailer) && trailer.offset <= size &&
                     trailer.size <= size - trailer.offset;
  return right ? base::Result<Tail>({trailer, size}) : none;
}

}  // namespace

bool is_packed(const std::string& path) { return tail_of(path).ok(); }

base::Result<Index> open_packed(const std::string& path) {
  const base::Result<Tail> tail = tail_of(path);
  if (!tail.ok()) return tail.error();
  base::Error error{.number = EINVAL, .operation = "open packed", .path = path};
  const auto& [trailer, size] = *tail;
  if (const std::uint64_t behind = size - trailer.offset - trailer.size;
      behind != sizeof(Trailer)) {
    error.detail =
        "it begins with other bytes, as files that were concatenated; pario records merge joins "
        "packed files";
    return error;
  }
  base::Result<Index> index = Index::open(path, base::Extent::at(trailer.offset, trailer.size));
  if (!index.ok() || index->whole().end <= trailer.offset) return index;
  error.detail = "its index is damaged: records lie behind their end";
  return error;
}

std::vector<std::byte> packed_tail(std::uint64_t end, std::vector<std::byte> index) {
  Trailer trailer{
      .offset = base::round_up(end, 8), .size = index.size(), .checksum = 0, .magic = {}};
  trailer.checksum = checksum_of(trailer);
  std::memcpy(trailer.magic, kPackMagic, sizeof kPackMagic);
  index.insert(index.begin(), trailer.offset - end, std::byte{0});
  const auto* bytes = reinterpret_cast<const std::byte*>(&trailer);
  index.insert(index.end(), bytes, bytes + sizeof trailer);
  return index;
}

}  // namespace pario::records
