// The HDF5 libraries of the process, found by the objects that call them.
#pragma once

#include "core/symbols/libraries.hpp"
#include "observe/hdf5/functions.hpp"

namespace pario::hdf5 {

/// An HDF5 library as one loaded object calls it.
class Library : public symbols::InterposedLibrary<kFunctionCount> {
 public:
  /// Returns the library that the object with the code at `caller` calls; see symbols::Callers.
  static Library& of(Word caller);

  /// Finds the library of a caller; for symbols::Callers.
  void load(stack::Range code, Word caller);
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
  void load_functions();

  bool is_known_ = false;
};

}  // namespace pario::hdf5
