// The stacks of the process, and the notes that describe them.
#include <algorithm>

#include "core/trace/sites.hpp"
#include "core/trace/state.hpp"

namespace pario::trace {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

std::uint64_t hash_of(std::span<const stack::Frame> frames, std::uint64_t python) {
  std::uint64_t addresses[stack::kMostFrames + 1];
  std::size_t count = 0;
  for (const stack::Frame& frame : frames) addresses[count++] = frame.address;
  addresses[count++] = python;
  const std::uint64_t hash =
      base::xxh64(reinterpret_cast<const std::byte*>(addresses), count * sizeof addresses[0]);
  return hash == 0 ? 1 : hash;
}

}  // namespace

const Stacks::Known* Stacks::find(std::span<const stack::Frame> frames, std::uint64_t python) {
  const std::uint64_t hash = hash_of(frames, python);
  const base::SpinLock lock(lock_);
  if (tables_ == nullptr) tables_ = reinterpret_cast<Tables*>(base::map_memory(sizeof(Tables)));
  if (tables_ == nullptr) return nullptr;
  std::size_t at = hash % kSlots;
  while (tables_->known[at].hash != 0 && tables_->known[at].hash != hash) at = (at + 1) % kSlots;
  Known& place = tables_->known[at];
  return place.hash == hash ? &place : add(place, hash, frames);
}

const Stacks::Known* Stacks::add(Known& place, std::uint64_t hash,
                                 std::span<const stack::Frame> frames) {
  if (count_ == kMost || used_ + frames.size() > std::size(tables_->addresses)) return nullptr;
  std::uint64_t* addresses = tables_->addresses + used_;
  std::ranges::transform(frames, addresses, &stack::Frame::address);
  used_ += frames.size();
  place = {hash, addresses, ++count_, static_cast<std::uint32_t>(frames.size())};
  write_note(frames);
  return &place;
}

/// Writes the note of the newest stack: frames as module:address in its file.
void Stacks::write_note(std::span<const stack::Frame> frames) {
  std::uint32_t modules[stack::kMostFrames];
  std::uint64_t biases[stack::kMostFrames] = {};
  for (std::size_t i = 0; i < frames.size(); ++i)  // writes the notes of new modules first
    modules[i] = module_of(frames[i].address - 1, biases[i]);
  base::TextBuffer text(tables_->text, sizeof tables_->text);
  base::Json json(text);
  json.begin_object().member("note", "stack").member("number", count_).key("frames").begin_array();
  for (std::size_t i = 0; i < frames.size(); ++i) {
    base::Text<48> frame;
    json.value(frame.add(modules[i]).add(':').add(frames[i].address - biases[i], 16).view());
  }
  json.end_array().key("python").begin_array();
  stack::python::add_frames(json);
  json.end_array().end_object();
  if (text.complete()) note(text.view());
}

/// Returns the number of the module with an address, from 1; 0 if there is none.
std::uint32_t Stacks::module_of(std::uint64_t address, std::uint64_t& bias) {
  stack::Object object;
  if (!stack::find_object(address, object)) return 0;
  bias = object.bias;
  const std::string_view name = object.name;
  const std::uint64_t hash =
      base::xxh64(reinterpret_cast<const std::byte*>(name.data()), name.size());
  for (std::uint32_t i = 0; i < modules_; ++i) {
    const Module& known = tables_->modules[i];
    if (known.range.begin == object.range.begin && known.bias == bias && known.name == hash)
      return i + 1;
  }
  if (modules_ == kModules) return 0;
  tables_->modules[modules_++] = {object.range, bias, hash};
  write_module(object, modules_);
  return modules_;
}

void Stacks::write_module(const stack::Object& object, std::uint32_t number) {
  char program[kPage];
  const char* path = object.name;
  if (*path == 0 && base::read_link("/proc/self/exe", program, sizeof program) > 0) path = program;
  base::Text<128> id;
  for (const unsigned char byte : stack::build_id_of(object).first(
           std::min<std::size_t>(stack::build_id_of(object).size(), 32)))
    id.add(kHexDigits[byte >> 4]).add(kHexDigits[byte & 15]);
  base::Text<2 * kPage> text;
  base::Json json(text);
  json.begin_object().member("note", "module").member("number", number).member("path", path);
  json.member("address", object.bias).member("build_id", id.view()).end_object();
  if (text.complete()) note(text.view());
}

}  // namespace pario::trace
