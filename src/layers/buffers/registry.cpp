#include "layers/buffers/registry.hpp"

#include <fcntl.h>

#include <algorithm>
#include <new>

#include "layers/buffers/admission.hpp"
#include "layers/buffers/background.hpp"
#include "layers/buffers/blocked_signals.hpp"
#include "layers/buffers/child_processes.hpp"
#include "layers/buffers/figures.hpp"
#include "layers/buffers/forked_files.hpp"

namespace pario::buffers::registry {
namespace {

constexpr std::size_t kMostFiles = 256;
constexpr std::size_t kMostHandles = 4096;

constinit std::mutex mutex;
constinit BufferedFile files[kMostFiles];
constinit Handle handles[kMostHandles];
constinit ForkedFiles forked_files;
constinit base::FileBits written_once;  // files with at most one write in their last opening
constinit base::FileBits ever_buffered;
constinit std::uint64_t mask_before_fork = 0;  // of the signals of the forking thread
constinit std::atomic<std::size_t> files_in_use{0};
constinit std::atomic<std::size_t> known_end{0};  // one past the last file that was ever used

void complete_buffer(Buffer& buffer) { buffer.file->complete(buffer); }

void check_files() {
  const std::uint64_t now = base::monotonic_ns();
  for_each_file([=](BufferedFile& file) { file.check(now); });
}

bool start_background() {
  background::set_work({complete_buffer, check_files});
  return background::start();
}

// The functions below are called with the mutex held.

Handle* find_unused_handle() {
  for (Handle& handle : handles)
    if (handle.file == nullptr) return &handle;
  return nullptr;
}

BufferedFile* find_unused_file() {
  for (BufferedFile& file : files)
    if (!file.is_open()) return &file;
  return nullptr;
}

/// The identity of a file as the sets of files take it.
struct stat status_of(FileId id) {
  struct stat status = {};
  status.st_dev = id.device;
  status.st_ino = id.inode;
  return status;
}

void count_file(const BufferedFile& file) {
  ever_buffered.set(status_of(file.context().backing.id()), true);
  const auto end = static_cast<std::size_t>(&file - files) + 1;
  known_end.store(std::max(known_end.load(std::memory_order_relaxed), end),
                  std::memory_order_release);
  files_in_use.fetch_add(1, std::memory_order_release);
}

void release_file(BufferedFile& file) {
  if (file.state().forked) forked_files.add(file.context().backing.id());
  file.close();
  files_in_use.fetch_sub(1, std::memory_order_release);
}

void close_file(BufferedFile& file) {
  file.print_figures();
  release_file(file);
}

/// Marks a reopened file as forked: children may still have its descriptors.
void leave_to_children(BufferedFile& file) {
  using child_processes::Holders;
  file.stop_buffering(Reason::fork, child_processes::find_holders() == Holders::alive);
  file.mark_forked();
}

/// Opens a file. Null and a reason if there is no free entry or no memory.
BufferedFile* open_file(int descriptor, int flags, const struct stat& status,
                        hints::StreamHints hints, std::string_view path, const Origin& origin,
                        Reason& reason) {
  start_tick_measurement();
  prepare_hints(hints, descriptor, flags, path);
  reason = Reason::many;
  BufferedFile* file = find_unused_file();
  if (file == nullptr || !start_background()) return nullptr;
  reason = Reason::memory;
  if (!file->open(descriptor, status, hints, path, origin)) return nullptr;
  count_file(*file);
  if (forked_files.contains(file_id_of(status))) leave_to_children(*file);
  return file;
}

/// Finds or opens a file. Null and a reason if the file is not buffered.
BufferedFile* find_or_open_file(int descriptor, int flags, const struct stat& status,
                                const hints::StreamHints& hints, std::string_view path,
                                const Origin& origin, Reason& reason) {
  BufferedFile* const known = find_file(file_id_of(status));
  BufferedFile* file =
      known != nullptr ? known : open_file(descriptor, flags, status, hints, path, origin, reason);
  // Without a node copy, direct reads are the kernel's.
  if (file == nullptr || (flags & O_DIRECT) == 0 || file->has_node_copy()) return file;
  if (known == nullptr) release_file(*file);
  reason = Reason::direct;
  return nullptr;
}

/// Records whether writes in an opening could have been joined. Closing must not wait for the only
/// write (hint `lazyclose`).
void record_writes(const Handle& handle, const FileContext& context) {
  written_once.set(status_of(context.backing.id()),
                   handle.write_calls <= 1 && !context.hints.lazyclose);
}

Handle make_handle(int descriptor, int flags, const struct stat& status) {
  const int access = flags & O_ACCMODE;
  const bool appends = (flags & O_APPEND) != 0;
  return {.offset = appends ? static_cast<std::uint64_t>(status.st_size) : 0,
          .descriptor = descriptor,
          .references = 1,
          .reads = access != O_WRONLY,
          .writes = access != O_RDONLY,
          .appends = appends,
          // A new file may have the inode of a removed one.
          .writes_once = status.st_size != 0 && written_once.has(status)};
}

}  // namespace

Handle* open(int descriptor, int flags, const struct stat& status, const hints::StreamHints& hints,
             std::string_view path, const Origin& origin, Reason& reason) {
  const std::uint64_t since = origin.since != 0 ? origin.since : trace::ticks();
  const HandlerSafeLock lock(mutex);
  Handle* handle = find_unused_handle();
  if (handle == nullptr) return reason = Reason::many, nullptr;
  BufferedFile* file = find_or_open_file(descriptor, flags, status, hints, path, origin, reason);
  if (file == nullptr) return nullptr;
  reason = file->state().inherited ? file->state().reason : Reason::none;
  *handle = make_handle(descriptor, flags, status);
  file->add_handle(*handle, since);
  return handle;
}

void add_reference(Handle& handle) {
  const HandlerSafeLock lock(mutex);
  std::atomic_ref(handle.references).fetch_add(1, std::memory_order_relaxed);
}

bool has_other_references(const Handle& handle) {
  auto& references = const_cast<std::uint32_t&>(handle.references);
  return std::atomic_ref(references).load(std::memory_order_relaxed) != 1;
}

void remove_reference(Handle& handle, bool is_last) {
  const HandlerSafeLock lock(mutex);
  std::atomic_ref(handle.references).fetch_sub(1, std::memory_order_relaxed);
  if (!is_last) return;
  BufferedFile& file = *handle.file;
  if (handle.writes) record_writes(handle, file.context());
  if (file.remove_handle(handle)) close_file(file);
}

bool is_idle() { return files_in_use.load(std::memory_order_acquire) == 0; }

FoundFile::FoundFile(FileId id) {
  if (!ever_buffered.has(status_of(id))) return;
  lock_.emplace(mutex);
  file_ = find_file(id);
}

BufferedFile* find_file(FileId id) {
  for (BufferedFile& file : known_files())
    if (file.is_open() && file.context().backing.id() == id) return &file;
  return nullptr;
}

std::span<BufferedFile> known_files() { return {files, known_end.load(std::memory_order_acquire)}; }

void lock_for_fork() {
  const std::uint64_t mask = BlockedSignals::block();
  mutex.lock();
  mask_before_fork = mask;
}

void unlock_after_fork() {
  const std::uint64_t mask = mask_before_fork;
  mutex.unlock();
  BlockedSignals::restore(mask);
}

void reset_in_child() {
  new (&mutex) std::mutex;
  forked_files.clear();
  for_each_file([](BufferedFile& file) { file.become_inherited(); });
  for (Handle& handle : handles) handle = {};
}

void unblock_signals_in_child() { BlockedSignals::restore(mask_before_fork); }

}  // namespace pario::buffers::registry
