// The parts of an open SharedFile.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include "parallel/engine/context.hpp"
#include "parallel/engine/engine.hpp"
#include "parallel/engine/pointer_store.hpp"
#include "parallel/engine/transfers.hpp"

namespace pario::engine {

/// Memory of a file that no other rank shares.
struct alignas(64) MemoryLine {
  std::array<std::byte, 64> bytes;
};

/// Returns `error` with the text of the other one.
base::Error append_error(base::Error error, const base::Error& other);

struct OpenedFile {
  OpenedFile(std::shared_ptr<comm::Comm> comm, const OpenRequest& open_request)
      : request(open_request), context(std::move(comm), open_request), transfers(context) {}

  using Notices = std::span<const exchange::Notice>;

  /// Collective: waits for all ranks and returns their notices, valid until the next call; an error
  /// if one of them is in another call.
  base::Result<Notices> meet(const Call& call);
  /// Collective: waits for all ranks and writes all kept bytes of all ranks. An error of the
  /// meeting as in meet(), with the text of `earlier`; those of kept writes are in `earlier`.
  base::Status meet_and_flush(const Call& call, base::Status& earlier);
  /// Writes the windows of kept writes, after a meeting. An error goes to `earlier` if it has none.
  void flush_windows(base::Status& earlier);
  /// Collective: shares the outcome of all ranks. `operation`: the source of an error of this rank.
  base::Status agree(const base::Status& mine, const char* operation, const Call& call);
  /// Collective: agrees on the outcome of a change that rank 0 makes, after `earlier` errors.
  base::Status agree_on_change(base::Status earlier, const base::Status& changed, const Call& call);

  OpenRequest request;
  std::shared_ptr<comm::SharedMemory> node_memory;  // of the gate; null: own_memory
  std::unique_ptr<MemoryLine[]> own_memory;
  FileContext context;
  std::unique_ptr<SharedPointer> pointer;
  std::string striping_reason;
  std::uint64_t open_ns = 0;
  bool is_readable = true;  // for writers: they read windows with holes
  bool is_closed = true;
  Transfers transfers;  // last: its threads use the other members
};

}  // namespace pario::engine
