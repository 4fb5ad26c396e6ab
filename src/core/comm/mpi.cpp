// The member MPI. Inside a node no message goes through the MPI once a Comm is made, because the
// MPI waits busily and becomes very slow with more ranks than cores. Comms of the same ranks are a
// Family: they share the facts of the ranks and a communicator, in which each Comm marks its
// messages with its number.
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <numeric>
#include <string_view>

#include "core/comm/communicator.hpp"
#include "core/comm/memory.hpp"
#include "core/comm/process_comm.hpp"
#include "core/comm/requests.hpp"
#include "core/comm/self.hpp"
#include "core/comm/send_guard.hpp"

namespace pario::comm {
namespace {

constexpr std::size_t kLargestMessage = std::size_t{1} << 30;
constexpr int kLost = -1;         // not an error code of any MPI: SendGuard dropped a message
constexpr std::size_t kKept = 8;  // families kept for the next file of the same ranks

/// A Patience for messages that should have arrived already.
Patience short_patience() {
  return {.look = [](std::uint64_t) -> base::Status { return base::Error{.number = ETIMEDOUT}; }};
}

/// A Patience that calls the functions of both.
Patience combine(const Patience& first, const Patience& second) {
  if (!first.look) return second;
  return {.interval_ns = std::min(first.interval_ns, second.interval_ns),
          .look =
              [look = first.look, then = second.look](std::uint64_t waited_ns) {
                base::Status status = look(waited_ns);
                return status && then ? then(waited_ns) : status;
              },
          .progress = second.progress};
}

class MpiComm : public ProcessComm {
 public:
  MpiComm(std::shared_ptr<Communicator> communicator, Members members, int number, int rank,
          Topology nodes, std::shared_ptr<SharedMemory> memory, std::shared_ptr<MpiComm> root)
      : ProcessComm(rank, std::move(nodes), std::move(memory), std::move(members)),
        communicator_(std::move(communicator)),
        number_(number),
        root_(std::move(root)) {}

  MpiComm(const MpiComm&) = delete;
  MpiComm& operator=(const MpiComm&) = delete;
  ~MpiComm() override {
    AttendanceNote note;
    KeepAlive alive;
    while (topology().nodes() > 1 && !has_failed() && MpiComm::may_send_notes() &&
           (MpiComm::receive_note(kAttendanceTag, bytes_of(note)) ||
            MpiComm::receive_note(kKeepAliveTag, bytes_of(alive)))) {
    }
    if (has_failed()) communicator_->mark_failed();
  }

  bool thread_safe() const override {
    static const bool multiple = communicator_->mpi.thread_multiple();
    return multiple;
  }
  void progress() const override {
    if (may_send_notes())
      static_cast<void>(probe(kErrorTag));  // a probe that finds nothing makes progress
  }
  base::Status failure() override {
    base::Status status = NodeComm::failure();
    if (!status) communicator_->mark_failed();
    return status;
  }
  /// Looks at the whole Family: all of its Comms notice a dead rank, also where some ranks failed
  /// to make a Comm.
  base::Status lost_host(std::uint64_t silence_s) override {
    if (!root_) return ProcessComm::lost_host(silence_s);
    base::Status known = root_->known_failure();
    return known ? root_->lost_host(silence_s) : known;
  }
  void fail(const base::Error& error) override {
    if (has_failed()) return;
    NodeComm::fail(error);
    if (!root_ || error.number != ESRCH) return;
    root_->fail(error);
    static_cast<void>(root_->failure());  // sends it to the other nodes
  }

  std::shared_ptr<Comm> duplicate(const Patience& given) override {
    int number = rank() == 0 ? communicator_->take_number() : 0;
    if (!broadcast(&number, sizeof number, 0, given)) return nullptr;
    auto communicator = communicator_;
    if (!communicator->has_number(number)) {
      communicator =
          Communicator::duplicate(communicator->mpi, communicator->handle, patience_for(given));
      number = 0;
    }
    auto memory = share(Board::bytes(local_size()), given);
    if (!memory || !communicator) return nullptr;
    auto made = std::make_shared<MpiComm>(std::move(communicator), members(), number, rank(),
                                          topology(), std::move(memory), root_);
    made->look_up_calls_by(call_lookup());
    return made;
  }

