#include "data/records/team.hpp"

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

namespace pario::records {
namespace {

constexpr auto kBetweenShows = std::chrono::milliseconds(100);

/// The outcome of the workers, for the waiting thread.
class Outcome {
 public:
  explicit Outcome(Meter& meter) : meter_(meter) {}

  void start() {
    const std::scoped_lock lock(mutex_);
    ++working_;
  }
  void leave(base::Status status) {
    const std::scoped_lock lock(mutex_);
    --working_;
    if (!status && status_.ok()) {
      status_ = std::move(status);
      meter_.stop();
    }
    changed_.notify_all();
  }
  /// Waits for a moment. False: some workers have not ended yet.
  bool wait() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kBetweenShows, [&] { return working_ == 0; });
  }
  base::Status status() { return status_; }

 private:
  Meter& meter_;
  std::mutex mutex_;
  std::condition_variable changed_;
  unsigned working_ = 0;
  base::Status status_;
};

/// Runs work; converts a failed allocation to an Error.
base::Status carry_out(const std::function<base::Status(unsigned)>& work, unsigned worker) {
  try {
    return work(worker);
  } catch (const std::bad_alloc&) {
    return base::Error{.number = ENOMEM, .operation = "allocate"};
  } catch (const std::length_error&) {
    return base::Error{
        .number = ENOMEM, .operation = "allocate", .detail = "more than there can be"};
  }
}

base::Status stop_error() {
  return base::Error{.number = ECANCELED, .operation = "records", .detail = "stopped"};
}

}  // namespace

base::Status run_team(unsigned workers, Meter& meter,
                      const std::function<base::Status(unsigned)>& work) {
  Outcome outcome(meter);
  std::vector<std::jthread> threads;
  for (unsigned worker = 0; worker < workers; ++worker) {
    outcome.start();
    try {
      threads.emplace_back([&, worker] { outcome.leave(carry_out(work, worker)); });
    } catch (const std::system_error& error) {
      outcome.leave(base::Error{
          .number = error.code().value(), .operation = "thread", .detail = "could not be started"});
      break;
    }
  }
  bool wanted = true;
  while (!outcome.wait())
    if (wanted && !(wanted = meter.show())) meter.stop();
  threads.clear();
  if (wanted && outcome.status().ok()) wanted = meter.show();
  return wanted || !outcome.status().ok() ? outcome.status() : stop_error();
}

}  // namespace pario::records
