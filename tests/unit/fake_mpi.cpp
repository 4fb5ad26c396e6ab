#include "fake_mpi.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

namespace pario::fake {
namespace {

constexpr Word kFirst =
    0xcc000000;  // pattern of MPICH's derived types; plain types contain their size
constexpr Word kDoubleInt = 0x8c000001, kShortInt = 0x8c000003;

std::vector<Type> derived;
std::map<std::pair<Word, int>, void*> attributes;
int borrowed_handles = 0, contents_calls = 0;

bool is_derived(Word type) { return static_cast<std::uint32_t>(type) >= kFirst; }
const Type& of(Word type) { return derived[static_cast<std::uint32_t>(type) - kFirst]; }

int size_of(Word type) {
  if (static_cast<std::uint32_t>(type) == kDoubleInt) return 12;
  if (static_cast<std::uint32_t>(type) == kShortInt) return 6;
  return static_cast<int>(type >> 8 & 0xff);
}

std::intptr_t extent_of(Word type) {
  if (static_cast<std::uint32_t>(type) == kDoubleInt) return 16;
  return static_cast<std::uint32_t>(type) == kShortInt ? 8 : size_of(type);
}

}  // namespace

Word make(Type type) {
  derived.push_back(std::move(type));
  return kFirst + derived.size() - 1;
}

int count_borrowed() { return borrowed_handles; }
int looks() { return contents_calls; }

extern "C" {

int PMPI_Get_library_version(char* text, int* length) {
  std::strcpy(text, "MPICH of the tests");
  *length = static_cast<int>(std::strlen(text));
  return 0;
}

int PMPI_Initialized(int* flag) {
  *flag = 1;
  return 0;
}

int PMPI_Type_size_x(Word type, std::int64_t* size) {
  *size = size_of(type);
  return 0;
}

int PMPI_Type_get_extent(Word type, std::intptr_t* lower, std::intptr_t* extent) {
  *lower = is_derived(type) ? of(type).lower : 0;
  *extent = is_derived(type) ? of(type).extent : extent_of(type);
  return 0;
}

int PMPI_Type_get_envelope_c(Word type, std::int64_t* integers, std::int64_t* addresses,
                             std::int64_t* counts, std::int64_t* types, int* combiner) {
  *integers = *addresses = *counts = *types = 0;
  *combiner = 1;  // MPI_COMBINER_NAMED
  if (!is_derived(type)) return 0;
  const Type& made = of(type);
  *integers = static_cast<std::int64_t>(made.integers.size());
  *addresses = static_cast<std::int64_t>(made.addresses.size());
  *counts = static_cast<std::int64_t>(made.counts.size());
  *types = static_cast<std::int64_t>(made.types.size());
  *combiner = made.combiner;
  return 0;
}

int PMPI_Type_get_contents_c(Word type, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                             int* integers, std::intptr_t* addresses, std::int64_t* counts,
                             void* types) {
  const Type& made = of(type);
  std::ranges::copy(made.integers, integers);
  std::ranges::copy(made.addresses, addresses);
  std::ranges::copy(made.counts, counts);
  for (std::size_t i = 0; i < made.types.size(); ++i) {
    static_cast<std::uint32_t*>(types)[i] = static_cast<std::uint32_t>(made.types[i]);
    borrowed_handles += is_derived(made.types[i]);
  }
  ++contents_calls;
  return 0;
}

int PMPI_Type_free(Word*) {
  --borrowed_handles;
  return 0;
}

int PMPI_Type_create_keyval(void*, void*, int* keyval, void*) {
  *keyval = 7;
  return 0;
}

int PMPI_Type_set_attr(Word type, int keyval, void* value) {
  attributes[{type, keyval}] = value;
  return 0;
}

int PMPI_Type_get_attr(Word type, int keyval, void* value, int* found) {
  const auto place = attributes.find({type, keyval});
  *found = place != attributes.end();
  if (*found != 0) *static_cast<void**>(value) = place->second;
  return 0;
}

}  // extern "C"

}  // namespace pario::fake
