// The wait of ranks that have no Comm yet: in make_mpi(), whose collective calls are the MPI's.
// Ranks of one host find each other by sockets in the abstract name space, which end with their
// processes and carry no messages.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>

#include "core/comm/communicator.hpp"

namespace pario::comm {
namespace {

using std::chrono::nanoseconds;
using namespace std::chrono_literals;

/// Ranks that have waited this long announce their presence.
constexpr nanoseconds kAnnounceAfter = 1s;
constexpr std::size_t kMostCalls = 3;

class FileOpenWait {
 public:
  FileOpenWait(std::uintptr_t communicator, const WaitLimits& limits, std::string path,
               void (*say)(const std::string&), CallLookup lookup)
      : communicator_(communicator),
        limits_(limits),
        path_(std::move(path)),
        say_(say),
        lookup_(lookup) {
    if (const Library* mpi = Library::get()) {
      mpi->comm_rank(communicator, &rank_);
      mpi->comm_size(communicator, &size_);
    }
    base::Text<64> name;
    name.add("pario-opens-")
        .add(::getuid())
        .add('-')
        .add(base::xxh64(path_), 16)
        .add('-')
        .add(size_)
        .add('-');
    prefix_ = name.view();
  }
  FileOpenWait(const FileOpenWait&) = delete;
  FileOpenWait& operator=(const FileOpenWait&) = delete;
  ~FileOpenWait() {
    if (socket_ >= 0) base::close_file(socket_);
  }

  base::Status look(nanoseconds waited) {
    const bool reports = limits_.report > 0ms && !reported_;
    if (reports && socket_ < 0 &&
        waited >= std::min<nanoseconds>(kAnnounceAfter, limits_.report / 2))
      announce_presence();
    if (reports && waited >= limits_.report) report();
    if (limits_.give_up == 0ms || waited < limits_.give_up) return {};
    return base::Error{.number = ETIMEDOUT,
                       .operation = "MPI_File_open",
                       .path = path_,
                       .detail = "other ranks have not come (hint pario_patience)"};
  }

 private:
  void announce_presence() {
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    const std::string name = prefix_ + std::to_string(rank_);
    name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
    socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (socket_ < 0) return;
    socket_ = base::move_high(socket_);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    static_cast<void>(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), size));
  }

  /// The ranks of this host that have announced their presence.
  std::vector<int> present() const {
    std::vector<int> ranks{rank_};
    std::ifstream names("/proc/net/unix");
    for (std::string line; std::getline(names, line);) {
      const auto at = line.find("@" + prefix_);
      if (at == line.npos) continue;
      int rank = -1;
      const char* digits = line.data() + at + 1 + prefix_.size();
      std::from_chars(digits, line.data() + line.size(), rank);
      if (rank >= 0 && rank != rank_) ranks.push_back(rank);
    }
    std::ranges::sort(ranks);
    return ranks;
  }

  /// The calls of the first ranks that have not come and log on this host, in brackets.
  std::string calls_of_others(const std::vector<int>& present) const {
    const Library* mpi = Library::get();
    if (!lookup_ || !mpi) return {};
    const std::vector<int> in_world = world_ranks(*mpi, communicator_, size_);
    std::string text;
    std::size_t count = 0;
    for (int rank = 0; rank < size_ && count < kMostCalls; ++rank) {
      const int number = in_world[static_cast<std::size_t>(rank)];
      if (number < 0 || std::ranges::binary_search(present, rank)) continue;
      const std::string call = lookup_(0, number);
      if (call.empty()) continue;
      text += (count++ == 0 ? " (rank " : "; rank ") + std::to_string(rank) + ": " + call;
    }
    return count == 0 ? text : text + ")";
  }

  void report() {
    reported_ = true;
    const std::vector<int> ranks = present();
    if (ranks.front() != rank_) return;
    say_("MPI_File_open of " + path_ + " has waited " + seconds_text(limits_.report) +
         " s; of the " + std::to_string(size_) + " ranks of its communicator " +
         format_ranks(ranks) + (ranks.size() == 1 ? " has come" : " have come") +
         ", as far as this host can tell" + calls_of_others(ranks) +
         ". pario_watchdog=0 turns this message off");
  }

  const Word communicator_;
  const WaitLimits limits_;
  const std::string path_;
  void (*const say_)(const std::string&);
  const CallLookup lookup_;
  std::string prefix_;
  int rank_ = 0, size_ = 1, socket_ = -1;
  bool reported_ = false;
};

}  // namespace

Patience watch_file_open(std::uintptr_t communicator, const WaitLimits& limits,
                         const std::string& path, void (*say)(const std::string&),
                         CallLookup lookup) {
  auto wait = std::make_shared<FileOpenWait>(communicator, limits, path, say, lookup);
  return {.look = [wait](std::uint64_t waited_ns) { return wait->look(nanoseconds(waited_ns)); }};
}

}  // namespace pario::comm
