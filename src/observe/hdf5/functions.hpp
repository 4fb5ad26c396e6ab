// The table of functions.def as data.
#pragma once

#include <array>
#include <cstdint>

#include "core/symbols/words.hpp"
#include "core/trace/trace.hpp"
#include "observe/hdf5/hdf5.hpp"

namespace pario::hdf5 {

/// An argument or a result: an integer, a pointer or an identifier of HDF5 (64 bits since 1.10).
using symbols::Word;

/// The arguments of a function that the tracer reads. Roles of functions that return an object come
/// first.
enum class Role : std::uint8_t {
  open_file,         ///< (name, ...), returns a file
  create_object,     ///< (location, name, ...), returns a new dataset
  create_unnamed,    ///< (location, ...), returns a new dataset
  open_object,       ///< (location, name, ...), returns a dataset or a group
  close,             ///< (object)
  other,             ///< (object, ...), on the object's dataset or file
  transfer,          ///< (dataset, memory type, memory space, file space, transfer list, data)
  transfer_several,  ///< the same with a number before, and arrays but for the transfer list
  read_chunk,        ///< (dataset, transfer list, offset, ...)
  write_chunk,       ///< (dataset, transfer list, filters, offset, size, data)
  end,               ///< the library forgets all objects
};

enum class Id : std::uint16_t {
#define PARIO_HDF5(name, arguments, op, role) name,
#include "observe/hdf5/functions.def"
#undef PARIO_HDF5
  count
};
inline constexpr std::size_t kFunctionCount = static_cast<std::size_t>(Id::count);

struct Function {
  const char* name;
  std::uint8_t arguments;
  trace::Op op;
  Role role;
};
inline constexpr std::array<Function, kFunctionCount> kFunctions = {{
#define PARIO_HDF5(name, arguments, op, role) {#name, arguments, trace::Op::op, Role::role},
#include "observe/hdf5/functions.def"
#undef PARIO_HDF5
}};

/// Forwards and records a call. `words` has word_capacity(arguments) words, `caller` is the address
/// to which the definition returns.
Word dispatch(Id id, const Word* words, Word caller);

}  // namespace pario::hdf5
