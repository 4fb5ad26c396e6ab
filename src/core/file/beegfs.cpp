#include "core/file/beegfs.hpp"

#include <algorithm>
#include <bit>

namespace pario::file::beegfs {

NewFile new_file(const char* name, unsigned mode, const layout::Striping& wanted) {
  constexpr std::uint64_t kLargestChunk = std::uint64_t{1} << 31;
  const std::uint64_t chunk =
      std::bit_ceil(std::clamp(wanted.unit, layout::kStripeGranule, kLargestChunk));
  return {name, static_cast<std::int32_t>(mode),
          wanted.targets >= layout::kAllTargets ? ~0U : wanted.targets,
          wanted.unit == 0 ? 0U : static_cast<std::uint32_t>(chunk)};
}

long make(int directory, const NewFile& file) {
  return base::system_call(SYS_ioctl, directory, kMakeFile, &file);
}

layout::Striping striping_of(int descriptor) {
  Stripes stripes{};
  if (base::system_call(SYS_ioctl, descriptor, kGetStripes, &stripes) < 0) return {};
  return {stripes.chunk, stripes.targets, -1};
}

}  // namespace pario::file::beegfs
