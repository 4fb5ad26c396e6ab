// Walks stacks.
#include "core/stack/unwind.hpp"

#include <cstring>

namespace pario::stack {
namespace {

/// The registers of one frame.
struct Registers {
  std::uint64_t address, sp, frame;
};

bool read_word(const Range& stack, std::uint64_t place, std::uint64_t& word) {
  if (place == 0 || place % 8 != 0 || !stack.contains(place, sizeof word)) return false;
  std::memcpy(&word, reinterpret_cast<const void*>(place), sizeof word);
  return true;
}

/// Steps to the caller by frame pointers; false if there is no valid one.
bool step_by_pointer(Registers& here, const Range& stack, std::uint64_t& place) {
  std::uint64_t above = 0, address = 0;
  if (here.frame < here.sp || !read_word(stack, here.frame, above) ||
      !read_word(stack, here.frame + 8, address))
    return false;
  Object object;
  address = without_signature(address);
  if (!find_object(address - 1, object)) return false;
  place = here.frame + 8;
  here = {address, here.frame + 16, above};
  return true;
}

bool read_saved(const Range& stack, const Rule& rule, std::uint64_t cfa, std::uint64_t frame,
                std::uint64_t& place, std::uint64_t& word) {
  if (rule.kind != Rule::Kind::at_cfa && rule.kind != Rule::Kind::at_frame) return false;
  place = (rule.kind == Rule::Kind::at_cfa ? cfa : frame) + static_cast<std::uint64_t>(rule.offset);
  return read_word(stack, place, word);
}

/// Steps to the caller by the rules of the function.
bool step_by_rules(Registers& here, const Range& stack, const Rules& rules, std::uint64_t& place) {
  std::uint64_t cfa = (rules.base == kStackRegister ? here.sp : here.frame) +
                      static_cast<std::uint64_t>(rules.offset);
  if (rules.indirect && !read_word(stack, cfa, cfa)) return false;
  if (cfa <= here.sp) return false;
  std::uint64_t address = 0, saved = 0, frame = here.frame;
  if (!read_saved(stack, rules.address, cfa, here.frame, place, address)) return false;
  if (rules.frame.kind == Rule::Kind::unknown)
    frame = 0;
  else if (rules.frame.kind != Rule::Kind::unchanged &&
           !read_saved(stack, rules.frame, cfa, here.frame, saved, frame))
    return false;
  here = {address, cfa, frame};
  return address != 0;
}

/// Steps to the caller; false at the end of the known stack.
bool step(Registers& here, const Range& stack, std::uint64_t& place) {
#if defined(__x86_64__)
  Object object;
  Rules rules;
  std::uint64_t function = 0;
  const bool known = find_object(here.address - 1, object) &&
                     find_rules(object, here.address - 1, rules, function);
  if (known && python::is_interpreter(function)) return false;
  if (known) return step_by_rules(here, stack, rules, place);
#endif
  return step_by_pointer(here, stack, place);
}

}  // namespace

std::size_t unwind(const Caller& caller, Range stack, std::span<Frame> frames) {
  if (caller.address == 0 || frames.empty()) return 0;
  Registers here{caller.address, caller.sp, caller.frame};
  frames[0] = {caller.address, 0};
  std::size_t count = 1;
  for (std::uint64_t place = 0; count < frames.size() && step(here, stack, place); ++count)
    frames[count] = {here.address, place};
  return count;
}

}  // namespace pario::stack
