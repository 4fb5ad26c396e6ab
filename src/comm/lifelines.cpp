#include "comm/lifelines.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <ctime>
#include <span>

#include "base/base.hpp"

namespace pario::comm {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kIntroduction = kSecond / 5;
constexpr std::uint64_t kBreak = 2 * kSecond;
/// Longer than the kernels need to ask twice.
constexpr std::uint64_t kAttention = 5 * kSecond;
constexpr int kAskSeconds = 2, kAskTimes = 127;
constexpr std::size_t kMostStrangers = 64;
constexpr std::uint64_t kForEver = ~std::uint64_t{0};

using base::system_call;

struct Greeting {
  std::uint64_t to, from;  ///< tokens
};

int new_socket() {
  const long made = system_call(SYS_socket, AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  return made < 0 ? -1 : base::move_high(static_cast<int>(made));
}

void set_option(int socket, int level, int name, int value) { system_call(SYS_setsockopt, socket, level, name, &value, sizeof value); }

void ask_again_and_again(int socket) {
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, kAskSeconds);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, kAskSeconds);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, kAskTimes);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
}

sockaddr_in address_of(std::uint32_t place, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = port;
  address.sin_addr.s_addr = place;
  return address;
}

/// This host's addresses on networks; that of its loopback where there are none.
std::array<std::uint32_t, Door::kAddresses> own_places() {
  std::array<std::uint32_t, Door::kAddresses> places = {};
  std::size_t count = 0;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return places;
  for (const ifaddrs* one = all; one != nullptr && count < places.size(); one = one->ifa_next) {
    const bool usable = (one->ifa_flags & IFF_UP) != 0 && (one->ifa_flags & IFF_LOOPBACK) == 0;
    if (!usable || one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    places[count++] = reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr.s_addr;
  }
  freeifaddrs(all);
  if (count == 0) places[0] = htonl(INADDR_LOOPBACK);
  return places;
}

void pause_ns(std::uint64_t duration) {
  const timespec time{0, static_cast<long>(duration)};
  nanosleep(&time, nullptr);
}

}  // namespace

/// One connection.
class Lifeline {
 public:
  enum class State : std::uint8_t {
    calling,   // has to greet, once it is connected
    greeted,   // waits for an answer
    stranger,  // somebody else has called, and has not greeted yet
    tied,
    farewell,
    silent,  // the kernel has given up
    ended,
    useless
  };

  Lifeline(int socket, State state, std::size_t leader) : socket_(socket), leader_(leader), state_(state) { ask_again_and_again(socket); }
  ~Lifeline() {
    if (state_ == State::tied || state_ == State::greeted) take_leave();
    if (socket_ >= 0) base::close_file(socket_);
  }
  Lifeline(const Lifeline&) = delete;
  Lifeline& operator=(const Lifeline&) = delete;

  State state() const { return state_; }
  bool is_tied_to(std::size_t leader) const { return state_ == State::tied && leader_ == leader; }
  /// Who is at the other end; not of strangers.
  std::size_t leader() const { return leader_; }

  void step(std::size_t me, std::span<const Door> doors) {
    if (state_ == State::calling) greet(doors[me].token, doors[leader_].token);
    if (state_ == State::greeted || state_ == State::stranger) be_greeted(me, doors);
    if (state_ == State::tied) listen();
  }

