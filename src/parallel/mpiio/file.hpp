// An open file of MPI-IO, to which an MPI_File handle refers, and the table of open files.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "parallel/engine/engine.hpp"
#include "parallel/mpiio/call.hpp"
#include "parallel/mpiio/datatypes.hpp"
#include "parallel/mpiio/errors.hpp"

namespace pario::mpiio {

/// A file view, as the program set it and as bytes. Owns its derived types.
struct View {
  std::int64_t displacement = 0;
  Word etype = 0, filetype = 0;
  const Representation* representation = nullptr;
  pattern::FileView bytes = {};
  std::uint64_t etype_size() const { return bytes.etype_size; }
};

/// A started access, and the conversion of its outcome.
struct Started {
  std::shared_ptr<engine::Operation> operation;
  /// Called once, by a thread of the program, when the operation is complete. `bytes`: those of
  /// memory that were read or written.
  std::function<Outcome(std::uint64_t moved, std::uint64_t& bytes)> finish;
};

struct Mode {
  int amode = 0;
  bool readable = false, writable = false, sequential = false, append = false;
};

struct OpenFile : std::enable_shared_from_this<OpenFile> {
  std::unique_ptr<engine::SharedFile> shared;
  std::string path;
  Mode mode;
  Word group = 0;
  Handler handler;

  std::mutex mutex;  ///< guards the members below
  View view;
  std::uint64_t position = 0;  ///< individual file pointer, in data bytes of the view
  Word info = 0;               ///< the hints in force as an Info; 0: not made yet
  std::uint64_t info_of = 0;   ///< the number of the policy that `info` describes
  bool split_active = false;
  Kind split_kind = {};
  Started split;
};

/// Finds the file of a handle, which is its address. Null for MPI_FILE_NULL and unknown handles.
std::shared_ptr<OpenFile> find(Word handle);
/// The same without a lock and without sharing the file: no thread may close it during the call.
OpenFile* find_in_use(Word handle);
Word add(std::shared_ptr<OpenFile> file);
void erase(Word handle);
bool is_file_null(Word handle);
/// Returns all open files, for the end of the program.
std::vector<std::shared_ptr<OpenFile>> open_files();

/// Reports after MPI_Finalize, once, that files were left open. Does not close them: close is
/// collective, and other ranks may have closed theirs.
void report_open_files();

}  // namespace pario::mpiio
