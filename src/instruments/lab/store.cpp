#include "instruments/lab/store.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>

namespace pario::lab {
namespace {

constexpr std::size_t kLongestRecord = 4096;

base::Status make_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) == 0 || errno == EEXIST) return {};
  return base::path_error("mkdir", path, errno);
}

std::string target_path(const std::string& directory, std::uint32_t target) {
  return directory + "/target." + std::to_string(target);
}

/// Returns the name of an attribute that the file system supports: of users, or else of root (tmpfs
/// of older kernels); empty: none.
std::string usable_name(const std::string& directory) {
  for (const char* name : {"user.pario.lab", "trusted.pario.lab"})
    if (::setxattr(directory.c_str(), name, "", 0, 0) == 0) return name;
  return {};
}

std::optional<Store::Record> as_record(ssize_t size, Store::Record data) {
  if (size < 0) return std::nullopt;
  data.resize(static_cast<std::size_t>(size));
  return data;
}

}  // namespace

base::Result<Store> Store::open(const std::string& directory, std::uint32_t targets) {
  Store store;
  store.directory_ = directory;
  store.tree_ = directory + "/tree";
  for (const std::string& path : {directory, store.tree_})
    if (base::Status made = make_directory(path); !made) return made.error();
  if (::access(target_path(directory, targets).c_str(), F_OK) == 0)
    return base::path_error("lab", directory, EINVAL,
                            "its files are on more than " + std::to_string(targets) + " targets");
  for (std::uint32_t target = 0; target < targets; ++target) {
    const std::string path = target_path(directory, target);
    if (base::Status made = make_directory(path); !made) return made.error();
    store.targets_.emplace_back(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!store.targets_.back().is_open()) return base::path_error("open", path, errno);
  }
  store.record_name_ = usable_name(directory);
  if (store.record_name_.empty())
    return base::path_error("setxattr", directory, ENOTSUP,
                            "its file system keeps no attributes of files");
  return store;
}

std::optional<Store::Record> Store::record(const std::string& path) const {
  Record data(kLongestRecord);
  const ssize_t size = ::lgetxattr(path.c_str(), record_name_.c_str(), data.data(), data.size());
  return as_record(size, std::move(data));
}

std::optional<Store::Record> Store::record(int descriptor) const {
  Record data(kLongestRecord);
  const ssize_t size = ::fgetxattr(descriptor, record_name_.c_str(), data.data(), data.size());
  return as_record(size, std::move(data));
}

int Store::set_record(const std::string& path, const Record& record) const {
  return result(::setxattr(path.c_str(), record_name_.c_str(), record.data(), record.size(), 0));
}

int Store::set_record(int descriptor, const Record& record) const {
  return result(::fsetxattr(descriptor, record_name_.c_str(), record.data(), record.size(), 0));
}

int Store::remove_record(const std::string& path) const {
  return result(::removexattr(path.c_str(), record_name_.c_str()));
}

Descriptor Store::open_object(std::uint32_t target, const std::string& name, bool create) const {
  return Descriptor(::openat(targets_[target].number(), name.c_str(),
                             O_RDWR | O_CLOEXEC | (create ? O_CREAT : 0), 0600));
}

void Store::remove_object(std::uint32_t target, const std::string& name) const {
  ::unlinkat(targets_[target].number(), name.c_str(), 0);
}

std::uint64_t Store::blocks_of_object(std::uint32_t target, const std::string& name) const {
  struct stat facts{};
  return ::fstatat(targets_[target].number(), name.c_str(), &facts, 0) == 0
             ? static_cast<std::uint64_t>(facts.st_blocks)
             : 0;
}

}  // namespace pario::lab
