// The memory of stacks.
#include <fcntl.h>
#include <sys/auxv.h>

#include "core/stack/stack.hpp"

namespace pario::stack {
namespace {

/// Beneath the stack of the first thread, the kernel keeps more than this free.
constexpr std::uint64_t kGrowth = 64ull << 20;

/// Finds the line of /proc/PID/maps with an address, in text that arrives in parts.
class Lines {
 public:
  explicit Lines(std::uint64_t address) : address_(address) {}

  /// Returns true once the mapping is found.
  bool add(std::string_view part) {
    for (const char c : part)
      if (add(c)) return true;
    return false;
  }
  Range found() const { return {begin_, end_}; }

 private:
  enum class In { begin, end, rest };

  bool add(char c) {
    switch (in_) {
      case In::begin:
        if (c == '-')
          in_ = In::end;
        else
          begin_ = begin_ * 16 + digit(c);
        return false;
      case In::end:
        if (c != ' ') {
          end_ = end_ * 16 + digit(c);
          return false;
        }
        in_ = In::rest;
        return address_ >= begin_ && address_ < end_;
      default:
        if (c == '\n') *this = Lines(address_);
        return false;
    }
  }
  static std::uint64_t digit(char c) {
    return static_cast<std::uint64_t>(c <= '9' ? c - '0' : c - 'a' + 10);
  }

  std::uint64_t address_, begin_ = 0, end_ = 0;
  In in_ = In::begin;
};

}  // namespace

Range find_stack(std::uint64_t sp, Reads& reads) {
  const int file = base::open_file("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  Lines lines(sp);
  char part[4096];
  bool found = false;
  for (long size = 1; !found && size > 0;) {
    size = base::system_call(SYS_read, file, part, sizeof part);
    reads.calls += 1;
    reads.bytes += size > 0 ? static_cast<std::uint64_t>(size) : 0;
    found = size > 0 && lines.add({part, static_cast<std::size_t>(size)});
  }
  base::close_file(file);
  if (!found) return {};
  Range range = lines.found();
  if (range.contains(getauxval(AT_RANDOM))) range.begin = range.end - kGrowth;  // it grows
  return range;
}

}  // namespace pario::stack
