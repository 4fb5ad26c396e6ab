// The netCDF and PnetCDF libraries of the process, found by the objects that call them.
#pragma once

#include "core/symbols/libraries.hpp"
#include "observe/netcdf/functions.hpp"

namespace pario::netcdf {

/// A netCDF or PnetCDF library as one loaded object calls it.
class Library : public symbols::InterposedLibrary<kSymbolCount> {
 public:
  /// Returns the library that the object with the code at `caller` calls; see symbols::Callers.
  static Library& of(Kind kind, Word caller);

  /// Returns the function that the caller's reference stands for: that of a tool behind this
  /// library, or of the library. Null if there is none.
  void* real(SymbolId symbol);
  /// True if its calls can be recorded.
  bool is_known() const { return is_known_; }
  /// A number of the library: each numbers its files by itself.
  Word identity() const { return reinterpret_cast<Word>(path); }
  trace::Layer layer() const {
    return kind_ == Kind::netcdf ? trace::Layer::netcdf : trace::Layer::pnetcdf;
  }
  /// True if two identifiers belong to the same file: those of groups differ in the lower half.
  bool is_same_file(int one, int other) const {
    return kind_ == Kind::netcdf ? one >> 16 == other >> 16 : one == other;
  }

#define PARIO_USED(member, name, parameters) int(*member) parameters = nullptr;
#define PARIO_USED_IF_PRESENT PARIO_USED
#include "observe/netcdf/library.def"
#undef PARIO_USED
#undef PARIO_USED_IF_PRESENT

 protected:
  void load_kind(Kind kind, stack::Range code, Word caller);

 private:
  void load_functions();
  void* find_function(const char* name) const;

  Kind kind_ = Kind::netcdf;
  bool is_known_ = false;
};

}  // namespace pario::netcdf
