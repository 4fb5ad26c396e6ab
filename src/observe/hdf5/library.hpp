// The HDF5 libraries of the process, found by the objects that call them.
#pragma once

#include <link.h>

#include <atomic>

#include "core/stack/stack.hpp"
#include "observe/hdf5/functions.hpp"

namespace pario::hdf5 {

/// An HDF5 library as one loaded object calls it.
class Library {
 public:
  /// Returns the library that the object with the code at `caller` calls; for generated code and
  /// for callers beyond a limit any HDF5 of the process. Stays valid: the calling object is never
  /// unloaded.
  static Library& of(Word caller);

  /// Returns the function that the caller's reference stands for: that of a tool behind this
  /// library, or of HDF5. Null if there is none.
  void* real(Id id);
  /// True if its calls can be recorded: it is HDF5 1.10 or later.
  bool is_known() const { return is_known_; }
  /// A number of the HDF5: each numbers its objects by itself.
  Word identity() const { return reinterpret_cast<Word>(count_points); }

#define PARIO_USED(member, symbol, result, parameters) result(*member) parameters = nullptr;
#define PARIO_USED_IF_PRESENT PARIO_USED
#include "observe/hdf5/library.def"
#undef PARIO_USED
#undef PARIO_USED_IF_PRESENT

 private:
  void load(stack::Range code, Word caller);
  void load_functions();
  void* find(const char* name, const char* version) const;
  void* find_any_function() const;

  std::atomic<bool> is_loaded_ = false;
  stack::Range code_;              // of the caller
  const link_map* map_ = nullptr;  // of the caller
  void* scope_ = nullptr;          // handle of the caller
  void* hdf5_ = nullptr;           // handle of HDF5
  bool is_known_ = false;
  std::atomic<void*> real_[kFunctionCount] = {};
};

}  // namespace pario::hdf5
