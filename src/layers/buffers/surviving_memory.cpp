#include "layers/buffers/surviving_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "core/base/base.hpp"
#include "core/base/descriptor.hpp"
#include "layers/buffers/memory_pool.hpp"

namespace pario::buffers {
namespace keeper {
namespace {

constexpr timeval kPatience = {1, 0};

constinit char name[sizeof(sockaddr_un::sun_path)];
constinit std::size_t name_size = 0;
constinit std::atomic<std::uint64_t> last_number{0};

enum class Request : std::uint64_t { keep = 1, release = 2 };
struct Message {
  Request request;
  std::uint64_t number;
};

bool connect(int socket) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name, name_size);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name_size);
  for (const int option : {SO_SNDTIMEO, SO_RCVTIMEO})
    base::system_call(SYS_setsockopt, socket, SOL_SOCKET, option, &kPatience, sizeof kPatience);
  return base::system_call(SYS_connect, socket, &address, size) == 0;
}

/// Sends a request with two descriptors or none; true if the keeper confirms it.
bool send(Request request, std::uint64_t number, std::span<const int> descriptors) {
  const base::RawDescriptor socket(
      base::system_call(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket.is_open() || !connect(socket.number())) return false;
  Message message{request, number};
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
  return base::system_call(SYS_recvfrom, socket.number(), &answer, 1, 0, nullptr, nullptr) == 1 &&
         answer == 'y';
}

std::size_t data_offset(std::uint32_t count) {
  return base::round_up(sizeof(SurvivingMemory::Header) + count * sizeof(Buffer), base::kPage);
}

}  // namespace
}  // namespace keeper

void SurvivingMemory::set_keeper(std::string_view name) {
  keeper::name_size = name.copy(keeper::name, sizeof keeper::name - 1);
}

std::string_view SurvivingMemory::create(int descriptor, std::uint64_t size, std::uint32_t count) {
  if (keeper::name_size == 0)
    return "no keeper: `pario run` has not started this program on this host";
  base::Text<32> self;
  const char* path = self.add("/proc/self/fd/").add(descriptor).add('\0').view().data();
  // O_PATH: a file that is open for writing cannot be executed, and closing another description
  // would end the locks of this process.
  const base::RawDescriptor file(base::open_file(path, O_PATH | O_CLOEXEC));
  if (!file.is_open() || base::system_call(SYS_faccessat, AT_FDCWD, path, W_OK) != 0)
    return "the keeper may not write it";
  const base::RawDescriptor shared(allocate(size, count));
  if (memory_ == nullptr) return "PARIO_STREAMS_MEMORY leaves no room";
  fill_header(size);
  number_ = ++keeper::last_number;
  const int descriptors[] = {shared.number(), file.number()};
  if (keeper::send(keeper::Request::keep, number_, descriptors)) return {};
  unmap();
  return "no keeper: the `pario run` of this program does not answer";
}

/// Maps a memory file for as many buffers as the limit allows; returns its descriptor or -errno.
long SurvivingMemory::allocate(std::uint64_t size, std::uint32_t count) {
  for (count_ = count; count_ > 0; count_ /= 2) {
    bytes_ = keeper::data_offset(count_) + count_ * size;
    if (memory_pool::reserve(bytes_)) break;
  }
  if (count_ == 0) return -ENOMEM;
  const long file = base::system_call(SYS_memfd_create, "pario-stream", MFD_CLOEXEC);
  if (file >= 0 && base::system_call(SYS_ftruncate, file, bytes_) == 0)
    memory_ = base::map_shared(static_cast<int>(file), 0, bytes_);
  if (memory_ == nullptr)
    memory_pool::cancel_reservation(bytes_);
  else
    base::system_call(SYS_madvise, memory_, bytes_, MADV_DONTFORK);
  return file;
}

void SurvivingMemory::fill_header(std::uint64_t size) {
  const std::size_t data = keeper::data_offset(count_);
  *reinterpret_cast<Header*>(memory_) = {
      .magic = kMagic,
      .size = size,
      .count = count_,
      .buffers = sizeof(Header),
      .stride = sizeof(Buffer),
      .data = data,
      .begin = offsetof(Buffer, begin),
      .state = offsetof(Buffer, state),
      .ranges = offsetof(Buffer, valid) + ByteRanges::ranges_offset(),
      .range_count = offsetof(Buffer, valid) + ByteRanges::count_offset()};
  buffers_ = reinterpret_cast<Buffer*>(memory_ + sizeof(Header));
  for (std::uint32_t i = 0; i < count_; ++i) {
    auto* buffer = new (buffers_ + i) Buffer;
    buffer->memory = memory_ + data + i * size;
  }
}

void SurvivingMemory::release() {
  keeper::send(keeper::Request::release, number_, {});
  unmap();
}

void SurvivingMemory::unmap() {
  base::unmap(memory_, bytes_);
  memory_pool::cancel_reservation(bytes_);
  *this = {};
}

void SurvivingMemory::reset_in_child() {
  memory_pool::cancel_reservation(bytes_);
  *this = {};
}

}  // namespace pario::buffers
