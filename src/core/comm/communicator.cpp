#include "core/comm/communicator.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>

#include "core/comm/requests.hpp"
#include "core/comm/send_guard.hpp"

namespace pario::comm {
namespace {

constexpr int kTagsPerMember = 1 << 16;

/// Handles to be freed; never destroyed, because MPI is called from destructors too.
struct Retired {
  std::mutex mutex;
  std::vector<Word> living, ended;
  bool finalized = false;
  void (*at_finalize)() = nullptr;
};

Retired& get_retired() {
  static Retired& instance = *new Retired;
  return instance;
}

void free_all(const Library& mpi, std::span<const Word> handles) {
  for (Word handle : handles) mpi.comm_free(&handle);
}

void free_ended(const Library& mpi) {
  auto& all = get_retired();
  std::unique_lock lock(all.mutex);
  auto handles = std::exchange(all.ended, {});
  lock.unlock();
  free_all(mpi, handles);
}

/// MPI calls this at the beginning of MPI_Finalize, when it deletes the attributes of
/// MPI_COMM_SELF: those set later are already deleted.
int finalize_begins(Word, Word, Word, Word) {
  auto& all = get_retired();
  if (all.at_finalize) all.at_finalize();
  std::unique_lock lock(all.mutex);
  all.finalized = true;
  auto living = std::exchange(all.living, {}), ended = std::exchange(all.ended, {});
  lock.unlock();
  if (const Library* mpi = Library::get()) {
    free_all(*mpi, ended);
    free_all(*mpi, living);
  }
  return 0;
}

int copies_nothing(Word, Word, Word, Word, Word flag, Word) {
  *reinterpret_cast<int*>(flag) = 0;
  return 0;
}

int largest_tag(const Library& mpi) {
  int *value = nullptr, found = 0, initialized = 0;
  mpi.initialized(&initialized);
  if (!initialized ||
      mpi.comm_get_attr(mpi.comm_world, mpi.value(mpi::Constant::MPI_TAG_UB),
                        static_cast<void*>(&value), &found) != 0 ||
      !found)
    return 0;
  return *value;
}

/// The rank in `communicator` of the first rank of its node; -1 if the MPI failed.
int node_leader(const Library& mpi, Word communicator, int rank) {
  Word node = 0, node_group = 0, group = 0;
  const int shared = mpi.value(mpi::Constant::MPI_COMM_TYPE_SHARED), first = 0;
  if (mpi.comm_split_type(communicator, shared, rank, mpi.info_null, &node) != 0) return -1;
  mpi.comm_group(node, &node_group);
  mpi.comm_group(communicator, &group);
  int leader = -1;
  if (mpi.translate_ranks(node_group, 1, &first, group, &leader) != 0) leader = -1;
  mpi.group_free(&group);
  mpi.group_free(&node_group);
  mpi.comm_free(&node);
  return leader;
}

}  // namespace

std::vector<int> world_ranks(const Library& mpi, Word communicator, int size) {
  std::vector<int> own(static_cast<std::size_t>(size)), world(own.size(), -1);
  std::iota(own.begin(), own.end(), 0);
  Word group = 0, world_group = 0;
  int initialized = 0;
  mpi.initialized(&initialized);
  if (!initialized || mpi.comm_group(communicator, &group) != 0) return world;
  if (mpi.comm_group(mpi.comm_world, &world_group) == 0) {
    mpi.translate_ranks(group, size, own.data(), world_group, world.data());
    mpi.group_free(&world_group);
  }
  mpi.group_free(&group);
  for (int& rank : world) rank = std::max(rank, -1);  // MPI_UNDEFINED is negative everywhere
  return world;
}

base::Status finish(const Library& mpi, Word request, const Patience& patience) {
  std::unique_ptr<Pending> pending[] = {
      std::make_unique<Requests>(mpi, std::vector<Word>{request})};
  base::Status status = wait_all(pending, patience);
  if (pending[0]->error() != 0) status = mpi_failed();
  if (!pending[0]->test())
    static_cast<void>(
        pending[0].release());  // a collective call cannot be withdrawn: it stays as it is
  return status;
}

// The MPI may still write to the memory after a failed wait: then it stays.
base::Status allgather_by_mpi(const Library& mpi, Word communicator, const void* mine,
                              std::size_t each, void* all, const Patience& patience) {
  int ranks = 0;
  mpi.comm_size(communicator, &ranks);
  const std::size_t size = each * static_cast<std::size_t>(ranks);
  std::unique_ptr<std::byte[]> room(new std::byte[each + size]);
  std::memcpy(room.get() + size, mine, each);
  const int bytes = static_cast<int>(each);
  Word request = 0;
  const SendGuard guard;
  base::Status status =
      base::Error{.number = EIO, .operation = "MPI_Iallgather", .detail = "the MPI failed"};
  if (mpi.iallgather(room.get() + size, bytes, mpi.byte, room.get(), bytes, mpi.byte, communicator,
                     &request) == 0)
    status = finish(mpi, request, patience);
  if (status)
    std::memcpy(all, room.get(), size);
  else
    static_cast<void>(room.release());
  return status;
}

std::shared_ptr<Communicator> Communicator::duplicate(const Library& mpi, Word communicator,
                                                      const Patience& patience) {
  free_ended(mpi);
  Word* const handle = new Word{0};  // written by the MPI: stays if the wait fails
  Word request = 0;
  const SendGuard guard;
  if (mpi.comm_idup(communicator, handle, &request) != 0 || !finish(mpi, request, patience))
    return nullptr;
  const std::unique_ptr<Word> made(handle);
  mpi.comm_set_errhandler(*made, mpi.get_predefined(mpi::Handle::MPI_ERRORS_RETURN));
  return std::make_shared<Communicator>(mpi, *made);
}

Communicator::Communicator(const Library& library, Word word)
    : mpi(library), handle(word), largest_number_(largest_tag(library) / kTagsPerMember - 1) {
  auto& all = get_retired();
  const std::lock_guard lock(all.mutex);
  all.living.push_back(handle);
}

Communicator::~Communicator() {
  auto& all = get_retired();
  const std::lock_guard lock(all.mutex);
  if (all.finalized || std::erase(all.living, handle) == 0) return;
  all.ended.push_back(handle);
}

void Communicator::mark_failed() {
  auto& all = get_retired();
  const std::lock_guard lock(all.mutex);
  std::erase(all.living, handle);
}

bool is_finalizing() {
  auto& all = get_retired();
  const std::lock_guard lock(all.mutex);
  return all.finalized;
}

void watch_finalize(const Library& mpi, void (*at_finalize)()) {
  auto& all = get_retired();
  std::unique_lock lock(all.mutex);
  if (std::exchange(all.at_finalize, at_finalize)) return;
  lock.unlock();
  int keyval = 0, initialized = 0;
  mpi.initialized(&initialized);
  if (!initialized) return;
  auto* const copy = reinterpret_cast<void*>(&copies_nothing);
  auto* const remove = reinterpret_cast<void*>(&finalize_begins);
  if (mpi.comm_create_keyval(copy, remove, &keyval, nullptr) == 0)
    mpi.comm_set_attr(mpi.comm_self, keyval, nullptr);
}

std::vector<int> node_labels(const Library& mpi, Word communicator) {
  int rank = 0, size = 0;
  mpi.comm_rank(communicator, &rank);
  mpi.comm_size(communicator, &size);
  const int leader = node_leader(mpi, communicator, rank);
  std::vector<int> labels(static_cast<std::size_t>(size));
  if (!allgather_by_mpi(mpi, communicator, &leader, sizeof leader, labels.data())) return {};
  return std::find(labels.begin(), labels.end(), -1) == labels.end() ? labels : std::vector<int>{};
}

std::vector<int> divide_nodes(std::span<const int> labels, int parts) {
  std::map<int, int> sizes, seen;
  for (const int label : labels) ++sizes[label];
  std::map<std::pair<int, int>, int> numbers;
  std::vector<int> divided;
  for (const int label : labels) {
    const int part = static_cast<int>(static_cast<long>(seen[label]++) * parts / sizes[label]);
    divided.push_back(
        numbers.try_emplace({label, part}, static_cast<int>(numbers.size())).first->second);
  }
  return divided;
}

}  // namespace pario::comm