  /// For how long the other kernel has answered nothing; of what is tied or silent.
  std::uint64_t silence_ns() const {
    if (state_ == State::silent) return kForEver;
    tcp_info info{};
    socklen_t size = sizeof info;
    if (system_call(SYS_getsockopt, socket_, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
    return std::uint64_t{info.tcpi_last_ack_recv} * 1'000'000;
  }

 private:
  long put(const void* data, std::size_t size) const {
    return system_call(SYS_sendto, socket_, data, size, MSG_DONTWAIT | MSG_NOSIGNAL, nullptr, 0);
  }
  long get(void* data, std::size_t size, int flags) const {
    return system_call(SYS_recvfrom, socket_, data, size, MSG_DONTWAIT | flags, nullptr, nullptr);
  }

  void take_leave() const {
    Greeting unread[2];
    put("", 1);
    get(unread, sizeof unread, 0);  // else closing would be taken for a failure
  }

  void greet(std::uint64_t from, std::uint64_t to) {
    const Greeting greeting{.to = to, .from = from};
    const long put_bytes = put(&greeting, sizeof greeting);
    if (put_bytes == -EAGAIN || put_bytes == -EINPROGRESS || put_bytes == -EALREADY) return;
    state_ = put_bytes == sizeof greeting ? State::greeted : State::useless;
  }

  void be_greeted(std::size_t me, std::span<const Door> doors) {
    Greeting greeting{};
    const long size = get(&greeting, sizeof greeting, MSG_PEEK);
    if (size == -EAGAIN || (size > 0 && size < static_cast<long>(sizeof greeting))) return;
    const auto from = std::ranges::find(doors, greeting.from, &Door::token);
    const bool known = size == sizeof greeting && greeting.to == doors[me].token && from != doors.end();
    const auto who = static_cast<std::size_t>(from - doors.begin());
    if (!known || (state_ == State::greeted && who != leader_)) {
      state_ = State::useless;
      return;
    }
    get(&greeting, sizeof greeting, 0);
    leader_ = who;
    const bool answers = state_ == State::stranger;
    state_ = State::tied;
    if (answers) answer(greeting);
  }

  void answer(const Greeting& greeting) {
    const Greeting back{.to = greeting.from, .from = greeting.to};
    if (put(&back, sizeof back) != sizeof back) state_ = State::useless;
  }

  void listen() {
    char leave = 0;
    const long size = get(&leave, 1, 0);
    if (size == -EAGAIN || size == -EINTR) return;
    if (size > 0)
      state_ = State::farewell;
    else if (size == 0 || size == -ECONNRESET)
      state_ = State::ended;
    else if (size == -EBADF || size == -ENOTSOCK)  // the program has closed what it did not open
      state_ = State::useless, socket_ = -1;
    else
      state_ = State::silent;
  }

  int socket_;
  std::size_t leader_;
  State state_;
};

std::uint64_t Attention::look(std::uint64_t now) {
  if (last_ == 0 || now - last_ > kBreak) begin_ = now;
  last_ = now;
  return now - begin_;
}

bool are_neighbours(std::size_t one, std::size_t other, std::size_t count) {
  const std::size_t apart = one < other ? other - one : one - other;
  return std::has_single_bit(apart) || std::has_single_bit(count - apart);
}

Lifelines::Lifelines() {
  listener_ = new_socket();
  sockaddr_in address = address_of(htonl(INADDR_ANY), 0);
  socklen_t size = sizeof address;
  const bool open = listener_ >= 0 && system_call(SYS_bind, listener_, &address, size) == 0 &&
                    system_call(SYS_listen, listener_, SOMAXCONN) == 0 && system_call(SYS_getsockname, listener_, &address, &size) == 0;
  std::uint64_t token = 0;
  if (!open || ::getrandom(&token, sizeof token, GRND_NONBLOCK) != sizeof token) return;
  door_ = {.token = token, .places = own_places(), .port = address.sin_port};
}

Lifelines::~Lifelines() {
  if (listener_ >= 0) base::close_file(listener_);
}

void Lifelines::tie(std::size_t me, std::vector<Door> doors) {
  me_ = me;
  doors_ = std::move(doors);
  if (door_.token == 0) return;
  for (std::size_t other = 0; other < doors_.size(); ++other) {
    if (other == me || doors_[other].token == 0 || !are_neighbours(me, other, doors_.size())) continue;
    neighbours_.push_back(other);
    if (me < other) call(other);
  }
  const std::uint64_t begin = base::monotonic_ns();
  for (step(); !is_complete() && base::monotonic_ns() - begin < kIntroduction; step()) pause_ns(kSecond / 2000);
}

void Lifelines::call(std::size_t leader) {
  for (const std::uint32_t place : doors_[leader].places) {
    const int socket = place == 0 ? -1 : new_socket();
    if (socket < 0) continue;
    const sockaddr_in address = address_of(place, doors_[leader].port);
    system_call(SYS_connect, socket, &address, sizeof address);  // how that ends is seen when it greets
    lines_.push_back(std::make_unique<Lifeline>(socket, Lifeline::State::calling, leader));
  }
}

void Lifelines::let_in() {
  const auto strangers = [this] {
    return std::ranges::count(lines_, Lifeline::State::stranger, [](const auto& line) { return line->state(); });
  };
  while (listener_ >= 0 && static_cast<std::size_t>(strangers()) < kMostStrangers) {
    const long socket = system_call(SYS_accept4, listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0) return;
    lines_.push_back(std::make_unique<Lifeline>(base::move_high(static_cast<int>(socket)), Lifeline::State::stranger, 0));
  }
}

void Lifelines::step() {
  let_in();
  for (const auto& line : lines_) line->step(me_, doors_);
  std::erase_if(lines_, [](const auto& line) { return line->state() == Lifeline::State::useless; });
}

bool Lifelines::is_tied_to(std::size_t leader) const {
  return std::ranges::any_of(lines_, [leader](const auto& line) { return line->is_tied_to(leader); });
}

bool Lifelines::is_complete() const {
  return std::ranges::all_of(neighbours_, [this](std::size_t leader) { return is_tied_to(leader); });
}

std::optional<Lifelines::Loss> Lifelines::lost(std::uint64_t silence_ns) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || neighbours_.empty()) return {};
  step();
  const bool attentive = attention_.look(base::monotonic_ns()) >= kAttention;
  for (const std::size_t leader : neighbours_)
    if (const auto loss = loss_of(leader, attentive ? silence_ns : 0)) return loss;
  return {};
}

std::optional<Lifelines::Loss> Lifelines::loss_of(std::size_t leader, std::uint64_t silence_ns) const {
  bool ended = false, silent = false;
  for (const auto& line : lines_) {
    const bool concerns = line->state() >= Lifeline::State::tied && line->leader() == leader;
    if (!concerns) continue;
    if (line->state() == Lifeline::State::farewell) return {};
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
