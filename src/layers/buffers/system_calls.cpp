#include "layers/buffers/system_calls.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <time.h>

#include <algorithm>
#include <string_view>

#include "core/base/base.hpp"

namespace pario::buffers {
namespace {

long call_pwritev(int descriptor, const iovec* pieces, int count, std::uint64_t offset) {
  return base::system_call(SYS_pwritev, descriptor, pieces, count, offset, offset >> 32);
}

long call_write(int descriptor, const void* data, std::size_t size) {
  return base::system_call(SYS_write, descriptor, data, size);
}

long call_preadv(int descriptor, const iovec* pieces, int count, std::uint64_t offset) {
  return base::system_call(SYS_preadv, descriptor, pieces, count, offset, offset >> 32);
}

long call_lseek(int descriptor, std::int64_t offset, int whence) {
  return base::system_call(SYS_lseek, descriptor, offset, whence);
}

layout::Kind call_fstatfs(int descriptor) {
  struct statfs system{};
  if (base::system_call(SYS_fstatfs, descriptor, &system) < 0) return layout::Kind::unknown;
  return layout::kind_of_magic(static_cast<std::uint32_t>(system.f_type));
}

long call_sync_file_range(int descriptor, std::uint64_t offset, std::uint64_t bytes) {
  return base::system_call(SYS_sync_file_range, descriptor, offset, bytes, SYNC_FILE_RANGE_WRITE);
}

long call_fadvise(int descriptor, std::uint64_t offset, std::uint64_t bytes) {
  return base::system_call(SYS_fadvise64, descriptor, offset, bytes, POSIX_FADV_WILLNEED);
}

bool is_byte_cached(int descriptor, std::uint64_t offset) {
  char byte = 0;
  const iovec piece{&byte, 1};
  return base::system_call(SYS_preadv2, descriptor, &piece, 1, offset, offset >> 32, RWF_NOWAIT) ==
         1;
}

/// A value of /proc/meminfo, bytes.
std::uint64_t find_memory_value(std::string_view text, std::string_view name) {
  const std::size_t at = text.find(name);
  if (at == text.npos) return 0;
  return base::leading_number(text.substr(at + name.size())) * 1024;
}

bool is_memory_free() {
  constexpr std::uint64_t kLeastFreePercent = 10;
  char text[1024];
  const long size = base::read_file("/proc/meminfo", text, sizeof text);
  if (size <= 0) return false;
  const std::string_view facts(text, static_cast<std::size_t>(size));
  return find_memory_value(facts, "MemAvailable:") * 100 >=
         find_memory_value(facts, "MemTotal:") * kLeastFreePercent;
}

}  // namespace

SystemCalls system_calls{call_pwritev,    call_write,    call_preadv,          call_lseek,
                         base::status_of, call_fstatfs,  call_sync_file_range, call_fadvise,
                         is_byte_cached,  is_memory_free};

std::uint64_t file_size_limit() {
  struct rlimit limit;
  constexpr auto kMost = static_cast<std::uint64_t>(INT64_MAX);
  if (base::system_call(SYS_prlimit64, 0, RLIMIT_FSIZE, nullptr, &limit) < 0) return kMost;
  return std::min<std::uint64_t>(limit.rlim_cur, kMost);
}

bool is_open_on(int descriptor, FileId id) {
  struct stat status;
  return system_calls.status(descriptor, status) == 0 && file_id_of(status) == id;
}

}  // namespace pario::buffers
