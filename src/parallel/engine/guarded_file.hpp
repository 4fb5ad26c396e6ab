// The file that the windows of one call access, with the locks of read-modify-writes.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <shared_mutex>

#include "parallel/engine/context.hpp"
#include "parallel/exchange/exchange.hpp"

namespace pario::engine {

/// A lock on a range of the file against other processes, for its lifetime.
class RangeLock {
 public:
  RangeLock(file::File& file, base::Extent range, bool exclusive)
      : file_(file), range_(range), status_(file.lock(range, exclusive)) {}
  ~RangeLock() {
    if (status_.ok()) static_cast<void>(file_.unlock(range_));
  }
  RangeLock(const RangeLock&) = delete;
  RangeLock& operator=(const RangeLock&) = delete;
  const base::Status& status() const { return status_; }

 private:
  file::File& file_;
  base::Extent range_;
  base::Status status_;
};

/// Excludes accesses that overlap a range, by threads of this process and by other processes, for
/// its lifetime: in atomic mode, and in read-modify-writes.
class OverlapLock {
 public:
  OverlapLock(FileContext& context, base::Extent range, bool exclusive)
      : shared_(exclusive ? Shared() : Shared(*context.guards().threads)),
        alone_(exclusive ? Alone(*context.guards().threads) : Alone()),
        range_(context.file(), range, exclusive) {}
  const base::Status& status() const { return range_.status(); }

 private:
  using Shared = std::shared_lock<std::shared_mutex>;
  using Alone = std::unique_lock<std::shared_mutex>;

  Shared shared_;
  Alone alone_;
  RangeLock range_;
};

/// The file for one call of a rank; used by one thread.
class GuardedFile final : public exchange::WindowFile {
 public:
  /// The locks that begin_modify() takes after the gate of the node. `range`: also those against
  /// other threads and processes, which collective and atomic calls do not need.
  enum class Locks : std::uint8_t { gate, range };

  GuardedFile(FileContext& context, const AccessPolicy& policy, Locks locks)
      : WindowFile(policy.layout.unit),
        context_(context),
        locks_(locks),
        permit_(*context.guards().handles) {}

  base::Status write(std::uint64_t offset, std::span<const std::byte> data) override;
  base::Result<std::uint64_t> read(std::uint64_t offset, std::span<std::byte> data) override;
  base::Status begin_modify(base::Extent hull) override;
  void end_modify(base::Extent hull) override;

  /// True if no other handle can write the file as long as this object lives.
  bool may_modify() { return permit_.obtain(); }

 private:
  FileContext& context_;
  const Locks locks_;
  ModifyPermit permit_;
  std::optional<NodeLocks::Hold> node_range_;  // if all ranks are on one node, else the next one
  std::optional<OverlapLock> alone_;
  std::optional<GatePass> pass_;
};

}  // namespace pario::engine
