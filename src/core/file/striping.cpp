#include "core/file/striping.hpp"

#include <fcntl.h>

#include <cerrno>

#include "core/file/attributes.hpp"
#include "core/file/new_file.hpp"
#include "core/file/posix.hpp"
#include "core/file/stripes.hpp"

namespace pario::file {
namespace {

layout::Striping striping_of(const OpenRequest& request) {
  return wanted_striping(request.path, request.striping, request.writers);
}

bool wants_striping(const OpenRequest& request) { return asks_for_stripes(request.striping); }

base::Result<int> open_plain(const OpenRequest& request, int flags) {
  return open_descriptor(request.path, flags, request.mode);
}

/// Creates a file. EEXIST if it exists.
base::Result<Opened> create(const OpenRequest& request) {
  if (!wants_striping(request)) {
    base::Result<int> plain = open_plain(request, request.flags | O_EXCL);
    return plain.ok() ? base::Result<Opened>(Opened{*plain, true}) : plain.error();
  }
  NewFile file(AT_FDCWD, request.path.c_str(), request.mode, request.striping, request.writers,
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
  StripingOutcome outcome{can_set_stripes(file.layout().kind), file.layout(), {}};
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
