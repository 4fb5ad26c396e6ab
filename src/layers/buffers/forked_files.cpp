#include "layers/buffers/forked_files.hpp"

#include <algorithm>
#include <span>

#include "layers/buffers/child_processes.hpp"

namespace pario::buffers {

void ForkedFiles::add(FileId id) {
  if (is_listed(id)) return;
  if (count_ < kMostFiles) files_[count_] = id;
  ++count_;
}

bool ForkedFiles::contains(FileId id) {
  if (count_ == 0) return false;
  if (child_processes::find_holders() == child_processes::Holders::gone) return clear(), false;
  return is_listed(id);
}

bool ForkedFiles::is_listed(FileId id) const {
  const std::span<const FileId> listed(files_, std::min(count_, kMostFiles));
  return count_ > kMostFiles || std::ranges::find(listed, id) != listed.end();
}

}  // namespace pario::buffers
