#include "observe/pmpi/communicators.hpp"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <unordered_map>

#include "core/base/base.hpp"

namespace pario::pmpi {
namespace {

constexpr std::uint64_t kWorldId = 1;

/// The known communicators and windows; never destroyed, because destructors call MPI, too.
struct Registry {
  std::mutex mutex;
  std::unordered_map<Word, std::shared_ptr<Communicator>> communicators, windows;
  std::uint32_t numbers = 0;
  std::uint32_t ids = 1;  // the last id of this rank; 1 is that of MPI_COMM_WORLD
  int world_rank = -1;    // -1: without MPI_Init (sessions) there are no common ids
  std::atomic<std::uint64_t> forgotten{0};  // number of communicators forgotten
};

/// The last lookup of this thread; valid until a communicator is forgotten.
struct Last {
  Word handle;
  std::uint64_t forgotten;
  Communicator* found;
};
constinit thread_local Last last_lookup [[gnu::tls_model("initial-exec")]] = {};

Registry& registry() {
  static Registry& instance = *new Registry;
  return instance;
}

/// Adds ranks as text ranges: 0-3,8.
void add_ranges(base::TextBuffer& out, const std::vector<int>& ranks) {
  for (std::size_t first = 0; first < ranks.size();) {
    std::size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (first > 0) out.add(',');
    out.add(ranks[first]);
    if (last > first) out.add('-').add(ranks[last]);
    first = last + 1;
  }
}

void write_note(const Communicator& comm) {
  base::Text<32768> ranks;
  add_ranges(ranks, comm.world_ranks);
  base::Text<40960> text;
  base::Json json(text);
  json.begin_object()
      .member("note", "communicator")
      .member("number", comm.number)
      .member("id", comm.id)
      .member("size", comm.size);
  if (!comm.world_ranks.empty() && ranks.complete()) json.member("ranks", ranks.view());
  json.end_object();
  trace::note(json.view());
}

/// A new id that no other rank creates.
std::uint64_t make_id(Registry& all) {
  return static_cast<std::uint64_t>(all.world_rank) << 32 | ++all.ids;
}

std::vector<int> ranks_in_world(const Library& mpi, const Communicator& comm) {
  std::vector<int> own(static_cast<std::size_t>(comm.size)), world(own.size());
  std::iota(own.begin(), own.end(), 0);
  if (comm.handle == mpi.comm_world) return own;
  Word group = 0, world_group = 0;
  if (mpi.comm_group(comm.handle, &group) != 0 || mpi.comm_group(mpi.comm_world, &world_group) != 0)
    return {};
  const int result = mpi.translate_ranks(group, comm.size, own.data(), world_group, world.data());
  mpi.group_free(&group);
  mpi.group_free(&world_group);
  const bool all_known = std::all_of(world.begin(), world.end(),
                                     [](int rank) { return rank >= 0; });  // false after a spawn
  return result == 0 && all_known ? world : std::vector<int>{};
}

std::shared_ptr<Communicator> describe(const Library& mpi, Word handle, Registry& all) {
  auto comm = std::make_shared<Communicator>();
  comm->handle = handle;
  comm->number = ++all.numbers;
  int inter = 0;
  mpi.comm_test_inter(handle, &inter);
  comm->inter = inter != 0;
  mpi.comm_size(handle, &comm->size);
  mpi.comm_rank(handle, &comm->rank);
  if (all.world_rank < 0) return comm;
  comm->world_ranks = ranks_in_world(mpi, *comm);
  if (handle == mpi.comm_world)
    comm->id = kWorldId;
  else if (comm->size == 1 && !comm->inter)
    comm->id = make_id(all);
  return comm;
}

}  // namespace

std::optional<int> Communicator::world_rank(int peer) const {
  if (inter || peer < 0 || static_cast<std::size_t>(peer) >= world_ranks.size())
    return std::nullopt;
  return world_ranks[static_cast<std::size_t>(peer)];
}

void set_world(const Library& mpi) {
  mpi.comm_rank(mpi.comm_world, &registry().world_rank);
  communicator(mpi, mpi.comm_world);
  communicator(mpi, mpi.comm_self);
}

Communicator& communicator(const Library& mpi, Word handle) {
  auto& all = registry();
  const std::uint64_t now = all.forgotten.load(std::memory_order_acquire);
  if (last_lookup.found && last_lookup.handle == handle && last_lookup.forgotten == now)
    return *last_lookup.found;
  const std::lock_guard lock(all.mutex);
  auto& entry = all.communicators[handle];
  if (!entry) {
    entry = describe(mpi, handle, all);
    write_note(*entry);
  }
  last_lookup = {handle, now, entry.get()};
  return *entry;
}

std::shared_ptr<Communicator> known_communicator(Word handle) {
  auto& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.communicators.find(handle);
  return found == all.communicators.end() ? nullptr : found->second;
}

const Communicator* find_communicator(Word handle) {
  auto& all = registry();
  const std::uint64_t now = all.forgotten.load(std::memory_order_acquire);
  if (last_lookup.found && last_lookup.handle == handle && last_lookup.forgotten == now)
    return last_lookup.found;
  return known_communicator(handle).get();
}

void forget_communicator(Word handle) {
  auto& all = registry();
  const std::lock_guard lock(all.mutex);
  all.communicators.erase(handle);
  all.forgotten.fetch_add(1, std::memory_order_release);
}

void agree_on_id(const Library& mpi, Communicator& comm) {
  auto& all = registry();
  if (comm.id != 0 || comm.inter || all.world_rank < 0) return;
  std::uint64_t id = 0;
  if (comm.rank == 0) {
    const std::lock_guard lock(all.mutex);
    id = make_id(all);
  }
  if (mpi.bcast(&id, sizeof id, mpi.byte, 0, comm.handle) != 0) return;
  comm.id = id;
  write_note(comm);
}

void add_window(Word window, Word comm) {
  auto entry = known_communicator(comm);
  auto& all = registry();
  const std::lock_guard lock(all.mutex);
  all.windows[window] = std::move(entry);
}

std::shared_ptr<Communicator> window(Word window) {
  auto& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.windows.find(window);
  return found == all.windows.end() ? nullptr : found->second;
}

void forget_window(Word window) {
  auto& all = registry();
  const std::lock_guard lock(all.mutex);
  all.windows.erase(window);
}

}  // namespace pario::pmpi
