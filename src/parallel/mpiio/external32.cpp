#include "parallel/mpiio/external32.hpp"

#include <algorithm>
#include <cfloat>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "parallel/mpiio/contents.hpp"
#include "parallel/mpiio/datatypes.hpp"
#include "parallel/mpiio/library.hpp"
#include "parallel/mpiio/named_types.hpp"

namespace pario::mpiio {
namespace {

#if LDBL_MANT_DIG == 64
__extension__ using Quad = __float128;
#else
using Quad = long double;
#endif

/// The conversion of a value besides its byte order: none, a change of size with or without a sign,
/// or a change of format.
enum class Kind : std::uint8_t { same, integer, natural, quad };

/// One value in memory and in the file.
struct Form {
  Kind kind = Kind::same;
  std::uint64_t memory = 0, file = 0;
};

/// A type as a sequence of values: `children` with the number of each, or one value.
struct Signature {
  Form form = {};
  std::uint64_t memory = 0, file = 0;  ///< bytes of the whole type
  std::vector<std::pair<Signature, std::uint64_t>> children = {};

  void add(Signature child, std::uint64_t copies) {
    memory += child.memory * copies;
    file += child.file * copies;
    children.emplace_back(std::move(child), copies);
  }
};

Signature value(Form form) { return {.form = form, .memory = form.memory, .file = form.file}; }

/// Predefined types whose values have another form or size in the file: form, and values per
/// instance.
struct Special {
  mpi::Handle name;
  Kind kind;
  std::uint64_t file;  ///< bytes of a value in the file; 0: as in memory
  std::uint64_t count;
};
constexpr Special kSpecial[] = {
    {MPI_LONG, Kind::integer, 4, 1},
    {MPI_UNSIGNED_LONG, Kind::natural, 4, 1},
    {MPI_WCHAR, Kind::natural, 2, 1},
    {MPI_LONG_DOUBLE, Kind::quad, 16, 1},
    {MPI_C_LONG_DOUBLE_COMPLEX, Kind::quad, 16, 2},
    {MPI_CXX_LONG_DOUBLE_COMPLEX, Kind::quad, 16, 2},
    {MPI_C_FLOAT_COMPLEX, Kind::same, 0, 2},
    {MPI_C_DOUBLE_COMPLEX, Kind::same, 0, 2},
    {MPI_CXX_FLOAT_COMPLEX, Kind::same, 0, 2},
    {MPI_CXX_DOUBLE_COMPLEX, Kind::same, 0, 2},
    {MPI_COMPLEX, Kind::same, 0, 2},
    {MPI_DOUBLE_COMPLEX, Kind::same, 0, 2},
    {MPI_COMPLEX4, Kind::same, 0, 2},
    {MPI_COMPLEX8, Kind::same, 0, 2},
    {MPI_COMPLEX16, Kind::same, 0, 2},
    {MPI_COMPLEX32, Kind::same, 0, 2},
    {MPI_2INT, Kind::same, 0, 2},
    {MPI_2REAL, Kind::same, 0, 2},
    {MPI_2DOUBLE_PRECISION, Kind::same, 0, 2},
    {MPI_2INTEGER, Kind::same, 0, 2},
};

/// Pairs of a value and an int; MPI has no query that identifies them.
constexpr std::pair<mpi::Handle, mpi::Handle> kPairs[] = {
    {MPI_FLOAT_INT, MPI_FLOAT}, {MPI_DOUBLE_INT, MPI_DOUBLE},           {MPI_LONG_INT, MPI_LONG},
    {MPI_SHORT_INT, MPI_SHORT}, {MPI_LONG_DOUBLE_INT, MPI_LONG_DOUBLE},
};

std::uint64_t size_in_memory(Word type) {
  std::int64_t size = 0;
  lib().type_size(type, &size);
  return static_cast<std::uint64_t>(size);
}

Signature values_of(Word basic, const Special& special) {
  const std::uint64_t memory = size_in_memory(basic) / special.count;
  const bool same_size =
      special.kind != Kind::quad && (special.file == 0 || special.file >= memory);
  Signature all;
  all.add(value({same_size ? Kind::same : special.kind, memory, same_size ? memory : special.file}),
          special.count);
  return all;
}

Signature signature_of_basic(Word basic) {
  const Word handle = lib().handle(basic);
  for (const auto& special : kSpecial) {
    if (handle == h(special.name)) return values_of(basic, special);
  }
  for (const auto& [name, first] : kPairs) {
    if (handle != h(name)) continue;
    Signature pair;
    pair.add(signature_of_basic(h(first)), 1);
    pair.add(signature_of_basic(h(MPI_INT)), 1);
    return pair;
  }
  return values_of(basic, {MPI_BYTE, Kind::same, 0,
                           combiner_of(basic) == k(MPI_COMBINER_F90_COMPLEX) ? 2u : 1u});
}

Signature signature_of(Word type) {
  const Contents contents(type);
  const auto& types = contents.types();
  if (types.empty()) return is_named(type) ? signature_of_basic(type) : Signature{};
  const int combiner = contents.combiner();
  const bool structure =
      combiner == k(MPI_COMBINER_STRUCT) || combiner == k(MPI_COMBINER_STRUCT_INTEGER);
  Signature all;
  for (std::size_t i = 0; i < types.size(); ++i) {
    Signature child = signature_of(types[i]);
    std::uint64_t copies = structure ? static_cast<std::uint64_t>(contents.numbers()[1 + i]) : 1;
    if (!structure && combiner != k(MPI_COMBINER_VALUE_INDEX))
      copies = size_in_memory(type) / std::max<std::uint64_t>(child.memory, 1);
    if (child.memory != 0 && copies != 0) all.add(std::move(child), copies);
  }
  return all;
}

/// Returns the byte that extends a number to its larger size.
std::byte filler(Kind kind, std::byte highest) {
  return kind == Kind::integer && (highest & std::byte{0x80}) != std::byte{} ? std::byte{0xff}
                                                                             : std::byte{};
}

bool write_value(const Form& form, const std::byte* memory, std::byte* file) {
  if (form.kind == Kind::quad) {
    long double wide = 0;
    std::memcpy(&wide, memory, sizeof wide);
    const Quad quad = wide;
    const auto* const bytes = reinterpret_cast<const std::byte*>(&quad);
    std::reverse_copy(bytes, bytes + sizeof quad, file);
    return true;
  }
  std::reverse_copy(memory, memory + form.file, file);
  const std::byte fill = filler(form.kind, file[0]);
  return std::all_of(memory + form.file, memory + form.memory,
                     [&](std::byte byte) { return byte == fill; });
}

bool read_value(const Form& form, std::byte* memory, const std::byte* file) {
  if (form.kind == Kind::quad) {
    Quad quad = 0;
    std::reverse_copy(file, file + sizeof quad, reinterpret_cast<std::byte*>(&quad));
    const auto wide = static_cast<long double>(quad);
    std::memcpy(memory, &wide, sizeof wide);
    return true;
  }
  std::reverse_copy(file, file + form.file, memory);
  std::fill(memory + form.file, memory + form.memory, filler(form.kind, file[0]));
  return true;
}

/// Reverses the bytes of numbers of 4 or 8 bytes.
template <class Number>
void reverse_numbers(const std::byte* from, std::byte* to, std::uint64_t count) {
  for (; count > 0; --count, from += sizeof(Number), to += sizeof(Number)) {
    Number number;
    std::memcpy(&number, from, sizeof number);
    if constexpr (sizeof number == 8)
      number = __builtin_bswap64(number);
    else
      number = __builtin_bswap32(number);
    std::memcpy(to, &number, sizeof number);
  }
}

/// Walks consecutive values in memory (without gaps) and in the file.
template <class Byte, class FileByte>
class Conversion {
 public:
  using Convert = bool (*)(const Form& form, Byte* memory, FileByte* file);
  Conversion(Convert convert, Byte* memory, FileByte* file, std::uint64_t bytes)
      : convert_(convert), memory_(memory), file_(file), left_(bytes) {}

