#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/file/attributes.hpp"
#include "core/file/posix.hpp"
#include "core/file/publication.hpp"
#include "core/file/stripes.hpp"
#include "core/file/striping.hpp"
#include "core/file/subfiled.hpp"

namespace pario::file {
namespace {

layout::SubfileMap map_of(const OpenRequest& request) {
  // File systems share whole blocks: join() may then move nothing.
  constexpr std::uint64_t kSharedBlock = 4096;
  layout::SubfileMap map;
  const layout::Striping striping =
      wanted_striping(request.path, request.striping, request.writers);
  if (striping.unit != 0) map.unit = base::round_up(striping.unit, kSharedBlock);
  map.files = request.subfiles;
  return map;
}

using OptionalMap = std::optional<LockedMap>;

base::Result<OptionalMap> to_optional(base::Result<LockedMap> map) {
  return map.ok() ? base::Result<OptionalMap>(std::move(*map)) : map.error();
}

/// The map of a new file, after removing the subfiles of an earlier file of that name.
base::Result<OptionalMap> new_map(const OpenRequest& request) {
  if (base::Status removed = remove_subfiles(request.path); !removed) return removed.error();
  if (request.subfiles <= 1) return OptionalMap();
  if (base::Status written = write_map(request.path, map_of(request)); !written)
    return written.error();
  return to_optional(lock_map(request.path, false));
}

/// The map of an existing file. One that consists of subfiles is empty itself. ESTALE: it consisted
/// of subfiles and has been joined meanwhile.
base::Result<OptionalMap> old_map(const std::string& path, int descriptor,
                                  const struct stat& facts) {
  if (!S_ISREG(facts.st_mode) || facts.st_size > 0) return OptionalMap();
  auto map = lock_map(path, false);
  if (map.ok() || (map.error().number != ENOENT && map.error().number != ENOTDIR))
    return to_optional(std::move(map));
  if (is_removed(descriptor))
    return base::Error{.number = ESTALE, .operation = "open", .path = path};
  return OptionalMap();
}

layout::StripeLayout layout_of(int descriptor, const std::string& path, const struct stat& facts) {
  const KnownStriping known = striping_of(descriptor);
  layout::StripeLayout found;
  found.kind = known.kind;
  if (known.kind == layout::Kind::lustre) {
    const DirectSizes direct = direct_sizes_of_lustre(kLustreMounts);
    found.direct_write = direct.write;
    found.direct_read = direct.read;
  }
  if (known.striping.unit != 0) {
    const bool all = known.striping.targets == layout::kAllTargets;
    found.unit = known.striping.unit;
    found.targets = std::max(all ? target_count(directory_of(path)) : known.striping.targets, 1U);
    return found;
  }
  if (facts.st_blksize > 0) found.unit = static_cast<std::uint64_t>(facts.st_blksize);
  return found;
}

base::Result<std::unique_ptr<File>> open_once(const OpenRequest& request) {
  base::Result<Opened> opened = open_striped(request);
  if (!opened.ok()) return opened.error();
  const int descriptor = opened->descriptor;
  if (request.known_layout)
    return make_posix(request.path, descriptor, *request.known_layout, opened->trouble);
  struct stat facts{};
  const int failure = ::fstat(descriptor, &facts) == 0 ? 0 : errno;
  auto file = make_posix(request.path, descriptor, layout_of(descriptor, request.path, facts),
                         opened->trouble);
  if (failure != 0)
    return base::Error{.number = failure, .operation = "fstat", .path = request.path};
  auto map = opened->created ? new_map(request) : old_map(request.path, descriptor, facts);
  if (!map.ok()) return map.error();
  if (!map->has_value()) return file;
  const layout::SubfileMap& known = (*map)->map;
  if (request.require_complete && (request.flags & O_TRUNC) == 0)
    if (base::Status status = require_complete(request.path, known, known.recorded_size); !status)
      return status.error();
  file = make_subfiled(request, std::move(file), std::move(**map));
  if ((request.flags & O_TRUNC) != 0)
    if (base::Status emptied = file->resize(0); !emptied) return emptied.error();
  return file;
}

}  // namespace

base::Result<std::unique_ptr<File>> open(const OpenRequest& request) {
  auto file = open_once(request);
  return file.ok() || file.error().number != ESTALE ? std::move(file) : open_once(request);
}

base::Result<std::unique_ptr<File>> copy_opened(const std::string& path, int descriptor) {
  constexpr int kLowest = 3;  // none of the three standard ones
  const int copy = ::fcntl(descriptor, F_DUPFD_CLOEXEC, kLowest);
  if (copy < 0) return base::Error{.number = errno, .operation = "open", .path = path};
  struct stat facts{};
  static_cast<void>(::fstat(copy, &facts));  // if it fails, the layout keeps its default unit
  return make_posix(path, copy, layout_of(copy, path, facts));
}

base::Status remove(const std::string& path) {
  if (::unlink(path.c_str()) != 0)
    return base::Error{.number = errno, .operation = "unlink", .path = path};
  return remove_subfiles(path);
}

}  // namespace pario::file
