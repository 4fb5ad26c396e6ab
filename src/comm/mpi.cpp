// Ranks of the MPI. Inside a node nothing goes through the MPI once a Comm is made: the MPI waits busily, which collapses where there are
// more ranks than cores. Comms of the same ranks are a Family: what is known of the ranks, and a communicator, whose messages each of them
// marks with a number of its own.
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <numeric>
#include <string_view>

#include "comm/communicator.hpp"
#include "comm/lifelines.hpp"
#include "comm/memory.hpp"
#include "comm/node_comm.hpp"
#include "comm/requests.hpp"
#include "comm/self.hpp"
#include "comm/send_guard.hpp"

namespace pario::comm {
namespace {

constexpr std::size_t kLargestMessage = std::size_t{1} << 30;
constexpr int kLost = -1;         // no MPI's error: it has said nothing
constexpr std::size_t kKept = 8;  // families that live on for the next file of the same ranks

/// For what should be there at once.
Patience short_patience() {
  return {.look = [](std::uint64_t) -> base::Status { return base::Error{.number = ETIMEDOUT}; }};
}

/// Looks as both do.
Patience combined(const Patience& first, const Patience& second) {
  if (!first.look) return second;
  return {.interval_ns = std::min(first.interval_ns, second.interval_ns),
          .look =
              [look = first.look, then = second.look](std::uint64_t waited_ns) {
                base::Status status = look(waited_ns);
                return status && then ? then(waited_ns) : status;
              },
          .progress = second.progress};
}

class MpiComm : public NodeComm {
 public:
  MpiComm(std::shared_ptr<Communicator> communicator, std::shared_ptr<const std::vector<Card>> cards, int number, int rank, Topology nodes,
          std::shared_ptr<SharedMemory> memory, std::shared_ptr<MpiComm> root)
      : NodeComm(rank, std::move(nodes), std::move(memory)),
        communicator_(std::move(communicator)),
        cards_(std::move(cards)),
        number_(number),
        root_(std::move(root)) {}

  MpiComm(const MpiComm&) = delete;
  MpiComm& operator=(const MpiComm&) = delete;
  ~MpiComm() override {
    RollNote note;
    while (topology().nodes() > 1 && !failed() && MpiComm::may_talk() && MpiComm::take_note(note)) {
    }
    if (failed()) communicator_->has_failed();
  }

  bool thread_safe() const override {
    static const bool multiple = communicator_->mpi.thread_multiple();
    return multiple;
  }
  void progress() const override {
    if (may_talk()) static_cast<void>(probe(kNewsTag));  // a probe that finds nothing makes progress
  }
  int world_rank(int other) const override {
    const int known = card(other).world_rank;
    return known < 0 ? other : known;
  }
  bool alive(int other) const override {
    return topology().node_of[static_cast<std::size_t>(other)] != node() || card(other).process.alive();
  }
  base::Status failure() override {
    base::Status status = NodeComm::failure();
    if (!status) communicator_->has_failed();
    return status;
  }
  /// A dead rank is missed by all Comms of the Family, also where some of its ranks have failed to make one.
  base::Status check(std::uint64_t silence_s) override {
    base::Status dead = root_ ? root_->news() : base::Status();
    if (dead) dead = (root_ ? *root_ : *this).missed(silence_s);
    return dead ? NodeComm::check(silence_s) : settle(dead);
  }
  void fail(const base::Error& error) override {
    if (failed()) return;
    NodeComm::fail(error);
    if (!root_ || error.number != ESRCH) return;
    root_->fail(error);
    static_cast<void>(root_->failure());  // tells the other nodes
  }

  std::shared_ptr<SharedMemory> share(std::size_t size, const Patience& given) override {
    const Patience patience = patience_for(given);
    const auto publish = [&](Ticket& ticket) { return settle(board().broadcast(&ticket, sizeof ticket, 0, patience)).ok(); };
    return share_memory(size, leader() == rank(), {publish, [&](bool mine) { return all_agree(mine, patience); }});
  }

