#include "observe/netcdf/variables.hpp"

#include <algorithm>
#include <climits>

namespace pario::netcdf {
namespace {

using datasets::Extents;
using datasets::kMostDimensions;
using datasets::Object;
using datasets::Selection;

constexpr std::size_t kLongestName = 256, kMostOfAnyVariable = 1024;  // NC_MAX_NAME, ..._VAR_DIMS
constexpr int kMostFilters = 8;
constexpr int kNamedTypes = 11;
constexpr std::uint8_t kSizes[kNamedTypes + 1] = {0, 1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8};  // nc_type
constexpr const char* kLayouts[] = {"chunked", "contiguous", "compact"};  // NC_CHUNKED, ...
constexpr int kNetcdf4 = 3, kNetcdf4Classic = 4;                          // nc_inq_format

constinit datasets::Objects open_objects;

Word id_of(int file, int variable) {
  return static_cast<Word>(static_cast<unsigned>(file)) << 32 | static_cast<unsigned>(variable + 1);
}
constexpr int kNoVariable = -2;
Word id_of_file(int file) { return id_of(file, kNoVariable); }
bool is_variable(Word id) { return static_cast<int>(id) - 1 != kNoVariable; }

/// The name, type and dimensions of a variable.
struct Header {
  char name[kLongestName + 1] = {};
  int type = 0, rank = 0;
  int dimensions[kMostOfAnyVariable] = {};
};

bool read_header(const Library& library, int file, int variable, Header& header) {
  int attributes = 0;
  const int result = library.variable(file, variable, header.name, &header.type, &header.rank,
                                      header.dimensions, &attributes);
  return result == 0 && header.rank >= 0;
}

std::uint64_t size_of_element(const Library& library, int file, int type) {
  if (type > 0 && type <= kNamedTypes) return kSizes[type];
  char name[kLongestName + 1];
  std::size_t size = 0;
  return library.type != nullptr && library.type(file, type, name, &size) == 0 ? size : 0;
}

void read_lengths(const Library& library, int file, const int* dimensions, int rank,
                  Extents& lengths) {
  for (int i = 0; i < rank; ++i) {
    std::size_t length = 0;
    lengths[i] = library.length(file, dimensions[i], &length) == 0 ? length : 0;
  }
}

/// True if the variables of a file have a layout, and perhaps chunks and filters.
bool is_netcdf4(const Library& library, int file) {
  int format = 0;
  return library.format != nullptr && library.format(file, &format) == 0 &&
         (format == kNetcdf4 || format == kNetcdf4Classic);
}

/// Adds shuffle and deflate by name, and other filters by their numbers in HDF5.
void add_filters(const Library& library, int file, int variable, base::Json& json) {
  json.key("filters").begin_array();
  int shuffle = 0, deflate = 0, level = 0;
  if (library.deflate != nullptr &&
      library.deflate(file, variable, &shuffle, &deflate, &level) == 0) {
    if (shuffle != 0) json.value("shuffle");
    if (deflate != 0) json.value("deflate");
  }
  constexpr unsigned kDeflate = 1, kShuffle = 2;  // numbers of HDF5
  std::size_t number = 0;
  unsigned ids[kMostFilters] = {};
  if (library.filter_ids != nullptr && library.filter_ids(file, variable, &number, nullptr) == 0 &&
      number <= kMostFilters && library.filter_ids(file, variable, &number, ids) == 0)
    for (std::size_t i = 0; i < number; ++i)
      if (ids[i] != kDeflate && ids[i] != kShuffle) json.value(ids[i]);
  json.end_array();
}

/// Adds the size of the chunk cache, if the library reports it.
void add_chunk_cache(const Library& library, int file, int variable, base::Json& json) {
  std::size_t bytes = 0, slots = 0;
  float preemption = 0;
  if (library.chunk_cache != nullptr &&
      library.chunk_cache(file, variable, &bytes, &slots, &preemption) == 0)
    json.member("cache", bytes).member("slots", slots);
}

/// Adds layout, chunks, filters and the chunk cache of a variable of netCDF-4.
void add_storage(const Library& library, int file, int variable, Object& object, base::Json& json) {
  if (object.rank == 0 || library.chunking == nullptr || !is_netcdf4(library, file)) return;
  int storage = -1;
  std::size_t chunk[kMostDimensions] = {};
  if (library.chunking(file, variable, &storage, chunk) != 0) return;
  if (storage >= 0 && storage < static_cast<int>(std::size(kLayouts)))
    json.member("layout", kLayouts[storage]);
  object.is_chunked = storage == 0;
  if (!object.is_chunked) return;
  std::ranges::copy(chunk, object.chunk);
  datasets::add_extents(json, "chunk", object.chunk, object.rank);
  add_filters(library, file, variable, json);
  add_chunk_cache(library, file, variable, json);
}

/// Adds the path of a variable in its file.
void add_path(const Library& library, int file, const char* name, base::TextBuffer& path) {
  char group[PATH_MAX];
  std::size_t length = 0;
  if (library.group != nullptr) {
    if (library.group(file, &length, nullptr) == 0 && length < sizeof group &&
        library.group(file, &length, group) == 0)
      path.add(std::string_view(group, length));
    if (!path.view().ends_with('/')) path.add('/');
  }
  path.add(name);
}

/// Looks a variable up, and writes its note.
Object describe(const Library& library, int file, int variable) {
  Header header;
  trace::Record* const row = variables::find_file(library, file).record;
  if (row == nullptr || !read_header(library, file, variable, header)) return {};
  base::Text<PATH_MAX> path;
  add_path(library, file, header.name, path);
  Object object{.record = datasets::record_of_dataset(library.layer(), row, path.view()),
                .element = size_of_element(library, file, header.type),
                .rank = header.rank <= kMostDimensions ? header.rank : 0};
  if (object.record == nullptr) return object;
  Extents shape = {};
  read_lengths(library, file, header.dimensions, object.rank, shape);
  base::Text<2048> text;
  base::Json json(text);
  json.begin_object().member("note", "dataset").member("record", object.record->row);
  json.member("element", object.element);
  datasets::add_extents(json, "shape", shape, object.rank);
  add_storage(library, file, variable, object, json);
  json.end_object();
  if (text.complete()) datasets::note_once(json.view());
  return object;
}

int rank_of(const Library& library, int file, int variable, const Object& object) {
  int rank = object.rank;
  if (rank == 0) library.dimensions(file, variable, &rank);  // a scalar, or more than known
  return std::clamp(rank, 0, static_cast<int>(kMostOfAnyVariable));
}

std::uint64_t product(const std::size_t* counts, int rank) {
  std::uint64_t points = 1;
  for (int i = 0; counts != nullptr && i < rank; ++i) points *= counts[i];
  return points;
}

/// The corners of the box around a selection; each array of the call may be null.
struct Corners {
  Extents first = {}, last = {};
};

Corners corners_of(int rank, const std::size_t* start, const std::size_t* count,
                   const std::ptrdiff_t* stride) {
  Corners box;
  for (int i = 0; i < rank; ++i) {
    const std::uint64_t number = count != nullptr ? count[i] : 1;
    const std::uint64_t step = stride != nullptr ? static_cast<std::uint64_t>(stride[i]) : 1;
    box.first[i] = start != nullptr ? start[i] : 0;
    box.last[i] = box.first[i] + (number > 0 ? (number - 1) * step : 0);
  }
  return box;
}

/// Returns the lengths of a variable that is transferred as a whole, or one record of it.
std::uint64_t whole_points(const Library& library, const datasets::Call& call, Role role,
                           const Object& object, Corners& box) {
  const int file = static_cast<int>(call[0]), variable = static_cast<int>(call[1]);
  int dimensions[kMostOfAnyVariable] = {};
  const int rank = rank_of(library, file, variable, object);
  if (library.dimension_ids(file, variable, dimensions) != 0) return 0;
  std::uint64_t points = 1;
  for (int i = role == Role::fill ? 1 : 0; i < rank; ++i) {
    std::size_t length = 0;
    library.length(file, dimensions[i], &length);
    points *= length;
    if (i < object.rank) box.last[i] = length - (length != 0);
  }
  return points;
}

/// Returns the points of a call on several blocks. Without counts each has one.
std::uint64_t points_of_blocks(const datasets::Call& call, int rank) {
  const auto number = static_cast<int>(call[2]);
  const auto* counts = call.pointer<const std::size_t* const>(4);
  std::uint64_t points = 0;
  for (int i = 0; i < number; ++i)
    points += counts != nullptr && counts[i] != nullptr ? product(counts[i], rank) : 1;
  return points;
}

/// Sets the points, and returns true with their box if that is known.
bool read_selection(const Library& library, const datasets::Call& call, Role role,
                    const Object& object, Selection& selection, Corners& box) {
  const auto* start = call.pointer<const std::size_t>(2);
  const auto* count = call.pointer<const std::size_t>(3);
  const int file = static_cast<int>(call[0]), variable = static_cast<int>(call[1]);
  switch (role) {
    case Role::element:
      selection.points = 1;
      box = corners_of(object.rank, start, nullptr, nullptr);
      return true;
    case Role::block:
    case Role::strided: {
      const auto* stride = role == Role::strided ? call.pointer<const std::ptrdiff_t>(4) : nullptr;
      selection.points = product(count, rank_of(library, file, variable, object));
      box = corners_of(object.rank, start, count, stride);
      return true;
    }
    case Role::blocks:
      selection.points = points_of_blocks(call, rank_of(library, file, variable, object));
      return false;
    default:
      selection.points = whole_points(library, call, role, object, box);
      return true;
  }
}

}  // namespace

Object variables::find_known(const Library& library, int file, int variable) {
  return open_objects.find(library.identity(), id_of(file, variable));
}

Object variables::find_file(const Library& library, int file) {
  const Object known = open_objects.find(library.identity(), id_of_file(file));
  if (known.record != nullptr) return known;
  char name[PATH_MAX + 1] = {};
  std::size_t length = 0;
  if (library.path(file, &length, nullptr) != 0 || static_cast<int>(length) > PATH_MAX ||
      library.path(file, nullptr, name) != 0)
    return {};
  return open_objects.store(library.identity(), id_of_file(file),
                            {.record = datasets::record_of_file(library.layer(), name)});
}

Object variables::find(const Library& library, int file, int variable) {
  const Object known = find_known(library, file, variable);
  if (known.record != nullptr) return known;
  return open_objects.store(library.identity(), id_of(file, variable),
                            describe(library, file, variable));
}

void variables::set_collective(const Library& library, int file, int variable, bool is_collective) {
  Object object = find(library, file, variable);
  object.is_collective = is_collective;
  open_objects.store(library.identity(), id_of(file, variable), object);
}

void variables::note_shapes(const Library& library, int file) {
  constexpr std::size_t kMostVariables = 64;
  Word ids[kMostVariables];
  const std::size_t number = open_objects.find_ids(
      [&](Word owner, Word id) {
        return owner == library.identity() && is_variable(id) &&
               library.is_same_file(static_cast<int>(id >> 32), file);
      },
      ids, kMostVariables);
  for (std::size_t i = 0; i < number; ++i)
    describe(library, static_cast<int>(ids[i] >> 32), static_cast<int>(ids[i]) - 1);
}

void variables::forget_file(const Library& library, int file) {
  open_objects.forget_if([&](Word owner, Word id) {
    return owner == library.identity() && library.is_same_file(static_cast<int>(id >> 32), file);
  });
}

void variables::renew_records() { static_cast<void>(open_objects.renew_records()); }

Selection variables::selection_of(const Library& library, const datasets::Call& call, Role role,
                                  const Object& object) {
  Selection selection;
  Corners box;
  if (!read_selection(library, call, role, object, selection, box) || object.rank == 0 ||
      selection.points == 0)
    return selection;
  const bool noted = call.op == trace::Op::read ? object.has_noted_read : object.has_noted_write;
  if (noted && !object.is_chunked) return selection;
  datasets::set_place(object, box.first, box.last, selection);
  if (!noted) {
    datasets::note_selection(object, call.op, selection);
    open_objects.set_noted(library.identity(),
                           id_of(static_cast<int>(call[0]), static_cast<int>(call[1])), call.op);
  }
  return selection;
}

}  // namespace pario::netcdf
