// Sends to ranks that have died.
#pragma once

namespace pario::comm {

/// MPICH 5 reads through a null pointer if UCX reports at once that a message cannot leave, as it
/// does after the host of a dead rank has closed the connection. While a SendGuard lives, such
/// messages of its thread are lost instead.
class SendGuard {
 public:
  SendGuard();
  SendGuard(const SendGuard&) = delete;
  SendGuard& operator=(const SendGuard&) = delete;
  ~SendGuard();
  /// True if a message was lost.
  bool lost() const;

 private:
  int before_;
};

}  // namespace pario::comm