  /// A Patience for the MPI's own collective calls, which may wait for a dead rank.
  Patience patience() { return patience_for({}); }

  std::unique_ptr<Pending> send(int to, int tag, std::span<const std::byte> data) override {
    const Library& mpi = communicator_->mpi;
    return start(data, [&](const std::byte* part, int size, Word* request) {
      return mpi.isend(part, size, mpi.byte, to, mpi_tag(tag), communicator_->handle, request);
    });
  }

  std::unique_ptr<Pending> receive(int from, int tag, std::span<std::byte> data) override {
    const Library& mpi = communicator_->mpi;
    auto message = start(data, [&](std::byte* part, int size, Word* request) {
      return mpi.irecv(part, size, mpi.byte, from, mpi_tag(tag), communicator_->handle, request);
    });
    message->set_receiving();
    return message;
  }

 protected:
  bool may_send_notes() const override {
    return (!is_own_thread() || MpiComm::thread_safe()) && !is_finalizing();
  }

  void send_note(int to, int tag, std::span<const std::byte> note) override {
    if (!may_send_notes()) return;
    auto copy = std::make_unique<std::vector<std::byte>>(note.begin(), note.end());
    std::unique_ptr<Pending> message[] = {send(to, tag, *copy)};
    if (!wait_all(message, short_patience()))
      static_cast<void>(copy.release());  // it may still be in flight
  }
  /// Receives from the rank that the probe has found: MPICH 5 over UCX finds a message of another
  /// host, but cannot receive it from MPI_ANY_SOURCE.
  bool receive_note(int tag, std::span<std::byte> note) override {
    if (!MpiComm::may_send_notes()) return false;  // the destructor calls it, too
    const Found found = probe(tag);
    if (found.result != 0) board().fail(mpi_failed());
    if (!found.any) return false;
    std::unique_ptr<Pending> message[] = {MpiComm::receive(found.source, tag, note)};
    return wait_all(message, short_patience()).ok();  // another thread may have received it
  }

 private:
  struct Found {
    int result;
    bool any;
    int source;
  };
  Found probe(int wanted) const {
    const Library& mpi = communicator_->mpi;
    alignas(std::max_align_t) std::byte status[mpi::kStatusSize];
    Found found = {};
    int any = 0, tag = 0;
    found.result = mpi.iprobe(mpi.value(mpi::Constant::MPI_ANY_SOURCE), mpi_tag(wanted),
                              communicator_->handle, &any, status);
    found.any = found.result == 0 && any != 0 &&
                mpi.envelope(reinterpret_cast<Word>(+status), found.source, tag);
    return found;
  }
  int mpi_tag(int tag) const { return number_ << 16 | tag; }

  /// A message of any size, also empty, as requests of sizes that an int can hold.
  template <class Byte, class Start>
  std::unique_ptr<Requests> start(std::span<Byte> data, Start start_part) {
    auto message = std::make_unique<Requests>(communicator_->mpi, std::vector<Word>{}, board());
    for (std::size_t begin = 0; begin == 0 || begin < data.size(); begin += kLargestMessage) {
      Word request = 0;
      const SendGuard guard;
      const int result =
          start_part(data.data() + begin,
                     static_cast<int>(std::min(kLargestMessage, data.size() - begin)), &request);
      message->note(guard.has_lost_message() ? kLost : result);
      if (result == 0) message->add(request);
    }
    return message;
  }

