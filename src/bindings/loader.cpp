// Batches of records, with read-ahead.
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "bindings/bindings.hpp"
#include "bindings/carry_out.hpp"
#include "bindings/gil.hpp"
#include "data/records/records.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace pario::bindings {
namespace {

using records::Loader;

using Datasets = std::vector<std::shared_ptr<records::Dataset>>;

/// A loader that is not destroyed in the child of a fork: the threads belong to the parent, and
/// locks may be held. Its data sets are released last, with the GIL, which their deleters need:
/// in a daemon thread that outlives the interpreter they could not acquire it.
class HeldLoader {
 public:
  HeldLoader(std::unique_ptr<Loader> loader, const Datasets& datasets)
      : datasets_(datasets), loader_(loader.release()), owner_(::getpid()) {}
  ~HeldLoader() {
    if (::getpid() != owner_) return;
    const Released released;  // its threads may wait for the GIL
    delete loader_;
  }
  HeldLoader(const HeldLoader&) = delete;
  HeldLoader& operator=(const HeldLoader&) = delete;
  Loader& get() const { return *loader_; }
  /// The records of all data sets.
  std::uint64_t count() const {
    return std::accumulate(
        datasets_.begin(), datasets_.end(), std::uint64_t{0},
        [](std::uint64_t sum, const auto& dataset) { return sum + dataset->count(); });
  }

 private:
  Datasets datasets_;
  Loader* loader_;
  pid_t owner_;
};

constexpr std::uint64_t kBetweenSignals = 100'000'000;
/// Records that are read together share reads as far as that at most doubles their memory.
constexpr std::uint64_t kMostWaste = 2;

using GivenNumbers = nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Numbers = nb::ndarray<nb::numpy, std::uint64_t, nb::ndim<1>>;
using Places = nb::ndarray<nb::numpy, std::uint64_t, nb::ndim<2>>;
using Memory = nb::ndarray<nb::numpy, const std::uint8_t, nb::ndim<1>>;
using NewBytes = nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>;
/// Kind, seed, epoch, records of a block, blocks of a group or files that take turns.
using OrderTuple =
    std::tuple<std::string, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t>;

std::vector<std::uint64_t> numbers_of(const GivenNumbers& given) {
  return {given.data(), given.data() + given.size()};
}

/// `files`: the number of records of each.
records::OrderRequest order_request(const OrderTuple& order, std::vector<std::uint64_t> files) {
  constexpr const char* kNames[] = {"as they lie", "shuffled", "blocks", "interleaved"};
  const auto& [name, seed, epoch, block, group] = order;
  const auto kind = parse_name<records::Ordering>(kNames, name, "no order of records");
  if (block == 0 || group == 0)
    throw nb::value_error("blocks and groups of blocks have at least one record");
  const std::uint64_t count = std::accumulate(files.begin(), files.end(), std::uint64_t{0});
  records::OrderRequest request{kind, count, seed, epoch, block, group};
  request.files = std::move(files);
  return request;
}

template <class T>
T* new_array(std::size_t count, nb::capsule& owner) {
  T* const array = new T[std::max<std::size_t>(count, 1)];
  owner = nb::capsule(array, [](void* memory) noexcept { delete[] static_cast<T*>(memory); });
  return array;
}

/// Positions read before, records of a batch, ranks, rank, stride, offset, treatment of the
/// remainder.
using Share = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t,
                         std::uint64_t, std::string>;

records::Schedule schedule_of(const Share& share, std::uint64_t count) {
  const auto& [begin, batch, ranks, rank, stride, offset, remainder] = share;
  std::uint64_t together = 0;
  const bool too_many = __builtin_mul_overflow(batch, ranks, &together) ||
                        __builtin_add_overflow(together, count, &together);
  if (batch == 0 || rank >= ranks || stride == 0 || too_many)
    throw nb::value_error("no such share of an epoch");
  constexpr const char* kNames[] = {"exact", "pad", "drop", "full batches"};
  const auto treatment =
      parse_name<records::Remainder>(kNames, remainder, "no treatment of remaining records");
  return {count, begin, batch, ranks, rank, stride, offset, treatment};
}

/// An order of records, for readers other than the loader. `groups`: the beginnings of blocks of
/// different lengths, and the end; or empty.
class RecordOrder {
 public:
  RecordOrder(const OrderTuple& order, const GivenNumbers& files, const GivenNumbers& groups)
      : count_(std::accumulate(files.data(), files.data() + files.size(), std::uint64_t{0})),
        order_(request_of(order, files, groups)) {}

