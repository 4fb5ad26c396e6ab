// Rules for unwinding stacks, in the objects of a traced program.
#include <memory>

#include "core/stack/unwind.hpp"
#include "targets.hpp"

namespace pario::fuzz {

/// Input: an address relative to the table (8 bytes), .eh_frame_hdr, and .eh_frame behind it.
void frame_rules(Input input) {
  if (input.size() <= sizeof(std::int64_t)) return;
  const auto relative = number_at<std::uint64_t>(input, 0);
  input = input.subspan(sizeof relative);
  // An allocation of its own: the address sanitizer sees each byte read beyond it.
  const auto memory = std::make_unique<std::byte[]>(input.size());
  std::memcpy(memory.get(), input.data(), input.size());
  const auto begin = reinterpret_cast<std::uint64_t>(memory.get());
  const stack::Object object{.range = {begin, begin + input.size()}, .unwind_table = memory.get()};
  stack::Rules rules;
  std::uint64_t function = 0;
  if (!stack::find_rules(object, begin + relative, rules, function)) return;
  require(rules.known, "rules that were found are known");
  require(rules.base == stack::kFrameRegister || rules.base == stack::kStackRegister,
          "a frame address is computed from one of two registers");
}

}  // namespace pario::fuzz
