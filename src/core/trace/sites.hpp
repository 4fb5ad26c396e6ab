// Call sites: the calls of each thread by the place in the program that makes them.
//
// A thread keeps the stacks that it has seen, by their innermost frame. A known stack is recognised
// by its return addresses, which are compared where they are; only a new one is unwound. Rows of
// sums are in live blocks of the log, one row per stack, function and file. When a thread has no
// more rows, those of few calls and little time are added to rows without a file or a stack, so
// that the sums stay.
#pragma once

#include <cstdint>
#include <span>

#include "core/stack/stack.hpp"
#include "core/trace/format.hpp"
#include "core/trace/threads.hpp"
#include "core/trace/trace.hpp"

namespace pario::trace {

class Log;

/// The stacks of the process: numbered from 1, each with a note in the log. 0: not known. Stacks
/// that differ in the frames of an interpreter alone have one note.
class Stacks {
 public:
  /// A stack with the number of its note; `addresses` stay valid.
  struct Known {
    std::uint64_t hash;
    const std::uint64_t* addresses;
    std::uint32_t number, count;
  };
  /// Returns the stack with these frames, a new one if necessary; null if a table is full.
  const Known* find(std::span<const stack::Frame> frames, std::uint64_t python);

 private:
  static constexpr std::size_t kMost = 16384, kSlots = 2 * kMost, kModules = 1024;
  static constexpr std::size_t kNotes = 4096, kNoteSlots = 2 * kNotes;
  struct Module {
    stack::Range range;
    std::uint64_t bias, name;
    bool is_interpreter;
  };
  struct Note {
    std::uint64_t hash;  // of its text
    std::uint32_t number;
  };
  struct Tables {
    Known known[kSlots];
    Note notes[kNoteSlots];
    Module modules[kModules];
    std::uint64_t addresses[kMost * 16];
    char text[64 << 10];
  };

  const Known* add(Known& place, std::uint64_t hash, std::span<const stack::Frame> frames);
  std::uint32_t number_of(std::span<const stack::Frame> frames);
  void add_text(base::TextBuffer& text, std::span<const stack::Frame> frames);
  std::uint32_t module_of(std::uint64_t address, std::uint64_t& bias);
  bool write_module(const stack::Object& object, std::uint32_t number);

  std::uint64_t lock_ = 0;
  Tables* tables_ = nullptr;
  std::uint32_t count_ = 0, notes_ = 0, modules_ = 0;
  std::size_t used_ = 0;  // addresses
};

class Sites {
 public:
  void begin(bool on) { on_ = on; }
  bool on() const { return on_; }
  /// Counts a call of this thread at its call site. `file`: row of a record, or kNoFile.
  void count(Slot& slot, const Call& call, std::uint32_t file, std::uint64_t bytes);
  /// Prepares a slot for another thread.
  static void change_thread(Slot& slot);

 private:
  struct Kept;
  struct Thread;

  Thread* thread_of(Slot& slot);
  Kept* capture(Thread& thread, const stack::Caller& caller, std::uint64_t python);
  static SiteRow* row_of(Thread& thread, std::uint32_t stack, std::uint32_t function,
                         std::uint32_t file);
  static bool add_row(Thread& thread);

  bool on_ = false;
  Stacks stacks_;
  friend detail::Slot;
};

}  // namespace pario::trace
