#include "observe/pmpi/weak.hpp"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <unordered_set>

#include "observe/pmpi/library.hpp"

#define PARIO_DECLARE(symbol) extern "C" pario::pmpi::Word symbol();
#define PARIO_DECLARE_LARGE_0(name)
#define PARIO_DECLARE_LARGE_1(name) PARIO_DECLARE(MPI_##name##_c) PARIO_DECLARE(PMPI_##name##_c)
#define PARIO_MPI(name, args, large, ...) \
  PARIO_DECLARE(MPI_##name) PARIO_DECLARE(PMPI_##name) PARIO_DECLARE_LARGE_##large(name)
#define PARIO_MPI_FILE PARIO_MPI
#define PARIO_MPI_QUIET PARIO_MPI
#include "observe/pmpi/functions.def"
#undef PARIO_MPI

namespace pario::pmpi {
namespace {

#if defined(__x86_64__)
bool is_address_slot(unsigned long type) {
  return type == R_X86_64_GLOB_DAT || type == R_X86_64_64;
}
#elif defined(__aarch64__)
bool is_address_slot(unsigned long type) {
  return type == R_AARCH64_GLOB_DAT || type == R_AARCH64_ABS64;
}
#endif

using Addresses = std::unordered_set<Word>;

/// The addresses of the definitions for which the MPI has no function.
Addresses find_missing() {
  Addresses result;
  const auto look = [&](Id id, Variant variant, Word (*definition)()) {
    if (!real(id, variant)) result.insert(reinterpret_cast<Word>(definition));
  };
#define PARIO_LOOK_LARGE_0(name)
#define PARIO_LOOK_LARGE_1(name)                  \
  look(Id::name, Variant::large, MPI_##name##_c); \
  look(Id::name, Variant::profiling_large, PMPI_##name##_c);
#define PARIO_MPI(name, args, large, ...)          \
  look(Id::name, Variant::plain, MPI_##name);      \
  look(Id::name, Variant::profiling, PMPI_##name); \
  PARIO_LOOK_LARGE_##large(name)
#include "observe/pmpi/functions.def"
#undef PARIO_MPI
#undef PARIO_MPI_FILE
#undef PARIO_MPI_QUIET
  return result;
}

/// The parts of a loaded object that this file uses.
struct Object {
  ElfW(Addr) base = 0, read_only_begin = 0, read_only_end = 0;
  const ElfW(Sym) * symbols = nullptr;
  const ElfW(Rela) * relocations = nullptr;
  std::size_t relocation_count = 0;
};

void read_dynamic(Object& object, const ElfW(Dyn) * entry) {
  const auto absolute = [&](ElfW(Addr) value) {
    return value < object.base ? value + object.base : value;
  };
  for (; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_SYMTAB)
      object.symbols = reinterpret_cast<const ElfW(Sym)*>(absolute(entry->d_un.d_ptr));
    if (entry->d_tag == DT_RELA)
      object.relocations = reinterpret_cast<const ElfW(Rela)*>(absolute(entry->d_un.d_ptr));
    if (entry->d_tag == DT_RELASZ) object.relocation_count = entry->d_un.d_val / sizeof(ElfW(Rela));
  }
}

Object describe(const dl_phdr_info& info) {
  Object object{.base = info.dlpi_addr};
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const auto& header = info.dlpi_phdr[i];
    if (header.p_type == PT_GNU_RELRO) {
      object.read_only_begin = info.dlpi_addr + header.p_vaddr;
      object.read_only_end = object.read_only_begin + header.p_memsz;
    }
    if (header.p_type == PT_DYNAMIC)
      read_dynamic(object, reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + header.p_vaddr));
  }
  return object;
}

void clear(const Object& object, Word* slot) {
  const auto page_size = static_cast<Word>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<Word>(slot);
  void* const page = reinterpret_cast<void*>(address & ~(page_size - 1));
  const bool read_only = address >= object.read_only_begin && address < object.read_only_end;
  if (read_only && mprotect(page, page_size, PROT_READ | PROT_WRITE) != 0) return;
  *slot = 0;
  if (read_only) mprotect(page, page_size, PROT_READ);
}

int clear_object(dl_phdr_info* info, std::size_t, void* data) {
  const auto& addresses = *static_cast<const Addresses*>(data);
  const Object object = describe(*info);
  if (!object.symbols || !object.relocations) return 0;
  for (std::size_t i = 0; i < object.relocation_count; ++i) {
    const auto& relocation = object.relocations[i];
    if (!is_address_slot(ELF64_R_TYPE(relocation.r_info))) continue;
    const auto& symbol = object.symbols[ELF64_R_SYM(relocation.r_info)];
    if (symbol.st_shndx != SHN_UNDEF || ELF64_ST_BIND(symbol.st_info) != STB_WEAK) continue;
    auto* slot = reinterpret_cast<Word*>(object.base + relocation.r_offset);
    if (addresses.contains(*slot)) clear(object, slot);
  }
  return 0;
}

}  // namespace

void restore_weak_references() {
  Addresses addresses = find_missing();
  if (!addresses.empty()) dl_iterate_phdr(clear_object, &addresses);
}

}  // namespace pario::pmpi
