#include "core/comm/lifelines.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <span>

#include "core/base/base.hpp"
#include "core/base/sleep.hpp"

namespace pario::comm {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kConnectTime = kSecond / 5;
constexpr std::uint64_t kLongestPause = 2 * kSecond;
/// Longer than the kernels need for two keep-alives.
constexpr std::uint64_t kShortestPeriod = 5 * kSecond;
constexpr int kAskSeconds = 2, kAskTimes = 127;
constexpr std::size_t kMostAccepted = 64;
constexpr std::uint64_t kForEver = ~std::uint64_t{0};

using base::system_call;

struct Handshake {
  std::uint64_t to, from;  ///< tokens
};

int new_socket() {
  const long made = system_call(SYS_socket, AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  return made < 0 ? -1 : base::move_high(static_cast<int>(made));
}

void set_option(int socket, int level, int name, int value) {
  system_call(SYS_setsockopt, socket, level, name, &value, sizeof value);
}

void enable_keep_alive(int socket) {
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, kAskSeconds);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, kAskSeconds);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, kAskTimes);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
}

sockaddr_in socket_address(std::uint32_t address, std::uint16_t port) {
  sockaddr_in made{};
  made.sin_family = AF_INET;
  made.sin_port = port;
  made.sin_addr.s_addr = address;
  return made;
}

/// This host's addresses on networks; its loopback address if there are none.
std::array<std::uint32_t, ListenAddress::kAddresses> own_addresses() {
  std::array<std::uint32_t, ListenAddress::kAddresses> addresses = {};
  std::size_t count = 0;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return addresses;
  for (const ifaddrs* one = all; one != nullptr && count < addresses.size(); one = one->ifa_next) {
    const bool usable = (one->ifa_flags & IFF_UP) != 0 && (one->ifa_flags & IFF_LOOPBACK) == 0;
    if (!usable || one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    addresses[count++] = reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr.s_addr;
  }
  freeifaddrs(all);
  if (count == 0) addresses[0] = htonl(INADDR_LOOPBACK);
  return addresses;
}

}  // namespace

/// One connection.
class Lifeline {
 public:
  enum class State : std::uint8_t {
    connecting,      // sends a handshake once it is connected
    handshake_sent,  // waits for the answer
    accepted,        // waits for the handshake of the other end
    connected,
    left,    // the other end has announced that it leaves
    silent,  // the kernel has given up
    ended,   // the other process has ended unannounced
    unusable
  };

  Lifeline(int socket, State state, std::size_t leader)
      : socket_(socket), leader_(leader), state_(state) {
    enable_keep_alive(socket);
  }
  ~Lifeline() {
    if (state_ == State::connected || state_ == State::handshake_sent) send_leave();
    if (socket_ >= 0) base::close_file(socket_);
  }
  Lifeline(const Lifeline&) = delete;
  Lifeline& operator=(const Lifeline&) = delete;

  State state() const { return state_; }
  bool is_connected_to(std::size_t leader) const {
    return state_ == State::connected && leader_ == leader;
  }
  /// The leader at the other end; unknown while it is `accepted`.
  std::size_t leader() const { return leader_; }

  void step(std::size_t me, std::span<const ListenAddress> listeners) {
    if (state_ == State::connecting) send_handshake(listeners[me].token, listeners[leader_].token);
    if (state_ == State::handshake_sent || state_ == State::accepted)
      receive_handshake(me, listeners);
    if (state_ == State::connected) read_leave();
  }

