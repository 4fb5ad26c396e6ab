// Files of this module: complete transfers, with direct I/O if requested and possible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/base/base.hpp"
#include "core/file/objects.hpp"
#include "core/file/publication.hpp"

namespace pario::records {

/// Alignment of direct transfers: of offset, length and address.
inline constexpr std::uint64_t kAlignment = 4096;

/// Kinds of pages; large ones are for memory with random access.
enum class Pages : std::uint8_t { ordinary, large };

/// Owns aligned pages of memory.
class Buffer {
 public:
  Buffer() = default;
  static base::Result<Buffer> make(std::uint64_t size, Pages pages = Pages::ordinary);
  Buffer(Buffer&& other) noexcept : data_(other.data_), size_(other.size_) {
    other.data_ = nullptr;
  }
  Buffer& operator=(Buffer&& other) noexcept;
  /// Grows to at least `size` bytes; the kernel does not clear used pages again. An empty buffer is
  /// made as by make().
  base::Status grow(std::uint64_t size, Pages pages = Pages::ordinary);
  ~Buffer();
  std::byte* data() const { return data_; }
  std::uint64_t size() const { return size_; }
  std::span<std::byte> span() const { return {data_, size_}; }

 private:
  std::byte* data_ = nullptr;
  std::uint64_t size_ = 0;
};

enum class Caching : std::uint8_t { page_cache, direct };
/// The flag of open(2), or 0.
int open_flag(Caching caching);

/// Size and time of a file, and its identity for caches of facts about it.
struct FileFacts {
  std::uint64_t size = 0;
  std::int64_t modified = 0;   ///< nanoseconds since 1970
  std::uint64_t identity = 0;  ///< its inode, or a hash of the version of an object
  bool regular = true;
  bool operator==(const FileFacts&) const = default;
};
/// The facts of the file or object of that name.
base::Result<FileFacts> facts_of(const std::string& path);

/// An open file, or an object of a store, which can only be read. Any number of threads may use it.
class Disk {
 public:
  Disk() = default;
  Disk(Disk&& other) noexcept;
  Disk& operator=(Disk&& other) noexcept;
  ~Disk();

  /// Opens a file, `direct` if the file system can, else through the page cache.
  static base::Result<Disk> open(const std::string& path, int flags, Caching caching,
                                 unsigned mode = 0666);
  /// Another descriptor of a file that is being published; `path` is for errors.
  static base::Result<Disk> of(const file::Publication& publication, std::string path);

  /// Reads bytes and returns their number, which is less than requested only at the end of the
  /// file. For a direct file offset, length and address must be aligned.
  base::Result<std::uint64_t> read(std::uint64_t offset, std::span<std::byte> data) const;
  /// Reads will be in the order of the file.
  void expect_sequential() const;
  /// The blocks of an object that are read stay in memory.
  void keep_blocks() const;
  /// True if the whole range is in the page cache, so that reading it does not wait. False if the
  /// kernel cannot tell (before Linux 6.5).
  bool in_memory(base::Extent where) const;
  base::Status write(std::uint64_t offset, std::span<const std::byte> data) const;
  /// Reserves storage for [0, size); does nothing if the file system cannot.
  base::Status preallocate(std::uint64_t size) const;
  /// Frees the storage of a range.
  void forget(base::Extent where) const;
  bool direct() const { return direct_; }
  base::Result<FileFacts> facts() const;
  /// True for an object of a store: each read waits for a server.
  bool remote() const { return object_ != nullptr; }
  /// The descriptor; -1: an object.
  int number() const { return number_; }
  const std::string& path() const { return path_; }
  base::Error error(const char* operation, base::Extent where = {}) const;

 private:
  Disk(std::string path, int number, bool direct)
      : path_(std::move(path)), number_(number), direct_(direct) {}

  std::string path_;
  int number_ = -1;
  bool direct_ = false;
  std::shared_ptr<file::ObjectFile> object_;
};

/// True for two names of one existing file, or the same name.
bool same_file(const std::string& one, const std::string& other);
/// The last part of a path.
std::string base_name_of(const std::string& path);

}  // namespace pario::records
