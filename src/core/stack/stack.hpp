// Module stack: call stacks of the traced program, in native code and in Python.
//
// No function uses the heap, locks of the program or stdio, and all may be called in signal
// handlers. Memory of the program is read only where it is known to be mapped: the stack of the
// thread within its mapping, the tables of loaded objects, and other memory by system calls that
// fail instead of raising a signal.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/base/base.hpp"

// Bounds of this library, code included, defined by the linker.
extern "C" [[gnu::visibility("hidden")]] const char __ehdr_start[], __bss_start[];

namespace pario::stack {

/// Return addresses of a stack that are kept.
inline constexpr std::size_t kMostFrames = 48;

/// The place from which the program called a function of this library.
struct Caller {
  std::uint64_t address = 0;  ///< return address; 0: not known
  std::uint64_t sp = 0;       ///< identifies the frame: the stack pointer after the return
  std::uint64_t frame = 0;    ///< frame-pointer register of the program
};

/// A range of addresses, without its end.
struct Range {
  std::uint64_t begin = 0, end = 0;
  bool contains(std::uint64_t address, std::size_t size = 1) const {
    return address >= begin && address < end && size <= end - address;
  }
};

/// Removes the signature of a return address (aarch64).
inline std::uint64_t without_signature(std::uint64_t address) {
#if defined(__aarch64__)
  register std::uint64_t lr __asm__("x30") = address;
  asm("hint #7" : "+r"(lr));
  return lr;
#else
  return address;
#endif
}

inline bool is_own_code(std::uint64_t address) {
  const auto begin = reinterpret_cast<std::uint64_t>(__ehdr_start);
  return address - begin < reinterpret_cast<std::uint64_t>(__bss_start) - begin;
}

/// Finds the caller of the outermost of this library's frames on top of the stack. The function
/// that calls it is called by one of this library. Modules whose functions may be among them keep
/// frame pointers (src/CMakeLists.txt).
[[gnu::always_inline]] inline Caller find_caller() {
  constexpr int kMostOwnFrames = 24;
  constexpr std::uint64_t kLargestFrame = 1 << 20;
  const auto* frame = *static_cast<const std::uint64_t**>(__builtin_frame_address(0));
  for (int depth = 0; depth < kMostOwnFrames; ++depth) {
    const std::uint64_t address = without_signature(frame[1]), above = frame[0];
    const auto here = reinterpret_cast<std::uint64_t>(frame);
    if (!is_own_code(address)) return {address, here + 16, above};
    if (above - here - 16 > kLargestFrame || above % 8 != 0) return {};
    frame = reinterpret_cast<const std::uint64_t*>(above);
  }
  return {};
}

/// Read calls of this module, for the accounts of the tracer.
struct Reads {
  std::uint64_t calls = 0, bytes = 0;
};

/// Returns the memory of the stack that contains `sp`; empty if it is not known. Reads
/// /proc/self/maps, and adds its calls to `reads`.
Range find_stack(std::uint64_t sp, Reads& reads);

/// A return address, and the address of the word that holds it (0 for that of the Caller).
struct Frame {
  std::uint64_t address, place;
};

/// Stores the return addresses from `caller` outwards and returns their number. Uses the unwind
/// tables of the objects (x86-64), else frame pointers. Ends at the first frame of a Python
/// interpreter, at the bottom of the stack and where the next frame is not known. `stack`: the
/// memory that may be read.
std::size_t unwind(const Caller& caller, Range stack, std::span<Frame> frames);

/// A loaded object.
struct Object {
  Range range;
  std::uint64_t bias = 0;              ///< its address minus the addresses in its file
  const char* name = "";               ///< path; empty: the program
  const void* unwind_table = nullptr;  ///< its .eh_frame_hdr, or null
};

/// Finds the object with the address; false if there is none.
bool find_object(std::uint64_t address, Object& object);
/// Returns the build ID of an object; empty if it has none.
std::span<const unsigned char> build_id_of(const Object& object);

/// The stack of the interpreter of CPython 3.11 to 3.14.
namespace python {
namespace detail {
/// The interpreter of this process: whether it has one of a known version, and its stack was read.
enum class Use : int { unknown, unchecked, checked, none };
extern std::atomic<Use> use;
std::uint64_t hash_frames();
}  // namespace detail

/// Returns a hash of the Python frames of this thread with their instructions; 0 if it runs no
/// Python. The thread need not hold the GIL: only the thread itself changes its frames.
inline std::uint64_t fingerprint() {
  const bool has_none = detail::use.load(std::memory_order_acquire) == detail::Use::none;
  return has_none ? 0 : detail::hash_frames();
}
/// Adds the Python frames of this thread to an array, innermost first: [file, function, line].
void add_frames(base::Json& json);
/// True if `function` is the beginning of the function that runs Python code.
bool is_interpreter(std::uint64_t function);
}  // namespace python

}  // namespace pario::stack