  /// Nanoseconds for which the other kernel has answered nothing; 0 if the socket is not connected.
  std::uint64_t silence_ns() const {
    if (state_ == State::silent) return kForEver;
    tcp_info info{};
    socklen_t size = sizeof info;
    if (system_call(SYS_getsockopt, socket_, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
    return std::uint64_t{info.tcpi_last_ack_recv} * 1'000'000;
  }

 private:
  long send_bytes(const void* data, std::size_t size) const {
    return system_call(SYS_sendto, socket_, data, size, MSG_DONTWAIT | MSG_NOSIGNAL, nullptr, 0);
  }
  long receive_bytes(void* data, std::size_t size, int flags) const {
    return system_call(SYS_recvfrom, socket_, data, size, MSG_DONTWAIT | flags, nullptr, nullptr);
  }

  void send_leave() const {
    Handshake unread[2];
    send_bytes("", 1);
    receive_bytes(unread, sizeof unread, 0);  // else the close would look like a failure
  }

  void send_handshake(std::uint64_t from, std::uint64_t to) {
    const Handshake handshake{.to = to, .from = from};
    const long sent_bytes = send_bytes(&handshake, sizeof handshake);
    if (sent_bytes == -EAGAIN || sent_bytes == -EINPROGRESS || sent_bytes == -EALREADY) return;
    state_ = sent_bytes == sizeof handshake ? State::handshake_sent : State::unusable;
  }

  void receive_handshake(std::size_t me, std::span<const ListenAddress> listeners) {
    Handshake handshake{};
    const long size = receive_bytes(&handshake, sizeof handshake, MSG_PEEK);
    if (size == -EAGAIN || (size > 0 && size < static_cast<long>(sizeof handshake))) return;
    const auto from = std::ranges::find(listeners, handshake.from, &ListenAddress::token);
    const bool known =
        size == sizeof handshake && handshake.to == listeners[me].token && from != listeners.end();
    const auto who = static_cast<std::size_t>(from - listeners.begin());
    if (!known || (state_ == State::handshake_sent && who != leader_)) {
      state_ = State::unusable;
      return;
    }
    receive_bytes(&handshake, sizeof handshake, 0);
    leader_ = who;
    const bool answers = state_ == State::accepted;
    state_ = State::connected;
    if (answers) answer_handshake(handshake);
  }

  void answer_handshake(const Handshake& handshake) {
    const Handshake back{.to = handshake.from, .from = handshake.to};
    if (send_bytes(&back, sizeof back) != sizeof back) state_ = State::unusable;
  }

  void read_leave() {
    char leave = 0;
    const long size = receive_bytes(&leave, 1, 0);
    if (size == -EAGAIN || size == -EINTR) return;
    if (size > 0)
      state_ = State::left;
    else if (size == 0 || size == -ECONNRESET)
      state_ = State::ended;
    else if (size == -EBADF || size == -ENOTSOCK)  // the program has closed a descriptor of pario's
      state_ = State::unusable, socket_ = -1;
    else
      state_ = State::silent;
  }

  int socket_;
  std::size_t leader_;
  State state_;
};

std::uint64_t LookPeriod::look(std::uint64_t now) {
  if (last_ == 0 || now - last_ > kLongestPause) begin_ = now;
  last_ = now;
  return now - begin_;
}

bool are_neighbours(std::size_t one, std::size_t other, std::size_t count) {
  const std::size_t apart = one < other ? other - one : one - other;
  return std::has_single_bit(apart) || std::has_single_bit(count - apart);
}

Lifelines::Lifelines() {
  listener_ = new_socket();
  sockaddr_in address = socket_address(htonl(INADDR_ANY), 0);
  socklen_t size = sizeof address;
  const bool open = listener_ >= 0 && system_call(SYS_bind, listener_, &address, size) == 0 &&
                    system_call(SYS_listen, listener_, SOMAXCONN) == 0 &&
                    system_call(SYS_getsockname, listener_, &address, &size) == 0;
  std::uint64_t token = 0;
  if (!open || ::getrandom(&token, sizeof token, GRND_NONBLOCK) != sizeof token) return;
  own_address_ = {.token = token, .addresses = own_addresses(), .port = address.sin_port};
}

Lifelines::~Lifelines() {
  if (listener_ >= 0) base::close_file(listener_);
}

void Lifelines::connect(std::size_t me, std::vector<ListenAddress> listeners) {
  me_ = me;
  listeners_ = std::move(listeners);
  if (own_address_.token == 0) return;
  for (std::size_t other = 0; other < listeners_.size(); ++other) {
    if (other == me || listeners_[other].token == 0 ||
        !are_neighbours(me, other, listeners_.size()))
      continue;
    neighbours_.push_back(other);
    if (me < other) connect_to(other);
  }
  const std::uint64_t begin = base::monotonic_ns();
  for (step(); !is_complete() && base::monotonic_ns() - begin < kConnectTime; step())
    base::sleep_ns(kSecond / 2000);
}

void Lifelines::connect_to(std::size_t leader) {
  for (const std::uint32_t host : listeners_[leader].addresses) {
    const int socket = host == 0 ? -1 : new_socket();
    if (socket < 0) continue;
    const sockaddr_in address = socket_address(host, listeners_[leader].port);
    system_call(SYS_connect, socket, &address,
                sizeof address);  // an error shows when it sends the handshake
    lines_.push_back(std::make_unique<Lifeline>(socket, Lifeline::State::connecting, leader));
  }
}

void Lifelines::accept_connections() {
  const auto accepted = [this] {
    return std::ranges::count(lines_, Lifeline::State::accepted,
                              [](const auto& line) { return line->state(); });
  };
  while (listener_ >= 0 && static_cast<std::size_t>(accepted()) < kMostAccepted) {
    const long socket =
        system_call(SYS_accept4, listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0) return;
    lines_.push_back(std::make_unique<Lifeline>(base::move_high(static_cast<int>(socket)),
                                                Lifeline::State::accepted, 0));
  }
}

void Lifelines::step() {
  accept_connections();
  for (const auto& line : lines_) line->step(me_, listeners_);
  std::erase_if(lines_,
                [](const auto& line) { return line->state() == Lifeline::State::unusable; });
}

bool Lifelines::is_connected_to(std::size_t leader) const {
  return std::ranges::any_of(lines_,
                             [leader](const auto& line) { return line->is_connected_to(leader); });
}

bool Lifelines::is_complete() const {
  return std::ranges::all_of(neighbours_,
                             [this](std::size_t leader) { return is_connected_to(leader); });
}

std::optional<Lifelines::Loss> Lifelines::find_loss(std::uint64_t silence_ns) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || neighbours_.empty()) return {};
  step();
  const bool attentive = period_.look(base::monotonic_ns()) >= kShortestPeriod;
  for (const std::size_t leader : neighbours_)
    if (const auto loss = loss_of(leader, attentive ? silence_ns : 0)) return loss;
  return {};
}

std::optional<Lifelines::Loss> Lifelines::loss_of(std::size_t leader,
                                                  std::uint64_t silence_ns) const {
  bool ended = false, silent = false;
  for (const auto& line : lines_) {
    const bool concerns = line->state() >= Lifeline::State::connected && line->leader() == leader;
    if (!concerns) continue;
    if (line->state() == Lifeline::State::left) return {};
    if (line->state() == Lifeline::State::ended)
      ended = true;
    else if (silence_ns == 0 || line->silence_ns() < silence_ns)
      return {};
    else
      silent = true;
  }
  return ended || silent ? std::optional<Loss>({leader, silent && !ended}) : std::nullopt;
}

}  // namespace pario::comm
