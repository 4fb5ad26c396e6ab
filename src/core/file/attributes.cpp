#include "core/file/attributes.hpp"

#include <sys/ioctl.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "core/file/beegfs.hpp"

namespace pario::file {
namespace {

constexpr std::size_t kLongest = 8
                                 << 10;  // of a plain layout of more than 300 targets; on the stack

/// An attribute's value; empty if there is none, or a longer one.
class Value {
 public:
  Value(int descriptor, const char* name)
      : size_(base::system_call(SYS_fgetxattr, descriptor, name, data_, sizeof data_)) {}
  std::span<const std::byte> bytes() const {
    return {data_, static_cast<std::size_t>(std::max(size_, 0L))};
  }

 private:
  std::byte data_[kLongest];
  long size_;
};

bool may_be(layout::Kind kind, layout::Kind wanted) {
  return kind == wanted || kind == layout::Kind::fuse;
}

long set(int descriptor, const char* name, std::span<const std::byte> value) {
  return base::system_call(SYS_fsetxattr, descriptor, name, value.data(), value.size(), 0);
}

SetOutcome set_on_lustre(int descriptor, std::span<const layout::StripedPart> parts) {
  std::array<std::byte, 1024> buffer;
  const std::size_t size = layout::lustre_attribute_size(parts);
  if (size > buffer.size()) return {-ENOTSUP};
  const std::span<std::byte> value = std::span(buffer).first(size);
  layout::put_lustre_attribute(value, parts);
  return {set(descriptor, layout::kLustreAttribute, value), layout::kLustreAttribute};
}

const char* ceph_name(bool directory) {
  return directory ? layout::kCephDirectoryAttribute : layout::kCephAttribute;
}

}  // namespace

layout::Kind kind_of(int descriptor) {
  struct statfs system{};
  if (base::system_call(SYS_fstatfs, descriptor, &system) < 0) return layout::Kind::unknown;
  return layout::kind_of_magic(static_cast<std::uint32_t>(
      system.f_type));  // a signed number of 32 bits to some file systems
}

std::uint32_t target_count(int directory) {
  constexpr unsigned long kGetTargetCount = _IOR('f', 168, long);  // LL_IOC_GETOBDCOUNT
  long count = 0;  // the size in the ioctl's number; Lustre fills in an int
  return base::system_call(SYS_ioctl, directory, kGetTargetCount, &count) == 0 && count > 0
             ? static_cast<std::uint32_t>(count)
             : 0;
}

KnownStriping striping_of(int descriptor) {
  const layout::Kind kind = kind_of(descriptor);
  if (may_be(kind, layout::Kind::lustre))
    if (const auto found =
            layout::read_striping(Value(descriptor, layout::kLustreAttribute).bytes());
        found.unit != 0)
      return {layout::Kind::lustre, found};
  if (may_be(kind, layout::Kind::ceph))
    if (const auto found = layout::read_striping(Value(descriptor, layout::kCephAttribute).bytes());
        found.unit != 0)
      return {kind == layout::Kind::fuse ? layout::Kind::ceph_fuse : kind, found};
  return {kind,
          kind == layout::Kind::beegfs ? beegfs::striping_of(descriptor) : layout::Striping{}};
}

SetOutcome set_striping(int descriptor, layout::Kind kind, bool directory,
                        std::span<const layout::StripedPart> parts) {
  SetOutcome out{-ENOTSUP};
  if (may_be(kind, layout::Kind::lustre)) out = set_on_lustre(descriptor, parts);
  if (out.error != -ENOTSUP || parts.size() != 1 || !may_be(kind, layout::Kind::ceph)) return out;
  base::Text<256> text;
  layout::add_ceph_attribute(text, parts[0].striping,
                             Value(descriptor, ceph_name(directory)).bytes());
  return {set(descriptor, ceph_name(directory), std::as_bytes(std::span(text.view()))),
          ceph_name(directory)};
}

}  // namespace pario::file
