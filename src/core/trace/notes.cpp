#include "core/trace/notes.hpp"

#include <algorithm>
#include <cstring>

#include "core/trace/state.hpp"

namespace pario::trace {
namespace {

constexpr std::size_t kNotesBlock = 16 << 10;
constexpr std::size_t kLongestMessage = 1000;

}  // namespace

bool Notes::add(Log& log, std::string_view json) {
  if (json.size() > kLongestNote) return false;
  const base::SpinLock lock(lock_);
  const std::size_t needed = json.size() + 1;
  if (block_ == nullptr || block_->capacity() - block_->used < needed) {
    BlockHeader* block =
        log.reserve(BlockKind::notes, std::max(needed, kNotesBlock - sizeof(BlockHeader)));
    if (block == nullptr) return false;
    block_ = block;
  }
  std::byte* at = block_->payload() + block_->used;
  std::memcpy(at, json.data(), json.size());
  at[json.size()] = std::byte{'\n'};
  ++block_->count;
  std::atomic_ref(block_->used).store(block_->used + needed, std::memory_order_release);
  return true;
}

void note(std::string_view json) {
  if (!on()) return;
  const Inside inside;
  if (!state.notes.add(state.log, json)) bump(process().lost);
}

void message(std::string_view text) {
  text = text.substr(0, kLongestMessage);
  say(text);
  base::Text<6 * kLongestMessage + 64> json;
  note(base::Json(json)
           .begin_object()
           .member("note", "message")
           .member("text", text)
           .end_object()
           .view());
}

}  // namespace pario::trace
