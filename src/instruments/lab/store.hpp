// The directories in which a lab keeps its data: tree/ has the names, with sparse files of the
// apparent sizes; target.0/ and so on have the objects. An attribute of the file in tree/ records
// the places of its objects.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/base.hpp"
#include "core/base/descriptor.hpp"
#include "instruments/lab/placement.hpp"

namespace pario::lab {

using base::Descriptor;

/// Returns the result of a system call as 0 or -errno.
inline int result(int returned) { return returned < 0 ? -errno : 0; }

class Store {
 public:
  /// Creates missing directories. ENOTSUP: the file system has no attributes; EINVAL: the directory
  /// was used with more targets.
  static base::Result<Store> open(const std::string& directory, std::uint32_t targets);

  const std::string& directory() const { return directory_; }
  /// Returns the path of a name that begins with a slash.
  std::string path(const char* name) const { return tree_ + name; }

  using Record = std::vector<std::byte>;
  std::optional<Record> record(const std::string& path) const;
  std::optional<Record> record(int descriptor) const;
  /// Each function returns 0 or -errno.
  int set_record(const std::string& path, const Record& record) const;
  int set_record(int descriptor, const Record& record) const;
  int remove_record(const std::string& path) const;
  const std::string& record_name() const { return record_name_; }

  Descriptor open_object(std::uint32_t target, const std::string& name, bool create) const;
  void remove_object(std::uint32_t target, const std::string& name) const;
  /// Returns blocks of 512 bytes; 0: the object does not exist.
  std::uint64_t blocks_of_object(std::uint32_t target, const std::string& name) const;

 private:
  std::string directory_, tree_, record_name_;
  std::vector<Descriptor> targets_;
};

}  // namespace pario::lab
