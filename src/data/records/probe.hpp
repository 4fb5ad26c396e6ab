// What a device does, measured on a file that is there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace pario::records {

struct Device {
  double bandwidth = 0;  ///< bytes per second, read in order
  double requests = 0;  ///< per second, beside the time for their bytes; of reads of `length` bytes
                        ///< here and there
};
/// A few tenths of a second of reading, past the page cache; nothing where that cannot be had.
std::optional<Device> measure_device(const std::string& path, std::uint64_t length);

}  // namespace pario::records