  std::shared_ptr<Communicator> communicator_;
  int number_;
  std::shared_ptr<MpiComm> root_;  // null: this is it
};

/// The common state of the Comms of the same ranks.
struct Family {
  std::uint64_t id = 0;
  std::vector<int> ranks;  ///< in MPI_COMM_WORLD
  std::shared_ptr<Communicator> communicator;
  Members members;
  std::shared_ptr<MpiComm> root;  ///< notices dead ranks
};

/// The families of this process. An entry is only a proposal, because another rank may have dropped
/// it: ranks exchange their entries (Card::known) and use one only if all have the same, so that
/// the decision cannot differ between them.
class Cache {
 public:
  static Cache& instance() {
    static Cache& cache = *new Cache;
    return cache;
  }
  std::shared_ptr<const Family> find(const std::vector<int>& ranks) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(kept_.begin(), kept_.end(),
                                    [&](const auto& family) { return family->ranks == ranks; });
    return found == kept_.end() ? nullptr : *found;
  }
  void add(const std::shared_ptr<const Family>& family) {
    const std::lock_guard lock(mutex_);
    std::erase_if(kept_, [&](const auto& known) { return known->ranks == family->ranks; });
    kept_.push_back(family);
    if (kept_.size() > kKept) kept_.pop_front();
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    kept_.clear();
  }
  std::uint64_t propose() { return static_cast<std::uint64_t>(getpid()) << 32 | ++proposals_; }

 private:
  std::mutex mutex_;
  std::deque<std::shared_ptr<const Family>> kept_;
  std::atomic<std::uint32_t> proposals_{0};
};

std::atomic<void (*)()> last_work{nullptr};  // of work_in_finalize()

void end_in_finalize() {
  if (const auto work = last_work.load()) work();
  Cache::instance().clear();
}

int pretend_nodes() {
  const char* text = std::getenv("PARIO_NODES");
  const std::string_view digits = text ? text : "";
  int number = 1;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return std::max(number, 1);
}

/// One attempt to make a Comm, on one rank. Its collective calls use the program's communicator,
/// whose collective calls have the same order on all ranks; calls over other communicators may
/// happen at the same time.
class Making {
 public:
  Making(const Library& mpi, Word communicator, const Patience& patience, CallLookup lookup)
      : mpi_(mpi), communicator_(communicator), patience_(patience), lookup_(lookup) {
    mpi.comm_rank(communicator, &rank_);
    mpi.comm_size(communicator, &size_);
    ranks_ = world_ranks(mpi, communicator, size_);
  }

  base::Result<std::shared_ptr<Comm>> make() {
    if (size_ == 1) return make_self(std::max(ranks_[0], 0));
    const auto known = Cache::instance().find(ranks_);
    if (base::Status status = gather_cards(known.get()); !status)
      return complete_error(status.error());
    const std::uint64_t id = known ? known->id : 0;
    const bool same = std::all_of(cards_->begin(), cards_->end(),
                                  [&](const Card& card) { return card.known == id; });
    const auto family = same && known ? known : make_family();
    auto comm = family ? make_comm(*family, family == known ? cards_->front().number : 1) : nullptr;
    if (comm) return std::shared_ptr<Comm>(std::move(comm));
    const base::Status dead = known ? known->root->failure() : base::Status();
    return complete_error(
        dead
            ? base::Error{.number = EIO, .detail = "the MPI failed, or there is no memory to share"}
            : dead.error());
  }

 private:
  base::Error complete_error(base::Error error) const {
    error.operation = "make_mpi";
    if (error.rank < 0) error.rank = rank_;
    return error;
  }

  base::Status gather_cards(const Family* family) {
    Card mine{.member = {.process = Process::self(),
                         .world_rank = ranks_[static_cast<std::size_t>(rank_)]},
              .known = family ? family->id : 0};
    if (rank_ == 0) {
      mine.proposed = Cache::instance().propose(), mine.pretend_nodes = pretend_nodes();
      if (family) mine.number = family->communicator->take_number();
    }
    if (family) patience_ = combine(patience_, family->root->patience());
    if (family && family->root->has_failed()) return family->root->failure();
    cards_ = std::make_shared<std::vector<Card>>(static_cast<std::size_t>(size_));
    return allgather_by_mpi(mpi_, communicator_, &mine, sizeof mine, cards_->data(), patience_);
  }

