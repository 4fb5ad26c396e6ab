#include "core/base/paths.hpp"

#include <fcntl.h>

#include <atomic>
#include <cstdint>
#include <cstring>

#include "core/base/system.hpp"
#include "core/base/text.hpp"

namespace pario::base {
namespace current_directory {
namespace {

// A sequence lock: odd while the text is written; the text is valid while `version` equals
// `valid_version`. A thread without a stable copy asks the kernel.
constinit std::atomic<std::uint32_t> version{2};
constinit std::atomic<std::uint32_t> valid_version{0};
constinit std::size_t length = 0;
constinit char text[PATH_MAX];

std::size_t copy_cached(char* out, std::uint32_t now) {
  if ((now & 1) != 0 || valid_version.load(std::memory_order_acquire) != now) return 0;
  const std::size_t size = length;
  std::memcpy(out, text, size < PATH_MAX ? size : 0);
  std::atomic_thread_fence(std::memory_order_acquire);
  return version.load(std::memory_order_relaxed) == now ? size : 0;
}

/// Caches the name of version `now`, unless the directory has changed since or another thread is
/// writing.
void cache_name(const char* from, std::size_t size, std::uint32_t now) {
  if ((now & 1) != 0 || !version.compare_exchange_strong(now, now + 1, std::memory_order_acquire))
    return;
  std::memcpy(text, from, size);
  length = size;
  valid_version.store(now + 2, std::memory_order_relaxed);
  version.fetch_add(1, std::memory_order_release);
}

/// Copies the cached name, or asks the kernel; returns its length, 0 if it is unknown.
std::size_t copy_name(char* out) {
  const std::uint32_t now = version.load(std::memory_order_acquire);
  if (const std::size_t size = copy_cached(out, now)) return size;
  const long size = read_working_directory(out, PATH_MAX);
  if (size <= 0) return 0;
  cache_name(out, static_cast<std::size_t>(size), now);
  return static_cast<std::size_t>(size);
}

}  // namespace

void forget() { version.fetch_add(2, std::memory_order_acq_rel); }
void forget_after_fork() {
  version.store((version.load(std::memory_order_relaxed) | 1) + 1, std::memory_order_release);
}

}  // namespace current_directory

namespace {

/// True for absolute names with nothing to resolve, as most are.
bool is_normal(const char* name, std::size_t size) {
  if (name[0] != '/' || (size > 1 && name[size - 1] == '/')) return false;
  const std::string_view text(name, size);
  for (std::size_t slash = 0; slash != text.npos; slash = text.find('/', slash + 1))
    if (slash + 1 < size && (text[slash + 1] == '/' || text[slash + 1] == '.')) return false;
  return true;
}

std::size_t name_of_descriptor(int descriptor, char* out) {
  Text<32> link;
  link.add("/proc/self/fd/").add(descriptor);
  const long size = read_link(link.c_str(), out, PATH_MAX);
  return size > 0 && out[0] == '/' ? static_cast<std::size_t>(size) : 0;
}

}  // namespace

Path::Path(int directory, const char* name) {
  const std::size_t size = std::strlen(name);
  if (size >= PATH_MAX) return;
  if (is_normal(name, size)) {
    std::memcpy(text_, name, size + 1);
    size_ = size;
    return;
  }
  if (name[0] == '/' || begin_at(directory)) add_components(name);
}

Path::Path(int descriptor) {
  constexpr std::string_view kDeleted = " (deleted)";
  size_ = name_of_descriptor(descriptor, text_);
  if (view().ends_with(kDeleted)) size_ -= kDeleted.size();
  text_[size_] = '\0';
}

bool Path::begin_at(int directory) {
  size_ = directory == AT_FDCWD ? current_directory::copy_name(text_)
                                : name_of_descriptor(directory, text_);
  if (size_ == 0) return false;
  if (size_ == 1) size_ = 0;  // the root: components add their own slash
  return true;
}

void Path::add_components(const char* name) {
  std::string_view rest(name);
  while (!rest.empty()) {
    const std::size_t slash = rest.find('/');
    add_component(rest.substr(0, slash));
    if (slash == std::string_view::npos) break;
    rest.remove_prefix(slash + 1);
  }
  if (size_ == 0) text_[size_++] = '/';
  if (size_ >= PATH_MAX) size_ = 0;
  text_[size_] = '\0';
}

void Path::add_component(std::string_view component) {
  if (component.empty() || component == "." || size_ >= PATH_MAX) return;
  if (component == "..") {
    const std::size_t slash = view().rfind('/');
    size_ = slash == std::string_view::npos ? 0 : slash;
    return;
  }
  if (size_ + 1 + component.size() >= PATH_MAX) {
    size_ = PATH_MAX;  // too long: see add_components
    return;
  }
  text_[size_++] = '/';
  std::memcpy(text_ + size_, component.data(), component.size());
  size_ += component.size();
}

}  // namespace pario::base