  std::shared_ptr<Comm> duplicate(const Patience& given) override {
    int number = rank() == 0 ? communicator_->take_number() : 0;
    if (!broadcast(&number, sizeof number, 0, given)) return nullptr;
    auto communicator = communicator_;
    if (!communicator->has_number(number)) {
      communicator = Communicator::duplicate(communicator->mpi, communicator->handle, patience_for(given));
      number = 0;
    }
    auto memory = share(Board::bytes(local_size()), given);
    if (!memory || !communicator) return nullptr;
    return std::make_shared<MpiComm>(std::move(communicator), cards_, number, rank(), topology(), std::move(memory), root_);
  }

  /// Collective: from now on leaders miss hosts that are gone. Where that cannot be, nobody is missed.
  void tie_hosts() {
    if (topology().nodes() == 1) return;
    auto lifelines = rank() == leader() ? std::make_unique<Lifelines>() : nullptr;
    const Door mine = lifelines ? lifelines->door() : Door();
    std::vector<Door> doors(static_cast<std::size_t>(size())), of_leaders;
    if (!allgather(&mine, sizeof mine, doors.data(), {}) || !lifelines) return;
    for (const auto& ranks : topology().ranks_of) of_leaders.push_back(doors[static_cast<std::size_t>(ranks.front())]);
    lifelines->tie(static_cast<std::size_t>(node()), std::move(of_leaders));
    lifelines_ = std::move(lifelines);
  }

  /// For the MPI's own collective calls, in which it may wait for a rank that has died.
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
  bool may_talk() const override { return (!is_own_thread() || thread_safe()) && !finalized(); }

  void tell(int leader, const ErrorRecord& news) override { send_copy(leader, kNewsTag, news); }
  bool hear(ErrorRecord& news) override { return take(kNewsTag, news); }
  void send_note(int to, const RollNote& note) override {
    if (may_talk()) send_copy(to, kRollTag, note);
  }
  bool take_note(RollNote& note) override { return may_talk() && take(kRollTag, note); }

