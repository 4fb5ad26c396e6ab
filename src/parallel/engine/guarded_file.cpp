#include "parallel/engine/guarded_file.hpp"

#include <algorithm>
#include <cerrno>

namespace pario::engine {

base::Status GuardedFile::write(std::uint64_t offset, std::span<const std::byte> data) {
  base::Status status = context_.file().write(offset, data);
  context_.note_change();
  return status;
}

base::Result<std::uint64_t> GuardedFile::read(std::uint64_t offset, std::span<std::byte> data) {
  base::Result<std::uint64_t> count = context_.file().read(offset, data);
  if (count) std::ranges::fill(data.subspan(*count), std::byte{0});
  return count;
}

base::Status GuardedFile::begin_modify(base::Extent hull) {
  if (!may_modify()) return base::Error{.number = EBUSY, .operation = "read"};
  base::Status status;
  const WriteGuards& guards = context_.guards();
  if (locks_ == Locks::range && guards.node) {
    node_range_.emplace(*guards.node, hull);
  } else if (locks_ == Locks::range) {
    status = alone_.emplace(context_, hull, true).status();
  }
  if (status) status = pass_.emplace(guards.gate.get(), WriteGate::Write::modify).status();
  if (!status) end_modify(hull);
  return status;
}

void GuardedFile::end_modify(base::Extent) {
  pass_.reset();
  alone_.reset();
  node_range_.reset();
}

}  // namespace pario::engine
