// The common base of all members: complete transfers made of attempts, and errors that name path
// and range.
#pragma once

#include <string>
#include <utility>

#include "core/file/file.hpp"

namespace pario::file {

class Member : public File {
 public:
  const std::string& path() const final { return path_; }
  base::Result<std::uint64_t> read(std::uint64_t offset, std::span<std::byte> data) final;
  base::Status write(std::uint64_t offset, std::span<const std::byte> data) final;
  base::Result<std::uint64_t> read_vector(std::uint64_t offset, std::span<iovec> pieces) final;
  base::Status write_vector(std::uint64_t offset, std::span<iovec> pieces) final;
  const layout::StripeLayout& layout() const final { return layout_; }

 protected:
  Member(std::string path, layout::StripeLayout layout) : path_(std::move(path)), layout_(layout) {}

  /// One attempt at moving pieces (at least one, the first not empty): the bytes moved, 0 at the
  /// end of the file, or a negative errno.
  virtual long attempt_read(std::uint64_t offset, std::span<const iovec> pieces) = 0;
  virtual long attempt_write(std::uint64_t offset, std::span<const iovec> pieces) = 0;

  base::Error error(int number, const char* operation, base::Extent where = {},
                    std::string detail = {}) const;

 private:
  std::string path_;
  layout::StripeLayout layout_;
};

/// The result of an inner file's operation in the form of an attempt's.
inline long as_attempt(const base::Result<std::uint64_t>& moved) {
  return moved.ok() ? static_cast<long>(moved.value()) : -moved.error().number;
}
inline long as_attempt(const base::Status& written, std::uint64_t length) {
  return written.ok() ? static_cast<long>(length) : -written.error().number;
}

/// Copies between memory and pieces, one after the other; `copy(piece, done)` gets the bytes before
/// it in `done`.
template <class Copy>
long for_pieces(std::span<const iovec> pieces, std::uint64_t limit, Copy copy) {
  std::uint64_t done = 0;
  for (const iovec& piece : pieces) {
    const std::uint64_t length = std::min<std::uint64_t>(piece.iov_len, limit - done);
    if (length > 0) copy(std::span(static_cast<std::byte*>(piece.iov_base), length), done);
    done += length;
  }
  return static_cast<long>(done);
}

}  // namespace pario::file
