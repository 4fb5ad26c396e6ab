#include "core/layout/layout.hpp"

#include <algorithm>
#include <initializer_list>
#include <iterator>

namespace pario::layout {
namespace {

constexpr Traits kTraits[] = {
#define PARIO_FILE_SYSTEM(kind, coherent, locks, cyclic, unit, network, mounts, attribute, ...) \
  {#kind, coherent, locks, cyclic, unit, network, mounts, attribute},
#include "core/layout/layout.def"
#undef PARIO_FILE_SYSTEM
};

bool has_magic(std::initializer_list<std::uint64_t> magics, std::uint64_t magic) {
  return std::ranges::find(magics, magic) != magics.end();
}

static_assert(std::size(kTraits) == kKinds, "the last row is unknown");

bool has_word(std::string_view words, std::string_view word) {
  while (!words.empty())
    if (base::cut(words, ' ') == word) return true;
  return false;
}

}  // namespace

const Traits& traits(Kind kind) { return kTraits[static_cast<std::size_t>(kind)]; }

Kind kind_of_magic(std::uint64_t statfs_type) {
  const std::uint64_t magic =
      statfs_type & 0xFFFFFFFF;  // f_type is signed: high bits may be copies of the sign
#define PARIO_FILE_SYSTEM(kind, coherent, locks, cyclic, unit, network, mounts, attribute, ...) \
  if (has_magic({__VA_ARGS__}, magic)) return Kind::kind;
#include "core/layout/layout.def"
#undef PARIO_FILE_SYSTEM
  return Kind::unknown;
}

Kind kind_of_name(std::string_view name) {
  const auto* found = std::ranges::find(
      kTraits, name, [](const Traits& row) { return std::string_view(row.name); });
  return found == std::end(kTraits) ? Kind::unknown
                                    : static_cast<Kind>(found - std::begin(kTraits));
}

const Traits* find_mount_traits(std::string_view name) {
  const auto* found =
      std::ranges::find_if(kTraits, [&](const Traits& row) { return has_word(row.mounts, name); });
  return found == std::end(kTraits) ? nullptr : found;
}

bool is_network(std::string_view name) {
  const Traits* traits = find_mount_traits(name);
  return traits != nullptr ? traits->network : name.starts_with("fuse");
}

}  // namespace pario::layout
