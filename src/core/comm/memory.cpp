#include "core/comm/memory.hpp"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "core/base/descriptor.hpp"

namespace pario::comm {
namespace {

class MappedMemory : public SharedMemory {
 public:
  MappedMemory(std::byte* data, std::size_t size) : data_(data), size_(size) {}
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;
  ~MappedMemory() override { base::unmap(data_, std::max<std::size_t>(size_, 1)); }
  std::byte* data() const override { return data_; }
  std::size_t size() const override { return size_; }

 private:
  std::byte* data_;
  std::size_t size_;
};

std::shared_ptr<SharedMemory> map(const base::RawDescriptor& file, std::size_t size) {
  std::byte* data = base::map_shared(file.number(), 0, std::max<std::size_t>(size, 1));
  return data ? std::make_shared<MappedMemory>(data, size) : nullptr;
}

enum class Way { descriptor, file };

/// The path of the memory of a ticket.
class Place {
 public:
  Place(Way way, const Ticket& ticket) {
    if (way == Way::descriptor)
      text_.add("/proc/").add(ticket.pid).add("/fd/").add(ticket.number);
    else
      text_.add("/dev/shm/pario-").add(ticket.pid).add('-').add(ticket.number);
  }
  const char* name() { return text_.c_str(); }

 private:
  base::Text<96> text_;
};

int enlarge(int descriptor, std::size_t size, Way way) {
  const auto bytes = static_cast<long>(std::max<std::size_t>(size, 1));
  // Preallocates, because a full file system would raise SIGBUS later.
  if (way == Way::file)
    return static_cast<int>(base::system_call(SYS_fallocate, descriptor, 0, 0L, bytes));
  return static_cast<int>(base::system_call(SYS_ftruncate, descriptor, bytes));
}

/// The leader's side: other ranks can open the memory while this object lives.
class Offer {
 public:
  Offer(Way way, std::size_t size) : way_(way), ticket_(new_ticket(way)), file_(create()) {
    struct stat status{};
    if (!file_.is_open() || enlarge(file_.number(), size, way) != 0 ||
        base::status_of(file_.number(), status) != 0)
      return;
    if (way == Way::descriptor) ticket_.number = static_cast<std::uint64_t>(file_.number());
    ticket_.device = status.st_dev, ticket_.inode = status.st_ino;
    memory_ = map(file_, size);
    ticket_.valid = memory_ != nullptr;
  }
  Offer(const Offer&) = delete;
  Offer& operator=(const Offer&) = delete;
  ~Offer() {
    if (file_.is_open() && way_ == Way::file)
      base::system_call(SYS_unlinkat, AT_FDCWD, Place(way_, ticket_).name(), 0);
  }
  const Ticket& ticket() const { return ticket_; }
  std::shared_ptr<SharedMemory> memory() const { return memory_; }

 private:
  static Ticket new_ticket(Way way) {
    Ticket ticket{.pid = static_cast<std::uint64_t>(getpid())};
    if (way == Way::file)
      ticket.number =
          base::monotonic_ns();  // process numbers repeat between containers that share /dev/shm
    return ticket;
  }
  long create() const {
    if (way_ == Way::descriptor) return base::system_call(SYS_memfd_create, "pario", MFD_CLOEXEC);
    return base::open_file(Place(way_, ticket_).name(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
                           0600);
  }

  Way way_;
  Ticket ticket_;
  base::RawDescriptor file_;
  std::shared_ptr<SharedMemory> memory_;
};

std::shared_ptr<SharedMemory> accept(Way way, const Ticket& ticket, std::size_t size) {
  if (!ticket.valid) return nullptr;
  const base::RawDescriptor file(base::open_file(Place(way, ticket).name(), O_RDWR | O_CLOEXEC));
  struct stat status{};
  if (!file.is_open() || base::status_of(file.number(), status) != 0) return nullptr;
  if (status.st_dev != ticket.device || status.st_ino != ticket.inode) return nullptr;
  return map(file, size);
}

std::shared_ptr<SharedMemory> lead(Way way, std::size_t size, const Introduction& introduction) {
  const Offer offer(way, size);
  Ticket ticket = offer.ticket();
  const bool published = introduction.publish(ticket);
  return introduction.all_agree(published && ticket.valid) ? offer.memory() : nullptr;
}

std::shared_ptr<SharedMemory> follow(Way way, std::size_t size, const Introduction& introduction) {
  Ticket ticket;
  const bool published = introduction.publish(ticket);
  auto memory = published ? accept(way, ticket, size) : nullptr;
  return introduction.all_agree(memory != nullptr) ? memory : nullptr;
}

}  // namespace

std::shared_ptr<SharedMemory> share_memory(std::size_t size, bool leader,
                                           const Introduction& introduction) {
  for (const Way way : {Way::descriptor, Way::file}) {
    if (auto memory = leader ? lead(way, size, introduction) : follow(way, size, introduction))
      return memory;
  }
  return nullptr;
}

std::shared_ptr<SharedMemory> private_memory(std::size_t size) {
  std::byte* data = base::map_memory(std::max<std::size_t>(size, 1));
  return data ? std::make_shared<MappedMemory>(data, size) : nullptr;
}

}  // namespace pario::comm
