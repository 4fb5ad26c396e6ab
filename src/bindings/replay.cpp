// Replay of recorded calls.
#include "instruments/replay/replay.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>
#include <vector>

#include "bindings/bindings.hpp"
#include "bindings/gil.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace pario::bindings {
namespace {

using replay::Operation;
using replay::Player;
using Rows = nb::ndarray<const std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

std::vector<std::string> verbs() {
  return {
#define PARIO_VERB(name) #name,
#include "instruments/replay/verbs.def"
#undef PARIO_VERB
  };
}

void make(Player* player, const std::vector<nb::bytes>& paths, std::size_t slots,
          std::size_t largest) {
  new (player) Player(texts_of(paths), slots, largest);
}

/// Sets functions of MPI by their addresses; 0: not used.
void use(Player& player, const std::vector<std::uintptr_t>& functions, std::uintptr_t byte) {
  replay::Mpi mpi{.byte = byte};
  for (const std::uintptr_t address : functions)
    mpi.functions.push_back(reinterpret_cast<void*>(address));
  player.set_mpi(std::move(mpi));
}

/// Plays rows. Raises OSError.
void play(Player& player, const Rows& rows, bool with_pauses) {
  if (rows.shape(1) != sizeof(Operation))
    throw nb::value_error("rows of another size than an operation has");
  base::Status status;
  {
    const Released released;
    status =
        player.play({reinterpret_cast<const Operation*>(rows.data()), rows.shape(0)}, with_pauses);
  }
  if (!status) raise_os_error(status.error());
}

}  // namespace

void add_replay(nb::module_& module) {
  module.def("replay_verbs", verbs);
  LockedClass<Player>(module, "ReplayPlayer")
      .def("__init__", make, "paths"_a, "slots"_a, "largest"_a)
      .def("use", use, "functions"_a, "byte"_a)
      .def("use_file", &Player::set_file, "slot"_a, "file"_a)
      .def("play", play, "rows"_a, "with_pauses"_a);
}

}  // namespace pario::bindings
