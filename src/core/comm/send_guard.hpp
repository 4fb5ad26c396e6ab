// A guard against crashes in sends to dead ranks.
#pragma once

namespace pario::comm {

/// Drops messages of its thread that UCX rejects at once, as it does after the host of a dead rank
/// has closed the connection. Without it MPICH 5 reads through a null pointer.
class SendGuard {
 public:
  SendGuard();
  SendGuard(const SendGuard&) = delete;
  SendGuard& operator=(const SendGuard&) = delete;
  ~SendGuard();
  /// True if a message was dropped.
  bool has_lost_message() const;

 private:
  int before_;
};

}  // namespace pario::comm
