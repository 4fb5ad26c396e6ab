// The notes `hint`: the requested and the effective hints of a file.
#pragma once

#include <cstdint>
#include <string>

#include "observe/pmpi/library.hpp"

namespace pario::pmpi {

/// Writes the hint notes of one open file. Rank 0 writes them for all its files, the other ranks
/// for their first 64.
class HintNotes {
 public:
  HintNotes();
  /// Called after MPI_File_open.
  void note_open(const Library& mpi, Word file, std::uint32_t record, Word info);
  /// Notes the Info of MPI_File_set_view or MPI_File_set_info.
  void note_request(const Library& mpi, std::uint32_t record, Word info) const;
  /// Called before MPI_File_close: notes the effective hints again if they have changed since.
  void note_close(const Library& mpi, Word file, std::uint32_t record);

 private:
  void note_effective(const Library& mpi, Word file, std::uint32_t record);

  bool wanted_;
  std::string effective_;  // the latest noted ones
};

}  // namespace pario::pmpi
