// Files of this room: whole transfers, past the page cache where that is asked for and can be had.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/base.hpp"

namespace pario::records {

/// What direct transfers are multiples of: offset, length and address.
inline constexpr std::uint64_t kAlignment = 4096;

/// Large pages are for memory that is used here and there.
enum class Pages : std::uint8_t { ordinary, large };

/// Pages of memory, aligned; given back with it.
class Buffer {
 public:
  Buffer() = default;
  static base::Result<Buffer> make(std::uint64_t size, Pages pages = Pages::ordinary);
  Buffer(Buffer&& other) noexcept : data_(other.data_), size_(other.size_) { other.data_ = nullptr; }
  Buffer& operator=(Buffer&& other) noexcept;
  /// At least `size` bytes; what was used is not cleared anew by the kernel. Like make() for one that is empty.
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

/// An open file. Its calls may come from any number of threads.
class Disk {
 public:
  Disk() = default;
  Disk(Disk&& other) noexcept;
  Disk& operator=(Disk&& other) noexcept;
  ~Disk();

  /// `direct` where the file system can, else through the page cache.
  static base::Result<Disk> open(const std::string& path, int flags, Caching caching, unsigned mode = 0666);
  /// A new file in `directory` that no name leads to, or one whose name is gone at once.
  static base::Result<Disk> open_nameless(const std::string& directory, Caching caching);

  /// Bytes read: less than asked only at the end of the file. Of a direct file all of offset, length and address are aligned.
  base::Result<std::uint64_t> read(std::uint64_t offset, std::span<std::byte> data) const;
  /// All of it is in the page cache, so that reading it waits for nothing. False where the kernel cannot tell (before Linux 6.5).
  bool in_memory(base::Extent where) const;
  base::Status write(std::uint64_t offset, std::span<const std::byte> data) const;
  /// Room for [0, size), at once and for sure; nothing where the file system cannot promise that.
  base::Status preallocate(std::uint64_t size) const;
  /// What these bytes occupy is free again.
  void forget(base::Extent where) const;
  bool direct() const { return direct_; }
  int number() const { return number_; }
  const std::string& path() const { return path_; }
  base::Error error(const char* operation, base::Extent where = {}) const;

 private:
  Disk(std::string path, int number, bool direct) : path_(std::move(path)), number_(number), direct_(direct) {}

  std::string path_;
  int number_ = -1;
  bool direct_ = false;
};

/// Two names of one file that is there, or the same name.
bool same_file(const std::string& one, const std::string& other);
/// The directory that a file is in, "." for a bare name.
std::string directory_of(const std::string& path);
/// Its name there.
std::string base_name_of(const std::string& path);

}  // namespace pario::records
