// Batches of records in a given order, read ahead by threads.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "core/base/base.hpp"
#include "data/records/given_batches.hpp"
#include "data/records/order.hpp"
#include "data/records/reading.hpp"

namespace pario::records {

struct LoadRequest {
  std::vector<std::shared_ptr<const Dataset>> datasets;
  /// True: the batches are those of Loader::give(), not of `order` and `schedule`.
  bool given = false;
  OrderRequest order;
  Schedule schedule;
  /// Bytes that are read ahead at most; a larger batch or bucket is read by itself.
  std::uint64_t memory = 0;
  /// Threads are added up to this number while batches are waited for and threads wait for I/O.
  unsigned most_threads = 1;
  Caching caching = Caching::page_cache;
};

/// A batch: a range of the records of a Reading.
struct Batch {
  std::shared_ptr<const Reading> reading;
  std::size_t first, last;  ///< records [first, last) of the Reading
  std::uint64_t end;        ///< positions of the epoch that all ranks have read after this batch
};

/// The batches of one epoch, for one thread. Unusable in a forked child, which lacks its threads.
class Loader {
 public:
  static base::Result<std::unique_ptr<Loader>> start(const LoadRequest& request);
  ~Loader();

  /// True if another batch should be given before the next call of next(), so that the memory for
  /// read-ahead is used.
  bool wants_batch() const;
  void give(GivenBatch batch);
  /// No further batch will be given.
  void end_giving();

  enum class Outcome : std::uint8_t { batch, not_yet, end };
  /// Waits at most `patience_ns` for the next batch. Batches may outlive the Loader. Records that
  /// cannot be read are Reading::failures; an Error ends the epoch.
  base::Result<Outcome> next(Batch& out, std::uint64_t patience_ns);
  /// The number of reading threads.
  unsigned threads() const;

 private:
  struct Task {
    std::shared_ptr<Reading> reading;
    std::size_t number;
  };
  /// Batches that are planned and read together.
  struct Group {
    std::shared_ptr<Reading> reading;  ///< null until it is planned
    std::vector<Batch> batches;
    std::size_t begun = 0, done = 0;  ///< tasks of the Reading
    std::size_t given = 0;            ///< batches returned by next()
  };

  Loader(const LoadRequest& request, Files files);
  void run_tasks();
  std::optional<Task> take_task();
  void finish_task(const Task& task);
  bool may_plan() const;
  bool has_next_group() const;
  bool all_planned() const;
  std::uint64_t most_group_bytes() const;
  GivenBatches::Limits group_limits() const;
  bool fits_in_memory(std::uint64_t bytes) const;
  std::uint64_t steps_together() const;
  void plan_group(std::unique_lock<std::mutex>& lock);
  void plan(Group& group, std::uint64_t& step, std::uint64_t together) const;
  void plan_given(Group& group, const std::vector<GivenBatch>& batches) const;
  void add_group(Group group, std::unique_lock<std::mutex>& lock);
  void add_thread();
  void add_thread_if_useful();
  bool is_ready() const;
  Batch take_batch();

  LoadRequest request_;
  Files files_;
  Order order_;
  std::shared_ptr<Pool> pool_ = std::make_shared<Pool>();

  mutable std::mutex mutex_;
  std::condition_variable changed_, ready_;
  std::deque<Group> groups_;
  std::optional<Group> planned_;  ///< the next group, for which there is no memory yet
  std::uint64_t next_step_ = 0, waiting_bytes_ = 0;
  std::uint64_t planned_groups_ = 0;
  GivenBatches given_;
  bool planning_ = false, ending_ = false;
  base::Status status_;
  /// Wall-clock and processor time of tasks since the last thread was added.
  std::uint64_t worked_ns_ = 0, processor_ns_ = 0;
  std::vector<std::jthread> threads_;
};

}  // namespace pario::records
