#include "layers/buffers/admission.hpp"

#include <fcntl.h>

#include "layers/buffers/system_calls.hpp"

namespace pario::buffers {
namespace {

bool is_read_only(int flags) { return (flags & O_ACCMODE) == O_RDONLY; }

bool needs_node_copy(layout::Kind kind, int flags, const hints::StreamHints& hints,
                     std::string_view path) {
  const bool local =
      kind == layout::Kind::local || kind == layout::Kind::tmpfs || kind == layout::Kind::unknown;
  if (!local || (flags & O_DIRECT) != 0) return is_read_only(flags);
  base::Text<640> text;
  text.add(path);
  text.add(": read_once is not needed: it is a local file, of which the node has one copy");
  if (hints.verbose) print_message(text.view());
  return false;
}

}  // namespace

bool has_bytes(int descriptor, int flags, struct stat& status) {
  return (flags & O_PATH) == 0 && system_calls.status(descriptor, status) == 0 &&
         !S_ISDIR(status.st_mode);
}

Reason find_obstacle(int flags, const hints::StreamHints& hints, const struct stat& status) {
  if (!S_ISREG(status.st_mode)) return Reason::no_file;
  // A node copy serves direct reads of most processes.
  if ((flags & O_DIRECT) != 0 && !(hints.read_once && is_read_only(flags))) return Reason::direct;
  return (flags & (O_SYNC | O_DSYNC)) != 0 ? Reason::synchronous : Reason::none;
}

void prepare_hints(hints::StreamHints& hints, int descriptor, int flags, std::string_view path) {
  const layout::Kind kind = system_calls.file_system(descriptor);
  fill_unset_hints(hints, kind);
  hints.read_once = hints.read_once && needs_node_copy(kind, flags, hints, path);
}

}  // namespace pario::buffers
