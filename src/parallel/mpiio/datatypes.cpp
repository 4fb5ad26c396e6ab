#include "parallel/mpiio/datatypes.hpp"

#include <mutex>
#include <utility>

#include "core/base/base.hpp"
#include "parallel/mpiio/contents.hpp"
#include "parallel/mpiio/library.hpp"
#include "parallel/mpiio/named_types.hpp"

namespace pario::mpiio {
namespace {

using pattern::TypeMap;
using Part = std::pair<std::int64_t, TypeMap>;

/// Builds the layout of a type from its constructors. In a file that is not native, predefined
/// types have their size in the file, and all extents follow from it.
class Builder {
 public:
  explicit Builder(const Representation& representation) : representation_(representation) {}
  TypeMap build(Word type) const;

 private:
  TypeMap combine(const Contents& contents) const;
  TypeMap basic(Word type) const;
  TypeMap basic_in_memory(Word type) const;
  TypeMap pair(const Contents& contents, Word type) const;
  TypeMap structure(const Contents& contents) const;
  TypeMap subarray(const Contents& contents) const;
  TypeMap darray(const Contents& contents) const;
  TypeMap with_bounds_of(Word type, TypeMap layout) const;

  const Representation& representation_;
};

TypeMap run(const TypeMap& of, std::int64_t count) {
  return TypeMap::repeat(of, static_cast<std::uint64_t>(count), of.extent());
}

TypeMap at(std::int64_t displacement, const TypeMap& layout) {
  const Part part{displacement, layout};
  return TypeMap::sequence({&part, 1});
}

/// Returns blocks of `lengths[i]` (or all of `length`) copies at displacements times `unit`.
TypeMap blocks(const TypeMap& of, std::int64_t count, const std::int64_t* lengths,
               std::int64_t length, const std::int64_t* displacements, std::int64_t unit) {
  const auto all = static_cast<std::size_t>(count);
  std::vector<std::int64_t> places(displacements, displacements + all);
  for (std::int64_t& place : places) place *= unit;
  std::vector<std::uint64_t> copies(1, static_cast<std::uint64_t>(length));
  if (lengths) copies.assign(lengths, lengths + all);
  return TypeMap::make_indexed(of, places, copies);
}

TypeMap vector(const TypeMap& of, const std::vector<std::int64_t>& n, std::int64_t unit) {
  return TypeMap::repeat(run(of, n[1]), static_cast<std::uint64_t>(n[0]), n[2] * unit);
}

TypeMap make_indexed(const TypeMap& of, const std::vector<std::int64_t>& n, std::int64_t unit) {
  return blocks(of, n[0], n.data() + 1, 0, n.data() + 1 + n[0], unit);
}

TypeMap indexed_block(const TypeMap& of, const std::vector<std::int64_t>& n, std::int64_t unit) {
  return blocks(of, n[0], nullptr, n[1], n.data() + 2, unit);
}

TypeMap Builder::basic_in_memory(Word type) const {
  std::int64_t size = 0;
  std::intptr_t lower = 0, extent = 0;
  lib().type_size(type, &size);
  lib().type_extent(type, &lower, &extent);
  if (size <= 4 || size == extent)
    return TypeMap::block(static_cast<std::uint64_t>(size)).with_extent(lower, extent);
  // A value and an int with a gap between or after them: MPI_SHORT_INT, MPI_DOUBLE_INT, ...
  const std::int64_t value = size - 4, index = static_cast<std::int64_t>(
                                           base::round_up(static_cast<std::uint64_t>(value), 4));
  const Part parts[] = {{0, TypeMap::block(static_cast<std::uint64_t>(value))},
                        {index, TypeMap::block(4)}};
  return TypeMap::sequence(parts).with_extent(lower, extent);
}

TypeMap Builder::basic(Word type) const {
  return representation_.native() ? basic_in_memory(type)
                                  : TypeMap::block(representation_.size_of(type));
}

/// Takes extents in memory from the MPI: structures have padding that only the MPI knows.
TypeMap Builder::with_bounds_of(Word type, TypeMap layout) const {
  if (!representation_.native()) return layout;
  std::intptr_t lower = 0, extent = 0;
  lib().type_extent(type, &lower, &extent);
  if (layout.lower() == lower && layout.extent() == extent) return layout;
  return layout.with_extent(lower, extent);
}

/// Returns the layout of a type made of one other type.
TypeMap repeat_layout(int combiner, const TypeMap& of, const std::vector<std::int64_t>& n) {
  if (combiner == k(MPI_COMBINER_CONTIGUOUS)) return run(of, n[0]);
  if (combiner == k(MPI_COMBINER_VECTOR)) return vector(of, n, of.extent());
  if (combiner == k(MPI_COMBINER_HVECTOR) || combiner == k(MPI_COMBINER_HVECTOR_INTEGER))
    return vector(of, n, 1);
  if (combiner == k(MPI_COMBINER_INDEXED)) return make_indexed(of, n, of.extent());
  if (combiner == k(MPI_COMBINER_HINDEXED) || combiner == k(MPI_COMBINER_HINDEXED_INTEGER))
    return make_indexed(of, n, 1);
  if (combiner == k(MPI_COMBINER_INDEXED_BLOCK)) return indexed_block(of, n, of.extent());
  if (combiner == k(MPI_COMBINER_HINDEXED_BLOCK)) return indexed_block(of, n, 1);
  if (combiner == k(MPI_COMBINER_RESIZED)) return of.with_extent(n[0], n[1]);
  return of;
}

TypeMap Builder::build(Word type) const {
  const Contents contents(type);
  if (contents.types().empty() && is_named(type)) return basic(type);
  if (contents.combiner() == k(MPI_COMBINER_VALUE_INDEX)) return pair(contents, type);
  return with_bounds_of(type, combine(contents));
}

TypeMap Builder::combine(const Contents& contents) const {
  const auto& n = contents.numbers();
  const int combiner = contents.combiner();
  if (contents.types().empty()) return {};
  if (combiner == k(MPI_COMBINER_STRUCT) || combiner == k(MPI_COMBINER_STRUCT_INTEGER))
    return structure(contents);
  if (combiner == k(MPI_COMBINER_SUBARRAY)) return subarray(contents);
  if (combiner == k(MPI_COMBINER_DARRAY)) return darray(contents);
  return repeat_layout(combiner, build(contents.types()[0]), n);
}

/// MPI_Type_get_value_index: a structure of two values.
TypeMap Builder::pair(const Contents& contents, Word type) const {
  if (contents.types().size() < 2) return basic(type);
  const TypeMap value = build(contents.types()[0]), index = build(contents.types()[1]);
  const auto place = base::round_up(value.size(), std::max<std::uint64_t>(index.size(), 1));
  const Part parts[] = {{0, value}, {static_cast<std::int64_t>(place), index}};
  return with_bounds_of(type, TypeMap::sequence(parts));
}

TypeMap Builder::structure(const Contents& contents) const {
  const auto& n = contents.numbers();
  const std::int64_t count = n[0];
  std::vector<Part> parts;
  for (std::int64_t i = 0; i < count; ++i) {
    const Word type = contents.types()[static_cast<std::size_t>(i)];
    if (n[1 + i] > 0) parts.emplace_back(n[1 + count + i], run(build(type), n[1 + i]));
  }
  return TypeMap::sequence(parts);
}

/// Returns dimension number `step`, beginning with the one that varies fastest.
std::int64_t dimension(std::int64_t step, std::int64_t dimensions, std::int64_t order) {
  return order == k(MPI_ORDER_C) ? dimensions - 1 - step : step;
}

TypeMap Builder::subarray(const Contents& contents) const {
  const auto& n = contents.numbers();
  const std::int64_t dimensions = n[0];
  const bool large =
      contents.integers() == 2;  // {dimensions, order}, and the sizes as large counts
  const std::int64_t* const sizes = n.data() + (large ? 2 : 1);
  const std::int64_t *const subsizes = sizes + dimensions, *const starts = subsizes + dimensions;
  const std::int64_t order = large ? n[1] : n[1 + 3 * dimensions];
  const TypeMap of = build(contents.types()[0]);
  TypeMap layout = of;
  std::int64_t stride = of.extent(), start = 0;
  for (std::int64_t step = 0; step < dimensions; ++step) {
    const auto d = dimension(step, dimensions, order);
    layout = TypeMap::repeat(layout, static_cast<std::uint64_t>(subsizes[d]), stride);
    start += starts[d] * stride;
    stride *= sizes[d];
  }
  return at(start, layout).with_extent(0, stride);
}

/// One dimension of a distributed array.
struct Distribution {
  std::int64_t size, kind, argument, processes, coordinate;

