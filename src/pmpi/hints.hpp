// The notes `hint`: what a program asked of MPI-IO, and what came of it.
#pragma once

#include <cstdint>
#include <string>

#include "pmpi/library.hpp"

namespace pario::pmpi {

/// Writes the hint notes of one open file. Rank 0 does so for all its files, the other ranks for their first 64.
class HintNotes {
 public:
  HintNotes();
  void opened(const Library& mpi, Word file, std::uint32_t record, Word info);
  /// The Info of MPI_File_set_view and MPI_File_set_info.
  void requested(const Library& mpi, std::uint32_t record, Word info) const;
  /// Before MPI_File_close: the effective hints again where the use of the file has changed them.
  void closing(const Library& mpi, Word file, std::uint32_t record);

 private:
  void effective(const Library& mpi, Word file, std::uint32_t record);

  bool wanted_;
  std::string effective_;  // as last written
};

}  // namespace pario::pmpi
