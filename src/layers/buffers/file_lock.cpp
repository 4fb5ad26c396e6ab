#include "layers/buffers/file_lock.hpp"

namespace pario::buffers {

constinit thread_local Monitor* held_monitor = nullptr;

}  // namespace pario::buffers
