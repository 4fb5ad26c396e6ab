// One rank's access straight between memory and file: contiguous, by runs, or through sieve windows.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "engine/claims.hpp"
#include "engine/gate.hpp"
#include "exchange/exchange.hpp"
#include "hints/hints.hpp"
#include "layout/layout.hpp"
#include "pattern/pattern.hpp"
#include "plan/plan.hpp"
#include "storage/storage.hpp"

namespace pario::engine {

/// What decides how accesses are carried out; replaced as a whole when hints change.
struct Terms {
  hints::FileHints hints;
  layout::StripeLayout layout;
  bool atomic = false;
  bool one_node = true;  ///< all ranks of the file
};

/// Whether ranks see what others have written, once they have been told by MPI. On one node they
/// share its cache; between nodes where the file system's locks keep all caches the same. Merged
/// collective writes wait for MPI_File_sync; what is kept by pario_write_behind is written before
/// the rank communicates.
bool visible_at_once(const Terms& terms);

/// Windows of the independent accesses of a file, kept for the next ones. Thread-safe.
class Images {
 public:
  /// Memory of at least `size` bytes; comes back when the holder goes.
  class Image {
   public:
    Image(Images& home, std::unique_ptr<std::byte[]> data, std::size_t size) : home_(home), data_(std::move(data)), size_(size) {}
    ~Image() { home_.put(std::move(data_), size_); }
    Image(const Image&) = delete;
    Image& operator=(const Image&) = delete;
    std::byte* data() const { return data_.get(); }

   private:
    Images& home_;
    std::unique_ptr<std::byte[]> data_;
    std::size_t size_;
  };
  Image take(std::size_t size);

 private:
  void put(std::unique_ptr<std::byte[]> data, std::size_t size);

  std::mutex mutex_;
  std::unique_ptr<std::byte[]> kept_;
  std::size_t kept_size_ = 0;
};

/// Keeps the threads of this process apart that lock stretches of one file: file locks hold between processes only. One per path.
std::shared_ptr<std::shared_mutex> process_lock(const std::string& path);

/// Carries out one access. Made for each call; errors have no rank yet.
class Mover {
 public:
  struct Figures {
    exchange::Tally tally = {};
    bool sieved = false;
  };
  Mover(storage::File& file, const Terms& terms, Images& images, std::shared_mutex& threads, Gate& gate, Claims& claims, Figures& figures)
      : file_(file), terms_(terms), images_(images), threads_(threads), gate_(gate), claim_(claims), figures_(figures) {}

  /// Bytes moved: all of them, or for reads those before the end of the file.
  base::Result<std::uint64_t> move(plan::Direction direction, const pattern::Access& access, const pattern::Summary& summary);
  /// Reads back what was written and compares.
  base::Status verify(const pattern::Access& access, base::Extent span);

 private:
  using Count = base::Result<std::uint64_t>;
  /// What of a stretch the access touches: from its first byte in there to its last one, and how many bytes.
  struct Touched {
    base::Extent hull = {};
    std::uint64_t bytes = 0;
  };
  static Touched touched(const pattern::Access& access, base::Extent stretch);
  static base::Extent next_stretch(const pattern::Access& access, base::Extent rest, std::uint64_t window);

  Count carry_out(plan::Direction direction, const pattern::Access& access, const pattern::Summary& summary);
  bool may_sieve(plan::Direction direction);
  Count plainly(plan::Direction direction, const std::function<Count()>& move);
  Count whole(plan::Direction direction, const pattern::Access& access, base::Extent span);
  Count runs(plan::Direction direction, const pattern::Access& access, const pattern::Summary& summary, base::Extent span);
  Count windows(plan::Direction direction, const pattern::Access& access, base::Extent span, std::uint64_t window, bool lock);
  Count read_window(pattern::Walker& walker, base::Extent stretch, std::byte* image);
  Count write_window(pattern::Walker& walker, const Touched& what, std::byte* image, bool lock);
  Count modify_window(pattern::Walker& walker, const Touched& what, std::byte* image);
  Count write_runs(pattern::Walker& walker, base::Extent stretch);
  Count vectored(plan::Direction direction, base::Extent run, std::span<const std::span<std::byte>> pieces);
  Count get(base::Extent where, std::byte* to);
  Count put(base::Extent where, const std::byte* from);
  void count_write(base::Extent where);
  void count_read(std::uint64_t bytes);

  storage::File& file_;
  const Terms& terms_;
  Images& images_;
  std::shared_mutex& threads_;
  Gate& gate_;
  Claim claim_;
  Figures& figures_;
};

/// Adds nanoseconds to a figure while it lives.
class Timer {
 public:
  explicit Timer(std::uint64_t& to) : to_(to), begin_(base::monotonic_ns()) {}
  ~Timer() { to_ += base::monotonic_ns() - begin_; }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  std::uint64_t& to_;
  std::uint64_t begin_;
};

template <class Work>
auto timed(std::uint64_t& to, Work work) {
  const Timer timer(to);
  return work();
}

}  // namespace pario::engine
