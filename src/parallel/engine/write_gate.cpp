#include "parallel/engine/write_gate.hpp"

#include "parallel/engine/report.hpp"

namespace pario::engine {

base::Status WriteGate::enter(Write write) {
  return write == Write::modify ? enter_modify() : enter_plain();
}

/// Each side first announces itself and then looks for the other, so that at least one of the two
/// sees the other.
base::Status WriteGate::enter_plain() {
  while (true) {
    own_count_.fetch_add(1);
    if (state_.modifying.load() == 0) return {};
    leave(Write::plain);
    const auto is_free = [this] { return state_.modifying.load() == 0; };
    if (base::Status status = wait(is_free); !status) return status;
  }
}

base::Status WriteGate::enter_modify() {
  state_.modifying.fetch_add(1);
  base::Status status = wait([this] { return !has_plain_writes(); });
  if (!status) leave(Write::modify);
  return status;
}

void WriteGate::leave(Write write) {
  if (write == Write::modify) {
    if (state_.modifying.fetch_sub(1) == 1) wake_waiting();
  } else {
    own_count_.fetch_sub(1);
    if (state_.modifying.load() != 0) wake_waiting();
  }
}

base::Status WriteGate::wait(const std::function<bool()>& done) {
  if (done()) return {};
  comm::Watchdog watch(comm_, {}, {.path = path_, .call = "write", .say = say});
  return comm::wait_until(state_.changes, done, watch.patience());
}

bool WriteGate::has_plain_writes() const {
  for (int rank = 0; rank < comm_.local_size(); ++rank)
    if (plain_[rank].count.load() != 0) return true;
  return false;
}

void WriteGate::wake_waiting() {
  state_.changes.fetch_add(1);
  base::futex_wake(state_.changes);
}

}  // namespace pario::engine
