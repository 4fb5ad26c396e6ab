// The stacks of the process, and the notes that describe them.
#include <algorithm>
#include <string_view>

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

/// True for names such as python3.11 and libpython3.13t.so.1.0.
bool names_interpreter(std::string_view path) {
  constexpr std::string_view kName = "python", kNumber = "0123456789.",
                             kLetters = "abcdefghijklmnopqrstuvwxyz";
  std::string_view name = path.substr(path.rfind('/') + 1);
  if (name.starts_with("lib")) name.remove_prefix(3);
  if (!name.starts_with(kName)) return false;
  name.remove_prefix(kName.size());
  for (const std::string_view part : {kNumber, kLetters, kNumber})
    name.remove_prefix(std::min(name.find_first_not_of(part), name.size()));
  return name.empty();
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
  const std::uint32_t number = number_of(frames);
  if (number == 0) return nullptr;
  std::uint64_t* addresses = tables_->addresses + used_;
  std::ranges::transform(frames, addresses, &stack::Frame::address);
  used_ += frames.size();
  ++count_;
  place = {hash, addresses, number, static_cast<std::uint32_t>(frames.size())};
  return &place;
}

/// Returns the number of the note of a stack, which is written if it is new; 0 if there are too
/// many.
std::uint32_t Stacks::number_of(std::span<const stack::Frame> frames) {
  if (notes_ == kNotes) return 0;
  base::TextBuffer text(tables_->text, sizeof tables_->text);
  add_text(text, frames);
  const std::string_view view = text.view();
  const std::uint64_t hash =
      base::xxh64(reinterpret_cast<const std::byte*>(view.data()), view.size());
  std::size_t at = hash % kNoteSlots;
  for (; tables_->notes[at].number != 0; at = (at + 1) % kNoteSlots)
    if (tables_->notes[at].hash == hash) return tables_->notes[at].number;
  text.add(",\"number\":").add(notes_ + 1).add('}');
  if (!text.complete()) return 0;
  note(text.view());
  tables_->notes[at] = {hash, ++notes_};
  return notes_;
}

/// Adds a note of a stack without its number and end: frames as module:address in its file. Those
/// of an interpreter are left out if the frames of its language are known.
void Stacks::add_text(base::TextBuffer& text, std::span<const stack::Frame> frames) {
  std::uint32_t modules[stack::kMostFrames] = {};
  std::uint64_t biases[stack::kMostFrames] = {};
  for (std::size_t i = 0; i < frames.size(); ++i)  // writes the notes of new modules first, in text
    modules[i] = module_of(frames[i].address - 1, biases[i]);
  base::Json json(text);
  json.begin_object().member("note", "stack").key("python").begin_array();
  const std::size_t before = text.view().size();
  stack::python::add_frames(json);
  const bool has_python = text.view().size() > before;
  json.end_array().key("frames").begin_array();
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (has_python && modules[i] != 0 && tables_->modules[modules[i] - 1].is_interpreter) continue;
    base::Text<48> frame;
    json.value(frame.add(modules[i]).add(':').add(frames[i].address - biases[i], 16).view());
  }
  json.end_array();
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
  const bool is_interpreter = write_module(object, modules_ + 1);
  tables_->modules[modules_++] = {object.range, bias, hash, is_interpreter};
  return modules_;
}

/// Writes the note of a module, in the memory for the text of a stack. True if it is the
/// interpreter of Python.
bool Stacks::write_module(const stack::Object& object, std::uint32_t number) {
  char* const program = tables_->text;
  const char* path = object.name;
  if (*path == 0 && base::read_link("/proc/self/exe", program, kPage) > 0) path = program;
  base::Text<128> id;
  for (const unsigned char byte : stack::build_id_of(object).first(
           std::min<std::size_t>(stack::build_id_of(object).size(), 32)))
    id.add(kHexDigits[byte >> 4]).add(kHexDigits[byte & 15]);
  base::TextBuffer text(program + kPage, 2 * kPage);
  base::Json json(text);
  json.begin_object().member("note", "module").member("number", number).member("path", path);
  json.member("address", object.bias).member("build_id", id.view()).end_object();
  if (text.complete()) note(text.view());
  return names_interpreter(path);
}

}  // namespace pario::trace
