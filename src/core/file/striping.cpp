#include "core/file/striping.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "core/file/attributes.hpp"
#include "core/file/new_file.hpp"
#include "core/file/posix.hpp"

namespace pario::file {
namespace {

layout::Striping striping_of(const OpenRequest& request) {
  return {request.striping_unit, std::min(request.striping_factor, layout::kAllTargets),
          request.start_target};
}

bool wants_striping(const OpenRequest& request) {
  return striping_of(request) != layout::Striping{} || request.growing_writers != 0;
}

hints::StripingHints hints_of(const OpenRequest& request) {
  hints::StripingHints hints = hints::default_striping_hints();
  hints.striping_unit = request.striping_unit;
  hints.striping_factor = std::min(request.striping_factor, layout::kAllTargets);
  hints.pario_growing = request.growing_writers != 0;
  hints.pario_expected_writers = request.growing_writers;
  if (request.start_target >= 0)
    hints.start_iodevice = static_cast<std::uint64_t>(request.start_target);
  return hints;
}

base::Result<int> open_plain(const OpenRequest& request, int flags) {
  return open_descriptor(request.path, flags, request.mode);
}

/// Creates a file. EEXIST if it exists.
base::Result<Opened> create(const OpenRequest& request) {
  if (!wants_striping(request)) {
    base::Result<int> plain = open_plain(request, request.flags | O_EXCL);
    return plain.ok() ? base::Result<Opened>(Opened{*plain, true}) : plain.error();
  }
  NewFile file(AT_FDCWD, request.path.c_str(), request.mode, hints_of(request), 1,
               (request.flags & O_EXCL) != 0);
  base::Result<int> created = open_plain(
      request, file.has_created() ? request.flags & ~(O_CREAT | O_EXCL) : request.flags | O_EXCL);
  if (!created.ok()) {
    file.remove();
    return created.error();
  }
  base::Text<256> trouble;
  file.add_trouble(trouble);
  return Opened{*created, true, std::string(trouble.view())};
}

}  // namespace

base::Result<Opened> open_striped(const OpenRequest& request) {
  if ((request.flags & O_CREAT) != 0) {
    base::Result<Opened> created = create(request);
    if (created.ok() || created.error().number != EEXIST || (request.flags & O_EXCL) != 0)
      return created;
  }
  base::Result<int> old = open_plain(request, request.flags);
  if (!old.ok()) return old.error();
  return Opened{*old, false, wants_striping(request) ? "the file existed already" : ""};
}

StripingOutcome striping_outcome(const OpenRequest& request, const File& file) {
  StripingOutcome outcome{file.capabilities().striping, file.layout(), {}};
  if (!wants_striping(request)) return outcome;
  if (!outcome.supported) {
    outcome.reason = std::string("a file system of kind ") +
                     layout::traits(file.layout().kind).name + " has no stripes that can be set";
    return outcome;
  }
  base::Text<512> differences;
  add_differences(differences, file.layout().kind, striping_of(request),
                  {file.layout().unit, file.layout().targets});
  const std::string trouble = file.striping_trouble();
  outcome.reason = differences.view();
  if (!outcome.reason.empty() && !trouble.empty()) outcome.reason = trouble + ": " + outcome.reason;
  return outcome;
}

}  // namespace pario::file
