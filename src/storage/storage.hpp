// Room storage: files. Members behind one interface, one conformance suite for all: posix, memory, null, faulty, throttled, subfiled.
//
// Reads and writes are complete or an Error: short transfers, EINTR and EAGAIN are dealt with here; only the end of the file makes a read
// shorter. Calls on one File may come from any number of threads. The real calls go through the C library's names (pwrite, not raw system
// calls), so that tracers, pario's own among them, see them.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/base.hpp"
#include "hints/hints.hpp"
#include "layout/layout.hpp"

namespace pario::storage {

class File {
 public:
  virtual ~File() = default;
  virtual const std::string& path() const = 0;
  /// Bytes read: less than data.size() only at the end of the file.
  virtual base::Result<std::uint64_t> read(std::uint64_t offset, std::span<std::byte> data) = 0;
  virtual base::Status write(std::uint64_t offset, std::span<const std::byte> data) = 0;
  /// The pieces are contiguous in the file. More than IOV_MAX of them are dealt with. Contents of `pieces` are unspecified afterwards.
  virtual base::Result<std::uint64_t> read_vector(std::uint64_t offset, std::span<iovec> pieces) = 0;
  virtual base::Status write_vector(std::uint64_t offset, std::span<iovec> pieces) = 0;
  virtual base::Result<std::uint64_t> size() = 0;
  virtual base::Status resize(std::uint64_t size) = 0;
  /// Storage for [0, size); a smaller file becomes that large, a larger one stays.
  virtual base::Status preallocate(std::uint64_t size) = 0;
  virtual base::Status sync() = 0;
  /// An exclusive or shared lock on a stretch, against other processes; waits. NotSupported (ENOLCK, ENOTSUP) is an Error.
  virtual base::Status lock(base::Extent where, bool exclusive) = 0;
  /// lock() that does not wait: false, somebody else has a lock there. Of what this node has cached nothing is thrown away.
  virtual base::Result<bool> try_lock(base::Extent where, bool exclusive) = 0;
  virtual base::Status unlock(base::Extent where) = 0;
  /// Throws away what this node has cached, so that other nodes' writes are seen (NFS); may be nothing.
  virtual base::Status refresh() = 0;
  virtual const layout::StripeLayout& layout() const = 0;
  /// Why the striping that was asked for could not be set when the file was opened; empty: nothing was asked, or it was set.
  virtual std::string striping_trouble() const { return {}; }
  /// Of how many physical files it consists.
  virtual std::uint32_t subfiles() const { return 1; }
  /// Errors of close(2) (delayed EIO, ENOSPC, EDQUOT). Called once; the destructor closes silently.
  virtual base::Status close() = 0;
};

/// open(2) flags and mode; striping hints (striping_unit, striping_factor, start_target) are applied when it creates the file,
/// see striping_outcome().
struct OpenRequest {
  std::string path = {};
  int flags = 0;
  unsigned mode = 0644;
  std::uint64_t striping_unit = 0;    ///< 0: as the directory says
  std::uint32_t striping_factor = 0;  ///< 0: as the directory says; ~0u: all targets
  std::int32_t start_target = -1;
  std::uint32_t growing_writers = 0;  ///< not 0: nobody knows its size, and so many processes write it; only without striping_factor
  std::uint32_t subfiles = 1;         ///< more than 1: a new file consists of that many physical files (layout: SubfileMap)
};
/// A file that consists of subfiles is opened as such whatever the request says. Whoever creates a file with subfiles must have returned
/// from open() before others open it.
base::Result<std::unique_ptr<File>> open(const OpenRequest& request);
/// With the subfiles it may consist of.
base::Status remove(const std::string& path);

/// How subfiles become one file. by_sharing: only where the file system lets files share what they hold, so that no byte is moved, and
/// only where it is sure that nobody has the file open; EOPNOTSUPP elsewhere.
enum class Joining : std::uint8_t { by_all_means, by_sharing };
/// Makes a file that consists of subfiles one file for everybody: written aside, renamed, then the subfiles go. EBUSY while somebody has
/// it open or joins it (as far as the file system has flock(2)); who opens it meanwhile waits. One that is interrupted has changed
/// nothing, and the next clears up after it. `progress` gets bytes done and in all, now and then. EINVAL for files that do not consist of
/// subfiles.
base::Status join(const std::string& path, const std::function<void(std::uint64_t done, std::uint64_t whole)>& progress = {},
                  Joining how = Joining::by_all_means);

/// What became of the striping that was asked for: read back from the file system, always.
struct StripingOutcome {
  bool supported = false;  ///< the file system has per-file striping
  layout::StripeLayout effective = {};
  std::string reason = {};  ///< why requested and effective differ; empty: they do not
};
StripingOutcome striping_outcome(const OpenRequest& request, const File& file);

/// Members for tests and models.
std::unique_ptr<File> make_memory(std::string name, layout::StripeLayout layout = {});
std::unique_ptr<File> make_null(std::string name);
/// What a faulty file does with one call.
struct Fault {
  enum class Kind { none, error, short_transfer, interrupted } kind = Kind::none;
  int number = 0;  ///< errno of error
};
/// Asks `decide(operation, where)` before each call ("read", "write", "sync", ...); thread-safe if that is.
std::unique_ptr<File> make_faulty(std::unique_ptr<File> inner, std::function<Fault(const char* operation, base::Extent where)> decide);
/// Each target moves `bytes_per_second` at most and asks `seconds_per_call` of every call.
std::unique_ptr<File> make_throttled(std::unique_ptr<File> inner, double bytes_per_second, double seconds_per_call);

}  // namespace pario::storage
