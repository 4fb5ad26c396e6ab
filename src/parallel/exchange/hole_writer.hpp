// Read-modify-write of windows with holes: the only place where bytes read from a file are written
// back to it. Collective writes (exchange) and sieved independent writes (engine) use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/base.hpp"
#include "parallel/exchange/counters.hpp"

namespace pario::exchange {

/// The file whose windows are read and written. Implementations are thread-safe if several ranks or
/// threads share one object.
class WindowFile {
 public:
  /// `unit`: bytes of a stripe or lock unit of the file; only counters use it.
  explicit WindowFile(std::uint64_t unit = 1) : unit_(unit) {}
  virtual ~WindowFile() = default;
  WindowFile(const WindowFile&) = delete;
  WindowFile& operator=(const WindowFile&) = delete;

  virtual base::Status write(std::uint64_t offset, std::span<const std::byte> data) = 0;
  /// Returns the number of bytes before the end of the file; zero-fills `data` behind them.
  virtual base::Result<std::uint64_t> read(std::uint64_t offset, std::span<std::byte> data) = 0;

  /// Waits until no other writer changes `hull`, and excludes other writers until end_modify(). An
  /// Error: the bytes of `hull` must not be written back (EBUSY: other handles may write the file).
  virtual base::Status begin_modify(base::Extent hull) {
    static_cast<void>(hull);
    return {};
  }
  /// Called once after each successful begin_modify().
  virtual void end_modify(base::Extent hull) { static_cast<void>(hull); }

  std::uint64_t unit() const { return unit_; }

 private:
  const std::uint64_t unit_;
};

/// Writes `data` at `offset`, counts and times the request.
base::Status write_counted(WindowFile& file, std::uint64_t offset, std::span<const std::byte> data,
                           Counters& counters);
/// Reads `data` at `offset` like WindowFile::read(), counts and times the request.
base::Result<std::uint64_t> read_counted(WindowFile& file, std::uint64_t offset,
                                         std::span<std::byte> data, Counters& counters);

/// One read-modify-write: begin(), then the caller copies its pieces between the bytes of the
/// holes, then write_back(). Used once, by one thread.
class HoleWriter {
 public:
  HoleWriter(WindowFile& file, Counters& counters) : file_(file), counters_(counters) {}
  ~HoleWriter();
  HoleWriter(const HoleWriter&) = delete;
  HoleWriter& operator=(const HoleWriter&) = delete;

  /// Obtains permission (WindowFile::begin_modify()) and reads `hull` into `old`, which holds
  /// hull.length() bytes. After an Error no byte may be written back, but the caller may still
  /// write its pieces one by one.
  base::Status begin(base::Extent hull, std::byte* old);
  /// Writes hull.length() bytes, holes and pieces. Only after a successful begin().
  base::Status write_back(const std::byte* bytes);

 private:
  WindowFile& file_;
  Counters& counters_;
  base::Extent hull_ = {};
  bool is_permitted_ = false;
};

}  // namespace pario::exchange
