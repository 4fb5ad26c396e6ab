#include "layout/layout.hpp"

#include <algorithm>
#include <initializer_list>
#include <iterator>

namespace pario::layout {
namespace {

constexpr Traits kTraits[] = {
#define PARIO_FILE_SYSTEM(kind, coherent, locks, cyclic, unit, ...) {#kind, coherent, locks, cyclic, unit},
#include "layout/layout.def"
#undef PARIO_FILE_SYSTEM
};

bool has_magic(std::initializer_list<std::uint64_t> magics, std::uint64_t magic) {
  return std::ranges::find(magics, magic) != magics.end();
}

#define PARIO_FILE_SYSTEM(kind, ...) static_assert(std::string_view(kTraits[static_cast<std::size_t>(Kind::kind)].name) == #kind);
#include "layout/layout.def"
#undef PARIO_FILE_SYSTEM

}  // namespace

const Traits& traits(Kind kind) { return kTraits[static_cast<std::size_t>(kind)]; }

Kind kind_of_magic(std::uint64_t statfs_type) {
  const std::uint64_t magic = statfs_type & 0xFFFFFFFF;  // f_type is signed: high bits may be copies of the sign
#define PARIO_FILE_SYSTEM(kind, coherent, locks, cyclic, unit, ...) \
  if (has_magic({__VA_ARGS__}, magic)) return Kind::kind;
#include "layout/layout.def"
#undef PARIO_FILE_SYSTEM
  return Kind::unknown;
}

Kind kind_of_name(std::string_view name) {
  const auto* found = std::ranges::find(kTraits, name, [](const Traits& row) { return std::string_view(row.name); });
  return found == std::end(kTraits) ? Kind::unknown : static_cast<Kind>(found - std::begin(kTraits));
}

}  // namespace pario::layout
