#include "layers/buffers/handle.hpp"

#include <unistd.h>

#include <utility>

namespace pario::buffers {
namespace {

void store_offset(Handle& handle) {
  if (handle.appends) return apply_rewind(handle);
  system_calls.seek(handle.descriptor, static_cast<std::int64_t>(handle.offset), SEEK_SET);
}

bool load_offset(Handle& handle, FileId id) {
  struct stat status;
  if (system_calls.status(handle.descriptor, status) != 0 || file_id_of(status) != id) return false;
  const long offset =
      handle.appends ? status.st_size : system_calls.seek(handle.descriptor, 0, SEEK_CUR);
  handle.offset = static_cast<std::uint64_t>(offset);
  handle.next_read = handle.offset;
  return offset >= 0;
}

}  // namespace

void apply_rewind(Handle& handle) {
  if (handle.rewound) system_calls.seek(handle.descriptor, 0, SEEK_SET);
  handle.rewound = false;
}

void HandleList::add(Handle& handle) {
  handle.error = unseen_error_;
  handle.next = first_;
  first_ = &handle;
}

void HandleList::remove(Handle& handle) {
  for (Handle** link = &first_; *link != nullptr; link = &(*link)->next) {
    if (*link != &handle) continue;
    *link = handle.next;
    return;
  }
}

bool HandleList::has_writer() const {
  for (const Handle* handle = first_; handle != nullptr; handle = handle->next)
    if (handle->writes) return true;
  return false;
}

void HandleList::store_offsets() { for_each(store_offset); }

bool HandleList::load_offsets(FileId id) {
  for (Handle* handle = first_; handle != nullptr; handle = handle->next)
    if (!load_offset(*handle, id)) return false;
  return true;
}

void HandleList::defer_error(long error) {
  unseen_error_ = error;
  for_each([=](Handle& handle) { handle.error = error; });
}

long HandleList::report_error(Handle& handle) {
  if (handle.error != 0) unseen_error_ = 0;
  return std::exchange(handle.error, 0);
}

}  // namespace pario::buffers
