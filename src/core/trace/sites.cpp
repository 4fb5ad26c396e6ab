#include "core/trace/sites.hpp"

#include <algorithm>

#include "core/trace/state.hpp"

namespace pario::trace {
namespace {

constexpr std::size_t kKept = 1024;     // stacks per thread; a power of two
constexpr std::size_t kRows = 4096;     // rows per thread
constexpr std::size_t kEnough = 3072;   // rows in use after those of single files were folded
constexpr std::uint64_t kFewMeans = 4;  // a row is folded up to so many times the mean
constexpr std::size_t kSlots = 2 * kRows;
constexpr std::size_t kFirstBlock = 1, kLargestBlock = 16;  // pages
// Unwinding takes about as long as 50 known calls: beyond the first ones, at most one call in 64
// may.
constexpr std::uint64_t kFreeCaptures = 16384, kCallsPerCapture = 64;

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15;
  const std::uint64_t hash = (a ^ (b * kFactor)) * kFactor;
  return hash ^ hash >> 32;
}

/// The mean calls and ticks of rows.
class Means {
 public:
  void add(const SiteRow& row) {
    ++rows_;
    calls_ += row.calls;
    ticks_ += row.ticks;
  }
  /// True for at least half of the rows: less than a quarter has more calls than this, and less
  /// than a quarter more ticks.
  bool has_little(const SiteRow& row) const {
    return row.calls / kFewMeans <= calls_ / rows_ && row.ticks / kFewMeans <= ticks_ / rows_;
  }

 private:
  std::uint64_t rows_ = 0, calls_ = 0, ticks_ = 0;
};

stack::Range find_stack(std::uint64_t sp) {
  stack::Reads reads;
  const stack::Range range = stack::find_stack(sp, reads);
  bump(process().tracer_reads, reads.calls);
  bump(process().tracer_bytes_read, reads.bytes);
  return range;
}

}  // namespace

/// A stack that the thread has seen. Its return addresses are at `caller.sp` + 8 * places[i].
struct Sites::Kept {
  std::uint64_t address, sp, python;
  SiteRow* row;  // of the last call
  const std::uint64_t* addresses;
  std::uint32_t stack, generation;
  std::uint32_t checks;
  std::uint16_t places[stack::kMostFrames];

  bool is_of(const stack::Caller& caller, std::uint64_t its_python, std::uint32_t its) const {
    if (address != caller.address || sp != caller.sp || python != its_python || generation != its)
      return false;
    const auto* words = reinterpret_cast<const std::uint64_t*>(sp);
    if (words == nullptr) return false;
    for (std::uint32_t i = 0; i < checks; ++i)
      if (words[places[i]] != addresses[i]) return false;
    return true;
  }
};

/// The table of one slot. Only the thread that has the slot uses it.
struct Sites::Thread {
  std::uint64_t calls, captures;
  stack::Range stack;
  std::uint32_t generation;  // of the threads that had the slot
  std::uint32_t rows, used;  // made, and of them in use
  std::uint64_t number;      // of the thread block
  BlockHeader* block;
  std::size_t pages;
  Kept unknown;
  SiteRow* all[kRows];  // those in use first
  SiteRow* of_key[kSlots];
  Kept kept[kKept];

  /// The place of the row with a key in `of_key`; null there if there is none.
  SiteRow*& place_of(std::uint32_t its_stack, std::uint32_t function, std::uint32_t file);
  /// Folds rows of few calls and little time: those of files into rows without a file, or those
  /// without a file into rows without a stack.
  void fold(bool without_file);
  void make_room();
};

SiteRow*& Sites::Thread::place_of(std::uint32_t its_stack, std::uint32_t function,
                                  std::uint32_t file) {
  std::size_t at = mix(std::uint64_t{its_stack} << 32 | function, file) % kSlots;
  for (; of_key[at] != nullptr; at = (at + 1) % kSlots) {
    const SiteRow& row = *of_key[at];
    if (row.stack == its_stack && row.function == function && row.file == file) break;
  }
  return of_key[at];
}

// A process that is killed meanwhile counts the calls of one row twice.
void Sites::Thread::fold(bool without_file) {
  const auto belongs = [without_file](const SiteRow& row) {
    return without_file ? row.file == kNoFile && row.stack != 0 : row.file != kNoFile;
  };
  Means means;
  const std::span its_rows(all, used);
  for (const SiteRow* row : its_rows)
    if (belongs(*row)) means.add(*row);
  const auto folded = std::ranges::partition(
      its_rows, [&](const SiteRow* row) { return !belongs(*row) || !means.has_little(*row); });
  std::ranges::fill(of_key, nullptr);
  used -= static_cast<std::uint32_t>(folded.size());
  for (SiteRow* row : its_rows.first(used)) place_of(row->stack, row->function, row->file) = row;
  for (SiteRow*& row : folded) {
    if (without_file) row->stack = 0;
    row->file = kNoFile;
    SiteRow*& into = place_of(row->stack, row->function, kNoFile);
    if (into == nullptr) {
      into = row;
      std::swap(row, all[used++]);
    } else {
      into->calls += row->calls;
      into->ticks += row->ticks;
      into->bytes += row->bytes;
      *row = {};
    }
  }
}

