// Archives: directories stored as shards and an index.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "bindings/bindings.hpp"
#include "bindings/carry_out.hpp"
#include "data/archive/archive.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace pario::bindings {
namespace {

using archive::Archive;

/// Returns members, bytes of their files, bytes of the shards, shards.
std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint32_t> pack(
    const nb::bytes& directory, const nb::bytes& output, std::uint64_t shard_size,
    std::uint32_t shards, int level, unsigned threads, const Show& show) {
  const archive::PackRequest request{
      text_of(directory), text_of(output), shard_size, shards, level, threads};
  const auto done =
      carry_out(show, [&](const records::Show& shown) { return archive::pack(request, shown); });
  return {done.members, done.bytes, done.packed, done.shards};
}

Archive open_archive(const nb::bytes& path) {
  const std::string name = text_of(path);
  return carry_out({}, [&](const records::Show&) { return Archive::open(name); });
}

void require_member(const Archive& self, std::size_t member) {
  if (member >= self.index().count()) throw nb::index_error("no such member");
}

/// Name, whether it is a hard link, mode, size, nanoseconds since 1970, shard.
using Facts =
    std::tuple<nb::bytes, bool, std::uint32_t, std::uint64_t, std::int64_t, std::uint32_t>;

Facts member(const Archive& self, std::size_t number) {
  require_member(self, number);
  const archive::Row& row = self.index().row(number);
  const std::string_view name = self.index().name(number);
  return {to_bytes(name), row.type == archive::Type::hard_link, row.mode, row.size, row.modified,
          row.shard};
}

/// Returns the number of a member; -1: no member has this name.
std::int64_t find(const Archive& self, const nb::bytes& name) {
  const auto found = self.index().find(text_of(name));
  return found ? static_cast<std::int64_t>(*found) : -1;
}

nb::bytes read(const Archive& self, std::size_t number) {
  require_member(self, number);
  const std::string text = carry_out({}, [&](const records::Show&) { return self.read(number); });
  return to_bytes(text);
}

/// Opens the bytes of a file, to be read piece by piece.
std::unique_ptr<archive::MemberStream> open_member(const Archive& self, std::size_t number) {
  require_member(self, number);
  return carry_out({},
                   [&](const records::Show&) { return archive::MemberStream::open(self, number); });
}

nb::bytes next_bytes(archive::MemberStream& self) {
  const auto bytes = carry_out({}, [&](const records::Show&) { return self.next(); });
  return nb::bytes(bytes.data(), bytes.size());
}

/// Raises OSError if an index, or the places that it names, are impossible.
void verify_index(const Archive& self) {
  if (const base::Status status = archive::verify_index(self); !status)
    raise_os_error(status.error());
}

void verify_places(const Archive& self) {
  if (const base::Status status = archive::verify_places(self); !status)
    raise_os_error(status.error());
}

using Lost = std::tuple<std::string, std::uint64_t, std::string>;

/// Returns members; devices and pipes that were left out; losses: the kind of loss, the number of
/// members, the reason for the first.
std::tuple<std::uint64_t, std::uint64_t, std::vector<Lost>> unpack(
    const Archive& self, const nb::bytes& output, const std::vector<std::size_t>& members,
    unsigned threads, bool strict, bool same_permissions, bool special,
    std::optional<std::uint64_t> max_size, const Show& show) {
  for (const std::size_t number : members) require_member(self, number);
  archive::UnpackRequest request{text_of(output), members,          threads,
                                 strict,          same_permissions, special};
  if (max_size) request.max_size = *max_size;
  const auto done = carry_out(
      show, [&](const records::Show& shown) { return archive::unpack(self, request, shown); });
  std::vector<Lost> losses;
  for (const auto& [what, loss] : done.losses)
    losses.emplace_back(archive::text_of(what), loss.members, printable(loss.first));
  return {done.members, done.left_out, std::move(losses)};
}

}  // namespace

void add_archive(nb::module_& module) {
  module.def("pack_directory", pack, "path"_a, "output"_a, "shard_size"_a, "shards"_a, "level"_a,
             "threads"_a, "show"_a);
  module.def("open_archive", open_archive, "path"_a);
  LockedClass<archive::MemberStream>(module, "MemberStream").def("next", next_bytes);
  LockedClass<Archive>(module, "Archive")
      .def("__len__", [](const Archive& self) { return self.index().count(); })
      .def_prop_ro("shards", [](const Archive& self) { return self.index().shards(); })
      .def("member", member, "number"_a)
      .def("find", find, "name"_a)
      .def("read", read, "number"_a)
      .def("open_member", open_member, "number"_a, nb::keep_alive<0, 1>())
      .def("verify_index", verify_index)
      .def("verify_places", verify_places)
      .def("unpack", unpack, "output"_a, "members"_a, "threads"_a, "strict"_a, "same_permissions"_a,
           "special"_a, "max_size"_a.none(), "show"_a);
}

}  // namespace pario::bindings
