// Absolute, lexically normalised file names: a file has one row however the program names it.
#pragma once

#include <climits>
#include <cstddef>
#include <string_view>

namespace pario::base {

/// The absolute name of a file, with `.`, `..` and `//` resolved as text; links are not followed.
/// Stored in the object, without heap.
class Path {
 public:
  /// Resolves like the *at functions: relative names begin at `directory` (AT_FDCWD: the current
  /// one); an empty name is the directory itself.
  Path(int directory, const char* name);
  /// Returns the name with which an open descriptor was opened.
  explicit Path(int descriptor);
  Path(const Path&) = delete;
  Path& operator=(const Path&) = delete;

  /// False if the name is too long, or its directory is unknown.
  bool is_known() const { return size_ != 0; }
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
/// The program changed the directory: drops the cached name.
void forget();
/// The same in the child of a fork, where a thread that was storing the name no longer exists.
void forget_after_fork();
}  // namespace current_directory

}  // namespace pario::base