  /// Converts the next values. False: the bytes end before, or a value cannot be converted.
  bool run(const Signature& signature, std::uint64_t copies) {
    const auto& children = signature.children;
    if (children.empty()) return convert_values(signature.form, copies);
    if (children.size() == 1) return run(children[0].first, copies * children[0].second);
    const auto convert_child = [&](const auto& child) { return run(child.first, child.second); };
    for (std::uint64_t copy = 0; copy < copies; ++copy) {
      if (!std::all_of(children.begin(), children.end(), convert_child)) return false;
    }
    return true;
  }
  Byte* memory() const { return memory_; }

 private:
  /// Converts all values at once, if they are complete and numbers of the same size in both.
  bool reverse_all(const Form& form, std::uint64_t count) {
    if (form.kind != Kind::same || (form.file != 4 && form.file != 8)) return false;
    if (count > left_ / form.file) return false;
    const auto reverse =
        form.file == 8 ? reverse_numbers<std::uint64_t> : reverse_numbers<std::uint32_t>;
    if constexpr (std::is_const_v<Byte>)
      reverse(memory_, file_, count);
    else
      reverse(file_, memory_, count);
    const std::uint64_t bytes = count * form.file;
    memory_ += bytes, file_ += bytes, left_ -= bytes;
    return true;
  }
  bool convert_values(const Form& form, std::uint64_t count) {
    if (reverse_all(form, count)) return true;
    for (std::uint64_t i = 0; i < count; ++i) {
      if (left_ < form.file || !convert_(form, memory_, file_)) return false;
      memory_ += form.memory, file_ += form.file, left_ -= form.file;
    }
    return true;
  }

