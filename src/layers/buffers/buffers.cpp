// The public functions for files; the events of the process are in process_events.cpp.
#include "layers/buffers/buffers.hpp"

#include "layers/buffers/admission.hpp"
#include "layers/buffers/audit.hpp"
#include "layers/buffers/background.hpp"
#include "layers/buffers/map_ahead.hpp"
#include "layers/buffers/memory_pool.hpp"
#include "layers/buffers/registry.hpp"

namespace pario::buffers {

void set_keeper(std::string_view name) { SurvivingMemory::set_keeper(name); }

void set_memory_limit(std::uint64_t bytes) { memory_pool::set_limit(bytes); }

std::byte* allocate_memory(std::uint64_t bytes) { return process_copies::allocate_memory(bytes); }
void release_memory(std::byte* memory, std::uint64_t bytes) { memory_pool::release(memory, bytes); }

void set_periodic_task(void (*task)()) { background::set_periodic_task(task); }

Handle* open(int descriptor, int flags, const hints::StreamHints& hints, std::string_view path,
             const Origin& origin) {
  struct stat status;
  if (!has_bytes(descriptor, flags, status)) return nullptr;
  Reason reason = find_obstacle(flags, hints, status);
  Handle* handle = reason != Reason::none
                       ? nullptr
                       : registry::open(descriptor, flags, status, hints, path, origin, reason);
  if (handle == nullptr || reason != Reason::none) log_outcome(origin, hints, reason);
  return handle;
}

void log_outcome(const Origin& origin, const hints::StreamHints& hints, Reason reason) {
  if (reason == Reason::none && audit::has_failure(origin.record)) return;
  const bool stdio = origin.record != nullptr &&
                     origin.record->layer == static_cast<std::uint64_t>(trace::Layer::stdio);
  audit::log_outcome(origin.record,
                     {.specification = origin.specification, .reason = reason, .stdio = stdio},
                     hints);
}

void add_reference(Handle& handle) { registry::add_reference(handle); }

struct stat identity_of(const Handle& handle) {
  struct stat file = {};
  file.st_dev = handle.file->context().backing.id().device;
  file.st_ino = handle.file->context().backing.id().inode;
  return file;
}

bool is_descriptor_of(const Handle& handle, int descriptor) {
  return is_open_on(descriptor, handle.file->context().backing.id());
}

namespace {

/// Closes a descriptor in a signal handler that has interrupted a call on its file. That call may
/// still use the handle, which therefore stays.
void close_in_signal_handler(Handle& handle, int other) {
  if (other < 0) return handle.file->flush_in_signal_handler();
  handle.descriptor = other;
  registry::remove_reference(handle, false);
}

}  // namespace

long close(Handle& handle, int other) {
  BufferedFile& file = *handle.file;
  if (file.is_interrupted()) return close_in_signal_handler(handle, other), 0;
  const long error = file.close_descriptor(handle, other);
  registry::remove_reference(handle, other < 0);
  return error;
}

bool keep_handle(Handle& handle, DirtyBytes dirty) {
  return !registry::has_other_references(handle) && handle.file->keep_handle(handle, dirty);
}

long write(Handle& handle, std::span<const iovec> pieces, StartOffset at) {
  return handle.file->write(handle, pieces, at);
}

long read(Handle& handle, std::span<const iovec> pieces, StartOffset at) {
  return handle.file->read(handle, pieces, at);
}

long seek(Handle& handle, std::int64_t offset, int whence) {
  return handle.file->seek(handle, offset, whence);
}

std::uint64_t position(Handle& handle) { return handle.file->position(handle); }

long flush(Handle& handle) { return handle.file->flush(handle); }

bool flush_file(dev_t device, ino_t inode) {
  if (is_idle()) return false;
  const registry::FoundFile found({device, inode});
  if (found.get() != nullptr) found.get()->sync_to_kernel();
  return found.get() != nullptr;
}

void flush_all() {
  registry::for_each_file([](BufferedFile& file) {
    file.sync_to_kernel();
    file.publish();
  });
}

bool is_idle() { return registry::is_idle(); }

void sync_to_kernel(Handle& handle) { handle.file->sync_to_kernel(); }
void reload_offset(Handle& handle) { handle.file->reload_offset(handle); }

void stop_buffering(Handle& handle, Reason reason) { handle.file->stop_buffering(reason); }

void stop_buffering(dev_t device, ino_t inode, Reason reason) {
  const registry::FoundFile found({device, inode});
  if (found.get() != nullptr) found.get()->stop_buffering(reason);
}

void stop_all_buffering(Reason reason) {
  registry::for_each_file([=](BufferedFile& file) { file.stop_buffering(reason); });
}

void start_map_ahead(Handle& handle, const void* address, base::Extent range) {
  const hints::StreamHints& hints = handle.file->context().hints;
  if (hints.map_ahead) map_ahead::start(address, range, handle.descriptor, hints.readers);
}

void stop_map_ahead(const void* address) { map_ahead::stop(address); }

Statistics statistics(Handle& handle) { return handle.file->statistics(); }

}  // namespace pario::buffers
