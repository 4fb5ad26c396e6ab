#include "parallel/engine/started_calls.hpp"

namespace pario::engine {

void InFlightCount::remove() {
  count_.fetch_sub(1);
  base::futex_wake(count_);
}

void InFlightCount::drain(const comm::Patience& patience) const {
  const auto is_empty = [this] { return count_.load() == 0; };
  static_cast<void>(comm::wait_until(count_, is_empty, patience));
}

StartedCalls::~StartedCalls() {
  worker_.drain(context_.patience());
  finish_independent();
}

bool StartedCalls::make_worker_comm(const char* call) {
  comm::Comm& comm = context_.comm();
  const bool shared = comm.size() > 1;
  if (shared && !comm.thread_safe() && comm.topology().nodes() > 1) return true;
  comm::Watchdog watch = context_.watchdog(call);
  worker_comm_ = shared ? comm.duplicate(watch.patience()) : context_.shared_comm();
  return worker_comm_ != nullptr;
}

std::shared_ptr<Operation> StartedCalls::start_independent(Task::Work work) {
  in_flight_->add();
  auto task = std::make_shared<Task>(std::move(work));
  submit_to_process(std::make_shared<Task>([task, in_flight = in_flight_] {
    task->run();
    in_flight->remove();  // when the task is done: a close waits for the count
    return base::Result<std::uint64_t>{std::uint64_t{0}};
  }));
  return task;
}

std::shared_ptr<Operation> StartedCalls::start_collective(Task::Work work) {
  may_run_ = true;
  auto task = std::make_shared<Task>(std::move(work));
  if (worker_comm_) {
    if (!worker_.submit(task)) task->run();
    return task;
  }
  task->set_progress([this] { run_deferred(); });
  const std::scoped_lock lock(deferred_mutex_);
  deferred_.push_back(task);
  return task;
}

CollectiveCalls& StartedCalls::worker_calls(CollectiveCalls& blocking, const char* call) {
  if (!worker_comm_) return blocking;
  if (worker_calls_) return *worker_calls_;
  worker_comm_->announce(call);
  worker_calls_ = std::make_unique<CollectiveCalls>(worker_comm_, context_.shared_comm(),
                                                    context_.path(), context_.hints().pario_memory,
                                                    context_.describe_call(call));
  return *worker_calls_;
}

void StartedCalls::run_deferred() {
  const std::scoped_lock lock(deferred_mutex_);
  while (!deferred_.empty()) {
    deferred_.front()->run();
    deferred_.pop_front();
  }
}

void StartedCalls::finish_collective() {
  if (!may_run_) return;
  worker_.drain(context_.patience());
  run_deferred();
  may_run_ = worker_.count_unfinished() > 0;
}

}  // namespace pario::engine
