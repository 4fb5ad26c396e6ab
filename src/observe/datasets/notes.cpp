#include <algorithm>
#include <atomic>

#include "observe/datasets/datasets.hpp"

namespace pario::datasets {
namespace {

constexpr std::uint64_t kNotedBytes = 1 << 20;  // of notes of a process

constinit std::atomic<std::uint64_t> written[4096] = {};  // hashes of notes
constinit std::atomic<std::uint64_t> noted_bytes{0};

/// Counts the chunks between two corners.
std::uint64_t chunks_between(const Object& object, const Extents& first, const Extents& last) {
  std::uint64_t chunks = 1;
  for (int i = 0; i < object.rank; ++i) {
    const std::uint64_t size = std::max<std::uint64_t>(object.chunk[i], 1);
    chunks *= last[i] / size - first[i] / size + 1;
  }
  return chunks;
}

}  // namespace

void note_once(std::string_view json) {
  const std::uint64_t hash = base::xxh64(json) | 1;
  auto& place = written[hash >> 52];
  if (place.exchange(hash, std::memory_order_relaxed) == hash) return;
  if (noted_bytes.fetch_add(json.size(), std::memory_order_relaxed) < kNotedBytes)
    trace::note(json);
}

void add_extents(base::Json& json, const char* key, const Extents& extents, int rank) {
  json.key(key).begin_array();
  for (int i = 0; i < rank; ++i) json.value(extents[i]);
  json.end_array();
}

void set_place(const Object& object, const Extents& first, const Extents& last,
               Selection& selection) {
  selection.rank = object.rank;
  for (int i = 0; i < object.rank; ++i) selection.box[i] = last[i] - first[i] + 1;
  if (object.is_chunked)
    selection.chunks = std::min(chunks_between(object, first, last), selection.points);
}

void note_selection(const Object& object, trace::Op op, const Selection& selection) {
  if (selection.rank == 0) return;
  base::Text<512> text;
  base::Json json(text);
  json.begin_object().member("note", "selection").member("record", object.record->row);
  json.member("op", op == trace::Op::read ? "read" : "write");
  add_extents(json, "box", selection.box, selection.rank);
  json.end_object();
  if (text.complete()) note_once(json.view());
}

void forget_notes() {
  if (noted_bytes.load(std::memory_order_relaxed) == 0) return;  // touches no page of the table
  for (auto& place : written) place.store(0, std::memory_order_relaxed);
  noted_bytes.store(0, std::memory_order_relaxed);
}

}  // namespace pario::datasets
