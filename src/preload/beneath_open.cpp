#include "preload/beneath_open.hpp"

namespace pario::preload::beneath {

void after_open(int directory, const char* path, int flags, int descriptor, std::uint64_t since) {
  if (descriptor < 0 || pario_in_vfork_child != 0) return;
  const base::SavedErrno saved;
  if (handle_of(descriptor) != nullptr) leave_descriptor(descriptor);  // closed behind our back
  const base::Path name(directory, path);
  if (name.known()) enter(descriptor, flags, name.view(), since);
}

void leave_range(unsigned first, unsigned last) {
  const auto end = static_cast<unsigned>(end_of_descriptors());
  for (unsigned descriptor = first; descriptor < end && descriptor <= last; ++descriptor) leave_descriptor(static_cast<int>(descriptor));
}

bool needs_the_kernel(int command) {
  const FcntlKind kind = kind_of(command);
  return kind == FcntlKind::lock || kind == FcntlKind::flags || command == F_SETLEASE;
}

}  // namespace pario::preload::beneath
