// Reads the stack of CPython 3.11 to 3.14 (without free threading) in its own thread.
//
// A thread that calls into the C library has often released the GIL. Its frames, and the code
// objects and texts that they hold, nevertheless stay as they are until it continues. Places of
// members come from a table by version, and from 3.13 on from the interpreter's description of
// itself. Before the first use, a stack is read by system calls that cannot fault, and the types of
// its objects are checked.
#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "core/stack/stack.hpp"

// The interpreter, if the program has one.
extern "C" {
[[gnu::weak]] extern const unsigned long Py_Version;
[[gnu::weak]] extern const std::uint64_t _PyRuntime[];
[[gnu::weak]] extern const std::byte PyCode_Type[], PyUnicode_Type[];
[[gnu::weak]] const std::byte* PyGILState_GetThisThreadState();
[[gnu::weak]] int PyCode_Addr2Line(const void* code, int instruction);
[[gnu::weak]] void* _PyEval_EvalFrameDefault(void*, void*, int);
}

namespace pario::stack::python {

constinit std::atomic<detail::Use> detail::use{Use::unknown};

namespace {

using detail::use, detail::Use;

constexpr std::size_t kHashedFrames = 16, kWrittenFrames = 32;
constexpr std::size_t kLongestText = 500;        // characters of a file's or function's name
constexpr std::uint8_t kOwnedByInterpreter = 3;  // least owner of frames without Python code
constexpr std::size_t kTypePlace = 8, kLengthPlace = 16, kStatePlace = 32;  // of objects, texts

/// Places of members in bytes.
struct MemberOffsets {
  std::size_t holder, current;  ///< thread -> [holder] -> current frame; holder 0: in the thread
  std::size_t code, previous, instruction, owner;  ///< of a frame
  std::size_t file, name, instructions;            ///< of a code object
  std::size_t short_text, text;                    ///< characters of texts in ASCII, of others
};

constexpr MemberOffsets k311{56, 8, 32, 48, 56, 69, 112, 128, 184, 48, 72};
constexpr MemberOffsets k312{56, 0, 0, 8, 56, 70, 112, 128, 192, 40, 56};

constinit MemberOffsets layout{};

/// Reads the layout that 3.13 and later have at the beginning of their state: words after a cookie.
bool read_description(unsigned version) {
  constexpr std::uint64_t kCookie = 0x7970677562656478;  // "xdebugpy"
  const std::uint64_t* words = _PyRuntime;
  if (words == nullptr || words[0] != kCookie || words[1] >> 16 != version || words[2] != 0)
    return false;
  const std::uint64_t* thread = words + (version == 0x30d ? 19 : 22);
  const std::uint64_t* frame = thread + 9;
  const std::uint64_t* code = frame + (version == 0x30d ? 6 : 8);
  layout = {0,       thread[4], frame[2], frame[1], frame[3], frame[5],
            code[1], code[3],   code[9],  40,       56};
  return true;
}

/// The interpreter's state of the calling thread; null for a thread or a program without Python.
const std::byte* find_thread() {
  return PyGILState_GetThisThreadState == nullptr ? nullptr : PyGILState_GetThisThreadState();
}

/// Chooses the layout; false without a known interpreter.
bool choose_layout() {
  if (&Py_Version == nullptr || PyGILState_GetThisThreadState == nullptr ||
      PyCode_Addr2Line == nullptr || PyCode_Type == nullptr || PyUnicode_Type == nullptr)
    return false;
  const auto version = static_cast<unsigned>(Py_Version >> 16);
  if (version == 0x30b || version == 0x30c) layout = version == 0x30b ? k311 : k312;
  return version == 0x30b || version == 0x30c ||
         ((version == 0x30d || version == 0x30e) && read_description(version));
}

/// Copies memory of this process by a system call; false if it is not mapped.
bool copy_safely(const std::byte* from, void* to, std::size_t size) {
  static constinit std::atomic<long> self{0};
  const iovec local{to, size}, remote{const_cast<std::byte*>(from), size};
  if (self.load(std::memory_order_relaxed) == 0) self = base::system_call(SYS_getpid);
  const auto read = [&](long process) {
    return base::system_call(SYS_process_vm_readv, process, &local, 1, &remote, 1, 0);
  };
  long copied = read(self.load(std::memory_order_relaxed));
  if (copied == -ESRCH || copied == -EPERM)  // in the child of a fork
    copied = read(self = base::system_call(SYS_getpid));
  return copied == static_cast<long>(size);
}

/// Copies memory of this process; false if it is not mapped. Directly, once the layout is known to
/// be right.
bool copy(const std::byte* from, void* to, std::size_t size) {
  if (use.load(std::memory_order_relaxed) != Use::checked) return copy_safely(from, to, size);
  std::memcpy(to, from, size);
  return true;
}

template <class T>
bool copy_member(const std::byte* object, std::size_t place, T& to) {
  return object != nullptr && copy(object + place, static_cast<void*>(&to), sizeof to);
}

const std::byte* pointer_at(const std::byte* object, std::size_t place) {
  return *reinterpret_cast<const std::byte* const*>(object + place);
}

bool is_of_type(const std::byte* object, const std::byte* type) {
  const std::byte* its = nullptr;
  return copy_member(object, kTypePlace, its) && its == type;
}

/// Removes the marks in the low bits of a reference (3.14).
const std::byte* without_tag(const std::byte* reference) {
  return reinterpret_cast<const std::byte*>(reinterpret_cast<std::uintptr_t>(reference) & ~7ul);
}

/// Returns the current frame of a checked thread.
const std::byte* current_frame(const std::byte* thread) {
  if (layout.holder == 0) return pointer_at(thread, layout.current);
  const std::byte* holder = pointer_at(thread, layout.holder);
  return holder == nullptr ? nullptr : pointer_at(holder, layout.current);
}

const std::byte* copy_current_frame(const std::byte* thread) {
  const std::byte *holder = thread, *frame = nullptr;
  if (layout.holder != 0 && !copy_member(thread, layout.holder, holder)) return nullptr;
  return copy_member(holder, layout.current, frame) ? frame : nullptr;
}

/// Returns the code object of a frame; null if it has none.
const std::byte* copy_code(const std::byte* frame) {
  const std::byte* code = nullptr;
  std::uint8_t owner = kOwnedByInterpreter;
  if (!copy_member(frame, layout.owner, owner) || owner >= kOwnedByInterpreter ||
      !copy_member(frame, layout.code, code))
    return nullptr;
  code = without_tag(code);
  return is_of_type(code, PyCode_Type) ? code : nullptr;
}

/// The characters of a text object.
struct Characters {
  const std::byte* data = nullptr;
  std::size_t count = 0, width = 1;
};

bool copy_characters(const std::byte* text, Characters& found) {
  std::uint32_t state = 0;
  std::uint64_t length = 0;
  if (!is_of_type(text, PyUnicode_Type) || !copy_member(text, kStatePlace, state) ||
      !copy_member(text, kLengthPlace, length))
    return false;
  if ((state >> 2 & 0x1f) == 0) state >>= 14;  // 3.14: 16 bits precede the width
  const unsigned width = state >> 2 & 7;
  const bool compact = (state >> 5 & 1) != 0, ascii = (state >> 6 & 1) != 0;
  if (!compact || (width != 1 && width != 2 && width != 4)) return false;
  found = {text + (ascii ? layout.short_text : layout.text),
           std::min<std::size_t>(length, kLongestText), width};
  return true;
}

void add_utf8(base::TextBuffer& out, std::uint32_t character) {
  const auto part = [&](unsigned shift, std::uint32_t lead, std::uint32_t mask) {
    out.add(static_cast<char>(lead | (character >> shift & mask)));
  };
  if (character < 0x80) return part(0, 0, 0x7f);
  if (character < 0x800)
    part(6, 0xc0, 0x1f);
  else if (character < 0x10000)
    part(12, 0xe0, 0x0f);
  else
    part(18, 0xf0, 0x07);
  if (character >= 0x10000) part(12, 0x80, 0x3f);
  if (character >= 0x800) part(6, 0x80, 0x3f);
  part(0, 0x80, 0x3f);
}

/// Adds the text of an object; a surrogate of an undecodable byte (PEP 383) becomes that byte.
void add_text(base::TextBuffer& out, const std::byte* object) {
  Characters characters;
  std::byte data[4 * kLongestText];
  if (!copy_characters(object, characters) ||
      !copy(characters.data, data, characters.count * characters.width))
    return;
  for (std::size_t i = 0; i < characters.count; ++i) {
    std::uint32_t character = 0;
    std::memcpy(&character, data + i * characters.width, characters.width);
    if (character >= 0xdc80 && character <= 0xdcff)
      out.add(static_cast<char>(character & 0xff));
    else
      add_utf8(out, character);
  }
}

using Text = base::Text<4 * kLongestText + 1>;

/// Adds a name of a code object; false if it cannot be read.
bool add_text(Text& text, const std::byte* code, std::size_t place) {
  const std::byte* object = nullptr;
  if (copy_member(code, place, object)) add_text(text, object);
  return !text.view().empty();
}

int line_of(const std::byte* frame, const std::byte* code) {
  const std::byte* instruction = nullptr;
  if (!copy_member(frame, layout.instruction, instruction) || instruction == nullptr) return 0;
  const auto distance = instruction - (code + layout.instructions);
  return std::max(PyCode_Addr2Line(code, distance < 0 ? 0 : static_cast<int>(distance)), 0);
}

/// Checks the layout with the stack of a thread; false as long as it has no Python code.
bool check(const std::byte* thread) {
  const std::byte* frame = copy_current_frame(thread);
  for (std::size_t depth = 0; frame != nullptr && depth < kWrittenFrames; ++depth) {
    const std::byte *code = copy_code(frame), *file = nullptr;
    Characters characters;
    if (code != nullptr) {
      const bool right = copy_member(code, layout.file, file) && copy_characters(file, characters);
      use.store(right ? Use::checked : Use::none, std::memory_order_release);
      return right;
    }
    if (!copy_member(frame, layout.previous, frame)) break;
  }
  return false;
}

bool is_usable() {
  if (use.load(std::memory_order_acquire) == Use::unknown)
    use.store(choose_layout() ? Use::unchecked : Use::none, std::memory_order_release);
  return use.load(std::memory_order_relaxed) != Use::none;
}

}  // namespace

std::uint64_t detail::hash_frames() {
  const Use now = use.load(std::memory_order_acquire);
  if (now == Use::none || (now == Use::unknown && !is_usable())) [[likely]]
    return 0;
  const std::byte* thread = find_thread();
  if (thread == nullptr || (now != Use::checked && !check(thread))) return 0;
  std::uint64_t hash = 0;
  const std::byte* frame = current_frame(thread);
  for (std::size_t depth = 0; frame != nullptr && depth < kHashedFrames; ++depth) {
    constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15;
    hash =
        (hash ^ reinterpret_cast<std::uint64_t>(pointer_at(frame, layout.instruction))) * kFactor;
    hash ^= hash >> 29;
    frame = pointer_at(frame, layout.previous);
  }
  return hash;
}

void add_frames(base::Json& json) {
  if (use.load(std::memory_order_acquire) != Use::checked) return;
  constexpr std::string_view kFrozen = "<frozen ";  // the import system
  const std::byte* thread = find_thread();
  const std::byte* frame = thread == nullptr ? nullptr : copy_current_frame(thread);
  for (std::size_t depth = 0; frame != nullptr && depth < kWrittenFrames; ++depth) {
    Text file, name;
    const std::byte* code = copy_code(frame);
    if (code != nullptr && add_text(file, code, layout.file) && !file.view().starts_with(kFrozen)) {
      add_text(name, code, layout.name);
      json.begin_array().value(file.view()).value(name.view());
      json.value(line_of(frame, code)).end_array();
    }
    if (!copy_member(frame, layout.previous, frame)) return;
  }
}

bool is_interpreter(std::uint64_t function) {
  return function != 0 && function == reinterpret_cast<std::uint64_t>(&_PyEval_EvalFrameDefault);
}

}  // namespace pario::stack::python
