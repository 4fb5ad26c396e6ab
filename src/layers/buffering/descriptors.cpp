#include "layers/buffering/descriptors.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include "core/trace/trace.hpp"
#include "layers/buffering/streams.hpp"

namespace pario::buffering {

constinit std::atomic<buffers::Handle*> handle_table[kCapacity] = {};

namespace {

constinit std::atomic<int> end_of_known{0};
// Files that the program has opened without buffers, or mapped. A set bit may be out of date.
constinit base::FileBits unbuffered_files;

/// Another descriptor of the same handle; -1: none.
int find_other_descriptor(int descriptor, const buffers::Handle* handle) {
  for (int other = 0; other < end_of_descriptors(); ++other)
    if (other != descriptor && handle_table[other].load(std::memory_order_relaxed) == handle)
      return other;
  return -1;
}

void store(int descriptor, buffers::Handle* handle) {
  handle_table[descriptor].store(handle, std::memory_order_release);
  int end = end_of_known.load(std::memory_order_relaxed);
  while (end <= descriptor &&
         !end_of_known.compare_exchange_weak(end, descriptor + 1, std::memory_order_relaxed)) {
  }
}

bool is_inherited(int descriptor) {
  const long flags = base::system_call(SYS_fcntl, descriptor, F_GETFD);
  return flags >= 0 && (flags & FD_CLOEXEC) == 0;
}

bool identify(int directory, const char* path, struct stat& status) {
  if (path == nullptr || pario_in_vfork_child != 0) return false;
  if (buffers::is_idle() && stream_buffers.load(std::memory_order_relaxed) == 0) return false;
  return base::status_of(directory, path, AT_EMPTY_PATH, status) == 0 && S_ISREG(status.st_mode);
}

/// Ends buffering of a file that this process has mapped, or open without buffers.
void check_other_uses(buffers::Handle& handle) {
  const struct stat file = buffers::identity_of(handle);
  const auto is_unbuffered = [](int descriptor, const void* argument) {
    const auto& wanted = *static_cast<const struct stat*>(argument);
    struct stat status;
    return handle_of(descriptor) == nullptr && base::status_of(descriptor, status) == 0 &&
           status.st_dev == wanted.st_dev && status.st_ino == wanted.st_ino;
  };
  if (buffers::has_descriptor(is_unbuffered, &file) || buffers::is_mapped(file.st_ino))
    buffers::stop_buffering(handle, Reason::other_use);
  else
    unbuffered_files.set(file, false);
}

}  // namespace

buffers::Origin origin_of(const Setting& setting, trace::Layer layer, std::string_view path,
                          int descriptor) {
  buffers::Origin origin{.specification = setting.specification};
  origin.record = chain::find_record(layer, path, descriptor);
  return origin;
}

std::optional<std::uint64_t> position(int descriptor) {
  buffers::Handle* handle = handle_of(descriptor);
  return handle == nullptr ? std::nullopt : std::optional(buffers::position(*handle));
}

int end_of_descriptors() { return end_of_known.load(std::memory_order_relaxed); }

bool register_descriptor(int descriptor, int flags, std::string_view path, std::uint64_t start) {
  if (descriptor < 0 || descriptor >= kCapacity || !is_active()) return false;
  const Setting setting = find_setting(path);
  if (setting.specification.empty()) return false;
  buffers::Origin origin = origin_of(setting, trace::Layer::posix, path, descriptor);
  origin.since = start;
  if (base::Unbuffered::active())
    return buffers::log_outcome(origin, setting.hints, Reason::own_mpiio), false;
  buffers::Handle* handle = buffers::open(descriptor, flags, setting.hints, path, origin);
  if (handle == nullptr) return false;
  store(descriptor, handle);
  if (is_open_as_stream(descriptor)) buffers::stop_buffering(*handle, Reason::stdio);
  if (unbuffered_files.has(buffers::identity_of(*handle))) [[unlikely]]
    check_other_uses(*handle);
  return true;
}

void note_unbuffered(int descriptor) {
  const base::SavedErrno saved;
  struct stat file;
  if (pario_in_vfork_child != 0 || base::status_of(descriptor, file) != 0 || !S_ISREG(file.st_mode))
    return;
  unbuffered_files.set(file, true);
  buffers::stop_buffering(file.st_dev, file.st_ino, Reason::other_use);
}

void share_handle(int original, int copy) {
  buffers::Handle* handle = handle_of(original);
  if (handle == nullptr || copy < 0 || original == copy) return;
  if (copy >= kCapacity) return buffers::stop_buffering(*handle, Reason::many);
  buffers::add_reference(*handle);
  store(copy, handle);
}

int close_descriptor(int descriptor) {
  buffers::Handle* handle = handle_of(descriptor);
  if (handle == nullptr) return 0;
  handle_table[descriptor].store(nullptr, std::memory_order_release);
  return static_cast<int>(-buffers::close(*handle, find_other_descriptor(descriptor, handle)));
}

void flush_path(int directory, const char* path) {
  struct stat status;
  if (!identify(directory, path, status)) return;
  write_streams_of(status);
  buffers::flush_file(status.st_dev, status.st_ino);
}

bool flush_file(const struct stat& status) {
  if (!S_ISREG(status.st_mode) || pario_in_vfork_child != 0) return false;
  const bool has_streams = write_streams_of(status);
  return buffers::flush_file(status.st_dev, status.st_ino) || has_streams;
}

void stop_buffering(int directory, const char* path, Reason reason) {
  struct stat status;
  if (!identify(directory, path, status)) return;
  restore_streams_of(status);
  buffers::stop_buffering(status.st_dev, status.st_ino, reason);
}

void reload_offsets() {
  for (int descriptor = 0; descriptor < end_of_descriptors(); ++descriptor)
    if (buffers::Handle* handle = handle_of(descriptor)) buffers::reload_offset(*handle);
}

void forget_descriptors() {
  for (int descriptor = 0; descriptor < end_of_descriptors(); ++descriptor)
    handle_table[descriptor].store(nullptr, std::memory_order_relaxed);
  base::current_directory::forget_after_fork();
  buffers::after_fork_in_child();
}

void stop_buffering_in_vfork_child(int descriptor) {
  if (pario_in_vfork_child == 0 || static_cast<unsigned>(descriptor) >= kCapacity) return;
  const base::SavedErrno saved;
  if (buffers::Handle* handle = handle_table[descriptor].load(std::memory_order_acquire))
    buffers::stop_buffering(*handle, Reason::inheritance);
}

void stop_buffering_inherited() {
  write_all_streams();
  if (pario_in_vfork_child == 0) {
    buffers::flush_all();
    buffers::before_spawn();
  }
  for (int descriptor = 0; descriptor < end_of_descriptors(); ++descriptor) {
    buffers::Handle* handle = handle_table[descriptor].load(std::memory_order_acquire);
    if (handle != nullptr && is_inherited(descriptor) &&
        buffers::is_descriptor_of(*handle, descriptor))
      buffers::stop_buffering(*handle, Reason::inheritance);
  }
}

void after_open(int directory, const char* path, int flags, int descriptor, std::uint64_t start) {
  if (descriptor < 0 || pario_in_vfork_child != 0) return;
  const base::SavedErrno saved;
  if (handle_of(descriptor) != nullptr)
    close_descriptor(descriptor);  // closed by a call that pario does not see
  struct stat file;
  if (stream_buffers.load(std::memory_order_relaxed) != 0 && (flags & O_PATH) == 0 &&
      base::status_of(descriptor, file) == 0)
    restore_streams_of(file);
  const base::Path name(directory, path);
  const bool buffered =
      name.is_known() && register_descriptor(descriptor, flags, name.view(), start);
  if (!buffered && (flags & O_PATH) == 0) note_unbuffered(descriptor);
}

void close_descriptors(unsigned first, unsigned last) {
  const auto end = static_cast<unsigned>(end_of_descriptors());
  for (unsigned descriptor = first; descriptor < end && descriptor <= last; ++descriptor)
    close_descriptor(static_cast<int>(descriptor));
}

bool ends_buffering(int command) {
  using chain::FcntlKind;
  const FcntlKind kind = chain::kind_of(command);
  return kind == FcntlKind::lock || kind == FcntlKind::set_flags || command == F_SETLEASE;
}

}  // namespace pario::buffering
