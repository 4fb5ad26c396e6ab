// Fuzz targets: each gives any bytes to a parser and aborts where the parser breaks its contract.
//
// A format with checksums is tried twice: as it is, and with its checksums repaired, so that
// mutations get behind the first comparison.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pario::fuzz {

using Input = std::span<const std::byte>;
using Bytes = std::vector<std::byte>;

#define PARIO_FUZZ_TARGET(name) void name(Input input);
#include "targets.def"
#undef PARIO_FUZZ_TARGET

/// Aborts with the broken promise; fuzzers and unit tests treat that as a failure.
inline void require(bool condition, const char* promise) {
  if (condition) return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

inline std::string_view as_text(Input input) {
  return {reinterpret_cast<const char*>(input.data()), input.size()};
}

template <class T>
T number_at(Input bytes, std::size_t offset) {
  T value{};
  if (offset + sizeof value <= bytes.size())
    std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <class T>
void put_number(Bytes& bytes, std::size_t offset, T value) {
  if (offset + sizeof value <= bytes.size())
    std::memcpy(bytes.data() + offset, &value, sizeof value);
}

/// A file in memory that contains the input, for parsers that open a path.
class MemoryFile {
 public:
  explicit MemoryFile(Input content);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

}  // namespace pario::fuzz
