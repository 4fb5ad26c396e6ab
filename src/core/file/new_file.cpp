#include "core/file/new_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <climits>

#include "core/file/attributes.hpp"
#include "core/file/beegfs.hpp"
#include "core/file/history.hpp"
#include "core/file/measured.hpp"

namespace pario::file {
namespace {

constexpr unsigned kOwner = 0600;
constexpr std::uint64_t kAnyTarget = 65535;

/// Opens the directory of a path's last component. A name that ends with a slash is not a file's.
int open_directory_of(int directory, std::string_view path) {
  base::Text<PATH_MAX> above;
  const auto slash = path.rfind('/');
  above.add(slash == path.npos ? "." : slash == 0 ? "/" : path.substr(0, slash));
  if (!above.complete()) return -ENAMETOOLONG;
  constexpr int kFlags = O_DIRECTORY | O_CLOEXEC;
  const long opened = base::system_call(SYS_openat, directory, above.c_str(), O_RDONLY | kFlags);
  return static_cast<int>(
      opened == -EACCES ? base::system_call(SYS_openat, directory, above.c_str(), O_PATH | kFlags)
                        : opened);
}

bool grows(const hints::StripingHints& hints) {
  return hints.pario_growing && hints.striping_factor == 0 && hints.pario_expected_size == 0;
}

std::uint32_t expected_writers(const hints::StripingHints& hints, std::uint32_t writers) {
  return hints.pario_expected_writers != 0
             ? static_cast<std::uint32_t>(hints.pario_expected_writers)
             : writers;
}

/// The parts of a new file: several if it grows, else one of that striping. Hints that only Lustre
/// has are set here, in all parts.
layout::StripedParts requested_parts(const hints::StripingHints& hints, std::uint32_t writers,
                                     std::uint32_t targets, const layout::Striping& wanted) {
  writers = expected_writers(hints, writers);
  if (grows(hints)) return layout::growing_stripes({0, writers, writers, targets});
  layout::StripedParts parts{.count = 1};
  parts.ranges[0].striping = wanted;
  return parts;
}

bool is_empty(const layout::StripedParts& parts) {
  return parts.count == 0 || (parts.count == 1 && parts.ranges[0] == layout::StripedPart{});
}

/// Reads a link's target; 0 if it is no link, or one that the kernel might not follow: a link of
/// another user in a directory that all may write to.
std::size_t read_link(int directory, const char* name, char* target, std::size_t size) {
  struct stat link;
  if (base::status_of(directory, name, AT_SYMLINK_NOFOLLOW, link) < 0 || !S_ISLNK(link.st_mode))
    return 0;
  if (link.st_uid != 0 && link.st_uid != static_cast<uid_t>(base::system_call(SYS_geteuid)))
    return 0;
  const long length = base::system_call(SYS_readlinkat, directory, name, target, size);
  return length <= 0 || static_cast<std::size_t>(length) >= size ? 0
                                                                 : static_cast<std::size_t>(length);
}

}  // namespace

layout::Striping wanted_striping(const hints::StripingHints& hints, std::uint32_t writers,
                                 std::uint32_t targets, int directory) {
  layout::Striping wanted{
      hints.striping_unit, static_cast<std::uint32_t>(hints.striping_factor),
      hints.start_iodevice == kAnyTarget ? -1 : static_cast<std::int32_t>(hints.start_iodevice)};
  if (wanted.targets != 0 || hints.pario_expected_size == 0) return wanted;
  writers = expected_writers(hints, writers);
  const layout::Striping choice =
      choose_striping(hints::of_process().stripe_sweeps.view(), directory,
                      {hints.pario_expected_size, writers, writers, targets});
  wanted.targets = choice.targets;
  if (wanted.unit == 0) wanted.unit = choice.unit;
  return wanted;
}

NewFile::NewFile(int directory, const char* path, unsigned mode, const hints::StripingHints& hints,
                 std::uint32_t writers, bool exclusive) {
  constexpr int kMostLinks = 40;  // as many as the kernel follows
  if (!begin_at(directory, path)) return;
  for (int i = 0; i < kMostLinks && !exclusive && follow(); ++i) {
  }
  if (directory_ < 0) return;
  kind_ = kind_of(directory_);
  choose(hints, writers);
  if (!may_have_stripes(kind_) || error_ != 0 || is_empty(parts_)) return;
  if (kind_ == layout::Kind::beegfs)
    open_on_beegfs(mode);
  else
    open(mode);
  if (descriptor_ >= 0) stripe();
}

/// Opens the directory of a path and keeps the name.
bool NewFile::begin_at(int directory, std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const bool good = !name.empty() && name.size() < sizeof name_;
  const int above = good ? open_directory_of(directory, path) : -1;
  if (directory_ >= 0) base::close_file(directory_);
  directory_ = above;
  if (above >= 0) name_[name.copy(name_, sizeof name_ - 1)] = 0;
  return above >= 0;
}

/// Moves from a link to its target; false if it is no link.
bool NewFile::follow() {
  char target[PATH_MAX];
  const std::size_t length = read_link(directory_, name_, target, sizeof target);
  return length != 0 && begin_at(directory_, {target, length});
}

void NewFile::choose(hints::StripingHints hints, std::uint32_t writers) {
  const std::uint32_t targets = kind_ == layout::Kind::lustre ? target_count(directory_) : 0;
  if (grows(hints) && may_have_stripes(kind_))
    hints.pario_expected_size = largest_like(directory_, name_);
  expected_size_ = hints.pario_expected_size;
  wanted_ = wanted_striping(hints, writers, targets, directory_);
  parts_ = requested_parts(hints, writers, targets, wanted_);
  if (parts_.count > 1 && kind_ == layout::Kind::beegfs)
    error_ = -ENOTSUP;
  else
    wanted_ = parts_.parts().back().striping;
}

NewFile::~NewFile() {
  if (mode_ != ~0U) base::system_call(SYS_fchmod, descriptor_, mode_);
  if (descriptor_ >= 0) base::close_file(descriptor_);
  if (directory_ >= 0) base::close_file(directory_);
}

void NewFile::open(unsigned mode) {
  const int flags =
      O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (is_ceph(kind_) ? 0 : kDelayCreate);
  descriptor_ = static_cast<int>(
      base::system_call(SYS_openat, directory_, name_, flags | O_CREAT | O_EXCL, mode));
  created_ = descriptor_ >= 0;
  if (created_) lend_permission();
  if (descriptor_ == -EEXIST) open_empty(flags);
}

/// Creates and stripes in one step.
void NewFile::open_on_beegfs(unsigned mode) {
  struct stat facts;
  error_ = beegfs::make(directory_, beegfs::new_file(name_, mode | kOwner, wanted_));
  failed_ = "BEEGFS_IOC_MKFILE_STRIPEHINTS";
  created_ = error_ == 0;
  existed_ = error_ == -EEXIST;
  if (created_)
    descriptor_ = static_cast<int>(
        base::system_call(SYS_openat, directory_, name_, O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (descriptor_ >= 0 && (mode & kOwner) != kOwner && base::status_of(descriptor_, facts) == 0)
    mode_ = facts.st_mode & mode;
}

/// Opens a file that another process created, perhaps just now, if it is still empty: the first of
/// them sets the stripes before the first byte.
void NewFile::open_empty(int flags) {
  struct stat facts;
  const int status = base::status_of(directory_, name_, AT_SYMLINK_NOFOLLOW, facts);
  if (status == 0 && S_ISREG(facts.st_mode) && facts.st_size == 0)
    descriptor_ = static_cast<int>(base::system_call(SYS_openat, directory_, name_, flags));
  existed_ = descriptor_ < 0;
}

/// Adds permissions that the program's open may need and the new file's mode lacks.
void NewFile::lend_permission() {
  struct stat facts;
  if (base::status_of(descriptor_, facts) != 0 || (facts.st_mode & kOwner) == kOwner) return;
  mode_ = facts.st_mode & 07777;
  base::system_call(SYS_fchmod, descriptor_, mode_ | kOwner);
}

void NewFile::stripe() {
  KnownStriping known =
      created_ && kind_ != layout::Kind::beegfs ? KnownStriping{kind_} : striping_of(descriptor_);
  const bool other = known.striping.unit == 0 || known.striping.unit != wanted_.unit ||
                     known.striping.targets != wanted_.targets;
  if (other && kind_ != layout::Kind::beegfs) {
    const SetOutcome set = set_striping(descriptor_, kind_, false, parts_.parts());
    error_ = set.error;
    failed_ = set.attribute;
    if (parts_.count > 1 && error_ == -ENOTSUP) wanted_ = {};
    known = striping_of(descriptor_);
  }
  kind_ = known.kind;
  effective_ = known.striping;
}

bool NewFile::is(int descriptor) const {
  struct stat own, other;
  return base::status_of(descriptor_, own) == 0 && base::status_of(descriptor, other) == 0 &&
         own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

void NewFile::remove() {
  if (created_) base::system_call(SYS_unlinkat, directory_, name_, 0);
}

void NewFile::add_trouble(base::TextBuffer& out) const {
  if (error_ < 0 && error_ != -ENOTSUP)
    out.add("setting ").add(failed_).add(": ").add(base::errno_name(static_cast<int>(-error_)));
}

void NewFile::add_reason(base::TextBuffer& out) const {
  if (existed_)
    out.add("the file existed already, and keeps its stripes");
  else if (parts_.count > 1 && error_ == -ENOTSUP)
    out.add(
        "nobody knows its size, and only Lustre has files that get more stripes as they grow: it "
        "is as its directory says");
  else if (!can_set_stripes(kind_) || error_ == -ENOTSUP)
    out.add("a file system of kind ")
        .add(layout::traits(kind_).name)
        .add(" has no stripes that can be set");
  else if (error_ < 0)
    add_trouble(out);
  else
    add_differences(out, kind_, wanted_, effective_);
}

bool asks_for_stripes(hints::StripingHints hints) {
  hints.pario_expected_writers = 0;
  return hints != hints::default_striping_hints();
}

hints::StripingHints effective_hints(hints::StripingHints hints, layout::Kind kind,
                                     const layout::Striping& got) {
  const hints::StripingHints initial = hints::default_striping_hints();
  hints.striping_factor = got.targets;
  hints.striping_unit = got.unit;
  if (kind != layout::Kind::lustre) hints.start_iodevice = initial.start_iodevice;
  return hints;
}

void add_differences(base::TextBuffer& out, layout::Kind kind, const layout::Striping& wanted,
                     const layout::Striping& got) {
  const std::size_t before = out.view().size();
  const auto next = [&]() -> base::TextBuffer& {
    return out.add(out.view().size() == before ? "" : "; ");
  };
  const bool all = wanted.targets >= layout::kAllTargets;
  if (wanted.unit != 0 && wanted.unit != got.unit)
    next().add("asked for stripes of ").add(wanted.unit).add(" bytes, they have ").add(got.unit);
  if (all && is_ceph(kind)) next().add("Ceph does not tell how many targets there are");
  if (wanted.targets != 0 && !all && wanted.targets != got.targets)
    next().add("asked for ").add(wanted.targets).add(" targets, the file has ").add(got.targets);
  if (wanted.start >= 0 && is_ceph(kind))
    next().add("Ceph has no first target: it places objects by their names");
}

long stripe_directory(int directory, const char* path, const hints::StripingHints& hints) {
  const int opened = static_cast<int>(
      base::system_call(SYS_openat, directory, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened < 0) return opened;
  const layout::Kind kind = kind_of(opened);
  const std::uint32_t targets = kind == layout::Kind::lustre ? target_count(opened) : 0;
  const layout::StripedParts wanted =
      requested_parts(hints, 1, targets, wanted_striping(hints, 1, targets, opened));
  const long error = may_have_stripes(kind) && !is_empty(wanted)
                         ? set_striping(opened, kind, true, wanted.parts()).error
                         : -ENOTSUP;
  base::close_file(opened);
  return error;
}

}  // namespace pario::file
