// The ADIOS2 libraries of the process, found by the objects that call them.
#pragma once

#include "core/symbols/libraries.hpp"
#include "observe/adios2/functions.hpp"

namespace pario::adios2 {

/// The functions of a type of memory that the tracer calls itself; null where they are missing.
/// std::vector is returned in memory of the caller.
struct TypeFunctions {
  std::size_t (*selection_size)(const void* variable) = nullptr;
  std::size_t (*size_of)(const void* variable, const void* selection) = nullptr;
  void (*count)(std::size_t** vector, const void* variable) = nullptr;
  void* (*inquire)(void* io, const void* name) = nullptr;
};

/// An ADIOS2 library as one loaded object calls it.
class Library : public symbols::InterposedLibrary<kSymbolCount> {
 public:
  /// Returns the library that the object with the code at `caller` calls; see symbols::Callers.
  static Library& of(Word caller);

  /// Finds the library of a caller; for symbols::Callers.
  void load(stack::Range code, Word caller);
  /// Returns the function that the caller's reference stands for: that of a tool behind this
  /// library, or of ADIOS2. Null if there is none.
  void* real(SymbolId id);
  /// True if its calls can be recorded.
  bool is_known() const { return io_of != nullptr && total_size != nullptr; }
  const TypeFunctions& of_type(Type type) const { return types_[static_cast<std::size_t>(type)]; }

  void* (*io_of)(void* engine) = nullptr;
  std::size_t (*total_size)(const void* variable) = nullptr;
  void (*free)(void*) = nullptr;  ///< operator delete, as the library calls it

 private:
  void load_types();

  TypeFunctions types_[kTypeCount];
};

}  // namespace pario::adios2
