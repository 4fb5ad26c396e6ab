#include <fcntl.h>

#include <climits>

#include "observe/datasets/datasets.hpp"

namespace pario::datasets {
namespace {

trace::FileFacts facts_of_path(void* path) {
  return trace::facts_of(static_cast<base::Path*>(path)->c_str());
}

/// Facts of a file for the row of a dataset: its layout belongs to the row of the file.
trace::FileFacts facts_without_layout(void* record) {
  const auto& file = *static_cast<const trace::Record*>(record);
  return {.kind = file.kind,
          .device = file.device,
          .inode = file.inode,
          .block_size = file.block_size,
          .size = file.size_at_open,
          .filesystem = file.filesystem};
}

}  // namespace

trace::Record* record_of_file(trace::Layer layer, const char* name) {
  base::Path path(AT_FDCWD, name);
  if (!path.is_known()) return nullptr;
  return trace::find_record(layer, path.view(), facts_of_path, &path);
}

trace::Record* record_of_dataset(trace::Layer layer, trace::Record* file, std::string_view name) {
  base::Text<std::size_t{2} * PATH_MAX> path;
  path.add(trace::path_of(file)).add(':').add(name);
  if (!path.complete()) return file;
  return trace::find_record(layer, path.view(), facts_without_layout, file);
}

/// Identifiers count up, apart from a type or the number of a file in the upper half: neighbors
/// have places of their own.
Objects::Place& Objects::place_of(Word library, Word id) {
  constexpr std::uint64_t kTries = 4;
  const std::uint64_t first = id ^ (id >> 32) * 101 ^ (id >> 48) * 37 ^ id >> 53 ^ library >> 6;
  Place* free = nullptr;
  for (std::uint64_t i = 0; i < kTries; ++i) {
    Place& place = places_[(first + i) % kPlaces];
    if (place.id == id && place.library == library) return place;
    if (free == nullptr && place.object.record == nullptr) free = &place;
  }
  return free != nullptr ? *free : places_[first % kPlaces];
}

Object Objects::find(Word library, Word id) {
  const base::SpinLock guard(lock_);
  const Place& place = place_of(library, id);
  return place.id == id && place.library == library ? place.object : Object{};
}

Object Objects::store(Word library, Word id, const Object& object) {
  if (object.record == nullptr) return object;
  const base::SpinLock guard(lock_);
  was_used_ = true;
  place_of(library, id) = {library, id, object};
  return object;
}

void Objects::forget(Word library, Word id) {
  const base::SpinLock guard(lock_);
  Place& place = place_of(library, id);
  if (place.id == id && place.library == library) place = {};
}

void Objects::forget_all() {
  const base::SpinLock guard(lock_);
  places_.fill({});
}

bool Objects::renew_records() {
  lock_ = 0;  // of a thread that the child does not have
  if (!was_used_) return false;
  for (Place& place : places_) place.object.record = trace::renew(place.object.record);
  return true;
}

void Objects::set_noted(Word library, Word id, trace::Op op) {
  const base::SpinLock guard(lock_);
  Place& place = place_of(library, id);
  if (place.id != id || place.library != library) return;
  Object& object = place.object;
  (op == trace::Op::read ? object.has_noted_read : object.has_noted_write) = true;
}

}  // namespace pario::datasets