  Convert convert_;
  Byte* memory_;
  FileByte* file_;
  std::uint64_t left_;
};

/// The signature of a type for the time of a call; those of predefined types are kept.
class KnownSignature {
 public:
  explicit KnownSignature(Word type) {
    static auto& kept = *new NamedTypes<Signature>;
    const Word handle = lib().handle(type);
    known_ = kept.find(handle);
    if (known_ != nullptr) return;
    made_ = signature_of(type);
    if (combiner_of(type) == k(MPI_COMBINER_NAMED)) kept.add(handle, made_);
  }
  const Signature& operator*() const { return known_ != nullptr ? *known_ : made_; }
  const Signature* operator->() const { return &**this; }

 private:
  const Signature* known_ = nullptr;
  Signature made_ = {};
};

/// The values of an access without the gaps of its memory.
using Values = std::unique_ptr<std::byte[]>;

/// Null: out of memory.
Values allocate_values(std::uint64_t bytes) { return Values(new (std::nothrow) std::byte[bytes]); }

}  // namespace

std::uint64_t external_size(Word type) { return KnownSignature(type)->file; }

bool to_external(const void* buffer, std::int64_t count, Word type, std::byte* file) {
  const KnownSignature known(type);
  const Signature& signature = *known;
  if (signature.children.empty()) return true;  // no values
  const pattern::TypeMap memory = layout_of(type);
  const auto copies = static_cast<std::uint64_t>(count), bytes = signature.memory * copies;
  const auto* values = static_cast<const std::byte*>(buffer);
  Values gathered;
  if (!memory.contiguous()) {
    gathered = allocate_values(bytes);
    if (!gathered) return false;
    pattern::Walker({.buffer = const_cast<std::byte*>(values), .memory = memory, .bytes = bytes})
        .gather({0, bytes}, gathered.get(), {});
    values = gathered.get();
  }
  return Conversion<const std::byte, std::byte>(write_value, values, file, signature.file * copies)
      .run(signature, copies);
}

std::uint64_t from_external(void* buffer, std::int64_t count, Word type, const std::byte* file,
                            std::uint64_t bytes) {
  const KnownSignature known(type);
  const Signature& signature = *known;
  if (signature.children.empty()) return 0;  // no values
  const pattern::TypeMap memory = layout_of(type);
  const auto copies = static_cast<std::uint64_t>(count);
  auto* const to = static_cast<std::byte*>(buffer);
  Values apart;
  if (!memory.contiguous()) {
    apart = allocate_values(signature.memory * copies);
    if (!apart) return 0;
  }
  std::byte* const values = apart ? apart.get() : to;
  Conversion<std::byte, const std::byte> conversion(read_value, values, file, bytes);
  conversion.run(signature, copies);
  const auto filled = static_cast<std::uint64_t>(conversion.memory() - values);
  if (apart)
    pattern::Walker({.buffer = to, .memory = memory, .bytes = filled}).scatter({0, filled}, values);
  return filled;
}

}  // namespace pario::mpiio
