// Data representations: external32, and registered ones by the program's functions.
#include <map>
#include <mutex>

#include "parallel/mpiio/datatypes.hpp"
#include "parallel/mpiio/errors.hpp"
#include "parallel/mpiio/external32.hpp"
#include "parallel/mpiio/implementations.hpp"
#include "parallel/mpiio/library.hpp"

namespace pario::mpiio {
namespace {

constexpr std::size_t kLongestName = 128;  // MPI_MAX_DATAREP_STRING

struct Registry {
  std::mutex mutex;
  std::map<std::string, Representation> by_name;
  Registry() {
    by_name["native"] = {.name = "native"};
    by_name["internal"] = {.name = "internal"};
    by_name["external32"] = {.kind = Representation::Kind::external32, .name = "external32"};
  }
};

Registry& registry() {
  static Registry& instance = *new Registry;
  return instance;
}

using Extent = int (*)(Word type, std::intptr_t* extent, Word extra);
using Convert = int (*)(Word buffer, Word type, std::int64_t count, void* file,
                        std::int64_t position, Word extra);

/// Converts all instances with the program's function; without one the bytes are packed unchanged.
bool convert(const Representation& representation, void* function, const void* buffer,
             std::int64_t count, Word type, std::byte* file) {
  return reinterpret_cast<Convert>(function)(reinterpret_cast<Word>(buffer), type, count, file, 0,
                                             representation.extra) == 0;
}

}  // namespace

const Representation* representation(const std::string& name) {
  auto& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.by_name.find(name);
  return found == all.by_name.end() ? nullptr : &found->second;
}

const Representation& native() {
  static const Representation& instance = *representation("native");
  return instance;
}

std::uint64_t Representation::size_of(Word basic) const {
  std::intptr_t size = 0;
  if (kind == Kind::external32) return external_size(basic);
  reinterpret_cast<Extent>(extent)(basic, &size, extra);
  return static_cast<std::uint64_t>(size);
}

std::uint64_t size_in_file(Word type, const Representation& representation) {
  return representation.kind == Representation::Kind::external32
             ? external_size(type)
             : layout_in_file(type, representation).size();
}

bool encode(const Representation& to, const void* buffer, std::int64_t count, Word type,
            std::byte* packed, std::uint64_t size) {
  if (to.kind == Representation::Kind::external32) return to_external(buffer, count, type, packed);
  if (to.write) return convert(to, to.write, buffer, count, type, packed);
  pattern::Walker walker({.buffer = static_cast<std::byte*>(const_cast<void*>(buffer)),
                          .memory = layout_of(type),
                          .bytes = size});
  return walker.gather({0, size}, packed, {}) == size;
}

bool decode(const Representation& from, void* buffer, std::int64_t count, Word type,
            std::byte* packed, std::uint64_t size) {
  if (from.read) return convert(from, from.read, buffer, count, type, packed);
  pattern::Walker walker(
      {.buffer = static_cast<std::byte*>(buffer), .memory = layout_of(type), .bytes = size});
  return walker.scatter({0, size}, packed) == size;
}

Word register_datarep(const Call& call) {
  const auto* given = call.pointer<const char>(0);
  const std::string name = given ? given : "";
  if (name.empty() || name.size() >= kLongestName || !call[3])
    return raise(
        nullptr,
        refuse(k(MPI_ERR_ARG), call,
               "a representation needs a name of at most 127 characters and an extent function"));
  auto& all = registry();
  const std::lock_guard lock(all.mutex);
  if (all.by_name.contains(name))
    return raise(nullptr,
                 refuse(k(MPI_ERR_DUP_DATAREP), call, "\"" + name + "\" is registered already"));
  all.by_name[name] = {.kind = Representation::Kind::user,
                       .name = name,
                       .read = call.pointer<void>(1),
                       .write = call.pointer<void>(2),
                       .extent = call.pointer<void>(3),
                       .extra = call[4],
                       .large = call.large};
  return 0;
}

}  // namespace pario::mpiio
