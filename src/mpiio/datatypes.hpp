// MPI datatypes as layouts of bytes, in memory and in the file.
#pragma once

#include <string>

#include "mpiio/call.hpp"
#include "pattern/pattern.hpp"

namespace pario::mpiio {

/// How basic types look in the file: native (also "internal"), external32, or a representation that the program has registered.
struct Representation {
  enum class Kind : std::uint8_t { native, external32, user } kind = Kind::native;
  std::string name = "native";
  // Registered ones: the program's functions (null: MPI_CONVERSION_FN_NULL) and their extra state.
  void* read = nullptr;
  void* write = nullptr;
  void* extent = nullptr;
  Word extra = 0;
  bool large = false;  ///< the conversion functions take MPI_Count

  bool native() const { return kind == Kind::native; }
  /// Bytes that an instance of a predefined type takes in the file.
  std::uint64_t size_of(Word basic) const;
};

/// The representation of a name; null: there is none.
const Representation* representation(const std::string& name);
/// The native one.
const Representation& native();

/// Whether a valid, non-null datatype is committed.
bool committed(Word type);
/// The layout of one instance of a valid, non-null datatype. In memory it is kept with the type, and found again at once.
pattern::Layout layout_of(Word type);
/// The same in a file of that representation.
pattern::Layout layout_in_file(Word type, const Representation& representation);
/// A type that lives as long as a view needs it: predefined ones are themselves, others are duplicated.
Word keep_type(Word type);
void drop_type(Word type);
bool is_named(Word type);

/// For representations other than the native one; decode: for registered ones (external32: see external32.hpp). `packed` holds `count`
/// instances as they are in the file; false: the conversion failed.
bool encode(const Representation& to, const void* buffer, std::int64_t count, Word type, std::byte* packed, std::uint64_t size);
bool decode(const Representation& from, void* buffer, std::int64_t count, Word type, std::byte* packed, std::uint64_t size);

}  // namespace pario::mpiio
