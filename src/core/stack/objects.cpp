// The loaded objects, without the locks of the dynamic linker where it can (glibc 2.35).
#include <link.h>

#include <cstring>

#include "core/stack/stack.hpp"

extern "C" {
/// struct dl_find_object of <dlfcn.h>, which older C libraries lack.
struct pario_found_object {
  unsigned long long flags;
  void *begin, *end;
  link_map* map;
  void* unwind_table;
  unsigned long long reserved[16];
};
[[gnu::weak]] int pario_dl_find_object(void* address,
                                       pario_found_object* result) __asm__("_dl_find_object");
}

namespace pario::stack {
namespace {

/// A search by dl_iterate_phdr.
struct Search {
  std::uint64_t address;
  Object* object;
};

int look_at_object(dl_phdr_info* info, std::size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  Object found{.range = {~std::uint64_t{0}, 0}, .bias = info->dlpi_addr, .name = info->dlpi_name};
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) & part = info->dlpi_phdr[i];
    const std::uint64_t begin = info->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_GNU_EH_FRAME) found.unwind_table = reinterpret_cast<const void*>(begin);
    if (part.p_type != PT_LOAD) continue;
    if (begin < found.range.begin) found.range.begin = begin;
    if (begin + part.p_memsz > found.range.end) found.range.end = begin + part.p_memsz;
  }
  if (!found.range.contains(search.address)) return 0;
  *search.object = found;
  return 1;
}

/// Rounds a size in notes up to whole words.
std::size_t round_to_words(std::size_t size) { return (size + 3) / 4 * 4; }

/// Returns the build ID in a segment of notes.
std::span<const unsigned char> find_build_id(std::span<const unsigned char> notes) {
  while (notes.size() > sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes.data(), sizeof note);
    const std::size_t name = sizeof note, text = name + round_to_words(note.n_namesz);
    const std::size_t next = text + round_to_words(note.n_descsz);
    if (next > notes.size()) return {};
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        std::memcmp(notes.data() + name, "GNU", 4) == 0)
      return notes.subspan(text, note.n_descsz);
    notes = notes.subspan(next);
  }
  return {};
}

}  // namespace

bool find_object(std::uint64_t address, Object& object) {
  if (pario_dl_find_object == nullptr) {
    Search search{address, &object};
    return dl_iterate_phdr(look_at_object, &search) != 0;
  }
  pario_found_object found{};
  if (pario_dl_find_object(reinterpret_cast<void*>(address), &found) != 0) return false;
  object = {.range = {reinterpret_cast<std::uint64_t>(found.begin),
                      reinterpret_cast<std::uint64_t>(found.end)},
            .bias = found.map->l_addr,
            .name = found.map->l_name == nullptr ? "" : found.map->l_name,
            .unwind_table = found.unwind_table};
  return true;
}

std::span<const unsigned char> build_id_of(const Object& object) {
  const Range& range = object.range;
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(range.begin);
  if (!range.contains(range.begin, sizeof *header) ||
      std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
    return {};
  const std::uint64_t table = range.begin + header->e_phoff;
  if (!range.contains(table, header->e_phnum * sizeof(ElfW(Phdr)))) return {};
  const auto* parts = reinterpret_cast<const ElfW(Phdr)*>(table);
  for (int i = 0; i < header->e_phnum; ++i) {
    const std::uint64_t notes = object.bias + parts[i].p_vaddr;
    if (parts[i].p_type != PT_NOTE || !range.contains(notes, parts[i].p_memsz)) continue;
    const auto found =
        find_build_id({reinterpret_cast<const unsigned char*>(notes), parts[i].p_memsz});
    if (!found.empty()) return found;
  }
  return {};
}

}  // namespace pario::stack
