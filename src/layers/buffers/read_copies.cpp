#include "layers/buffers/read_copies.hpp"

namespace pario::buffers {

void ReadCopies::start(FileContext& context, const struct stat& status) {
  context_ = &context;
  node_copy_ = context.hints.read_once ? node_copies::attach(status) : nullptr;
  process_copy_ = nullptr;
  next_attempt_ns_ = 0;
}

void ReadCopies::detach() {
  if (node_copy_ != nullptr) node_copies::detach(*node_copy_);
  node_copy_ = nullptr;
  detach_process_copy();
}

void ReadCopies::detach_process_copy() {
  if (process_copy_ != nullptr) process_copies::detach(*process_copy_);
  process_copy_ = nullptr;
}

void ReadCopies::reset_in_child() {
  node_copy_ = nullptr;
  process_copy_ = nullptr;
}

void ReadCopies::expire() {
  if (process_copy_ != nullptr) process_copy_->expire();
}

/// Attaches a process copy in the place of an invalid one.
const ProcessCopy* ReadCopies::attach_process_copy(const Handle& handle) {
  detach_process_copy();
  if (!handle.reads || !process_copies::is_reached(next_attempt_ns_)) return nullptr;
  if (context_->handles.has_writer()) return nullptr;
  process_copy_ = process_copies::attach(handle.descriptor, context_->hints.whole,
                                         context_->statistics.system_read);
  if (process_copy_ == nullptr) next_attempt_ns_ = process_copies::next_attempt_ns();
  return process_copy_;
}

}  // namespace pario::buffers
