// Timing of calls that move the bytes of a file.
#include "instruments/ways/ways.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <tuple>

#include "bindings/bindings.hpp"
#include "bindings/gil.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace pario::bindings {
namespace {

ways::Call call_of(std::string_view name) {
  constexpr std::string_view kNames[] = {"read", "pread", "readv", "stdio", "mmap", "uring"};
  const auto* const found = std::ranges::find(kNames, name);
  if (found == std::end(kNames))
    throw nb::value_error("call: read, pread, readv, stdio, mmap or uring is expected");
  return static_cast<ways::Call>(found - kNames);
}

/// The fields of pario.prove.bench.ways: call, at a time, buffer, direct, advised.
using Way = std::tuple<std::string, std::uint32_t, std::uint64_t, bool, bool>;
/// writes, random, synced, piece, seconds
using Work = std::tuple<bool, bool, bool, std::uint64_t, double>;

/// Returns seconds, bytes, and the number of wrong pieces. Raises OSError.
std::tuple<double, std::uint64_t, std::uint64_t> time_way(const nb::bytes& path, const Way& way,
                                                          const Work& work) {
  const auto& [call, at_a_time, buffer, direct, advised] = way;
  const auto& [writes, random, synced, piece, seconds] = work;
  const ways::Way native{call_of(call), at_a_time, buffer, direct, advised};
  const std::string name = text_of(path);
  const auto taken = [&] {
    const Released released;
    return ways::time_way(name, native, {writes, random, synced, piece, seconds});
  }();
  if (!taken.ok()) raise_os_error(taken.error());
  return {taken->seconds, taken->bytes, taken->wrong};
}

/// Returns the fraction of a file's pages in memory. Raises OSError.
double resident(const nb::bytes& path) {
  const auto part = ways::resident(text_of(path));
  if (!part.ok()) raise_os_error(part.error());
  return *part;
}

}  // namespace

void add_ways(nb::module_& module) {
  module.def("time_way", &time_way, "path"_a, "way"_a, "work"_a);
  module.def("resident", &resident, "path"_a);
}

}  // namespace pario::bindings
