// Measures a device by reading an existing file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace pario::records {

struct Device {
  double bandwidth = 0;  ///< bytes per second of sequential reads
  double requests = 0;   ///< random reads of `length` bytes per second, without the time for their
                         ///< bytes
};
/// Measures a device by direct reads for a few tenths of a second; empty if these are not possible.
std::optional<Device> measure_device(const std::string& path, std::uint64_t length);

}  // namespace pario::records