  /// Returns the records at the positions [first, last).
  Numbers numbers(std::uint64_t first, std::uint64_t last) const {
    if (first > last || last > count_)
      throw nb::index_error("no such positions of an order of records");
    nb::capsule owner;
    std::uint64_t* const out = new_array<std::uint64_t>(last - first, owner);
    for (std::uint64_t position = first; position < last; ++position)
      out[position - first] = order_.at(position);
    return {out, {last - first}, owner};
  }

  /// Returns first position, end position, and the blocks whose records are mixed with the one at
  /// `position`.
  std::tuple<std::uint64_t, std::uint64_t, std::vector<std::uint64_t>> turn(
      std::uint64_t position) const {
    if (position >= count_) throw nb::index_error("no such position of an order of records");
    records::BlockOrder::Turn turn = order_.turn_of(position);
    return {turn.positions.begin, turn.positions.end, std::move(turn.blocks)};
  }

 private:
  static records::OrderRequest request_of(const OrderTuple& order, const GivenNumbers& files,
                                          const GivenNumbers& groups) {
    records::OrderRequest request = order_request(order, numbers_of(files));
    request.begins = numbers_of(groups);
    const bool fits = groups.size() == 0 ||
                      (groups.data()[0] == 0 && groups.data()[groups.size() - 1] == request.count);
    if (!fits || !std::ranges::is_sorted(request.begins))
      throw nb::value_error("blocks do not divide the records");
    return request;
  }

