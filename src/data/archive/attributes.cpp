#include "data/archive/attributes.hpp"

#include <sys/xattr.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace pario::archive {
namespace {

/// Attributes of a file's layout; trusted.* has further ones.
constexpr std::string_view kPlaces[] = {"lustre.", "ceph.", "btrfs.", "trusted.",
                                        "system.nfs4_acl"};

bool starts_with(std::string_view name, std::string_view first) { return name.starts_with(first); }

ssize_t list(int descriptor, const std::string& path, std::string& out) {
  return descriptor >= 0 ? ::flistxattr(descriptor, out.data(), out.size())
                         : ::llistxattr(path.c_str(), out.data(), out.size());
}

ssize_t get(int descriptor, const std::string& path, const char* name, std::string& out) {
  return descriptor >= 0 ? ::fgetxattr(descriptor, name, out.data(), out.size())
                         : ::lgetxattr(path.c_str(), name, out.data(), out.size());
}

int set(int descriptor, const std::string& path, const char* name, const std::string& value) {
  return descriptor >= 0 ? ::fsetxattr(descriptor, name, value.data(), value.size(), 0)
                         : ::lsetxattr(path.c_str(), name, value.data(), value.size(), 0);
}

base::Error make_attribute_error(const char* operation, const std::string& path, const char* name) {
  return {.number = errno,
          .operation = operation,
          .path = path,
          .detail = std::string("attribute ") + name};
}

/// The complete answer of `ask`; repeated while another process makes it longer.
template <class Ask>
ssize_t ask_all(std::string& out, Ask ask) {
  for (ssize_t size = ask(out); size >= 0; size = ask(out)) {
    if (static_cast<std::size_t>(size) < out.size() || size == 0) {
      out.resize(static_cast<std::size_t>(size));
      return size;
    }
    out.resize(static_cast<std::size_t>(size) + 1);
  }
  return -1;
}

}  // namespace

base::Status read_attributes(int descriptor, const std::string& path, Attributes& out) {
  std::string names;
  if (ask_all(names, [&](std::string& text) { return list(descriptor, path, text); }) < 0)
    return errno == ENOTSUP ? base::Status{} : make_attribute_error("listxattr", path, "names");
  for (const char* name = names.data(); name < names.data() + names.size();
       name += std::strlen(name) + 1) {
    if (std::ranges::any_of(kPlaces,
                            [&](std::string_view first) { return starts_with(name, first); }))
      continue;
    std::string value;
    if (ask_all(value, [&](std::string& text) { return get(descriptor, path, name, text); }) < 0)
      return make_attribute_error("getxattr", path, name);
    out.emplace_back(name, std::move(value));
  }
  return {};
}

base::Status write_attributes(int descriptor, const std::string& path,
                              const Attributes& attributes) {
  base::Status first;
  for (const auto& [name, value] : attributes) {
    if (set(descriptor, path, name.c_str(), value) == 0 || starts_with(name, "security.")) continue;
    if (first) first = make_attribute_error("setxattr", path, name.c_str());
  }
  return first;
}

}  // namespace pario::archive
