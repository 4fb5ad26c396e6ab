// Stripes of the files that a program creates, which must be set before the first byte. No heap,
// raw system calls only: usable under any program and in a signal handler. A public header.
#pragma once

#include <cstdint>

#include "core/base/base.hpp"
#include "core/hints/hints.hpp"
#include "core/layout/layout.hpp"

namespace pario::file {

/// The striping that hints request: their own values, or, if they name a size and no number of
/// stripes, the choice for that size in `directory` (a descriptor) by a sweep or the policy. Empty
/// for growing files of unknown size.
layout::Striping wanted_striping(const hints::StripingHints& hints, std::uint32_t writers,
                                 std::uint32_t targets, int directory);

/// True if the hints request stripes of new files.
bool asks_for_stripes(hints::StripingHints hints);
/// The hints in force for a file of that striping: those that a file system of that kind does not
/// have are at their defaults.
hints::StripingHints effective_hints(hints::StripingHints hints, layout::Kind kind,
                                     const layout::Striping& got);

/// A file that is about to be opened with O_CREAT. If it does not exist and its file system has
/// stripes, the constructor creates it with the requested stripes; an existing empty file gets them
/// too, if the file system still allows it. A failure is no error of the open, which follows during
/// this object's life, without O_EXCL if has_created().
class NewFile {
 public:
  /// `path` and `directory` are those of openat(2), `mode` is less the umask. `writers`: the number
  /// of concurrent writers if the hints have none. Symbolic links are followed as by the kernel,
  /// unless `exclusive`.
  NewFile(int directory, const char* path, unsigned mode, const hints::StripingHints& hints,
          std::uint32_t writers = 1, bool exclusive = false);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  bool has_created() const { return created_; }
  /// True if the file existed with contents, so that it keeps its stripes.
  bool did_exist() const { return existed_; }
  /// True if `descriptor` is this file; another process may have replaced it. O_EXCL requires it.
  bool is(int descriptor) const;
  /// Removes the file if it was created here; for opens that failed.
  void remove();

  /// The requested striping; of a file with several parts, that of the last part.
  const layout::Striping& requested_striping() const { return wanted_; }
  /// The expected size in bytes, from the hints or from earlier files; 0: unknown.
  std::uint64_t expected_size() const { return expected_size_; }
  layout::Kind kind() const { return kind_; }
  /// The striping read back; its unit is 0 if unknown.
  const layout::Striping& effective() const { return effective_; }
  /// Adds the reason why the striping could not be set, if it could not.
  void add_trouble(base::TextBuffer& out) const;
  /// Adds that reason, or the differences between requested and effective striping.
  void add_reason(base::TextBuffer& out) const;

 private:
  bool begin_at(int directory, std::string_view path);
  bool follow();
  void choose(hints::StripingHints hints, std::uint32_t writers);
  void open(unsigned mode);
  void open_on_beegfs(unsigned mode);
  void open_empty(int flags);
  void stripe();
  void lend_permission();

  int directory_ = -1, descriptor_ = -1;
  char name_[256] = {};
  std::uint64_t expected_size_ = 0;
  layout::StripedParts parts_ = {};  ///< as requested
  layout::Kind kind_ = layout::Kind::unknown;
  layout::Striping wanted_ = {}, effective_ = {};
  bool created_ = false, existed_ = false;
  unsigned mode_ = ~0U;  ///< the file's own mode, to be restored
  long error_ = 0;
  const char* failed_ = "";
};

/// Adds the differences between requested and effective stripes, if any.
void add_differences(base::TextBuffer& out, layout::Kind kind, const layout::Striping& wanted,
                     const layout::Striping& got);

/// Sets the stripes of new files in a directory. 0, or -errno; -ENOTSUP: its file system has no
/// stripes.
long stripe_directory(int directory, const char* path, const hints::StripingHints& hints);

}  // namespace pario::file
