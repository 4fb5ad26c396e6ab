// The parser of /proc/self/mountinfo.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace pario::trace {

/// A mount; the texts point into the line. `mount` is still escaped (a blank is \040).
struct Mount {
  std::uint64_t id = 0, device = 0;
  std::string_view mount, type, source;
};

std::optional<Mount> parse_mount(std::string_view line);

/// Returns the last mount in `mountinfo` with this ID or, if `id` is 0, on this device.
std::optional<Mount> find_mount(std::string_view mountinfo, std::uint64_t id, std::uint64_t device);

}  // namespace pario::trace
