#include "core/comm/comm.hpp"

namespace pario::comm {
namespace {

thread_local bool own = false;

}  // namespace

void mark_own_thread() { own = true; }

bool is_own_thread() { return own; }

}  // namespace pario::comm
