// Owned file descriptors.
#pragma once

#include <unistd.h>

#include <utility>

#include "core/base/system.hpp"

namespace pario::base {

/// Owns a file descriptor and closes it by `close`; below 0: none, or the negative errno of a call
/// that opened none.
template <int (*close)(int)>
class OwnedDescriptor {
 public:
  OwnedDescriptor() = default;
  explicit OwnedDescriptor(long number) : number_(static_cast<int>(number)) {}
  OwnedDescriptor(OwnedDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  OwnedDescriptor& operator=(OwnedDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~OwnedDescriptor() {
    if (is_open()) close(number_);
  }
  bool is_open() const { return number_ >= 0; }
  int number() const { return number_; }

 private:
  int number_ = -1;
};

/// Of a file that the C library has opened: the tracer sees its end, too.
using Descriptor = OwnedDescriptor<::close>;
/// Of a file that a system call has opened.
using RawDescriptor = OwnedDescriptor<close_file>;

}  // namespace pario::base
