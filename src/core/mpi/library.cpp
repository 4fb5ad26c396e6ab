#include <algorithm>
#include <atomic>
#include <mutex>
#include <string_view>

#include "core/mpi/objects.hpp"
#include "core/trace/trace.hpp"

namespace pario::mpi {
namespace {

/// One column per flavour, in the order of Flavour.
constexpr int kConstants[][3] = {
#define PARIO_CONSTANT(name, mpich, openmpi, standard) {mpich, openmpi, standard},
#include "core/mpi/constants.def"
#undef PARIO_CONSTANT
};

struct PredefinedHandle {
  Word mpich;
  const char* openmpi;
  Word standard;
};
constexpr PredefinedHandle kHandles[] = {
#define PARIO_HANDLE(name, mpich, openmpi, standard) {mpich, openmpi, standard},
#include "core/mpi/handles.def"
#undef PARIO_HANDLE
};

Word value_of(const PredefinedHandle& row, Flavour flavour) {
  if (flavour == Flavour::mpich) return row.mpich;
  if (flavour == Flavour::standard) return row.standard;
  const Word found = row.openmpi ? address(row.openmpi) : 0;
  return found ? found : kNoHandle;
}

}  // namespace

std::atomic<const Library*> Library::known_{nullptr};

const Library* Library::get_first() {
  static Library library;
  static State state = State::absent;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (state == State::absent) state = library.load();
  if (state == State::known) known_.store(&library, std::memory_order_release);
  return known_.load(std::memory_order_relaxed);
}

Library::State Library::load() {
  bool complete = true;
#define PARIO_PMPI_OPTIONAL(name, member, ...) \
  member = reinterpret_cast<decltype(member)>(find("PMPI_" #name));
#define PARIO_PMPI(name, member, ...)             \
  PARIO_PMPI_OPTIONAL(name, member, __VA_ARGS__); \
  complete = complete && member != nullptr;
#include "core/mpi/library.def"
#undef PARIO_PMPI
#undef PARIO_PMPI_OPTIONAL
  if (!complete) return State::absent;
  if (!find_flavour()) {
    trace::message(
        "this MPI is neither MPICH (or of its ABI), nor Open MPI, nor of the standard ABI; its "
        "calls are not recorded");
    return State::strange;
  }
  set_tables();
  return State::known;
}

bool Library::find_flavour() {
  if (mpi_object().standard)
    flavour = Flavour::standard;
  else if (address("ompi_mpi_comm_world"))
    flavour = Flavour::openmpi;
  else if (has_mpich_interface())
    flavour = Flavour::mpich;
  else
    return false;
  return true;
}

void Library::set_tables() {
  for (std::size_t i = 0; i < std::size(kConstants); ++i)
    constants_[i] = kConstants[i][static_cast<std::size_t>(flavour)];
  for (std::size_t i = 0; i < std::size(kHandles); ++i)
    handles_[i] = value_of(kHandles[i], flavour);
  comm_world = get_predefined(Handle::MPI_COMM_WORLD),
  comm_self = get_predefined(Handle::MPI_COMM_SELF);
  datatype_null = get_predefined(Handle::MPI_DATATYPE_NULL),
  byte = get_predefined(Handle::MPI_BYTE);
  info_null = get_predefined(Handle::MPI_INFO_NULL);
  in_place = flavour == Flavour::mpich ? ~Word{0} : 1;
  status_ignore = flavour == Flavour::mpich ? 1 : 0;
}

/// True for the MPIs of MPICH's ABI initiative, recognised by their descriptions.
bool Library::has_mpich_interface() const {
  char text[8192] = {};  // the largest MPI_MAX_LIBRARY_VERSION_STRING of all MPIs
  int length = 0;
  if (get_library_version(text, &length) != 0) return false;
  const std::string_view description = text;
  constexpr std::string_view names[] = {"MPICH", "Intel(R) MPI", "MVAPICH", "ParaStation"};
  return std::any_of(std::begin(names), std::end(names),
                     [&](auto name) { return description.find(name) != description.npos; });
}

Word Library::handle_at(Word pointer, int index) const {
  if (flavour == Flavour::mpich) return reinterpret_cast<const std::uint32_t*>(pointer)[index];
  return reinterpret_cast<const Word*>(pointer)[index];
}

void Library::set_handle_at(Word pointer, int index, Word value) const {
  if (flavour == Flavour::mpich)
    reinterpret_cast<std::uint32_t*>(pointer)[index] = static_cast<std::uint32_t>(value);
  else
    reinterpret_cast<Word*>(pointer)[index] = value;
}

// The layouts: MPICH has two words of its count, then source, tag, error; Open MPI and the standard
// ABI have source, tag, error, then private fields.
bool Library::envelope(Word status, int& source, int& tag) const {
  if (status == status_ignore) return false;
  const auto* fields = reinterpret_cast<const int*>(status) + (flavour == Flavour::mpich ? 2 : 0);
  source = fields[0], tag = fields[1];
  return true;
}

std::size_t Library::status_size() const {
  return flavour == Flavour::mpich ? 20 : flavour == Flavour::openmpi ? 24 : 32;
}

void Library::set_status_error(Word status, int error) const {
  reinterpret_cast<int*>(status)[flavour == Flavour::mpich ? 4 : 2] = error;
}

const char* Library::thread_level() const {
  using enum Constant;
  int level = 0;
  if (query_thread(&level) != 0) return "unknown";
  if (level == value(MPI_THREAD_SINGLE)) return "single";
  if (level == value(MPI_THREAD_FUNNELED)) return "funneled";
  if (level == value(MPI_THREAD_SERIALIZED)) return "serialized";
  return level == value(MPI_THREAD_MULTIPLE) ? "multiple" : "unknown";
}

bool Library::thread_multiple() const {
  int level = 0;
  return query_thread(&level) == 0 && level == value(Constant::MPI_THREAD_MULTIPLE);
}

}  // namespace pario::mpi
