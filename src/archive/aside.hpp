// A directory that has its name when it is whole.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/base.hpp"

namespace pario::archive {

/// Made beside the name it will have, as ".NAME.HOST.part" (a number), and locked. What a killed process of this host has left there goes
/// first; of a running one EBUSY.
/// Goes away with all that is in it unless it was finished.
class Aside {
 public:
  /// `mode`: its permissions, without those of the mask.
  static base::Result<Aside> make(const std::string& path, mode_t mode = 0777);
  Aside(Aside&& other) noexcept;
  Aside& operator=(Aside&& other) = delete;
  ~Aside();

  const std::string& path() const { return aside_; }
  int number() const { return descriptor_; }
  /// On the disk, under its name; nothing that has appeared there meanwhile is replaced.
  base::Status finish();

 private:
  Aside(std::string path, std::string aside, int descriptor);
  std::string path_, aside_;
  int descriptor_ = -1;
};

}  // namespace pario::archive
