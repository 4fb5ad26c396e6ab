// What an MPI_File handle of pario's points to, and the table of those that are open.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "mpiio/call.hpp"
#include "mpiio/datatypes.hpp"
#include "mpiio/errors.hpp"

namespace pario::mpiio {

/// The view, as the program set it and as bytes. Owns its types where they are derived.
struct View {
  std::int64_t displacement = 0;
  Word etype = 0, filetype = 0;
  const Representation* representation = nullptr;
  pattern::FileView bytes = {};
  std::uint64_t etype_size() const { return bytes.etype_size; }
};

/// Access under way, and what is to be done with its outcome.
struct Started {
  std::shared_ptr<engine::Operation> operation;
  /// Called once, by a thread of the program, when the operation is done: the bytes of memory that it filled or emptied.
  std::function<std::uint64_t(std::uint64_t moved)> finish;
};

struct Mode {
  int amode = 0;
  bool readable = false, writable = false, sequential = false, append = false;
};

struct File {
  std::unique_ptr<engine::SharedFile> shared;
  std::string path;
  Mode mode;
  Word group = 0;
  Handler handler;

  std::mutex mutex;  ///< of what follows
  View view;
  std::uint64_t position = 0;  ///< individual file pointer, in data bytes of the view
  bool split_active = false;
  Kind split_kind = {};
  Started split;
  Outcome split_outcome = {};
};

/// Handles: addresses of files. Null for MPI_FILE_NULL and everything that is not open.
std::shared_ptr<File> find(Word handle);
Word add(std::shared_ptr<File> file);
void erase(Word handle);
bool is_file_null(Word handle);
/// All that are open, for the end of the program.
std::vector<std::shared_ptr<File>> open_files();

/// At MPI_Finalize: says once that files were left open. They are not closed: that is collective, and other ranks may have closed theirs.
void report_open_files();

}  // namespace pario::mpiio
