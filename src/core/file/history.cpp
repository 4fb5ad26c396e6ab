#include "core/file/history.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "core/base/base.hpp"

namespace pario::file {
namespace {

constexpr std::size_t kBuffer = 16 << 10;
constexpr int kMostReads = 8, kMostFiles = 32;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Removes the leading digits of a text; returns their number.
std::size_t cut_number(std::string_view& text) {
  const auto end = std::ranges::find_if_not(text, is_digit);
  const auto size = static_cast<std::size_t>(end - text.begin());
  text.remove_prefix(size);
  return size;
}

std::uint64_t size_of(int directory, const char* name) {
  struct stat facts;
  if (base::status_of(directory, name, AT_SYMLINK_NOFOLLOW, facts) < 0 || !S_ISREG(facts.st_mode))
    return 0;
  return static_cast<std::uint64_t>(facts.st_size);
}

/// The larger of `largest` and the sizes of the matching entries in `buffer`.
std::uint64_t largest_of(int directory, std::string_view name, const char* buffer, long bytes,
                         int& files, std::uint64_t largest) {
  for (long at = 0; at < bytes && files < kMostFiles;) {
    const auto* entry = reinterpret_cast<const dirent64*>(buffer + at);
    at += entry->d_reclen;
    if (!differ_in_numbers(entry->d_name, name)) continue;
    ++files;
    largest = std::max(largest, size_of(directory, entry->d_name));
  }
  return largest;
}

}  // namespace

bool differ_in_numbers(std::string_view one, std::string_view other) {
  bool any = false;
  while (!one.empty() && !other.empty()) {
    if (is_digit(one[0]) || is_digit(other[0])) {
      if (cut_number(one) == 0 || cut_number(other) == 0) return false;
      any = true;
    } else {
      if (one[0] != other[0]) return false;
      one.remove_prefix(1);
      other.remove_prefix(1);
    }
  }
  return any && one.empty() && other.empty();
}

std::uint64_t largest_like(int directory, std::string_view name) {
  if (std::ranges::none_of(name, is_digit)) return 0;
  const int opened = static_cast<int>(
      base::system_call(SYS_openat, directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened < 0) return 0;
  alignas(dirent64) char buffer[kBuffer];
  std::uint64_t largest = 0;
  int files = 0;
  for (int i = 0; i < kMostReads && files < kMostFiles; ++i) {
    const long bytes = base::read_entries(opened, buffer, sizeof buffer);
    if (bytes <= 0) break;
    largest = largest_of(opened, name, buffer, bytes, files, largest);
  }
  base::close_file(opened);
  return largest;
}

}  // namespace pario::file
