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

/// False if only the thread of the program may communicate.
bool StartedCalls::uses_thread() const {
  const comm::Comm& comm = context_.comm();
  return comm.thread_safe() || comm.topology().nodes() == 1;
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
  if (uses_thread()) {
    if (!worker_.submit(task)) task->run();
    return task;
  }
  task->set_progress([this] { run_deferred(); });
  const std::scoped_lock lock(deferred_mutex_);
  deferred_.push_back(task);
  return task;
}

bool StartedCalls::has_unfinished() const {
  return may_run_ && (!uses_thread() || worker_.count_unfinished() > 0);
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
