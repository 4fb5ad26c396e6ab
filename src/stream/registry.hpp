// All files that have buffers, and all their handles.
#pragma once

#include "stream/file.hpp"

namespace pario::stream::registry {

inline constexpr std::size_t kMostFiles = 256;
inline constexpr std::size_t kMostHandles = 4096;

extern File files[kMostFiles];
/// How many are in use, and one past the last that ever was.
extern std::atomic<std::size_t> in_use, end;

inline std::span<File> known() { return {files, end.load(std::memory_order_acquire)}; }

template <class F>
void for_each_file(F&& f) {
  for (File& file : known())
    if (file.used()) f(file);
}

}  // namespace pario::stream::registry