 private:
  struct Found {
    int result;
    bool any;
    int source;
  };
  /// A message that nobody has to receive.
  template <class Record>
  void send_copy(int to, int tag, const Record& record) {
    auto copy = std::make_unique<Record>(record);
    std::unique_ptr<Pending> message[] = {send(to, tag, std::as_bytes(std::span(copy.get(), 1)))};
    if (!wait_all(message, short_patience())) static_cast<void>(copy.release());  // it may still be on its way
  }
  /// Receives from the rank that the probe has found: MPICH 5 over UCX finds a message of another
  /// host, but receives it from no MPI_ANY_SOURCE.
  template <class Record>
  bool take(int tag, Record& record) {
    const Found found = probe(tag);
    if (found.result != 0) board().fail(mpi_failed());
    if (!found.any) return false;
    std::unique_ptr<Pending> message[] = {receive(found.source, tag, std::as_writable_bytes(std::span(&record, 1)))};
    return wait_all(message, short_patience()).ok();  // another thread may have received it
  }
  Found probe(int wanted) const {
    const Library& mpi = communicator_->mpi;
    alignas(std::max_align_t) std::byte status[mpi::kStatusSize];
    Found found = {};
    int any = 0, tag = 0;
    found.result = mpi.iprobe(mpi.value(mpi::Constant::MPI_ANY_SOURCE), mpi_tag(wanted), communicator_->handle, &any, status);
    found.any = found.result == 0 && any != 0 && mpi.envelope(reinterpret_cast<Word>(+status), found.source, tag);
    return found;
  }
  base::Status missed(std::uint64_t silence_s) {
    const auto loss = lifelines_ ? lifelines_->lost(silence_s * 1'000'000'000) : std::nullopt;
    if (!loss) return {};
    const std::vector<int>& ranks = topology().ranks_of[loss->leader];
    std::string detail = "the host of " + names(ranks) + " has not answered for " + std::to_string(silence_s) + " s";
    if (!loss->silent)
      detail = names({&ranks.front(), 1}) + " has died" + (ranks.size() > 1 ? ", perhaps with all of its host: " + names(ranks) : "");
    return base::Error{.number = ESRCH, .detail = std::move(detail)};
  }
  const Card& card(int rank) const { return (*cards_)[static_cast<std::size_t>(rank)]; }
  int mpi_tag(int tag) const { return number_ << 16 | tag; }

  bool all_agree(bool mine, const Patience& patience) {
    std::vector<std::byte> all(static_cast<std::size_t>(local_size()));
    std::vector<std::byte*> places(all.size());
    std::transform(all.begin(), all.end(), places.begin(), [](std::byte& byte) { return &byte; });
    const auto own = static_cast<std::byte>(mine);
    return settle(board().allgather(&own, 1, places, patience)).ok() && std::find(all.begin(), all.end(), std::byte{0}) == all.end();
  }

  /// A message of any size, the empty one too, as requests of sizes that an int can hold.
  template <class Byte, class Start>
  std::unique_ptr<Requests> start(std::span<Byte> data, Start start_part) {
    auto message = std::make_unique<Requests>(communicator_->mpi, std::vector<Word>{}, board());
    for (std::size_t begin = 0; begin == 0 || begin < data.size(); begin += kLargestMessage) {
      Word request = 0;
      const SendGuard guard;
      const int result = start_part(data.data() + begin, static_cast<int>(std::min(kLargestMessage, data.size() - begin)), &request);
      message->note(guard.lost() ? kLost : result);
      if (result == 0) message->add(request);
    }
    return message;
  }

  std::shared_ptr<Communicator> communicator_;
  std::shared_ptr<const std::vector<Card>> cards_;
  int number_;
  std::shared_ptr<MpiComm> root_;         // null: this is it
  std::unique_ptr<Lifelines> lifelines_;  // of the root of a leader
};

/// What Comms of the same ranks have in common.
struct Family {
  std::uint64_t id = 0;
  std::vector<int> ranks;  ///< in MPI_COMM_WORLD
  std::shared_ptr<Communicator> communicator;
  std::shared_ptr<const std::vector<Card>> cards;
  std::shared_ptr<MpiComm> root;  ///< for news of dead ranks
};

/// The families of this process. What a rank finds here is only a proposal: another may have forgotten it. All ranks tell each other what
/// they have (Card::known), and only the same answer of all counts, so that the decision cannot differ between them.
class Cache {
 public:
  static Cache& instance() {
    static Cache& cache = *new Cache;
    return cache;
  }
  std::shared_ptr<const Family> find(const std::vector<int>& ranks) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const auto& family) { return family->ranks == ranks; });
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

void forget_all() { Cache::instance().clear(); }

/// By rank of the communicator; -1: not one of MPI_COMM_WORLD.
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

int pretend_nodes() {
  const char* text = std::getenv("PARIO_NODES");
  const std::string_view digits = text ? text : "";
  int number = 1;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return std::max(number, 1);
}

/// One attempt to make a Comm, on one rank. All that is collective goes over the program's communicator, whose collective calls come in
/// the same order on all ranks; those over others may happen at the same time.
class Making {
 public:
  Making(const Library& mpi, Word communicator, const Patience& patience) : mpi_(mpi), communicator_(communicator), patience_(patience) {
    mpi.comm_rank(communicator, &rank_);
    mpi.comm_size(communicator, &size_);
    ranks_ = world_ranks(mpi, communicator, size_);
  }

  base::Result<std::shared_ptr<Comm>> make() {
    if (size_ == 1) return make_self(std::max(ranks_[0], 0));
    const auto known = Cache::instance().find(ranks_);
    if (base::Status status = gather_cards(known.get()); !status) return located(status.error());
    const std::uint64_t id = known ? known->id : 0;
    const bool same = std::all_of(cards_->begin(), cards_->end(), [&](const Card& card) { return card.known == id; });
    const auto family = same && known ? known : make_family();
    auto comm = family ? make_comm(*family, family == known ? cards_->front().number : 1) : nullptr;
    if (comm) return std::shared_ptr<Comm>(std::move(comm));
    const base::Status dead = known ? known->root->failure() : base::Status();
    return located(dead ? base::Error{.number = EIO, .detail = "the MPI failed, or there is no memory to share"} : dead.error());
  }

