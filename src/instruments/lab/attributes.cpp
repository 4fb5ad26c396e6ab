#include <sys/random.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "instruments/lab/lab.hpp"

namespace pario::lab {
namespace {

constexpr const char* kStatus = "pario.lab";

using Buffer = std::vector<std::byte>;

/// Finds the stripes of new files in a directory. On Ceph a directory without stripes has those of
/// the nearest directory above.
Buffer find_directory_stripes(const Lab& lab, std::string path) {
  const std::string top = lab.store.path("");
  while (path.size() > top.size()) {
    if (auto own = lab.store.record(path)) return *own;
    if (lab.settings.personality == Personality::lustre) break;
    path.resize(path.rfind('/'));
  }
  return lab.store.record(top).value_or(default_attribute(lab.settings.personality));
}

std::uint64_t new_id() {
  std::uint64_t id = 0;
  while (::getrandom(&id, sizeof id, 0) != sizeof id) continue;
  return id;
}

std::optional<Placement> decide_placement(Lab& lab, std::span<const std::byte> attribute) {
  const auto start = [&](std::uint32_t stripes) { return lab.targets.next_start(stripes); };
  return Placement::decide(lab.settings.personality, attribute, lab.targets.size(), new_id(),
                           start);
}

}  // namespace

AttributeKind classify_attribute(const Lab& lab, const char* name, bool directory) {
  if (std::strcmp(name, kStatus) == 0) return AttributeKind::status;
  const bool ceph = lab.settings.personality == Personality::ceph;
  const char* stripes = !ceph       ? layout::kLustreAttribute
                        : directory ? layout::kCephDirectoryAttribute
                                    : layout::kCephAttribute;
  return std::strcmp(name, stripes) == 0 ? AttributeKind::stripes : AttributeKind::none;
}

int set_stripes(Lab& lab, const std::string& path, Client client,
                std::span<const std::byte> value) {
  struct stat facts{};
  if (::stat(path.c_str(), &facts) != 0) return -errno;
  if (!is_valid_attribute(lab.settings.personality, value, lab.targets.size())) return -EINVAL;
  if (S_ISDIR(facts.st_mode)) return lab.store.set_record(path, {value.begin(), value.end()});
  const auto file = lab.files.find_or_open(path);
  if (!file) return -errno;
  const bool ceph = lab.settings.personality == Personality::ceph;
  if (ceph && file->size() > 0) return -ENOTEMPTY;
  // Lustre keeps the present stripes and returns no error
  if (!ceph && file->placement()) return 0;
  auto placement = decide_placement(lab, value);
  return placement ? file->place(client, std::move(*placement)) : -EINVAL;
}

std::optional<Buffer> stripes_of(Lab& lab, const std::string& path, bool root) {
  struct stat facts{};
  if (::lstat(path.c_str(), &facts) != 0) return std::nullopt;
  if (S_ISDIR(facts.st_mode))
    return root ? find_directory_stripes(lab, path) : lab.store.record(path);
  const auto record = S_ISREG(facts.st_mode) ? lab.store.record(path) : std::nullopt;
  const auto placement = record ? Placement::read(*record) : std::nullopt;
  return placement ? std::optional(placement->attribute()) : std::nullopt;
}

int assign_stripes(Lab& lab, const std::string& path, Client client, LabFile& file) {
  if (file.placement()) return 0;
  auto placement =
      decide_placement(lab, find_directory_stripes(lab, path.substr(0, path.rfind('/'))));
  return placement ? file.place(client, std::move(*placement)) : -EIO;
}

void inherit_stripes(const Lab& lab, const std::string& path) {
  const std::string above = path.substr(0, path.rfind('/'));
  if (lab.settings.personality == Personality::ceph || above == lab.store.path("")) return;
  if (const auto own = lab.store.record(above)) lab.store.set_record(path, *own);
}

}  // namespace pario::lab
