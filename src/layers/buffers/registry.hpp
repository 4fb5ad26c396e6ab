// All buffered files and all handles of the process.
#pragma once

#include <atomic>
#include <optional>
#include <span>

#include "layers/buffers/blocked_signals.hpp"
#include "layers/buffers/buffered_file.hpp"

namespace pario::buffers::registry {

/// Registers an open description, with its file if the process does not have it open; null and a
/// reason if it is not buffered.
Handle* open(int descriptor, int flags, const struct stat& status, const hints::StreamHints& hints,
             std::string_view path, const Origin& origin, Reason& reason);
void add_reference(Handle& handle);
bool has_other_references(const Handle& handle);
/// Removes one reference, and with the last one the handle; with the last handle the file.
void remove_reference(Handle& handle, bool is_last);

/// True if no file has buffers.
bool is_idle();

/// Finds an open file; if there is one, holds the registry's lock while the object lives.
class FoundFile {
 public:
  explicit FoundFile(FileId id);
  BufferedFile* get() const { return file_; }

 private:
  std::optional<HandlerSafeLock> lock_;
  BufferedFile* file_ = nullptr;
};
/// Finds an open file without the lock, in a process with one thread.
BufferedFile* find_file(FileId id);

/// The part of the table of files that has ever been used.
std::span<BufferedFile> known_files();

// Calls a function for each open file of the table.
template <class Function>
void for_each_file(Function&& function) {
  for (BufferedFile& file : known_files())
    if (file.is_open()) function(file);
}

// Called around a fork, which no signal handler interrupts.
void lock_for_fork();
void unlock_after_fork();
/// Resets the registry in the child: all files become inherited, and all handles end.
void reset_in_child();
void unblock_signals_in_child();

}  // namespace pario::buffers::registry
