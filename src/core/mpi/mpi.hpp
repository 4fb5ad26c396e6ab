// Module mpi: the MPI of this process, of any kind, without any mpi.h: its functions (PMPI_ level),
// handles and constants. One binary serves MPICH (and its ABI: Intel, MVAPICH, Cray), Open MPI and
// the standard ABI; observe/pmpi/pmpi.hpp explains why words are enough.
//
// Tables: library.def (functions), constants.def (integers, one column per interface), handles.def
// (predefined handles). tests/mpi compares them with each mpi.h.
//
// Handles are Words everywhere in pario. A function that returns a handle writes 4 bytes under
// MPICH and 8 elsewhere: its Word must be 0 before. Arrays of handles are read and written with
// handle_at() and set_handle_at().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace pario::mpi {

/// An argument or a result of any MPI function.
using Word = std::uintptr_t;

/// The three binary interfaces. Intel MPI, MVAPICH and Cray MPICH are `mpich`.
enum class Flavour : std::uint8_t { mpich, openmpi, standard };

/// Integer constants, by their names in MPI.
enum class Constant : std::uint8_t {
#define PARIO_CONSTANT(name, ...) MPI_##name,
#include "core/mpi/constants.def"
#undef PARIO_CONSTANT
  count
};
/// A value that no program passes and no function returns.
inline constexpr int kNoConstant = INT32_MIN;

/// Predefined handles, by their names in MPI.
enum class Handle : std::uint8_t {
#define PARIO_HANDLE(name, ...) MPI_##name,
#include "core/mpi/handles.def"
#undef PARIO_HANDLE
  count
};
inline constexpr Word kNoHandle = ~Word{0};

/// The largest MPI_Status of all MPIs.
inline constexpr std::size_t kStatusSize = 32;

/// Finds the function `symbol` ("PMPI_Init") behind pario's own, also of an MPI that was loaded
/// with RTLD_LOCAL; null if no loaded MPI has it. Not for signal handlers.
void* find(const char* symbol);

/// The PMPI functions, constants and layouts of the loaded MPI.
class Library {
 public:
  /// Returns null while no MPI is loaded, and if it has none of the three interfaces (reported
  /// once).
  static const Library* get() {
    const Library* const known = known_.load(std::memory_order_acquire);
    return known != nullptr ? known : get_first();
  }

  Flavour flavour;
  Word comm_world, comm_self, datatype_null, byte, info_null;  ///< short for get_predefined(...)
  Word in_place, status_ignore;

#define PARIO_PMPI(name, member, ...) int (*member)(__VA_ARGS__);
#define PARIO_PMPI_OPTIONAL PARIO_PMPI
#include "core/mpi/library.def"
#undef PARIO_PMPI
#undef PARIO_PMPI_OPTIONAL

  /// The value of a constant; kNoConstant if this MPI lacks it.
  int value(Constant constant) const { return constants_[static_cast<std::size_t>(constant)]; }
  /// A predefined handle; kNoHandle if this MPI lacks it.
  Word get_predefined(Handle name) const { return handles_[static_cast<std::size_t>(name)]; }

  /// A handle as a key: MPICH's are 32 bits wide, the rest of the word is undefined. Not for
  /// MPI_File, which is a pointer everywhere.
  Word handle(Word word) const {
    return flavour == Flavour::mpich ? static_cast<std::uint32_t>(word) : word;
  }
  /// The handle at `pointer` (the argument of MPI_Comm_free, the result of MPI_Win_create).
  Word handle_at(Word pointer) const { return handle_at(pointer, 0); }
  /// Handle number `index` of the array at `pointer`.
  Word handle_at(Word pointer, int index) const;
  void set_handle_at(Word pointer, int index, Word value) const;

  /// Calls `use(key, value)` for each setting of an Info.
  template <class Use>
  void for_each_setting(Word info, const Use& use) const {
    constexpr int kLongestKey = 256, kLongestValue = 1024;  // the largest limits of all MPIs
    int count = 0;
    if (handle(info) == info_null || info_count(info, &count) != 0) return;
    for (int i = 0; i < count; ++i) {
      char key[kLongestKey + 1] = {}, value[kLongestValue + 1] = {};
      int found = 0;
      if (info_key(info, i, key) == 0 && info_value(info, key, kLongestValue, value, &found) == 0 &&
          found)
        use(static_cast<const char*>(key), static_cast<const char*>(value));
    }
  }

  /// MPI_SOURCE and MPI_TAG of a status; false if the program passed MPI_STATUS_IGNORE.
  bool envelope(Word status, int& source, int& tag) const;
  std::size_t status_size() const;
  /// Sets MPI_ERROR of a status that is not MPI_STATUS_IGNORE.
  void set_status_error(Word status, int error) const;

  /// "single", "funneled", "serialized", "multiple".
  const char* thread_level() const;
  /// True if MPI_THREAD_MULTIPLE was granted.
  bool thread_multiple() const;

 private:
  enum class State : std::uint8_t { absent, known, strange };
  static const Library* get_first();
  State load();
  bool find_flavour();
  void set_tables();
  bool has_mpich_interface() const;

  static std::atomic<const Library*> known_;
  int constants_[static_cast<std::size_t>(Constant::count)];
  Word handles_[static_cast<std::size_t>(Handle::count)];
};

}  // namespace pario::mpi
