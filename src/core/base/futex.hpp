// Futexes: sleeping waits across processes, on a 32-bit word in memory that may be shared.
#pragma once

#include <atomic>
#include <cstdint>

namespace pario::base {

using FutexWord = std::atomic<std::uint32_t>;
static_assert(sizeof(FutexWord) == 4);

/// Sleeps while `word` is `expected`, at most `timeout_ns`; may return early. False after the
/// timeout.
bool futex_wait(const FutexWord& word, std::uint32_t expected, std::uint64_t timeout_ns);
/// Wakes all sleepers on `word`.
void futex_wake(const FutexWord& word);

}  // namespace pario::base
