// MPI datatypes as layouts of bytes, in memory and in the file.
#pragma once

#include <optional>
#include <string>

#include "core/pattern/pattern.hpp"
#include "parallel/mpiio/call.hpp"

namespace pario::mpiio {

/// The form of basic types in the file: native (also "internal"), external32, or a representation
/// that the program has registered.
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
  /// Returns the bytes of an instance of a predefined type in the file.
  std::uint64_t size_of(Word basic) const;
};

/// Finds a representation by its name; null: unknown.
const Representation* representation(const std::string& name);
/// Returns the native representation.
const Representation& native();

/// True if a valid, non-null datatype is committed.
bool is_committed(Word type);
/// Returns the layout in memory of one instance of a valid, non-null datatype. The first call
/// stores it as an attribute of the type; later calls are a lookup.
pattern::TypeMap layout_of(Word type);
/// The layout of a valid type if it was computed before; null otherwise.
const pattern::TypeMap* known_layout(Word type);
/// As layout_of(), by one lookup; nothing if the type is not committed.
std::optional<pattern::TypeMap> layout_if_committed(Word type);
/// Returns the layout in a file of a representation.
pattern::TypeMap layout_in_file(Word type, const Representation& representation);
/// Returns the bytes of one instance in a file of a representation.
std::uint64_t size_in_file(Word type, const Representation& representation);
/// Returns a type that lives as long as a view: predefined types as they are, others duplicated.
Word retain_type(Word type);
void release_type(Word type);

/// Convert between memory and `packed`, `count` instances in the form of the file, for
/// representations other than the native one. decode() serves registered ones (external32: see
/// external32.hpp). False: the conversion failed.
bool encode(const Representation& to, const void* buffer, std::int64_t count, Word type,
            std::byte* packed, std::uint64_t size);
bool decode(const Representation& from, void* buffer, std::int64_t count, Word type,
            std::byte* packed, std::uint64_t size);

}  // namespace pario::mpiio
