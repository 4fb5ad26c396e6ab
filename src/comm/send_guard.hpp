// Sends to ranks that have died.
#pragma once

namespace pario::comm {

/// MPICH 5 reads through a null pointer where UCX says at once that a message cannot leave, as it does once the host of a dead rank
/// has closed the connection. While one of these lives, such a message of this thread is lost instead.
class SendGuard {
 public:
  SendGuard();
  SendGuard(const SendGuard&) = delete;
  SendGuard& operator=(const SendGuard&) = delete;
  ~SendGuard();
  /// Whether a message was lost.
  bool lost() const;

 private:
  int before_;
};

}  // namespace pario::comm
