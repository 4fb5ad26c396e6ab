// Module file: one interface for files, its members, and the publication of new files.
//
// A member is a kind of storage, registered under a scheme: local, memory, null, faulty, throttled,
// subfiled. One conformance suite (tests/unit/file_conformance_test.cpp) covers all of them. URLs
// are objects of stores (objects.hpp), which are written as a whole.
//
// Reads and writes are complete or an Error: members complete short transfers and repeat EINTR and
// EAGAIN; only the end of the file makes a read shorter. Any number of threads may call one File.
// The local member calls the C library's functions (pwrite, not raw system calls), so that tracers,
// pario's own among them, see the calls.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/base.hpp"
#include "core/hints/hints.hpp"
#include "core/layout/layout.hpp"

namespace pario::file {

/// The optional operations that a file supports, where it is.
struct Capabilities {
  bool locks = false;          ///< lock() excludes all processes that can open the file
  bool preallocation = false;  ///< preallocate() reserves storage
  bool striping = false;       ///< stripes of a new file can be chosen
  bool resize = false;         ///< resize() works
  bool refresh = false;        ///< this node may cache bytes that others replace; see refresh()
  bool content = false;        ///< bytes written can be read back
};

class File {
 public:
  virtual ~File() = default;
  virtual const std::string& path() const = 0;
  /// Returns the supported operations. May query the file system once: not to be called per
  /// transfer.
  virtual Capabilities capabilities() const = 0;
  /// Returns the number of bytes read: less than data.size() only at the end of the file.
  virtual base::Result<std::uint64_t> read(std::uint64_t offset, std::span<std::byte> data) = 0;
  virtual base::Status write(std::uint64_t offset, std::span<const std::byte> data) = 0;
  /// The pieces are contiguous in the file; more than IOV_MAX are allowed. The contents of `pieces`
  /// are unspecified afterwards.
  virtual base::Result<std::uint64_t> read_vector(std::uint64_t offset,
                                                  std::span<iovec> pieces) = 0;
  virtual base::Status write_vector(std::uint64_t offset, std::span<iovec> pieces) = 0;
  virtual base::Result<std::uint64_t> size() = 0;
  virtual base::Status resize(std::uint64_t size) = 0;
  /// Reserves storage for [0, size). A smaller file grows to `size` bytes, a larger one is
  /// unchanged.
  virtual base::Status preallocate(std::uint64_t size) = 0;
  virtual base::Status sync() = 0;
  /// Waits for an exclusive or shared lock on a range, against other processes. An Error without
  /// Capabilities::locks.
  virtual base::Status lock(base::Extent where, bool exclusive) = 0;
  /// lock() that does not wait: false if another process has a lock there. Unlike lock(), it
  /// leaves this node's cache alone.
  virtual base::Result<bool> try_lock(base::Extent where, bool exclusive) = 0;
  virtual base::Status unlock(base::Extent where) = 0;
  /// Drops this node's cached bytes, so that reads see the writes of other nodes (NFS). Does
  /// nothing without Capabilities::refresh.
  virtual base::Status refresh() = 0;
  virtual const layout::StripeLayout& layout() const = 0;
  /// The reason why the requested striping could not be set at the opening; empty if none was
  /// requested, or it was set.
  virtual std::string striping_trouble() const { return {}; }
  /// The number of physical files.
  virtual std::uint32_t subfiles() const { return 1; }
  /// Returns errors of close(2) (delayed EIO, ENOSPC, EDQUOT). Called once; the destructor closes
  /// without a report.
  virtual base::Status close() = 0;
};

/// open(2) flags and mode. `striping` and `writers` apply if it creates the file; see
/// striping_outcome().
struct OpenRequest {
  std::string path = {};  ///< of a local file, may contain colons
  int flags = 0;
  unsigned mode = 0644;
  hints::StripingHints striping = hints::default_striping_hints();
  std::uint32_t writers = 1;  ///< processes that write the file, if `striping` does not say
  std::uint32_t subfiles =
      1;  ///< more than 1: a new file consists of that many physical files (layout: SubfileMap)
  /// The layout of an existing file that another process of this node has opened as one physical
  /// file. open() then asks the file system for nothing else than a descriptor.
  std::optional<layout::StripeLayout> known_layout = {};
  /// EIO if a subfile has fewer bytes than when the size of the file was recorded.
  bool require_complete = false;
};
/// Opens a local file. A file that consists of subfiles is opened as one file, regardless of the
/// request. A process that creates a file with subfiles must have returned from open() before
/// others open it.
base::Result<std::unique_ptr<File>> open(const OpenRequest& request);
/// A local file without subfiles by a copy of a descriptor, which may come from another process. It
/// opens no name. `path`: of the file, for errors and its layout.
base::Result<std::unique_ptr<File>> copy_opened(const std::string& path, int descriptor);
/// Removes a local file and its subfiles.
base::Status remove(const std::string& path);

/// A kind of storage. Its functions get the name without "SCHEME:".
struct Scheme {
  const char* name;
  base::Result<std::unique_ptr<File>> (*open)(const OpenRequest& request);
  base::Status (*remove)(const std::string& name);
};
/// False if the scheme is registered already.
bool register_scheme(const Scheme& scheme);
std::vector<std::string> scheme_names();
/// Opens a file by a name "SCHEME:REST", or a local file by its path; request.path is ignored. For
/// callers that choose the names: a program's path may begin like a scheme, and is opened by
/// open(request).
///
///     local:PATH
///     memory:NAME                      sparse, in this process
///     null:NAME                        has a size and reads as zeros
///     faulty:NAME                      interrupts and shortens two of three calls on another file
///     throttled:BYTES_PER_SECOND:NAME  limits the bandwidth of each target of another file
///     subfiled:FILES:PATH              a new file has so many subfiles
///     s3://BUCKET/KEY                  and any other URL: an object of a store (objects.hpp)
base::Result<std::unique_ptr<File>> open(std::string_view name, OpenRequest request = {});
/// Removes a file by such a name.
base::Status remove_named(std::string_view name);

/// Records the size of a file that consists of subfiles, so that losses are noticed: a subfile that
/// is missing or shorter later has lost its bytes. Makes each subfile as long as the size implies.
/// EWOULDBLOCK while another process has the file open, EOPNOTSUPP where that cannot be known,
/// ENOENT for a file that does not consist of subfiles.
base::Status record_size(const std::string& path);

/// The ways to make one file of subfiles. if_complete: only if no subfile is missing, or shorter
/// than the recorded size or the sizes of the others imply; EIO otherwise. by_sharing: only if the
/// file system lets files share blocks, so that no byte is moved, and only if no process can have
/// the file open; EOPNOTSUPP otherwise.
enum class Joining : std::uint8_t { by_all_means, if_complete, by_sharing };
/// Makes one ordinary file of a file that consists of subfiles: publishes it, then removes the
/// subfiles. EBUSY while another process has it open or joins it (as far as the file system has
/// flock(2)); a process that opens it meanwhile waits. An interrupted join changes nothing, and the
/// next one removes its temporary file. `progress` gets bytes done and in all, now and then. EINVAL
/// for files that do not consist of subfiles, EBADMSG for a damaged map.
base::Status join(const std::string& path,
                  const std::function<void(std::uint64_t done, std::uint64_t whole)>& progress = {},
                  Joining how = Joining::by_all_means);
/// Opens a copy of all bytes of a file that consists of subfiles, for reading only. The copy has no
/// name; it shares blocks with the subfiles where the file system can. ENOENT for other files, EIO
/// if a subfile has fewer bytes than when the size was recorded.
/// `flags`: further flags of open(2).
base::Result<int> open_joined_copy(const std::string& path, int flags);
/// Adds the facts of the subfiles to those of the file of a path: size, blocks and the last change.
/// False: it does not consist of subfiles.
bool add_subfiles(const std::string& path, struct stat& facts);

/// The striping of a file, compared with the requested one; always read back from the file system.
struct StripingOutcome {
  bool supported = false;  ///< the file system has per-file striping
  layout::StripeLayout effective = {};
  std::string reason = {};  ///< why requested and effective differ; empty: they do not
};
StripingOutcome striping_outcome(const OpenRequest& request, const File& file);

/// Members for tests and models.
std::unique_ptr<File> make_memory(std::string name, layout::StripeLayout layout = {});
std::unique_ptr<File> make_null(std::string name);
/// The treatment of one call on a faulty file.
struct Fault {
  enum class Kind { none, error, short_transfer, interrupted } kind = Kind::none;
  int number = 0;  ///< errno of error
};
/// Calls `decide(operation, where)` before each call ("read", "write", "sync", ...). Thread-safe if
/// `decide` is.
std::unique_ptr<File> make_faulty(
    std::unique_ptr<File> inner,
    std::function<Fault(const char* operation, base::Extent where)> decide);
/// Each target moves at most `bytes_per_second` and spends `seconds_per_call` on every call.
std::unique_ptr<File> make_throttled(std::unique_ptr<File> inner, double bytes_per_second,
                                     double seconds_per_call);

}  // namespace pario::file
