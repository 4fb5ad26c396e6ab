// Requests of the MPI as one message in flight.
#pragma once

#include <cerrno>
#include <optional>
#include <span>
#include <vector>

#include "core/comm/board.hpp"
#include "core/comm/comm.hpp"
#include "core/mpi/mpi.hpp"

namespace pario::comm {

/// The error of a failed message of the MPI.
inline base::Error mpi_failed() {
  return {.number = EIO,
          .operation = "message between ranks",
          .detail = "the MPI failed; a rank may have died"};
}

class Requests : public Pending {
 public:
  /// `requests`: in the order in which they were started. A failed request makes `board` fail.
  Requests(const mpi::Library& mpi, std::vector<mpi::Word> requests,
           std::optional<Board> board = {})
      : mpi_(mpi), requests_(std::move(requests)), board_(std::move(board)) {}
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;
  ~Requests() override;

  bool test() override;
  int error() const override { return error_; }
  /// Stores the result of a function of the MPI that starts a request.
  void note(int result);
  void add(mpi::Word request) { requests_.push_back(request); }
  /// The requests receive, so that they can be cancelled.
  void set_receiving() { receiving_ = true; }

 private:
  void withdraw();

  const mpi::Library& mpi_;
  std::vector<mpi::Word> requests_;  // in flight
  std::optional<Board> board_;
  int error_ = 0;
  bool receiving_ = false;
};

}  // namespace pario::comm
