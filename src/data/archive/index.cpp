#include "data/archive/index.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ranges>
#include <utility>

namespace pario::archive {
namespace {

constexpr std::uint64_t kMagic = 0x314B4341504F4950;  // "PIOPACK1"

struct Head {
  std::uint64_t magic = kMagic, members = 0, names = 0, checksum = 0;
  std::uint32_t shards = 0, row = sizeof(Row);
  std::uint64_t nothing[3] = {};
};
static_assert(sizeof(Head) == 64);

base::Error damage_error(const std::string& path, const char* what) {
  return {.number = EIO, .operation = "read", .path = path, .detail = what};
}

std::uint64_t sum_of(std::span<const std::byte> rows, std::string_view names) {
  return base::xxh64(names, base::xxh64(rows.data(), rows.size()));
}

base::Status write_parts(int descriptor, const std::string& path, const Head& head,
                         std::span<const std::byte> rows, const std::string& names) {
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(&head, 1)), rows,
                                              std::as_bytes(std::span(names))};
  std::uint64_t at = 0;
  for (const auto& part : parts) {
    const long done = base::write_all(descriptor, part.data(), part.size(), at);
    if (done < 0)
      return base::Error{.number = static_cast<int>(-done), .operation = "write", .path = path};
    at += part.size();
  }
  if (::fsync(descriptor) != 0)
    return base::Error{.number = errno, .operation = "fsync", .path = path};
  return {};
}

}  // namespace

std::string shard_name(std::uint32_t number) {
  std::string digits = std::to_string(number);
  if (digits.size() < 5) digits.insert(0, 5 - digits.size(), '0');
  return digits + ".tar.zst";
}

base::Status write_index(const std::string& path, std::vector<Row> rows, const std::string& names,
                         std::uint32_t shards) {
  const auto name_of = [&](const Row& row) {
    return std::string_view(names).substr(row.name, row.name_size);
  };
  const auto rest = std::ranges::is_sorted_until(
      rows, {}, name_of);  // most are in order: all but links and directories
  std::ranges::sort(rest, rows.end(), {}, name_of);
  std::ranges::inplace_merge(rows, rest, {}, name_of);
  const auto bytes = std::as_bytes(std::span(rows));
  const Head head{.members = rows.size(),
                  .names = names.size(),
                  .checksum = sum_of(bytes, names),
                  .shards = shards};
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) return base::Error{.number = errno, .operation = "open", .path = path};
  base::Status status = write_parts(descriptor, path, head, bytes, names);
  ::close(descriptor);
  return status;
}

Index::Index(Index&& other) noexcept { *this = std::move(other); }

Index& Index::operator=(Index&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(memory_, other.memory_);
  std::swap(size_, other.size_);
  std::swap(rows_, other.rows_);
  std::swap(names_, other.names_);
  return *this;
}

Index::~Index() {
  if (memory_ != nullptr) base::unmap(memory_, size_);
}

base::Result<Index> Index::open(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return base::Error{.number = errno,
                       .operation = "open",
                       .path = path,
                       .detail = "archives of pario pack have one"};
  struct stat facts{};
  const bool known =
      ::fstat(descriptor, &facts) == 0 && static_cast<std::size_t>(facts.st_size) >= sizeof(Head);
  Index index;
  index.path_ = path;
  index.size_ = known ? static_cast<std::size_t>(facts.st_size) : 0;
  void* const memory =
      known ? ::mmap(nullptr, index.size_, PROT_READ, MAP_SHARED, descriptor, 0) : MAP_FAILED;
  const int number = errno;
  ::close(descriptor);
  if (!known) return damage_error(path, "it is no index of pario pack");
  if (memory == MAP_FAILED) return base::Error{.number = number, .operation = "mmap", .path = path};
  index.memory_ = static_cast<std::byte*>(memory);
  Head head;
  std::memcpy(&head, index.memory_, sizeof head);
  if (head.magic != kMagic || head.row != sizeof(Row))
    return damage_error(path, "it is no index of pario pack");
  const std::uint64_t room = index.size_ - sizeof head;
  if (head.members > room / sizeof(Row) || head.names != room - head.members * sizeof(Row))
    return damage_error(path, "it was cut off");
  index.rows_ = reinterpret_cast<const Row*>(index.memory_ + sizeof head);
  index.names_ = {reinterpret_cast<const char*>(index.rows_ + head.members), head.names};
  return index;
}

std::size_t Index::count() const { return reinterpret_cast<const Head*>(memory_)->members; }
std::uint32_t Index::shards() const { return reinterpret_cast<const Head*>(memory_)->shards; }

std::string_view Index::name(std::size_t number) const {
  const Row& row = rows_[number];
  return row.name > names_.size() || row.name_size > names_.size() - row.name
             ? std::string_view()
             : names_.substr(row.name, row.name_size);
}

std::optional<std::size_t> Index::find(std::string_view name) const {
  const auto numbers = std::views::iota(std::size_t{0}, count());
  const auto found = std::ranges::lower_bound(
      numbers, name, {}, [this](std::size_t number) { return this->name(number); });
  if (found == numbers.end() || this->name(*found) != name) return {};
  return *found;
}

base::Status Index::verify() const {
  const auto* head = reinterpret_cast<const Head*>(memory_);
  const std::span<const std::byte> rows(reinterpret_cast<const std::byte*>(rows_),
                                        count() * sizeof(Row));
  return sum_of(rows, names_) == head->checksum
             ? base::Status{}
             : damage_error(path_, "its checksum does not fit: it is damaged");
}

}  // namespace pario::archive