/// Folds rows so that at least an eighth of them is free.
void Sites::Thread::make_room() {
  fold(false);
  if (used > kEnough) fold(true);
  for (Kept& one : kept) one.row = nullptr;
  unknown.row = nullptr;
}

void Sites::change_thread(Slot& slot) {
  auto* thread = static_cast<Thread*>(slot.sites);
  if (thread == nullptr) return;
  ++thread->generation;
  thread->stack = {};
}

Sites::Thread* Sites::thread_of(Slot& slot) {
  if (slot.sites == nullptr) {
    std::byte* memory = base::map_memory(sizeof(Thread));
    if (memory == nullptr) return nullptr;
    auto* thread = reinterpret_cast<Thread*>(memory);
    thread->number = slot.block->aux0;
    thread->generation = 1;
    slot.sites = thread;
  }
  return static_cast<Thread*>(slot.sites);
}

// Not inlined into count(), whose registers it would need.
[[gnu::noinline, gnu::hot]] void Sites::count(Slot& slot, const Call& call, std::uint32_t file,
                                              std::uint64_t bytes) {
  Thread* thread = thread_of(slot);
  if (thread == nullptr) return bump(process().sites_lost, call.calls);
  ++thread->calls;
  const stack::Caller caller = stack::find_caller();
  const std::uint64_t python = stack::python::fingerprint();
  const std::size_t at = mix(caller.address ^ python, caller.sp) % kKept;
  Kept* kept = &thread->kept[at];
  if (!kept->is_of(caller, python, thread->generation)) [[unlikely]] {
    kept = &thread->kept[at ^ 1];
    if (!kept->is_of(caller, python, thread->generation)) kept = capture(*thread, caller, python);
  }
  SiteRow* row = kept->row;
  if (row == nullptr || row->file != file || row->function != call.function) [[unlikely]]
    row = kept->row = row_of(*thread, kept->stack, call.function, file);
  if (row == nullptr) return bump(process().sites_lost, call.calls);
  row->calls += call.calls;
  row->ticks += call.end - call.start;
  row->bytes += bytes;
}

/// Unwinds a new stack and keeps it.
[[gnu::noinline]] Sites::Kept* Sites::capture(Thread& thread, const stack::Caller& caller,
                                              std::uint64_t python) {
  if (caller.address == 0 || thread.captures > kFreeCaptures + thread.calls / kCallsPerCapture)
    return &thread.unknown;
  ++thread.captures;
  if (thread.stack.end == 0) thread.stack = find_stack(caller.sp);
  const bool own = thread.stack.contains(caller.sp);  // not that of a coroutine or a signal handler
  stack::Frame frames[stack::kMostFrames];
  const std::size_t count =
      stack::unwind(caller, own ? thread.stack : find_stack(caller.sp), frames);
  const Stacks::Known* known = stacks_.find({frames, count}, python);
  if (known == nullptr) return &thread.unknown;
  const std::size_t at = mix(caller.address ^ python, caller.sp) % kKept;
  Kept& kept = thread.kept[at];
  thread.kept[at ^ 1] = kept;
  kept = {caller.address, caller.sp,         python, nullptr, known->addresses + 1,
          known->number,  thread.generation, 0,      {}};
  for (std::size_t i = 1; own && i < count; ++i) {
    const std::uint64_t words = (frames[i].place - caller.sp) / sizeof(std::uint64_t);
    if (words > 0xffff) break;
    kept.places[kept.checks++] = static_cast<std::uint16_t>(words);
  }
  return &kept;
}

/// Finds the row of a stack, function and file, or makes it; null if there is no memory.
SiteRow* Sites::row_of(Thread& thread, std::uint32_t stack, std::uint32_t function,
                       std::uint32_t file) {
  if (SiteRow* row = thread.place_of(stack, function, file)) return row;
  if (thread.used == kRows) thread.make_room();
  if (thread.used == thread.rows && !add_row(thread)) return nullptr;
  SiteRow* row = thread.all[thread.used++];
  *row = {stack, file, function, 0, 0, 0, 0};
  return thread.place_of(stack, function, file) = row;
}

/// Adds a row of the newest block of the thread, or of a new and larger one; false if there is no
/// memory.
bool Sites::add_row(Thread& thread) {
  BlockHeader* block = thread.block;
  if (block == nullptr || block->capacity() < (block->count + 1) * sizeof(SiteRow)) {
    thread.pages = std::clamp(thread.pages * 4, kFirstBlock, kLargestBlock);
    block = state.log.reserve(BlockKind::sites, thread.pages * kPage - sizeof(BlockHeader));
    if (block == nullptr) return false;
    block->aux0 = thread.number;
    thread.block = block;
  }
  thread.all[thread.rows++] = reinterpret_cast<SiteRow*>(block->payload()) + block->count;
  block->used = (block->count + 1) * sizeof(SiteRow);
  std::atomic_ref(block->count).store(block->count + 1, std::memory_order_release);
  return true;
}

}  // namespace pario::trace
