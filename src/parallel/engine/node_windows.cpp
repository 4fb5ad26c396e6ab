#include "parallel/engine/node_windows.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>
#include <vector>

#include "parallel/engine/kept_bytes.hpp"
#include "parallel/engine/robust_mutex.hpp"

namespace pario::engine {
namespace {

constexpr std::uint64_t kWindow = 256 << 10;
constexpr std::uint64_t kLeastUnit = 64 << 10, kLargestUnit = 4 << 20;
constexpr std::uint64_t kFewestBuffers = 16, kMostBuffers = 4096;
constexpr std::uint64_t kBitsPerWord = 64;

std::uint64_t memory_of_buffer(std::uint64_t window) { return window + window / 8; }

/// Describes runs of a window whose bytes lie in `image` as they lie in the file.
pattern::Access access_of(std::byte* image, std::uint64_t begin,
                          const std::vector<base::Extent>& runs) {
  std::byte* const first = image + (runs.front().begin - begin);
  if (runs.size() == 1)
    return {.buffer = first, .position = runs.front().begin, .bytes = runs.front().length()};
  const auto [origin, bytes, layout] = describe_runs(runs);
  return {.buffer = first,
          .memory = layout,
          .view = {.displacement = origin, .filetype = layout},
          .bytes = bytes};
}

}  // namespace

/// Holds the lock of a slot. If the last holder has died, the slot is made consistent first.
class NodeWindows::Lock {
 public:
  Lock(NodeWindows& windows, Slot& slot) : slot_(slot) {
    if (::pthread_mutex_lock(&slot_.mutex) != EOWNERDEAD) return;
    windows.recover(slot_);
    ::pthread_mutex_consistent(&slot_.mutex);
  }
  ~Lock() { ::pthread_mutex_unlock(&slot_.mutex); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  Slot& slot_;
};

NodeWindows::Sizes NodeWindows::choose_sizes(std::uint64_t bound, std::uint64_t unit) {
  const bool suits = std::has_single_bit(unit) && unit >= kLeastUnit && unit <= kLargestUnit;
  std::uint64_t window = suits ? unit : kWindow;
  while (window > base::kPage && bound / memory_of_buffer(window) < kFewestBuffers) window /= 2;
  const std::uint64_t buffers = bound / memory_of_buffer(window);
  return {window, static_cast<std::uint32_t>(std::clamp<std::uint64_t>(buffers, 1, kMostBuffers))};
}

/// Twice as many slots as buffers, so that few windows collide.
std::size_t NodeWindows::memory_size(Sizes sizes) {
  const std::uint64_t heads =
      sizes.buffers * (2 * sizeof(Slot) + sizeof(std::atomic<std::uint32_t>));
  return base::round_up(heads, base::kPage) + sizes.buffers * memory_of_buffer(sizes.window);
}

void NodeWindows::initialise(std::byte* memory, Sizes sizes) {
  initialise_mutexes(std::span(reinterpret_cast<Slot*>(memory), 2 * std::size_t{sizes.buffers}));
}

NodeWindows::NodeWindows(std::byte* memory, Sizes sizes, Write write)
    : sizes_(sizes),
      write_(std::move(write)),
      slots_(reinterpret_cast<Slot*>(memory), 2 * std::size_t{sizes.buffers}),
      owners_(reinterpret_cast<std::atomic<std::uint32_t>*>(memory + slots_.size_bytes()),
              sizes.buffers),
      mapped_(sizes.buffers) {
  const std::size_t heads = slots_.size_bytes() + owners_.size_bytes();
  images_ = memory + base::round_up(heads, base::kPage);
  words_ = reinterpret_cast<std::uint64_t*>(images_ + sizes.buffers * sizes.window);
}

bool NodeWindows::can_keep(const pattern::Access& access) {
  return access.view.filetype.monotonic() && !access.view.filetype.overlapping();
}

base::Extent NodeWindows::extent_of(const Slot& slot) const {
  return base::Extent::at((slot.number - 1) * sizes_.window, sizes_.window);
}

std::span<std::uint64_t> NodeWindows::words_of(const Slot& slot) const {
  const std::size_t count = sizes_.window / kBitsPerWord;
  return {words_ + (slot.buffer - 1) * count, count};
}

std::byte* NodeWindows::image_of(const Slot& slot) const {
  return images_ + (slot.buffer - 1) * sizes_.window;
}

/// Waits for a rank that copies into the same window rather than continue with another one: ranks
/// of equal speed then follow each other through a few windows, which the caches hold.
void NodeWindows::add(const pattern::Access& access) {
  pattern::Walker walker(access);
  const std::uint64_t end = access.position + access.bytes;
  for (std::uint64_t position = access.position; position < end;)
    position += add_to_window(access, walker, position);
}

/// Copies the bytes from `position` on that lie in one window; returns their number.
std::uint64_t NodeWindows::add_to_window(const pattern::Access& access, pattern::Walker& walker,
                                         std::uint64_t position) {
  const std::uint64_t number = access.view.offset_of(position) / sizes_.window;
  Slot& slot = slot_of(number);
  while (true) {
    {
      const Lock lock(*this, slot);
      if (claim(slot, number)) {
        map_pages(slot, access.position + access.bytes - position);
        const std::uint64_t bytes =
            walker.gather(extent_of(slot), image_of(slot), {words_of(slot).data(), 1});
        const std::uint64_t end = access.view.offset_of(position + bytes - 1) + 1;
        slot.end = std::max<std::uint64_t>(slot.end, end);
        slot.bytes += bytes;
        if (is_full(slot)) write_out(slot);
        return bytes;
      }
    }
    flush_oldest();
  }
}

/// Gives the slot to a window, with the slot's lock. False: all buffers are in use.
bool NodeWindows::claim(Slot& slot, std::uint64_t number) {
  if (slot.number == number + 1) return true;
  if (slot.number != 0) write_out(slot);
  if (!take_buffer(slot)) return false;
  slot.since_ns = base::monotonic_ns();
  slot.number = number + 1;
  return true;
}

/// Takes the first free buffer, which the caches hold most likely.
bool NodeWindows::take_buffer(Slot& slot) {
  const auto owner = static_cast<std::uint32_t>(&slot - slots_.data() + 1);
  for (std::uint32_t i = 0; i < owners_.size(); ++i) {
    std::uint32_t free = 0;
    if (owners_[i] != 0 || !owners_[i].compare_exchange_strong(free, owner)) continue;
    slot.buffer = i + 1;
    return true;
  }
  return false;
}

/// Maps all pages of a buffer at once if `bytes`, or the bytes of other calls, will use many of
/// them: half a microsecond for each page fault is more than the copy takes.
void NodeWindows::map_pages(const Slot& slot, std::uint64_t bytes) {
  if (std::max(bytes, slot.bytes) < sizes_.window / 8) return;
  if (mapped_[slot.buffer - 1].exchange(true, std::memory_order_relaxed)) return;
  constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE; kernels before 5.14 refuse it
  base::system_call(SYS_madvise, image_of(slot), sizes_.window, kPopulateWrite);
}

/// Empties the slot, with its lock. A free buffer has no marks. The order is that of recover().
void NodeWindows::release(Slot& slot) {
  std::ranges::fill(words_of(slot), 0);
  slot.number = 0;
  slot.end = slot.since_ns = slot.bytes = 0;
  owners_[slot.buffer.exchange(0) - 1] = 0;
}

/// Repairs a slot whose holder died. Marked bytes are valid, because bytes are marked when they
/// have been copied. Bytes that the dead rank has written already are written again.
void NodeWindows::recover(Slot& slot) {
  const auto owner = static_cast<std::uint32_t>(&slot - slots_.data() + 1);
  for (std::uint32_t i = 0; i < owners_.size(); ++i)
    if (owners_[i] == owner) slot.buffer = i + 1;
  if (slot.buffer == 0) return;
  if (slot.number == 0) return release(slot);
  const std::span<const std::uint64_t> words = words_of(slot);
  const std::uint64_t begin = extent_of(slot).begin;
  for (std::size_t i = 0; i < words.size(); ++i)
    if (words[i] != 0)
      slot.end =
          begin + (i + 1) * kBitsPerWord - static_cast<std::uint64_t>(std::countl_zero(words[i]));
  slot.bytes = sizes_.window;  // so that is_full() counts them
}

bool NodeWindows::is_full(Slot& slot) const {
  if (slot.bytes < sizes_.window) return false;
  constexpr std::uint64_t kAllBits = ~std::uint64_t{0};
  const std::span<const std::uint64_t> words = words_of(slot);
  if (std::ranges::all_of(words, [](std::uint64_t word) { return word == kAllBits; })) return true;
  slot.bytes = 0;
  for (const std::uint64_t word : words)
    slot.bytes += static_cast<std::uint64_t>(std::popcount(word));
  return false;
}

/// Writes the bytes of a slot to the file and empties it, with its lock.
void NodeWindows::write_out(Slot& slot) {
  const base::Extent window = extent_of(slot);
  const pattern::Coverage coverage{words_of(slot).data(), 1};
  pattern::CoverageRuns marked(window, {&coverage, 1});
  std::vector<base::Extent> runs;
  for (base::Extent run = marked.next(); !run.empty(); run = marked.next()) runs.push_back(run);
  if (!runs.empty()) write_(access_of(image_of(slot), window.begin, runs));
  release(slot);
}

/// Writes a window (its number + 1; 0: none) if the slot still holds it.
void NodeWindows::flush_slot(Slot& slot, std::uint64_t number) {
  const Lock lock(*this, slot);
  if (number != 0 && slot.number == number) write_out(slot);
}

/// Frees a buffer. If no window has one, dead ranks have taken them: locking the slots frees these.
void NodeWindows::flush_oldest() {
  Slot* oldest = nullptr;
  std::uint64_t since_ns = 0;
  for (Slot& slot : slots_) {
    const std::uint64_t since = slot.since_ns;
    if (since != 0 && (oldest == nullptr || since < since_ns)) oldest = &slot, since_ns = since;
  }
  if (oldest != nullptr) return flush_slot(*oldest, oldest->number);
  for (Slot& slot : slots_) flush_slot(slot, slot.number);
}

void NodeWindows::flush() {
  for (Slot& slot : slots_)
    if (const std::uint64_t number = slot.number; number != 0) flush_slot(slot, number);
}

void NodeWindows::flush_older(std::uint64_t time_ns) {
  for (Slot& slot : slots_) {
    const std::uint64_t number = slot.number, since_ns = slot.since_ns;
    if (number != 0 && since_ns != 0 && since_ns < time_ns) flush_slot(slot, number);
  }
}

void NodeWindows::flush_overlapping(base::Extent span) {
  if (span.empty()) return;
  const std::uint64_t first = span.begin / sizes_.window;
  const auto flush_if_inside = [&](Slot& slot) {
    const std::uint64_t number = slot.number;
    if (number == 0) return;
    const std::uint64_t begin = (number - 1) * sizes_.window;
    if (!base::intersection({begin, begin + sizes_.window}, span).empty()) flush_slot(slot, number);
  };
  if ((span.end - 1) / sizes_.window - first >= slots_.size()) {
    for (Slot& slot : slots_) flush_if_inside(slot);
    return;
  }
  for (std::uint64_t number = first; number * sizes_.window < span.end; ++number)
    flush_if_inside(slot_of(number));
}

std::uint64_t NodeWindows::end() const {
  std::uint64_t end = 0;
  for (const Slot& slot : slots_) end = std::max<std::uint64_t>(end, slot.end);
  return end;
}

}  // namespace pario::engine
