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

#include "base/base.hpp"
#include "records/order.hpp"
#include "records/reading.hpp"

namespace pario::records {

struct LoadRequest {
  std::vector<std::shared_ptr<const Dataset>> datasets;
  OrderRequest order;
  Schedule schedule;
  std::uint64_t memory = 0;   ///< bytes that are read ahead and wait; a batch or a bucket that is larger is read all the same
  unsigned most_threads = 1;  ///< as long as batches are waited for, and not for processors, there are more, up to so many
  Caching caching = Caching::page_cache;
};

/// Part of a Reading.
struct Batch {
  std::shared_ptr<const Reading> reading;
  std::size_t first, last;  ///< of its records
  std::uint64_t end;        ///< positions of the epoch that all ranks have taken with it
};

/// The batches of one epoch, for one thread. Not to be used in the child of a fork: its threads are the parent's.
class Loader {
 public:
  static base::Result<std::unique_ptr<Loader>> start(const LoadRequest& request);
  ~Loader();

  enum class Got : std::uint8_t { batch, not_yet, end };
  /// Waits for at most `patience_ns`. Batches may outlive the Loader. An Error is not of a record (Reading::failures), but of the whole.
  base::Result<Got> next(Batch& out, std::uint64_t patience_ns);
  /// That read now.
  unsigned threads() const;

 private:
  struct Task {
    std::shared_ptr<Reading> reading;
    std::size_t number;
  };
  /// Batches that are read together.
  struct Group {
    std::shared_ptr<Reading> reading;  ///< null: not planned yet
    std::vector<Batch> batches;
    std::size_t begun = 0, done = 0;  ///< tasks
    std::size_t given = 0;            ///< batches
  };

  Loader(const LoadRequest& request, Files files);
  void work();
  std::optional<Task> take();
  void finish(const Task& task);
  bool may_plan() const;
  void plan_one(std::unique_lock<std::mutex>& lock);
  base::Status plan(Group& group, std::uint64_t& step) const;
  void add_thread();
  void add_thread_if_it_helps();
  bool ready() const;
  Batch give();

  LoadRequest request_;
  Files files_;
  Order order_;
  std::shared_ptr<Pool> pool_ = std::make_shared<Pool>();

  mutable std::mutex mutex_;
  std::condition_variable changed_, for_the_reader_;
  std::deque<Group> groups_;
  std::uint64_t next_step_ = 0, waiting_bytes_ = 0;
  bool planning_ = false, ending_ = false;
  base::Status status_;
  std::uint64_t worked_ns_ = 0, processor_ns_ = 0;  ///< of tasks since the last thread was added
  std::vector<std::jthread> threads_;
};

}  // namespace pario::records
