#include "core/trace/filesystems.hpp"

#include <fcntl.h>
#include <sys/vfs.h>

#include <algorithm>

#include "core/layout/layout.hpp"
#include "core/trace/mountinfo.hpp"
#include "core/trace/state.hpp"

namespace pario::trace {
namespace {

/// The texts of a query; too large for the stack of a thread or of a signal handler.
struct Texts {
  char mountinfo[4 << 20];  // hosts of many containers have thousands of mounts
  char mount[kPage], source[kPage], note[8 * kPage];
};

const char* layout_attribute(std::string_view mount_type) {
  const layout::Traits* traits = layout::find_mount_traits(mount_type);
  return traits == nullptr ? nullptr : traits->layout_attribute;
}

std::uint64_t mount_id(const Target& target) {
  struct statx facts{};
  const bool open = target.descriptor >= 0;
  const int result =
      open ? base::extended_status_of(target.descriptor, "", AT_EMPTY_PATH, STATX_MNT_ID, facts)
           : base::extended_status_of(AT_FDCWD, target.path, 0, STATX_MNT_ID, facts);
  return result == 0 && (facts.stx_mask & STATX_MNT_ID) != 0 ? facts.stx_mnt_id : 0;
}

struct statfs statistics(const Target& target) {
  struct statfs facts{};
  if (target.descriptor >= 0)
    base::system_call(SYS_fstatfs, target.descriptor, &facts);
  else
    base::system_call(SYS_statfs, target.path, &facts);
  return facts;
}

/// Decodes the octal escapes of mountinfo.
std::string_view unescape(std::string_view text, base::TextBuffer& out) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    const bool escaped = text[i] == '\\' && i + 3 < text.size() &&
                         std::from_chars(&text[i + 1], &text[i] + 4, code, 8).ec == std::errc{};
    out.add(escaped ? static_cast<char>(code) : text[i]);
    if (escaped) i += 3;
  }
  return out.view();
}

void write_note(std::uint64_t id, const Target& target, const Mount& mount, Texts& texts) {
  const struct statfs facts = statistics(target);
  base::TextBuffer path(texts.mount, sizeof texts.mount);
  base::TextBuffer source(texts.source, sizeof texts.source);
  base::TextBuffer line(texts.note, sizeof texts.note);
  base::Json json(line);
  json.begin_object().member("note", "filesystem").member("id", id).member("type", mount.type);
  json.member("mount", unescape(mount.mount, path))
      .member("source", unescape(mount.source, source));
  json.member("magic", static_cast<std::uint32_t>(facts.f_type))
      .member("block", static_cast<std::uint64_t>(facts.f_bsize));
  note(json.member("network", layout::is_network(mount.type)).end_object().view());
}

}  // namespace

const FileSystem* FileSystems::find(std::uint64_t device) const {
  const std::uint32_t count =
      std::atomic_ref(const_cast<std::uint32_t&>(count_)).load(std::memory_order_acquire);
  const auto* end = known_ + count;
  const auto* found =
      std::find_if(known_, end, [&](const FileSystem& known) { return known.device == device; });
  return found == end ? nullptr : found;
}

const FileSystem* FileSystems::get(const Target& target, std::uint64_t device) {
  if (const FileSystem* known = find(device)) return known;
  const Inside inside;
  const base::SpinLock lock(lock_);
  if (const FileSystem* known = find(device)) return known;
  if (count_ == kMost) return nullptr;
  auto* texts = reinterpret_cast<Texts*>(base::map_memory(sizeof(Texts)));
  if (texts == nullptr) return nullptr;
  const long size =
      read_own_file("/proc/self/mountinfo", texts->mountinfo, sizeof texts->mountinfo);
  const std::string_view mountinfo(texts->mountinfo, static_cast<std::size_t>(std::max(size, 0L)));
  const Mount mount = find_mount(mountinfo, mount_id(target), device).value_or(Mount{});
  FileSystem& added = known_[count_];
  added = {device, count_ + 1, layout_attribute(mount.type)};
  write_note(added.id, target, mount, *texts);
  base::unmap(texts, sizeof(Texts));
  std::atomic_ref(count_).store(count_ + 1, std::memory_order_release);
  return &added;
}

}  // namespace pario::trace
