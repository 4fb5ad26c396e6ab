#include "records/host.hpp"

#include <sys/utsname.h>

#include <string_view>

#include "base/base.hpp"

namespace pario::records {

std::uint64_t host_mark() {
  utsname host{};
  base::system_call(SYS_uname, &host);
  return base::xxh64(std::string_view(host.nodename)) >> 32;
}

std::uint64_t own_number() {
  std::uint32_t random = 0;
  if (base::system_call(SYS_getrandom, &random, sizeof random, 0) != static_cast<long>(sizeof random))
    random = static_cast<std::uint32_t>(base::monotonic_ns() ^ static_cast<std::uint64_t>(base::system_call(SYS_getpid)) << 16);
  return host_mark() << 32 | random;
}

}  // namespace pario::records