 private:
  base::Error located(base::Error error) const {
    error.operation = "make_mpi";
    if (error.rank < 0) error.rank = rank_;
    return error;
  }

  base::Status gather_cards(const Family* family) {
    Card mine{.process = Process::self(), .known = family ? family->id : 0, .world_rank = ranks_[static_cast<std::size_t>(rank_)]};
    if (rank_ == 0) {
      mine.proposed = Cache::instance().propose(), mine.pretend_nodes = pretend_nodes();
      if (family) mine.number = family->communicator->take_number();
    }
    if (family) patience_ = combined(patience_, family->root->patience());
    if (family && family->root->failed()) return family->root->failure();
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
    auto root = std::make_shared<MpiComm>(duplicate, cards_, 0, rank_, std::move(nodes), std::move(memory), nullptr);
    root->tie_hosts();
    auto family = std::make_shared<Family>(Family{cards_->front().proposed, ranks_, std::move(duplicate), cards_, std::move(root)});
    const bool all_in_world = std::find(ranks_.begin(), ranks_.end(), -1) == ranks_.end();
    if (all_in_world) Cache::instance().add(family);
    return family;
  }

  std::shared_ptr<Comm> make_comm(const Family& family, int number) {
    const Topology& nodes = family.root->topology();
    patience_ = combined(patience_, family.root->patience());
    auto memory = share_board(nodes);
    auto communicator = family.communicator;
    if (!communicator->has_room(number)) {
      communicator = Communicator::duplicate(mpi_, communicator_, patience_);
      number = 0;
    }
    if (!memory || !communicator) return nullptr;
    return std::make_shared<MpiComm>(std::move(communicator), family.cards, number, rank_, nodes, std::move(memory), family.root);
  }

  /// The first memory of each node. All nodes get theirs in the same way: the MPI is the only one who can be asked, and it asks all.
  std::shared_ptr<SharedMemory> share_board(const Topology& nodes) const {
    if (nodes.nodes() == size_) return private_memory(Board::bytes(1));
    const auto& node = nodes.ranks_of[static_cast<std::size_t>(nodes.node_of[static_cast<std::size_t>(rank_)])];
    const auto leader = static_cast<std::size_t>(node.front());
    const auto publish = [&](Ticket& ticket) {
      std::vector<Ticket> all(static_cast<std::size_t>(size_));
      if (!allgather_by_mpi(mpi_, communicator_, &ticket, sizeof ticket, all.data(), patience_)) return false;
      ticket = all[leader];
      return true;
    };
    const auto all_agree = [&](bool mine) {
      std::vector<char> all(static_cast<std::size_t>(size_));
      const char own = mine;
      return allgather_by_mpi(mpi_, communicator_, &own, 1, all.data(), patience_) && std::find(all.begin(), all.end(), 0) == all.end();
    };
    return share_memory(Board::bytes(static_cast<int>(node.size())), node.front() == rank_, {publish, all_agree});
  }

  const Library& mpi_;
  Word communicator_;
  int rank_ = 0, size_ = 0;
  std::vector<int> ranks_;
  std::shared_ptr<std::vector<Card>> cards_;
  Patience patience_;  // the given one, and that of the known Family
};

}  // namespace

base::Result<std::shared_ptr<Comm>> make_mpi(std::uintptr_t communicator, const Patience& patience) {
  const Library* mpi = Library::get();
  if (!mpi) return base::Error{.number = ENOSYS, .operation = "make_mpi", .detail = "no MPI that pario knows is loaded"};
  int inter = 0;
  if (mpi->comm_test_inter(communicator, &inter) != 0 || inter != 0)
    return base::Error{.number = EINVAL, .operation = "make_mpi", .detail = "not an intracommunicator"};
  watch_finalize(*mpi, forget_all);
  return Making(*mpi, communicator, patience).make();
}

}  // namespace pario::comm