  std::shared_ptr<const Family> make_family() {
    auto duplicate = Communicator::duplicate(mpi_, communicator_, patience_);
    if (!duplicate) return nullptr;
    const auto labels = node_labels(mpi_, duplicate->handle);
    if (labels.empty()) return nullptr;
    Topology nodes = make_topology(divide_nodes(labels, cards_->front().pretend_nodes));
    auto memory = share_board(nodes);
    if (!memory) {
      std::vector<int> alone(static_cast<std::size_t>(size_));
      std::iota(alone.begin(), alone.end(), 0);
      nodes = make_topology(alone);
      memory = share_board(nodes);
    }
    if (!memory) return nullptr;
    static_cast<void>(duplicate->take_number());  // that of the first Comm
    auto members = std::make_shared<std::vector<Member>>();
    for (const Card& card : *cards_) members->push_back(card.member);
    auto root = std::make_shared<MpiComm>(duplicate, members, 0, rank_, std::move(nodes),
                                          std::move(memory), nullptr);
    root->connect_hosts();
    auto family =
        std::make_shared<Family>(Family{cards_->front().proposed, ranks_, std::move(duplicate),
                                        std::move(members), std::move(root)});
    const bool all_in_world = std::find(ranks_.begin(), ranks_.end(), -1) == ranks_.end();
    if (all_in_world) Cache::instance().add(family);
    return family;
  }

  std::shared_ptr<Comm> make_comm(const Family& family, int number) {
    const Topology& nodes = family.root->topology();
    patience_ = combine(patience_, family.root->patience());
    auto memory = share_board(nodes);
    auto communicator = family.communicator;
    if (!communicator->has_room_after(number)) {
      communicator = Communicator::duplicate(mpi_, communicator_, patience_);
      number = 0;
    }
    if (!memory || !communicator) return nullptr;
    auto made = std::make_shared<MpiComm>(std::move(communicator), family.members, number, rank_,
                                          nodes, std::move(memory), family.root);
    made->look_up_calls_by(lookup_);
    return made;
  }

  /// Makes the first shared memory of each node. All nodes share memory in the same way, because so
  /// far only the MPI can exchange messages, and its collective calls include all ranks.
  std::shared_ptr<SharedMemory> share_board(const Topology& nodes) const {
    if (nodes.nodes() == size_) return private_memory(Board::bytes(1));
    const auto& node =
        nodes.ranks_of[static_cast<std::size_t>(nodes.node_of[static_cast<std::size_t>(rank_)])];
    const auto leader = static_cast<std::size_t>(node.front());
    const auto publish = [&](Ticket& ticket) {
      std::vector<Ticket> all(static_cast<std::size_t>(size_));
      if (!allgather_by_mpi(mpi_, communicator_, &ticket, sizeof ticket, all.data(), patience_))
        return false;
      ticket = all[leader];
      return true;
    };
    const auto all_agree = [&](bool mine) {
      std::vector<char> all(static_cast<std::size_t>(size_));
      const char own = mine;
      return allgather_by_mpi(mpi_, communicator_, &own, 1, all.data(), patience_) &&
             std::find(all.begin(), all.end(), 0) == all.end();
    };
    return share_memory(Board::bytes(static_cast<int>(node.size())), node.front() == rank_,
                        {publish, all_agree});
  }

  const Library& mpi_;
  Word communicator_;
  int rank_ = 0, size_ = 0;
  std::vector<int> ranks_;
  std::shared_ptr<std::vector<Card>> cards_;
  Patience patience_;  // the given one, combined with that of a known Family
  CallLookup lookup_;
};

}  // namespace

void prepare_finalize() {
  if (const Library* mpi = Library::get()) watch_finalize(*mpi, end_in_finalize);
}

void work_in_finalize(void (*work)()) { last_work = work; }

base::Result<std::shared_ptr<Comm>> make_mpi(std::uintptr_t communicator, const Patience& patience,
                                             CallLookup lookup) {
  const Library* mpi = Library::get();
  if (!mpi)
    return base::Error{
        .number = ENOSYS, .operation = "make_mpi", .detail = "no MPI that pario knows is loaded"};
  int inter = 0;
  if (mpi->comm_test_inter(communicator, &inter) != 0 || inter != 0)
    return base::Error{
        .number = EINVAL, .operation = "make_mpi", .detail = "not an intracommunicator"};
  prepare_finalize();
  return Making(*mpi, communicator, patience, lookup).make();
}

}  // namespace pario::comm
