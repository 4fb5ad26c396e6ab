#include "engine/gate.hpp"

#include "engine/report.hpp"

namespace pario::engine {

base::Status Gate::enter(bool sieving) { return sieving ? enter_sieving() : enter_plain(); }

/// Whoever has said that he writes and then sees nobody sieving may go on: one of the two always sees the other.
base::Status Gate::enter_plain() {
  while (true) {
    mine().writing.fetch_add(1);
    if (common_.sieving.load() == 0) return {};
    leave(false);
    if (base::Status status = wait([this] { return common_.sieving.load() == 0; }); !status) return status;
  }
}

base::Status Gate::enter_sieving() {
  common_.sieving.fetch_add(1);
  base::Status status = wait([this] { return nobody_writes(); });
  if (!status) leave(true);
  return status;
}

void Gate::leave(bool sieving) {
  if (sieving) {
    if (common_.sieving.fetch_sub(1) == 1) changed();
  } else {
    mine().writing.fetch_sub(1);
    if (common_.sieving.load() != 0) changed();
  }
}

base::Status Gate::wait(const std::function<bool()>& done) {
  if (done()) return {};
  comm::Watchdog watch(comm_, comm_, {}, {.path = path_, .call = "write", .say = say});
  return comm::wait_until(common_.changes, done, watch.patience());
}

bool Gate::nobody_writes() const {
  for (int rank = 0; rank < comm_.local_size(); ++rank)
    if (plain_[rank].writing.load() != 0) return false;
  return true;
}

void Gate::changed() {
  common_.changes.fetch_add(1);
  base::futex_wake(common_.changes);
}

}  // namespace pario::engine
