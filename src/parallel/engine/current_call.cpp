#include "parallel/engine/current_call.hpp"

#include <cmath>
#include <string_view>

#include "core/comm/comm.hpp"
#include "core/trace/trace.hpp"

namespace pario::engine {
namespace {

using trace::OtherCall;

constexpr std::size_t kLongestPath = 200;
constexpr double kWholeSeconds = 10;  // from here on no tenths

/// "MPI_Recv", "read()"
std::string call_name(const trace::FunctionInfo& function) {
  const std::string name = function.name;
  return name.starts_with("MPI_") ? name : name + "()";
}

/// The end of a long path, which says more than its begin.
std::string short_path(std::string_view path) {
  if (path.size() <= kLongestPath) return std::string(path);
  return "..." + std::string(path.substr(path.size() - kLongestPath));
}

std::string duration(double seconds) {
  const double shown =
      seconds < kWholeSeconds ? std::round(seconds * 10) / 10 : std::round(seconds);
  return comm::seconds_text(
             std::chrono::milliseconds(static_cast<std::int64_t>(std::round(shown * 1000)))) +
         " s";
}

/// The rank whose message a call waits for, in words; empty: none, or any.
std::string awaited_message(const OtherCall& call) {
  constexpr unsigned kTagBits = 32;
  const std::string_view name = call.outer->name;
  const bool receives = name.starts_with("MPI_Recv") || name.starts_with("MPI_Probe");
  if (!receives || call.offset >> 63 != 0) return {};
  return ", waiting for a message from rank " + std::to_string(call.offset >> kTagBits);
}

std::string describe(const OtherCall& call) {
  std::string text = "inside " + call_name(*call.outer);
  if (call.path[0] != '\0') text += " of " + short_path(call.path);
  if (call.inner != call.outer) text += " (in " + std::string(call.inner->name) + ")";
  return text + " for " + duration(call.seconds) + awaited_message(call);
}

}  // namespace

std::string describe_current_call(std::uint64_t pid, int world_rank) {
  const OtherCall call = trace::call_of_process(pid, world_rank);
  switch (call.state) {
    case OtherCall::State::unknown:
      return {};
    case OtherCall::State::ended:
      return "at its end";
    case OtherCall::State::outside:
      return "outside of I/O and MPI";
    case OtherCall::State::inside:
      return describe(call);
  }
  return {};
}

}  // namespace pario::engine
