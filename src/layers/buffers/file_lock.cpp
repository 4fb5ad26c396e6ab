#include "layers/buffers/file_lock.hpp"

#include "layers/buffers/blocked_signals.hpp"

namespace pario::buffers {

constinit thread_local Monitor* held_monitor = nullptr;
constinit thread_local bool are_signals_blocked = false;

}  // namespace pario::buffers
