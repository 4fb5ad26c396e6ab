#include "layers/buffers/node_memory.hpp"

#include <fcntl.h>

#include "core/base/base.hpp"
#include "core/base/sleep.hpp"
#include "layers/buffers/system_calls.hpp"

namespace pario::buffers {
namespace {

constexpr int kFirstDescriptor = 1000;  // above those that programs use
constexpr int kOpenAttempts = 20;

// All processes that have the memory open hold a read lock of byte 0; byte 1 + n is lock n.
long set_lock(int descriptor, short type, std::uint64_t byte) {
  return base::lock_byte(descriptor, type, byte, false);
}

int open_shared_file(const char* path) {
  const int low = base::open_file(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (low < 0) return low;
  const long high = base::system_call(SYS_fcntl, low, F_DUPFD_CLOEXEC, kFirstDescriptor);
  if (high < 0) return low;
  base::close_file(low);
  return static_cast<int>(high);
}

}  // namespace

bool NodeMemory::open(std::string_view use, const struct stat& file, std::uint64_t bytes) {
  base::Text<sizeof path_ - 1> text;
  const long numbers[] = {static_cast<long>(file.st_dev), static_cast<long>(file.st_ino),
                          file.st_size, file.st_mtim.tv_sec, file.st_mtim.tv_nsec};
  text.add("/dev/shm/pario-").add(base::system_call(SYS_geteuid)).add('-').add(use);
  for (const long number : numbers) text.add('-').add(number);
  path_[text.view().copy(path_, sizeof path_ - 1)] = 0;
  for (int i = 0; i < kOpenAttempts; ++i) {
    if (try_open(bytes)) return true;
    if (descriptor_ < 0) return false;
    base::close_file(descriptor_);  // another process removes it just now
    base::sleep_ns(1'000'000);
  }
  return false;
}

bool NodeMemory::try_open(std::uint64_t bytes) {
  descriptor_ = open_shared_file(path_);
  struct stat status;
  if (descriptor_ < 0 || set_lock(descriptor_, F_RDLCK, 0) < 0 ||
      base::status_of(descriptor_, status) != 0)
    return false;
  const auto user = static_cast<uid_t>(base::system_call(SYS_geteuid));
  if (status.st_nlink == 0 || status.st_uid != user) return false;
  if (status.st_size == 0 && base::system_call(SYS_ftruncate, descriptor_, bytes) < 0) return false;
  if (status.st_size != 0 && static_cast<std::uint64_t>(status.st_size) != bytes) return false;
  data_ = base::map_shared(descriptor_, 0, bytes);
  bytes_ = bytes;
  return data_ != nullptr;
}

void NodeMemory::close() {
  if (!is_open()) return;
  remove_name_if_alone();
  reset_in_child();
}

void NodeMemory::remove_name_if_alone() const {
  if (!is_open()) return;
  // Of two processes that close at the same time, one sees that it is the last.
  set_lock(descriptor_, F_UNLCK, 0);
  if (lock_alone()) base::system_call(SYS_unlinkat, AT_FDCWD, path_, 0);
}

bool NodeMemory::lock_alone() const { return set_lock(descriptor_, F_WRLCK, 0) >= 0; }
void NodeMemory::share() const { set_lock(descriptor_, F_RDLCK, 0); }

void NodeMemory::reset_in_child() {
  if (!is_open()) return;
  base::unmap(data_, bytes_);
  base::close_file(descriptor_);
  data_ = nullptr;
}

bool NodeMemory::reserve(std::uint64_t begin, std::uint64_t bytes) const {
  return base::system_call(SYS_fallocate, descriptor_, 0, begin, bytes) >= 0;
}

bool NodeMemory::lock(std::uint64_t number) const {
  return set_lock(descriptor_, F_WRLCK, 1 + number) >= 0;
}

void NodeMemory::unlock(std::uint64_t number) const { set_lock(descriptor_, F_UNLCK, 1 + number); }

}  // namespace pario::buffers
