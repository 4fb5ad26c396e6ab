#include "observe/hdf5/objects.hpp"

#include <algorithm>
#include <climits>

#include "core/base/base.hpp"
#include "observe/hdf5/dataset.hpp"

namespace pario::hdf5 {
namespace {

constexpr auto kLayer = trace::Layer::hdf5;
constexpr int kFile = 1, kDataset = 5;  // H5I_type_t
constexpr std::size_t kPlaces = 1024;

constinit datasets::Objects open_objects;
/// The facts of datasets by their rows, so that a dataset that is opened again costs less.
constinit Object known_datasets[kPlaces] = {};
/// The paths of open groups.
struct Group {
  Word library, id;
  char path[240];
};
constinit Group groups[kPlaces] = {};
constinit std::uint64_t lock = 0;

/// Identifiers count up, apart from their type in the highest bits.
std::size_t index_of(const Library& library, Word id) {
  return (id ^ id >> 53 ^ library.identity() >> 6) % kPlaces;
}
Group& group_of(const Library& library, Word id) { return groups[index_of(library, id)]; }

Object& dataset_of(const trace::Record& record) { return known_datasets[record.row % kPlaces]; }

/// Returns the facts of a dataset with a row of its own, from an earlier opening if they are known.
Object look_up_dataset(const Library& library, Word id, trace::Record* record, bool is_new) {
  {
    const base::SpinLock guard(lock);
    const Object known = dataset_of(*record);
    if (!is_new && known.record == record) return known;
  }
  const Object object = describe_dataset(library, id, record, true);
  const base::SpinLock guard(lock);
  dataset_of(*record) = object;
  return object;
}

/// Returns the row of the file of an object.
trace::Record* file_of(const Library& library, Word id) {
  char name[PATH_MAX];
  const long length = library.file_name(id, name, sizeof name);
  return length > 0 && length < PATH_MAX ? objects::record_of_file(name) : nullptr;
}

/// Adds the path of a location in its file; false if it is not known.
bool add_location(const Library& library, Word location, base::TextBuffer& path) {
  if (library.type_of_id(location) == kFile) return true;
  const base::SpinLock guard(lock);
  const Group& group = group_of(library, location);
  if (group.id != location || group.library != library.identity()) return false;
  path.add(group.path);
  return true;
}

/// Adds the path of an object in its file.
void add_path(const Library& library, Word location, std::string_view name,
              base::TextBuffer& path) {
  const bool is_absolute = name.starts_with('/');
  if (!is_absolute && !add_location(library, location, path)) path.add("(unnamed)");
  if (!is_absolute && name != ".") path.add('/');
  if (name != "." && name != "/") path.add(name);
}

void enter_group(const Library& library, Word id, std::string_view path) {
  const base::SpinLock guard(lock);
  Group& group = group_of(library, id);
  if (path.size() >= sizeof group.path) return;
  group.library = library.identity();
  group.id = id;
  std::memcpy(group.path, path.data(), path.size());
  group.path[path.size()] = '\0';
}

Object store(const Library& library, Word id, const Object& object) {
  return open_objects.store(library.identity(), id, object);
}

}  // namespace

Object objects::find_known(const Library& library, Word id) {
  return open_objects.find(library.identity(), id);
}

Object objects::find(const Library& library, Word id) {
  const Object known = find_known(library, id);
  return known.record != nullptr ? known : enter(library, id, id, nullptr, false);
}

Object objects::enter_file(const Library& library, Word id) {
  return store(library, id, {.record = file_of(library, id)});
}

Object objects::enter(const Library& library, Word id, Word location, const char* name,
                      bool is_new) {
  trace::Record* const file = file_of(library, id);
  const bool is_dataset = library.type_of_id(id) == kDataset;
  base::Text<PATH_MAX> path;
  if (name != nullptr) add_path(library, location, name, path);
  if (file == nullptr || !is_dataset) {
    if (name != nullptr && path.complete()) enter_group(library, id, path.view());
    return store(library, id, {.record = file});
  }
  if (name == nullptr || !path.complete())
    return store(library, id,
                 describe_dataset(library, id,
                                  datasets::record_of_dataset(kLayer, file, "(unnamed)"), false));
  trace::Record* const record = datasets::record_of_dataset(kLayer, file, path.view());
  return store(library, id, look_up_dataset(library, id, record, is_new));
}

void objects::forget(const Library& library, Word id) {
  open_objects.forget(library.identity(), id);
}

void objects::forget_all() {
  open_objects.forget_all();
  const base::SpinLock guard(lock);
  std::ranges::fill(groups, Group{});
  std::ranges::fill(known_datasets, Object{});
}

void objects::renew_records() {
  lock = 0;  // of a thread that the child does not have
  if (open_objects.renew_records()) std::ranges::fill(known_datasets, Object{});
}

void objects::set_noted(const Library& library, Word id, trace::Op op) {
  open_objects.set_noted(library.identity(), id, op);
}

trace::Record* objects::record_of_file(const char* name) {
  return datasets::record_of_file(kLayer, name);
}

}  // namespace pario::hdf5
