#include "stream/survive.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "stream/memory.hpp"

namespace pario::stream::survive {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr timeval kPatience = {1, 0};

constinit char keeper[sizeof(sockaddr_un::sun_path)];
constinit std::size_t keeper_size = 0;
constinit std::atomic<std::uint64_t> last_number{0};

enum class Kind : std::uint64_t { keep = 1, let_go = 2 };
struct Message {
  Kind kind;
  std::uint64_t number;
};

/// A descriptor for the length of a block.
class Descriptor {
 public:
  explicit Descriptor(long number) : number_(static_cast<int>(number)) {}
  ~Descriptor() {
    if (number_ >= 0) base::close_file(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  bool valid() const { return number_ >= 0; }
  int number() const { return number_; }

 private:
  int number_;
};

bool connect(int socket) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, keeper, keeper_size);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + keeper_size);
  for (const int option : {SO_SNDTIMEO, SO_RCVTIMEO})
    base::system_call(SYS_setsockopt, socket, SOL_SOCKET, option, &kPatience, sizeof kPatience);
  return base::system_call(SYS_connect, socket, &address, size) == 0;
}

/// Sends a message with two descriptors or none; true: the keeper has done what it says.
bool tell_keeper(Kind kind, std::uint64_t number, std::span<const int> descriptors) {
  const Descriptor socket(base::system_call(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket.valid() || !connect(socket.number())) return false;
  Message message{kind, number};
  iovec piece{&message, sizeof message};
  alignas(cmsghdr) std::byte control[CMSG_SPACE(2 * sizeof(int))] = {};
  msghdr header = {};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  if (!descriptors.empty()) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
  }
  if (base::system_call(SYS_sendmsg, socket.number(), &header, MSG_NOSIGNAL) < 0) return false;
  char answer = 0;
  return base::system_call(SYS_recvfrom, socket.number(), &answer, 1, 0, nullptr, nullptr) == 1 && answer == 'y';
}

std::size_t data_of(std::uint32_t count) { return base::round_up(sizeof(Header) + count * sizeof(Buffer), kPage); }

void fill(Region& region, std::uint64_t size) {
  *reinterpret_cast<Header*>(region.memory) = {.magic = kMagic,
                                               .size = size,
                                               .count = region.count,
                                               .buffers = sizeof(Header),
                                               .stride = sizeof(Buffer),
                                               .data = data_of(region.count),
                                               .begin = offsetof(Buffer, begin),
                                               .state = offsetof(Buffer, state),
                                               .runs = offsetof(Buffer, written) + Runs::runs_at(),
                                               .run_count = offsetof(Buffer, written) + Runs::count_at()};
  region.buffers = reinterpret_cast<Buffer*>(region.memory + sizeof(Header));
  for (std::uint32_t i = 0; i < region.count; ++i) {
    auto* buffer = new (region.buffers + i) Buffer;
    buffer->memory = region.memory + data_of(region.count) + i * size;
  }
}

/// The memory as a file; what there is no room for is left out.
long make_memory(Region& region, std::uint64_t size, std::uint32_t count) {
  for (region.count = count; region.count > 0; region.count /= 2) {
    region.bytes = data_of(region.count) + region.count * size;
    if (memory::reserve(region.bytes)) break;
  }
  if (region.count == 0) return -ENOMEM;
  const long file = base::system_call(SYS_memfd_create, "pario-stream", MFD_CLOEXEC);
  if (file >= 0 && base::system_call(SYS_ftruncate, file, region.bytes) == 0)
    region.memory = base::map_shared(static_cast<int>(file), 0, region.bytes);
  if (region.memory == nullptr)
    memory::release(region.bytes);
  else
    base::system_call(SYS_madvise, region.memory, region.bytes, MADV_DONTFORK);
  return file;
}

void drop(Region& region) {
  if (region.memory != nullptr) base::unmap(region.memory, region.bytes);
  if (region.memory != nullptr) memory::release(region.bytes);
  region = {};
}

}  // namespace

void set_keeper(std::string_view name) { keeper_size = name.copy(keeper, sizeof keeper - 1); }

std::string_view begin(Region& region, int descriptor, std::uint64_t size, std::uint32_t count) {
  if (keeper_size == 0) return "no keeper: `pario run` has not started this program on this host";
  base::Text<32> self;
  const char* path = self.add("/proc/self/fd/").add(descriptor).add('\0').view().data();
  // Its inode alone: what is open for writing cannot be executed, and closing it would end locks of this process.
  const Descriptor file(base::open_file(path, O_PATH | O_CLOEXEC));
  if (!file.valid() || base::system_call(SYS_faccessat, AT_FDCWD, path, W_OK) != 0) return "the keeper may not write it";
  const Descriptor shared(make_memory(region, size, count));
  if (region.memory == nullptr) return "PARIO_STREAMS_MEMORY leaves no room";
  fill(region, size);
  region.number = ++last_number;
  const int both[] = {shared.number(), file.number()};
  if (tell_keeper(Kind::keep, region.number, both)) return {};
  drop(region);
  return "no keeper: the `pario run` of this program does not answer";
}

void end(Region& region) {
  tell_keeper(Kind::let_go, region.number, {});
  drop(region);
}

void forget(Region& region) {
  memory::release(region.bytes);
  region = {};
}

}  // namespace pario::stream::survive
