#include "data/records/loader.hpp"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <system_error>

namespace pario::records {
namespace {

constexpr std::uint64_t kRecordsTogether = 128;  // small batches are planned and read together
constexpr unsigned kFirstThreads = 2;
/// Remote records of a group take so many eighths of the memory: in a larger group more records are
/// neighbours, which take one request. While one group is used, the next one is read.
constexpr std::uint64_t kRemoteEighths = 3;
/// Each remote group has so many times the batches of the one before, as a power of two.
constexpr std::uint64_t kRemoteGrowth = 2;
/// Given records that are read ahead at most: their numbers, and those who give them, take memory.
constexpr std::uint64_t kMostGivenRecords = 1 << 16;

std::uint64_t thread_processor_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

base::Result<std::unique_ptr<Loader>> Loader::start(const LoadRequest& request) {
  base::Result<Files> files = Files::open(request.datasets, request.caching);
  if (!files.ok()) return files.error();
  std::unique_ptr<Loader> loader(new Loader(request, std::move(*files)));
  const std::scoped_lock lock(loader->mutex_);
  const unsigned first = loader->files_.any_remote() ? request.most_threads : kFirstThreads;
  for (unsigned i = 0; i < std::min(first, request.most_threads); ++i) loader->add_thread();
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
  if (planning_ || !status_.ok()) return false;
  return planned_ ? fits_in_memory(planned_->reading->bytes())
                  : has_next_group() && (waiting_bytes_ < request_.memory || groups_.empty());
}

/// Given batches wait until they fill a group, unless next() waits for them.
bool Loader::has_next_group() const {
  if (!request_.given) return !all_planned();
  if (given_.empty()) return false;
  return groups_.empty() || given_.fill(group_limits());
}

bool Loader::all_planned() const {
  return request_.given ? given_.is_complete() && given_.empty()
                        : next_step_ >= request_.schedule.steps();
}

bool Loader::wants_batch() const {
  const std::scoped_lock lock(mutex_);
  if (given_.is_complete() || !status_.ok()) return false;
  std::uint64_t records = given_.records();
  for (const Group& group : groups_) records += group.reading->numbers().size();
  if (planned_) records += planned_->reading->numbers().size();
  const std::uint64_t bytes = waiting_bytes_ + given_.bytes();
  return records == 0 || (bytes < request_.memory && records < kMostGivenRecords);
}

void Loader::give(GivenBatch batch) {
  const std::uint64_t bytes = files_.bytes_of(batch.numbers);
  {
    const std::scoped_lock lock(mutex_);
    given_.add(std::move(batch), bytes);
  }
  changed_.notify_one();
}

void Loader::end_giving() {
  {
    const std::scoped_lock lock(mutex_);
    given_.end();
  }
  changed_.notify_one();
}

bool Loader::fits_in_memory(std::uint64_t bytes) const {
  return groups_.empty() || waiting_bytes_ + bytes <= request_.memory;
}

/// The number of steps of the next group. Groups of remote records grow from the first batch on, so
/// that it comes soon. The caller holds the lock; has_next_group().
std::uint64_t Loader::steps_together() const {
  if (!files_.any_remote()) {
    const std::uint64_t batch = request_.given ? given_.next_size() : request_.schedule.batch;
    return std::max<std::uint64_t>(1, kRecordsTogether / std::max<std::uint64_t>(1, batch));
  }
  return std::uint64_t{1} << std::min<std::uint64_t>(kRemoteGrowth * planned_groups_, 20);
}

/// Plans the next group, and begins it if it fits into the memory. One thread at a time, so that
/// groups are in order. A group may have no batch: with Remainder::exact a rank may have none in
/// the last step.
void Loader::plan_group(std::unique_lock<std::mutex>& lock) {
  planning_ = true;
  if (!planned_) {
    Group group;
    std::uint64_t step = next_step_;
    const std::uint64_t together = steps_together();
    std::vector<GivenBatch> given;
    if (request_.given) given = given_.take(group_limits());
    lock.unlock();
    if (request_.given)
      plan_given(group, given);
    else
      plan(group, step, together);
    lock.lock();
    next_step_ = step;
    ++planned_groups_;
    if (!group.batches.empty()) planned_ = std::move(group);
  }
  if (planned_ && fits_in_memory(planned_->reading->bytes())) {
    Group group = std::move(*planned_);
    planned_.reset();
    add_group(std::move(group), lock);
  }
  planning_ = false;
  changed_.notify_all();
  ready_.notify_all();
}

/// Begins a planned group. `planning_` is set.
void Loader::add_group(Group group, std::unique_lock<std::mutex>& lock) {
  waiting_bytes_ += group.reading->bytes();
  lock.unlock();
  base::Status status = group.reading->take_memory(*pool_);
  lock.lock();
  if (status)
    groups_.push_back(std::move(group));
  else
    status_ = std::move(status);
}

void Loader::plan(Group& group, std::uint64_t& step, std::uint64_t together) const {
  const Schedule& schedule = request_.schedule;
  std::vector<std::uint64_t> numbers;
  std::uint64_t bytes = 0;
  const bool remote = files_.any_remote();
  const std::uint64_t most = most_group_bytes(), begin = step, few = step + together,
                      bucket_end = order_.bucket_end(schedule.step(step).first);
  for (; step < schedule.steps(); ++step) {
    const Schedule::Step positions = schedule.step(step);
    const bool full = step >= few || (remote && step > begin && bytes >= most);
    if (full && positions.first >= bucket_end) break;
    const std::size_t first = numbers.size();
    for (std::uint64_t position = positions.first; position < positions.last; ++position)
      numbers.push_back(order_.at(position));
    if (remote) bytes += files_.bytes_of(std::span(numbers).subspan(first));
    if (numbers.size() != first)
      group.batches.push_back({{}, first, numbers.size(), positions.end});
  }
  group.reading = Reading::plan(files_, std::move(numbers), request_.memory);
  for (Batch& batch : group.batches) batch.reading = group.reading;
}

void Loader::plan_given(Group& group, const std::vector<GivenBatch>& batches) const {
  std::vector<std::uint64_t> numbers;
  for (const GivenBatch& batch : batches) {
    const std::size_t first = numbers.size();
    numbers.insert(numbers.end(), batch.numbers.begin(), batch.numbers.end());
    group.batches.push_back({{}, first, numbers.size(), batch.end});
  }
  group.reading = Reading::plan(files_, std::move(numbers), request_.memory);
  for (Batch& batch : group.batches) batch.reading = group.reading;
}

GivenBatches::Limits Loader::group_limits() const {
  return {steps_together(), most_group_bytes(), kMostGivenRecords / 8 * kRemoteEighths};
}

/// Bytes of a group of remote records.
std::uint64_t Loader::most_group_bytes() const { return request_.memory / 8 * kRemoteEighths; }

bool Loader::is_ready() const {
  if (groups_.empty()) return !status_.ok() || (!planning_ && !planned_ && all_planned());
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
