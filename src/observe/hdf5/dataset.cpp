#include "observe/hdf5/dataset.hpp"

#include <algorithm>

#include "core/base/base.hpp"

namespace pario::hdf5 {
namespace {

constexpr int kContiguous = 1, kChunked = 2;  // H5D_layout_t
constexpr const char* kLayouts[] = {"compact", "contiguous", "chunked", "virtual"};
constexpr Word kWhole = 0, kBlock = 1;  // H5S_ALL, H5S_BLOCK
constexpr int kMostFilters = 8;

bool is_valid(Word id) { return static_cast<std::int64_t>(id) > 0; }

/// Returns the dimensions of a dataspace; 0 for a scalar, and for more than kMostDimensions.
int extent_of(const Library& library, Word space, Extents& extents) {
  const int rank = library.space_rank(space);
  if (rank <= 0 || rank > kMostDimensions) return 0;
  return library.space_extent(space, extents, nullptr) == rank ? rank : 0;
}

int extent_of_dataset(const Library& library, Word dataset, Extents& extents) {
  const Word space = library.dataset_space(dataset);
  if (!is_valid(space)) return 0;
  const int rank = extent_of(library, space, extents);
  library.close_space(space);
  return rank;
}

/// Adds layout, chunks and filters.
void add_creation(const Library& library, Word list, Object& object, base::Json& json) {
  const int layout = library.layout(list);
  if (layout >= 0 && layout < static_cast<int>(std::size(kLayouts)))
    json.member("layout", kLayouts[layout]);
  if (layout == kChunked && object.rank > 0)
    object.is_chunked = library.chunk(list, kMostDimensions, object.chunk) == object.rank;
  if (object.is_chunked) datasets::add_extents(json, "chunk", object.chunk, object.rank);
  json.key("filters").begin_array();
  const int filters = layout == kContiguous ? 0 : library.filter_count(list);
  for (int i = 0; i < std::min(filters, kMostFilters); ++i) {
    char name[64] = {};
    unsigned flags = 0, config = 0;
    std::size_t values = 0;
    const int number = library.filter(list, static_cast<unsigned>(i), &flags, &values, nullptr,
                                      sizeof name, name, &config);
    name[sizeof name - 1] = '\0';
    if (number < 0) break;
    if (name[0] != '\0')
      json.value(static_cast<const char*>(name));
    else
      json.value(number);
  }
  json.end_array();
}

/// Adds the size of the chunk cache.
void add_access(const Library& library, Word list, base::Json& json) {
  std::size_t slots = 0, bytes = 0;
  double preemption = 0;
  if (library.chunk_cache(list, &slots, &bytes, &preemption) >= 0)
    json.member("cache", bytes).member("slots", slots);
}

std::uint64_t size_of_element(const Library& library, Word dataset) {
  const Word type = library.dataset_type(dataset);
  if (!is_valid(type)) return 0;
  const std::uint64_t size = library.type_size(type);
  library.close_type(type);
  return size;
}

/// Returns the dataspace that has the selection of a call: that of the file, or of memory if the
/// call concerns all elements of one of them; 0: all elements of the dataset.
Word selected_space(Word memory, Word file) {
  if (file != kWhole) return file;
  return memory != kBlock ? memory : kWhole;
}

/// Sets box and chunks of a selection with points.
void set_place(const Library& library, Word dataset, const Object& object, Word file,
               Selection& selection) {
  Extents first = {}, last = {};
  if (file == kWhole) {
    if (extent_of_dataset(library, dataset, last) != object.rank) return;
    for (int i = 0; i < object.rank; ++i) last[i] -= last[i] != 0;
  } else if (library.space_rank(file) != object.rank ||
             library.selection_bounds(file, first, last) < 0) {
    return;
  }
  datasets::set_place(object, first, last, selection);
}

}  // namespace

Object describe_dataset(const Library& library, Word id, trace::Record* record, bool has_note) {
  Object object{.record = record, .has_noted_read = !has_note, .has_noted_write = !has_note};
  Extents shape = {};
  object.element = size_of_element(library, id);
  object.rank = extent_of_dataset(library, id, shape);
  base::Text<2048> text;
  base::Json json(text);
  json.begin_object().member("note", "dataset").member("record", object.record->row);
  json.member("element", object.element);
  datasets::add_extents(json, "shape", shape, object.rank);
  if (const Word list = library.creation_list(id); is_valid(list)) {
    add_creation(library, list, object, json);
    library.close_list(list);
  }
  if (const Word list = library.access_list(id); is_valid(list)) {
    if (object.is_chunked) add_access(library, list, json);
    library.close_list(list);
  }
  json.end_object();
  if (has_note && text.complete()) datasets::note_once(json.view());
  return object;
}

Selection selection_of(const Library& library, Word dataset, const Object& object, trace::Op op,
                       Word memory, Word file) {
  Selection selection;
  Word space = selected_space(memory, file);
  const bool whole = space == kWhole;
  if (whole) space = library.dataset_space(dataset);
  if (!is_valid(space)) return selection;
  const std::int64_t points = library.count_points(space);
  if (whole) library.close_space(space);
  selection.points = static_cast<std::uint64_t>(std::max<std::int64_t>(points, 0));
  const bool noted = op == trace::Op::read ? object.has_noted_read : object.has_noted_write;
  if (object.rank == 0 || selection.points == 0 || (noted && !object.is_chunked)) return selection;
  set_place(library, dataset, object, file, selection);
  if (!noted) {
    datasets::note_selection(object, op, selection);
    objects::set_noted(library, dataset, op);
  }
  return selection;
}

}  // namespace pario::hdf5
