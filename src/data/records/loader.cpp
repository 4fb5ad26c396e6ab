#include "data/records/loader.hpp"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <system_error>

namespace pario::records {
namespace {

constexpr std::uint64_t kRecordsTogether = 128;  // small batches are planned and read together
constexpr unsigned kFirstThreads = 2;

std::uint64_t thread_processor_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t steps_together(const Schedule& schedule) {
  return std::max<std::uint64_t>(1, kRecordsTogether / schedule.batch);
}

}  // namespace

base::Result<std::unique_ptr<Loader>> Loader::start(const LoadRequest& request) {
  base::Result<Files> files = Files::open(request.datasets, request.caching);
  if (!files.ok()) return files.error();
  std::unique_ptr<Loader> loader(new Loader(request, std::move(*files)));
  const std::scoped_lock lock(loader->mutex_);
  for (unsigned i = 0; i < std::min(kFirstThreads, request.most_threads); ++i) loader->add_thread();
  if (loader->threads_.empty()) return loader->status_.error();
  return loader;
}

Loader::Loader(const LoadRequest& request, Files files)
    : request_(request), files_(std::move(files)), order_(request.order) {}

Loader::~Loader() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  threads_.clear();
}

/// The caller holds the lock.
void Loader::add_thread() {
  try {
    threads_.emplace_back([this] { run_tasks(); });
  } catch (const std::system_error& error) {
    if (threads_.empty())
      status_ = base::Error{
          .number = error.code().value(), .operation = "thread", .detail = "could not be started"};
    return;
  }
  worked_ns_ = processor_ns_ = 0;
}

/// Adds a thread while a batch is waited for, if there are tasks for it and threads wait for I/O
/// rather than compute. The caller holds the lock.
void Loader::add_thread_if_useful() {
  const bool more = std::ranges::any_of(groups_, [](const Group& group) {
    return group.reading && group.begun < group.reading->tasks();
  });
  if (more && worked_ns_ > 2 * processor_ns_ && threads_.size() < request_.most_threads)
    add_thread();
}

void Loader::run_tasks() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    if (const std::optional<Task> task = take_task()) {
      lock.unlock();
      const std::uint64_t begin = base::monotonic_ns(), processor = thread_processor_ns();
      task->reading->carry_out(task->number);
      const std::uint64_t worked = base::monotonic_ns() - begin,
                          used = thread_processor_ns() - processor;
      lock.lock();
      worked_ns_ += worked;
      processor_ns_ += used;
      finish_task(*task);
    } else if (may_plan()) {
      plan_group(lock);
    } else {
      changed_.wait(lock);
    }
  }
}

/// The next task of the first group that has one.
std::optional<Loader::Task> Loader::take_task() {
  for (Group& group : groups_)
    if (group.reading && group.begun < group.reading->tasks())
      return Task{group.reading, group.begun++};
  return {};
}

void Loader::finish_task(const Task& task) {
  const auto group = std::ranges::find(groups_, task.reading, &Group::reading);
  if (++group->done == task.reading->tasks() && group == groups_.begin()) ready_.notify_all();
}

bool Loader::may_plan() const {
  return !planning_ && status_.ok() && next_step_ < request_.schedule.steps() &&
         (waiting_bytes_ < request_.memory || groups_.empty());
}

/// Plans the next group. One thread at a time, so that groups are in order. A group may have no
/// batch: with Remainder::exact a rank may have none in the last step.
void Loader::plan_group(std::unique_lock<std::mutex>& lock) {
  planning_ = true;
  Group group;
  std::uint64_t step = next_step_;
  lock.unlock();
  base::Status status = plan(group, step);
  lock.lock();
  planning_ = false;
  next_step_ = step;
  if (!status) {
    status_ = std::move(status);
  } else if (!group.batches.empty()) {
    waiting_bytes_ += group.reading->bytes();
    groups_.push_back(std::move(group));
  }
  changed_.notify_all();
  ready_.notify_all();
}

base::Status Loader::plan(Group& group, std::uint64_t& step) const {
  const Schedule& schedule = request_.schedule;
  std::vector<std::uint64_t> numbers;
  const std::uint64_t few = step + steps_together(schedule),
                      bucket_end = order_.bucket_end(schedule.step(step).first);
  for (; step < schedule.steps(); ++step) {
    const Schedule::Step positions = schedule.step(step);
    if (step >= few && positions.first >= bucket_end) break;
    const std::size_t first = numbers.size();
    for (std::uint64_t position = positions.first; position < positions.last; ++position)
      numbers.push_back(order_.at(position));
    if (numbers.size() != first)
      group.batches.push_back({{}, first, numbers.size(), positions.end});
  }
  base::Result<std::unique_ptr<Reading>> reading =
      Reading::plan(files_, std::move(numbers), *pool_);
  if (!reading.ok()) return reading.error();
  group.reading = std::move(*reading);
  for (Batch& batch : group.batches) batch.reading = group.reading;
  return {};
}

bool Loader::is_ready() const {
  if (groups_.empty())
    return !status_.ok() || (!planning_ && next_step_ >= request_.schedule.steps());
  return groups_.front().done == groups_.front().reading->tasks();
}

base::Result<Loader::Outcome> Loader::next(Batch& out, std::uint64_t patience_ns) {
  std::unique_lock lock(mutex_);
  if (!is_ready()) {
    add_thread_if_useful();
    ready_.wait_for(lock, std::chrono::nanoseconds(patience_ns), [&] { return is_ready(); });
  }
  if (!is_ready()) return Outcome::not_yet;
  if (groups_.empty()) return status_.ok() ? base::Result<Outcome>(Outcome::end) : status_.error();
  out = take_batch();
  return Outcome::batch;
}

/// Removes the next batch from the first group.
Batch Loader::take_batch() {
  Group& group = groups_.front();
  Batch batch = std::move(group.batches[group.given++]);
  if (group.given == group.batches.size()) {
    waiting_bytes_ -= group.reading->bytes();
    groups_.pop_front();
    changed_.notify_all();
  }
  return batch;
}

unsigned Loader::threads() const {
  const std::scoped_lock lock(mutex_);
  return static_cast<unsigned>(threads_.size());
}

}  // namespace pario::records
