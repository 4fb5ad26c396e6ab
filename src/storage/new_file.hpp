// Stripes of the files that a program creates: they have to be said before the first byte. No heap, raw system calls only: it works under
// any program, in a signal handler, too. Open to other rooms.
#pragma once

#include <cstdint>

#include "base/base.hpp"
#include "hints/hints.hpp"
#include "layout/layout.hpp"

namespace pario::storage {

/// What hints ask for: as they say, or, where they name a size and no number of stripes, what the policy chooses for it. Nothing, for files
/// that grow to nobody knows what.
layout::Striping wanted_striping(const hints::StripingHints& hints, std::uint32_t writers, std::uint32_t targets);

/// A file that is about to be opened with O_CREAT. Where it is not there, and its file system has stripes, it is made here, with the
/// stripes that are wanted; one without bytes gets them, too, as far as the file system still does that. Nothing of this is an error of
/// the open, which follows while this lives, without O_EXCL where created().
class NewFile {
 public:
  /// `path` and `directory` are those of openat(2), `mode` is less the umask. `writers`: that will use it at the same time, where the
  /// hints do not say how many.
  /// A link is followed to the file that it stands for, as the kernel would, unless `exclusive`.
  NewFile(int directory, const char* path, unsigned mode, const hints::StripingHints& hints, std::uint32_t writers = 1,
          bool exclusive = false);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  bool created() const { return created_; }
  /// Somebody has made it before, and it keeps its stripes.
  bool existed() const { return existed_; }
  /// Whether it is what was opened: with O_EXCL it must be, and somebody may have put another one in its place.
  bool is(int descriptor) const;
  /// The open has failed.
  void remove();

  /// Of several parts, that of the last.
  const layout::Striping& wanted() const { return wanted_; }
  /// Bytes that it was taken to come to: as the hints say, or as earlier files tell; 0: nobody knows.
  std::uint64_t expected_size() const { return expected_size_; }
  /// Read back; no unit: not known.
  const layout::Striping& effective() const { return effective_; }
  /// Why it could not be set; nothing: it could.
  void add_trouble(base::TextBuffer& out) const;
  /// The same, or how what it has differs from what was wanted.
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
  layout::GrowingStripes growing_ = {};  ///< no parts: it is striped in one way
  layout::Kind kind_ = layout::Kind::unknown;
  layout::Striping wanted_ = {}, effective_ = {};
  bool created_ = false, existed_ = false;
  unsigned mode_ = ~0U;  ///< to be given back to it
  long error_ = 0;
  const char* failed_ = "";
};

/// Says how stripes differ from what was wanted; nothing: they do not.
void add_differences(base::TextBuffer& out, layout::Kind kind, const layout::Striping& wanted, const layout::Striping& got);

/// What new files of a directory get, from now on. 0, or -errno; -ENOTSUP: its file system has no stripes.
long stripe_directory(int directory, const char* path, const hints::StripingHints& hints);

}  // namespace pario::storage
