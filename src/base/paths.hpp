// Names of files: absolute and normalised as text, so that one file has one row however it was called.
#pragma once

#include <climits>
#include <cstddef>
#include <string_view>

namespace pario::base {

/// The absolute name of a file, with `.`, `..` and `//` resolved as text; links are not followed. Lives on the stack.
class Path {
 public:
  /// As the *at functions have it: relative names begin at `directory` (AT_FDCWD: the current one); an empty name is the directory itself.
  Path(int directory, const char* name);
  /// What an open descriptor was opened as.
  explicit Path(int descriptor);
  Path(const Path&) = delete;
  Path& operator=(const Path&) = delete;

  /// False: the name is too long, or its directory is not known.
  bool known() const { return size_ != 0; }
  /// Terminated by zero.
  const char* c_str() const { return text_; }
  std::string_view view() const { return {text_, size_}; }

 private:
  bool begin_at(int directory);
  void add_components(const char* name);
  void add_component(std::string_view component);

  std::size_t size_ = 0;
  char text_[PATH_MAX];
};

namespace current_directory {
/// The program changed it: ask the kernel again.
void forget();
/// The same in the child of a fork, where a thread that was just keeping it no longer exists.
void forget_after_fork();
}  // namespace current_directory

}  // namespace pario::base