  std::int64_t block() const {
    if (kind == k(MPI_DISTRIBUTE_NONE)) return size;
    if (argument != k(MPI_DISTRIBUTE_DFLT_DARG)) return argument;
    return kind == k(MPI_DISTRIBUTE_BLOCK) ? (size + processes - 1) / processes : 1;
  }
  /// This process's part if neighbouring indices are `stride` bytes apart.
  TypeMap part(const TypeMap& of, std::int64_t stride) const {
    const std::int64_t width = block(),
                       first = kind == k(MPI_DISTRIBUTE_NONE) ? 0 : coordinate * width;
    if (width <= 0 || first >= size) return {};
    const std::int64_t cycle = kind == k(MPI_DISTRIBUTE_CYCLIC) ? processes * width : size;
    const std::int64_t whole = size - first < width ? 0 : (size - first - width) / cycle + 1;
    std::vector<Part> parts;
    const auto blocks_of = [&](std::int64_t copies) {
      return TypeMap::repeat(of, static_cast<std::uint64_t>(copies), stride);
    };
    if (whole > 0)
      parts.emplace_back(
          first * stride,
          TypeMap::repeat(blocks_of(width), static_cast<std::uint64_t>(whole), cycle * stride));
    const std::int64_t rest = first + whole * cycle;
    if ((cycle < size || whole == 0) && rest < size)
      parts.emplace_back(rest * stride, blocks_of(std::min(width, size - rest)));
    return TypeMap::sequence(parts);
  }
};

TypeMap Builder::darray(const Contents& contents) const {
  const auto& n = contents.numbers();
  const std::int64_t dimensions = n[2];
  const bool large = static_cast<std::int64_t>(contents.integers()) == 4 + 3 * dimensions;
  const std::int64_t* const sizes = n.data() + (large ? 4 + 3 * dimensions : 3);
  const std::int64_t* const kinds = n.data() + 3 + (large ? 0 : dimensions);
  const std::int64_t *const arguments = kinds + dimensions, *const processes =
                                                                arguments + dimensions;
  const std::int64_t order = processes[dimensions];
  std::vector<std::int64_t> coordinates(static_cast<std::size_t>(dimensions));
  std::int64_t rank = n[1];
  for (std::int64_t d = dimensions - 1; d >= 0;
       --d) {  // the grid of processes is always in C order
    coordinates[static_cast<std::size_t>(d)] = rank % processes[d];
    rank /= processes[d];
  }
  const TypeMap of = build(contents.types()[0]);
  TypeMap layout = of;
  std::int64_t stride = of.extent();
  for (std::int64_t step = 0; step < dimensions; ++step) {
    const auto d = dimension(step, dimensions, order);
    layout = Distribution{sizes[d], kinds[d], arguments[d], processes[d],
                          coordinates[static_cast<std::size_t>(d)]}
                 .part(layout, stride);
    stride *= sizes[d];
  }
  return layout.with_extent(0, stride);
}

NamedTypes<TypeMap>& named_layouts() {
  static auto& instance = *new NamedTypes<TypeMap>;  // never destroyed: destructors call MPI, too
  return instance;
}

// ---- layouts kept as an attribute of their type, which frees them with the type

int copy_kept(Word, int, Word, const TypeMap* kept, const TypeMap** copy, int* copied) {
  *copy = new TypeMap(*kept);
  *copied = 1;
  return 0;
}

int drop_kept(Word, int, const TypeMap* kept, Word) {
  delete kept;
  return 0;
}

int keyval() {
  static int value = 0;
  static std::once_flag once;
  std::call_once(once, [] {
    lib().type_create_keyval(reinterpret_cast<void*>(copy_kept), reinterpret_cast<void*>(drop_kept),
                             &value, nullptr);
  });
  return value;
}

const TypeMap* kept_layout(Word type) {
  const TypeMap* kept = nullptr;
  int found = 0;
  return lib().type_get_attr(type, keyval(), static_cast<void*>(&kept), &found) == 0 && found
             ? kept
             : nullptr;
}

void keep_layout(Word type, const TypeMap& layout) {
  if (combiner_of(type) == k(MPI_COMBINER_NAMED))
    return named_layouts().add(lib().handle(type), layout);
  if (is_named(type)) return;  // made by a program: its handle may be used again
  auto* keep = new TypeMap(layout);
  if (lib().type_set_attr(type, keyval(), keep) != 0) delete keep;
}

/// A communicator of this process alone that returns errors.
Word quiet_communicator() {
  static Word comm = 0;
  static std::once_flag once;
  std::call_once(once, [] {
    if (lib().comm_dup(lib().comm_self, &comm) == 0)
      lib().comm_set_errhandler(comm, h(MPI_ERRORS_RETURN));
  });
  return comm;
}

}  // namespace

const TypeMap* known_layout(Word type) {
  const TypeMap* const named = named_layouts().find(lib().handle(type));
  return named ? named : kept_layout(type);
}

/// True if a type is committed. MPI has no such function; packing no element succeeds only for a
/// committed type. Without MPI_COMM_SELF the check is impossible.
bool is_committed(Word type) {
  if (known_layout(type) || is_named(type) || !has_world()) return true;
  std::byte nothing[8];
  int position = 0, error_class = 0;
  const int result =
      lib().pack(nothing, 0, type, nothing, sizeof nothing, &position, quiet_communicator());
  return result == 0 || lib().error_class(result, &error_class) != 0 ||
         error_class != k(MPI_ERR_TYPE);
}

TypeMap layout_of(Word type) {
  if (const TypeMap* known = known_layout(type)) return *known;
  TypeMap layout = Builder(native()).build(type);
  keep_layout(type, layout);
  return layout;
}

std::optional<TypeMap> layout_if_committed(Word type) {
  if (const TypeMap* known = known_layout(type)) return *known;
  return is_committed(type) ? std::optional(layout_of(type)) : std::nullopt;
}

TypeMap layout_in_file(Word type, const Representation& representation) {
  return representation.native() ? layout_of(type) : Builder(representation).build(type);
}

Word retain_type(Word type) {
  Word kept = 0;
  if (is_named(type)) return lib().handle(type);
  lib().type_dup(type, &kept);
  return lib().handle(kept);
}

void release_type(Word type) {
  if (type != 0 && !is_named(type)) lib().type_free(&type);
}

}  // namespace pario::mpiio