  std::uint64_t count_;
  records::Order order_;
};

/// Returns the positions [first, last) of a step of schedule_steps(), and the number of positions
/// that all ranks have read after it.
std::tuple<std::uint64_t, std::uint64_t, std::uint64_t> schedule_step(const Share& share,
                                                                      std::uint64_t count,
                                                                      std::uint64_t number) {
  const records::Schedule schedule = schedule_of(share, count);
  if (number >= schedule.steps()) throw nb::index_error("no such step of an epoch");
  const records::Schedule::Step step = schedule.step(number);
  return {step.first, step.last, step.end};
}

std::uint64_t schedule_steps(const Share& share, std::uint64_t count) {
  return schedule_of(share, count).steps();
}

records::Caching caching_of(bool direct) {
  return direct ? records::Caching::direct : records::Caching::page_cache;
}

std::unique_ptr<HeldLoader> start_loader(const Datasets& datasets, const OrderTuple& order,
                                         const Share& share, std::uint64_t memory, unsigned threads,
                                         bool direct) {
  records::LoadRequest request{.datasets = {datasets.begin(), datasets.end()},
                               .memory = memory,
                               .most_threads = std::max(1U, threads)};
  std::vector<std::uint64_t> files;
  for (const auto& dataset : datasets) files.push_back(dataset->count());
  request.order = order_request(order, std::move(files));
  if (datasets.size() == 1 && datasets[0]->index().bucketing())
    request.order.bucketed = datasets[0]->index();
  request.schedule = schedule_of(share, request.order.count);
  request.caching = caching_of(direct);
  auto loader = Loader::start(request);
  if (!loader.ok()) raise_os_error(loader.error());
  return std::make_unique<HeldLoader>(std::move(*loader), datasets);
}

/// A loader of the batches that give() adds.
std::unique_ptr<HeldLoader> start_number_loader(const Datasets& datasets, std::uint64_t memory,
                                                unsigned threads, bool direct) {
  auto loader = Loader::start({.datasets = {datasets.begin(), datasets.end()},
                               .given = true,
                               .order = {},
                               .schedule = {},
                               .memory = memory,
                               .most_threads = std::max(1U, threads),
                               .caching = caching_of(direct)});
  if (!loader.ok()) raise_os_error(loader.error());
  return std::make_unique<HeldLoader>(std::move(*loader), datasets);
}

void give(const HeldLoader& loader, const GivenNumbers& numbers, std::uint64_t end) {
  for (const std::uint64_t number : std::span(numbers.data(), numbers.size()))
    if (number >= loader.count()) throw nb::index_error("no such record");
  const Released released;
  loader.get().give({numbers_of(numbers), end});
}

using Failures = std::vector<std::tuple<std::uint64_t, std::string>>;
using PythonBatch = std::tuple<Memory, Numbers, Places, Failures, std::uint64_t>;

/// Writes begin and end of the data of each record.
void list_places(const records::Reading& reading, std::size_t first, std::size_t count,
                 std::uint64_t* out) {
  for (std::size_t i = 0; i < count; ++i) {
    out[2 * i] = reading.data()[first + i].begin;
    out[2 * i + 1] = reading.data()[first + i].end;
  }
}

PythonBatch to_python(const records::Batch& batch) {
  const std::size_t count = batch.last - batch.first;
  nb::capsule own_numbers, own_places;
  std::uint64_t* const numbers = new_array<std::uint64_t>(count, own_numbers);
  std::uint64_t* const places = new_array<std::uint64_t>(2 * count, own_places);
  std::copy_n(batch.reading->numbers().begin() + static_cast<std::ptrdiff_t>(batch.first), count,
              numbers);
  list_places(*batch.reading, batch.first, count, places);
  Failures failures;
  for (const records::Failure& failure : batch.reading->failures())
    if (batch.first <= failure.position && failure.position < batch.last)
      failures.emplace_back(numbers[failure.position - batch.first],
                            printable(failure.error.text()));
  const auto memory = batch.reading->memory();
  const nb::capsule owner(new std::shared_ptr<records::Buffer>(memory), [](void* held) noexcept {
    delete static_cast<std::shared_ptr<records::Buffer>*>(held);
  });
  return {Memory(reinterpret_cast<const std::uint8_t*>(memory->data()), {memory->size()}, owner),
          Numbers(numbers, {count}, own_numbers), Places(places, {count, 2}, own_places),
          std::move(failures), batch.end};
}

/// Returns the next batch; None: the epoch has ended.
nb::object next(const HeldLoader& loader) {
  records::Batch batch{};
  for (;;) {
    const base::Result<Loader::Outcome> got = [&] {
      const Released released;
      return loader.get().next(batch, kBetweenSignals);
    }();
    if (!got.ok()) raise_os_error(got.error());
    if (*got == Loader::Outcome::end) return nb::none();
    if (*got == Loader::Outcome::batch) return nb::cast(to_python(batch));
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

using FoundRecords = std::tuple<NewBytes, Places, Failures>;

/// Reads records together; returns their bytes, begin and end of each record, and the records that
/// could not be read, by their positions in `numbers`: without `skip` OSError is raised for the
/// first of them.
FoundRecords read_records(const std::shared_ptr<records::Dataset>& dataset,
                          const GivenNumbers& numbers, unsigned threads, bool skip) {
  for (const std::uint64_t number : std::span(numbers.data(), numbers.size()))
    if (number >= dataset->count()) throw nb::index_error("no such record");
  base::Result<records::Files> files =
      records::Files::open({dataset}, records::Caching::page_cache);
  if (!files.ok()) raise_os_error(files.error());
  const std::vector<std::uint64_t> wanted = numbers_of(numbers);
  const auto reading =
      records::Reading::plan(*files, wanted, kMostWaste * files->bytes_of(wanted), threads);
  nb::capsule own_bytes, own_places;
  auto* const bytes = new_array<std::byte>(reading->bytes(), own_bytes);
  std::uint64_t* const places = new_array<std::uint64_t>(2 * wanted.size(), own_places);
  reading->use_memory({bytes, reading->bytes()});
  carry_out({}, [&](const records::Show& shown) -> base::Result<bool> {
    base::Status status = reading->carry_out_all(threads, skip, shown);
    return status ? base::Result<bool>(true) : status.error();
  });
  list_places(*reading, 0, wanted.size(), places);
  Failures failures;
  for (const records::Failure& failure : reading->failures())
    failures.emplace_back(failure.position, printable(failure.error.text()));
  std::ranges::sort(failures);
  return {NewBytes(reinterpret_cast<std::uint8_t*>(bytes), {reading->bytes()}, own_bytes),
          Places(places, {wanted.size(), 2}, own_places), std::move(failures)};
}

}  // namespace

void add_loader(nb::module_& module) {
  LockedClass<RecordOrder>(module, "RecordOrder")
      .def(nb::init<const OrderTuple&, const GivenNumbers&, const GivenNumbers&>(), "order"_a,
           "files"_a, "groups"_a)
      .def("numbers", &RecordOrder::numbers, "first"_a, "last"_a)
      .def("turn", &RecordOrder::turn, "position"_a);
  module.def("schedule_step", schedule_step, "share"_a, "count"_a, "number"_a);
  module.def("schedule_steps", schedule_steps, "share"_a, "count"_a);
  module.def("start_loader", start_loader, "datasets"_a, "order"_a, "share"_a, "memory"_a,
             "threads"_a, "direct"_a);
  module.def("start_number_loader", start_number_loader, "datasets"_a, "memory"_a, "threads"_a,
             "direct"_a);
  module.def("read_records", read_records, "dataset"_a, "numbers"_a, "threads"_a, "skip"_a);
  LockedClass<HeldLoader>(module, "RecordLoader")
      .def("next", next)
      .def("wants_batch", [](const HeldLoader& loader) { return loader.get().wants_batch(); })
      .def("give", give, "numbers"_a, "end"_a)
      .def("end_giving", [](const HeldLoader& loader) { loader.get().end_giving(); })
      .def("threads", [](const HeldLoader& loader) { return loader.get().threads(); });
}

}  // namespace pario::bindings
