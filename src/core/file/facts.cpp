#include "core/file/facts.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "core/file/attributes.hpp"
#include "core/file/stripes.hpp"

namespace pario::file {

std::string real_path(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                         &std::free);
  return real ? real.get() : "";
}

std::string directory_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == path.npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

layout::StripeLayout layout_of(int descriptor, const std::string& path) {
  const KnownStriping known = striping_of(descriptor);
  layout::StripeLayout found;
  found.kind = known.kind;
  if (known.kind == layout::Kind::lustre) {
    const DirectSizes direct = direct_sizes_of_lustre(kLustreMounts);
    found.direct_write = direct.write;
    found.direct_read = direct.read;
  }
  if (known.striping.unit != 0) {
    const bool all = known.striping.targets == layout::kAllTargets;
    found.unit = known.striping.unit;
    found.targets = std::max(all ? target_count(directory_of(path)) : known.striping.targets, 1U);
    return found;
  }
  struct stat facts{};
  if (::fstat(descriptor, &facts) == 0 && facts.st_blksize > 0)
    found.unit = static_cast<std::uint64_t>(facts.st_blksize);
  return found;
}

}  // namespace pario::file
