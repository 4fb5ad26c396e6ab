#include "core/symbols/references.hpp"

#include <span>

#include "core/symbols/symbols.hpp"

namespace pario::symbols {
namespace {

/// The tables of the dynamic section that describe references.
struct Tables {
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  const ElfW(Half) * versions = nullptr;
  const ElfW(Verneed) * needed = nullptr;
  const ElfW(Rela) * relocations[2] = {};
  std::size_t relocation_bytes[2] = {};

  std::span<const ElfW(Rela)> relocations_in(int table) const {
    if (relocations[table] == nullptr) return {};
    return {relocations[table], relocation_bytes[table] / sizeof(ElfW(Rela))};
  }
};

template <class T>
const T* pointer(const link_map& object, ElfW(Addr) value) {
  return reinterpret_cast<const T*>(value < object.l_addr ? value + object.l_addr : value);
}

Tables tables_of(const link_map& object) {
  Tables tables;
  for (const ElfW(Dyn)* entry = object.l_ld; entry->d_tag != DT_NULL; ++entry) {
    const auto value = entry->d_un.d_ptr;
    switch (entry->d_tag) {
      case DT_SYMTAB:
        tables.symbols = pointer<ElfW(Sym)>(object, value);
        break;
      case DT_STRTAB:
        tables.names = pointer<char>(object, value);
        break;
      case DT_VERSYM:
        tables.versions = pointer<ElfW(Half)>(object, value);
        break;
      case DT_VERNEED:
        tables.needed = pointer<ElfW(Verneed)>(object, value);
        break;
      case DT_RELA:
        tables.relocations[0] = pointer<ElfW(Rela)>(object, value);
        break;
      case DT_JMPREL:
        tables.relocations[1] = pointer<ElfW(Rela)>(object, value);
        break;
      case DT_RELASZ:
        tables.relocation_bytes[0] = value;
        break;
      case DT_PLTRELSZ:
        tables.relocation_bytes[1] = value;
        break;
      default:
        break;
    }
  }
  return tables;
}

template <class T>
const T* at(const void* base, std::size_t distance) {
  return reinterpret_cast<const T*>(static_cast<const char*>(base) + distance);
}

/// Returns the name of a version number; empty if the object needs no version of that number.
const char* version_name(const Tables& tables, unsigned number) {
  for (const ElfW(Verneed)* file = tables.needed; file != nullptr;) {
    const auto* version = at<ElfW(Vernaux)>(file, file->vn_aux);
    for (unsigned i = 0; i < file->vn_cnt; ++i) {
      if ((version->vna_other & 0x7FFFu) == number) return tables.names + version->vna_name;
      version = at<ElfW(Vernaux)>(version, version->vna_next);
    }
    file = file->vn_next == 0 ? nullptr : at<ElfW(Verneed)>(file, file->vn_next);
  }
  return "";
}

/// Returns the version of a symbol that the object was linked with; empty: none.
const char* version_of(const Tables& tables, std::size_t symbol) {
  const unsigned number = tables.versions != nullptr ? tables.versions[symbol] & 0x7FFFu : 0;
  return number > 1 ? version_name(tables, number) : "";
}

template <class Accepts>
Reference find(const link_map& object, Accepts accepts) {
  const Tables tables = tables_of(object);
  if (tables.symbols == nullptr || tables.names == nullptr) return {};
  for (int table = 0; table < 2; ++table) {
    for (const ElfW(Rela) & relocation : tables.relocations_in(table)) {
      const std::size_t index = ELF64_R_SYM(relocation.r_info);
      const ElfW(Sym) & symbol = tables.symbols[index];
      const char* name = tables.names + symbol.st_name;
      if (index != 0 && symbol.st_shndx == SHN_UNDEF && accepts(name))
        return {name, version_of(tables, index)};
    }
  }
  return {};
}

}  // namespace

Reference find_reference(const link_map& object, std::string_view name) {
  return find(object, [&](std::string_view found) { return found == name; });
}

Reference find_reference(const link_map& object, bool (*accepts)(std::string_view)) {
  return find(object, accepts);
}

unsigned long long count_loadings() {
  unsigned long long count = 0;
  const auto read_count = [](dl_phdr_info* object, std::size_t, void* result) {
    *static_cast<unsigned long long*>(result) = object->dlpi_adds;
    return 1;
  };
  dl_iterate_phdr(read_count, &count);
  return count;
}

bool is_referenced(bool (*accepts)(std::string_view)) {
  struct Search {
    bool (*accepts)(std::string_view);
    bool found = false;
  } search{accepts};
  // The dynamic linker unloads no object during a call of dl_iterate_phdr.
  const auto look = [](dl_phdr_info*, std::size_t, void* argument) {
    auto& wanted = *static_cast<Search*>(argument);
    for (const link_map* map = _r_debug.r_map; map != nullptr && !wanted.found; map = map->l_next)
      wanted.found = find_reference(*map, wanted.accepts).name != nullptr;
    return 1;
  };
  dl_iterate_phdr(look, &search);
  return search.found;
}

}  // namespace pario::symbols
