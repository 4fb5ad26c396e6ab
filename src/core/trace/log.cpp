#include "core/trace/log.hpp"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "core/base/base.hpp"
#include "core/trace/state.hpp"

namespace pario::trace {
namespace {

/// True if `end` is past RLIMIT_FSIZE: growing the file raises a signal that ends the program.
bool over_size_limit(std::uint64_t end) {
  rlimit64 limit{};
  return base::system_call(SYS_prlimit64, 0, RLIMIT_FSIZE, nullptr, &limit) == 0 &&
         end > limit.rlim_cur;
}

bool has_no_fallocate(long result) {
  return result == -EOPNOTSUPP || result == -ENOSYS || result == -EINVAL || result == -EPERM;
}

/// Writes to the log, and counts the call as the tracer's own.
long write_own(int descriptor, const void* data, std::size_t size, std::uint64_t offset) {
  const long put = base::write_all(descriptor, data, size, offset);
  bump(process().tracer_writes);
  if (put > 0) bump(process().tracer_bytes_written, static_cast<std::uint64_t>(put));
  return put;
}

long write_zeros(int descriptor, std::uint64_t offset, std::size_t size) {
  static constexpr char kZeros[16 * kPage] = {};
  for (std::size_t done = 0; done < size; done += sizeof kZeros) {
    const long put =
        write_own(descriptor, kZeros, std::min(sizeof kZeros, size - done), offset + done);
    if (put < 0) return put;
  }
  return 0;
}

// Logs hold command lines and environments: only the user may read them, regardless of the umask.
constexpr unsigned kLogMode = 0600, kDirectoryMode = 0700, kParentMode = 0777;

/// Creates a directory for logs; returns 0 or -errno.
long make_private(const char* path) {
  const long made = base::system_call(SYS_mkdirat, AT_FDCWD, path, kDirectoryMode);
  if (made == 0) base::system_call(SYS_fchmodat, AT_FDCWD, path, kDirectoryMode);
  return made;
}

/// Creates the directory and its parents, for a host that does not share the launcher's directory.
void make_directories(char* path) {
  if (make_private(path) != -ENOENT) return;
  for (char* slash = std::strchr(path, '/'); slash != nullptr;
       slash = std::strchr(slash + 1, '/')) {
    *slash = 0;
    base::system_call(SYS_mkdirat, AT_FDCWD, path, kParentMode);
    *slash = '/';
  }
  make_private(path);
}

}  // namespace

int Log::open(const char* directory, std::uint64_t start_ns) {
  utsname host{};
  base::system_call(SYS_uname, &host);
  base::TextBuffer name(path_, sizeof path_);
  name.add(directory);
  name.c_str();  // terminates path_
  make_directories(path_);
  name.add('/')
      .add(host.nodename)
      .add('.')
      .add(base::system_call(SYS_getpid))
      .add('.')
      .add(start_ns, 16)
      .add(".plog");
  if (!name.complete()) return -ENAMETOOLONG;
  const int opened = base::open_file(name.c_str(), O_RDWR | O_CREAT | O_EXCL, kLogMode);
  if (opened < 0) return opened;
  base::system_call(SYS_fchmod, opened, kLogMode);
  descriptor_ = base::move_high(opened);
  struct stat status{};
  const int error = base::status_of(descriptor_, status);
  device_ = status.st_dev;
  inode_ = status.st_ino;
  return error;
}

void Log::discard() {
  base::close_file(descriptor_);
  descriptor_ = -1;
  base::system_call(SYS_unlinkat, AT_FDCWD, path_, 0);
}

void Log::abandon() {
  if (check_descriptor() == 0) base::close_file(descriptor_);
  descriptor_ = -1;
}

/// Checks that the descriptor is still the log: the program may have closed it, and another file
/// may have its number. The tracer never writes there.
int Log::check_descriptor() {
  struct stat status{};
  const auto is_ours = [&] { return status.st_dev == device_ && status.st_ino == inode_; };
  if (base::status_of(descriptor_, status) == 0 && is_ours()) return 0;
  const int opened = base::open_file(path_, O_RDWR);
  if (opened < 0) return opened;
  if (base::status_of(opened, status) == 0 && is_ours()) {
    descriptor_ = base::move_high(opened);
    return 0;
  }
  base::close_file(opened);
  return -ESTALE;
}

std::uint64_t Log::take_range(std::size_t size) {
  return std::atomic_ref(end_).fetch_add(size, std::memory_order_relaxed);
}

int Log::preallocate(std::uint64_t offset, std::size_t size) {
  if (over_size_limit(offset + size)) return -EFBIG;
  long result;
  do {
    result = base::system_call(SYS_fallocate, descriptor_, 0, offset, size);
  } while (result == -EINTR);
  if (has_no_fallocate(result)) result = write_zeros(descriptor_, offset, size);
  return static_cast<int>(result);
}

void Log::fill(BlockHeader* header, BlockKind kind, std::size_t size) {
  header->kind = kind;
  header->version = kLogVersion;
  header->size = size;
  header->index = std::atomic_ref(blocks_[static_cast<std::size_t>(kind)])
                      .fetch_add(1, std::memory_order_relaxed);
  std::atomic_ref(header->magic).store(kBlockMagic, std::memory_order_release);
}

void Log::note_trouble(int error) {
  if (!std::atomic_ref(troubled_).exchange(true, std::memory_order_relaxed))
    std::atomic_ref(trouble_).store(error, std::memory_order_relaxed);
}

BlockHeader* Log::reserve(BlockKind kind, std::size_t payload, std::uint64_t* place) {
  if (std::atomic_ref(full_).load(std::memory_order_relaxed)) return nullptr;
  const std::size_t size = whole_pages(sizeof(BlockHeader) + payload);
  std::byte* block = nullptr;
  int error = check_descriptor();
  if (error == 0) {
    const std::uint64_t offset = take_range(size);
    error = preallocate(offset, size);
    if (error == 0) block = base::map_shared(descriptor_, offset, size);
    if (place != nullptr) *place = offset;
  }
  if (block == nullptr) {
    std::atomic_ref(full_).store(true, std::memory_order_relaxed);
    note_trouble(error != 0 ? error : -ENOMEM);
    return nullptr;
  }
  auto* header = reinterpret_cast<BlockHeader*>(block);
  fill(header, kind, size);
  return header;
}

void Log::give_back(std::uint64_t begin, std::uint64_t end) {
  begin = whole_pages(begin);
  if (begin < end && check_descriptor() == 0)
    base::system_call(SYS_fallocate, descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, begin,
                      end - begin);
}

int Log::write_range(const BlockHeader* header, std::size_t size) {
  if (const int error = check_descriptor(); error != 0) return error;
  const std::uint64_t offset = take_range(size);
  if (over_size_limit(offset + size)) return -EFBIG;
  const long put = write_own(descriptor_, header, size, offset);
  if (put >= 0) return 0;
  constexpr std::uint32_t kNoMagic = 0;  // a partly written block must not look like one
  base::write_all(descriptor_, &kNoMagic, sizeof kNoMagic, offset);
  return static_cast<int>(put);
}

int Log::append(BlockHeader* header) {
  const std::size_t size = whole_pages(sizeof(BlockHeader) + header->used);
  header->checksum = base::xxh64(header->payload(), header->used);
  fill(header, header->kind, size);
  std::fill(header->payload() + header->used, reinterpret_cast<std::byte*>(header) + size,
            std::byte{0});
  const int error = write_range(header, size);
  if (error != 0) note_trouble(error);
  return error;
}

}  // namespace pario::trace
