#include "storage/facts.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "storage/attributes.hpp"
#include "storage/stripes.hpp"

namespace pario::storage {

std::string real_path(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
  return real ? real.get() : "";
}

std::string directory_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == path.npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

layout::StripeLayout layout_of(int descriptor, const std::string& path) {
  const Told told = striping_of(descriptor);
  if (told.striping.unit != 0) {
    const bool all = told.striping.targets == layout::kAllTargets;
    return {told.kind, told.striping.unit, std::max(all ? target_count(directory_of(path)) : told.striping.targets, 1U)};
  }
  layout::StripeLayout found;
  found.kind = told.kind;
  struct stat facts{};
  if (::fstat(descriptor, &facts) == 0 && facts.st_blksize > 0) found.unit = static_cast<std::uint64_t>(facts.st_blksize);
  return found;
}

}  // namespace pario::storage
