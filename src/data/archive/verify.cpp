#include "data/archive/verify.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/base.hpp"
#include "data/archive/errors.hpp"

namespace pario::archive {
namespace {

constexpr std::uint64_t kLargestFile = std::numeric_limits<std::int64_t>::max();

base::Error refuse(const Archive& archive, std::string reason) {
  return {.number = EIO,
          .operation = "verify",
          .path = archive.path() + "/" + kIndex,
          .detail = std::move(reason)};
}

/// A byte as text: 'Z' (90).
std::string text_of(Type type) {
  const auto code = static_cast<unsigned char>(type);
  const bool printable = code > ' ' && code < 0x7F;
  return (printable ? std::string("'") + static_cast<char>(code) + "' " : std::string()) + "(" +
         std::to_string(code) + ")";
}

/// The fault of a single member; empty: none.
std::string fault_of(const Row& row, std::uint32_t shards) {
  if (!is_known(row.type)) return "has the type " + text_of(row.type) + "; expected '0' to '6'";
  if (row.shard >= shards)
    return "is in shard " + std::to_string(row.shard) + " of " + std::to_string(shards);
  if (row.size > kLargestFile)
    return "has a size of " + std::to_string(row.size) + " bytes; the largest is 2^63 - 1";
  if (row.type != Type::file && row.stored > 0)
    return "is no file, but has " + std::to_string(row.stored) + " bytes";
  if (row.type == Type::file && row.sparse == 0 && row.size != row.stored)
    return "has a size of " + std::to_string(row.size) + " bytes, but " +
           std::to_string(row.stored) + " are stored";
  return {};
}

/// The fault of a name after the name `before`; empty: none.
std::string fault_of_name(std::string_view name, std::string_view before, std::size_t number) {
  if (name.empty()) return "member " + std::to_string(number) + " has no name";
  if (number > 0 && name == before) return "two members are " + quote(name);
  if (number > 0 && name < before) return "the names are not in order at " + quote(name);
  return {};
}

/// The fault of a member that does not lie within its shard; empty: none.
std::string fault_of_place(const Row& row, std::string_view name, std::uint64_t tar) {
  if (row.is_within(tar)) return {};
  return quote(name) + " is said to have " + std::to_string(row.header) + " + " +
         std::to_string(row.stored) + " bytes at " + std::to_string(row.offset) +
         ", behind the end of " + shard_name(row.shard) + " (" + std::to_string(tar) + " bytes)";
}

std::vector<std::size_t> in_order_of_places(const Index& index) {
  std::vector<std::size_t> order(index.count());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto place = [&](std::size_t member) {
    return std::tuple(index.row(member).shard, index.row(member).offset);
  };
  std::ranges::sort(order, {}, place);
  return order;
}

}  // namespace

base::Status verify_index(const Archive& archive) {
  const Index& index = archive.index();
  if (base::Status status = index.verify(); !status) return status;
  std::string_view before;
  for (std::size_t i = 0; i < index.count(); ++i) {
    const std::string_view name = index.name(i);
    if (std::string fault = fault_of_name(name, before, i); !fault.empty())
      return refuse(archive, std::move(fault));
    if (const std::string fault = fault_of(index.row(i), index.shards()); !fault.empty())
      return refuse(archive, quote(name) + " " + fault);
    before = name;
  }
  return {};
}

base::Status verify_places(const Archive& archive) {
  return verify_places(archive, std::vector<bool>(archive.index().shards(), true));
}

base::Status verify_places(const Archive& archive, const std::vector<bool>& shards) {
  const Index& index = archive.index();
  std::unique_ptr<Shard> shard;
  const Row* before = nullptr;
  for (const std::size_t member : in_order_of_places(index)) {
    const Row& row = index.row(member);
    if (!shards[row.shard]) continue;
    if (before == nullptr || before->shard != row.shard) {
      auto opened = Shard::open(archive.shard_path(row.shard));
      if (!opened.ok()) return opened.error();
      shard = std::move(*opened);
      before = nullptr;
    }
    if (std::string fault = fault_of_place(row, index.name(member), shard->size()); !fault.empty())
      return refuse(archive, std::move(fault));
    if (before != nullptr && before->place().end > row.offset)
      return refuse(archive, quote(index.name(member)) + " lies in the bytes of another member");
    before = &row;
  }
  return {};
}

}  // namespace pario::archive
