#include "core/file/member.hpp"

#include <cerrno>
#include <cstdint>

#include "core/file/transfer.hpp"

namespace pario::file {
namespace {

/// True if the kernel cannot express the range: its offsets are signed numbers.
bool out_of_range(std::uint64_t offset, std::uint64_t length) {
  return offset > INT64_MAX || length > INT64_MAX - offset;
}

std::string after(const Outcome& outcome) {
  return outcome.moved == 0 ? std::string{} : "after " + std::to_string(outcome.moved) + " bytes";
}

}  // namespace

base::Error Member::error(int number, const char* operation, base::Extent where,
                          std::string detail) const {
  return {.number = number,
          .operation = operation,
          .path = path_,
          .where = where,
          .detail = std::move(detail)};
}

base::Result<std::uint64_t> Member::read(std::uint64_t offset, std::span<std::byte> data) {
  iovec piece{data.data(), data.size()};
  return read_vector(offset, {&piece, 1});
}

base::Status Member::write(std::uint64_t offset, std::span<const std::byte> data) {
  iovec piece{const_cast<std::byte*>(data.data()), data.size()};
  return write_vector(offset, {&piece, 1});
}

base::Result<std::uint64_t> Member::read_vector(std::uint64_t offset, std::span<iovec> pieces) {
  const std::uint64_t length = total_length(pieces);
  const char* operation = pieces.size() > 1 ? "preadv" : "pread";
  if (out_of_range(offset, length))
    return error(EINVAL, operation, {}, "offset " + std::to_string(offset) + " is out of range");
  const Outcome outcome = transfer(
      offset, pieces,
      [this](std::uint64_t at, std::span<const iovec> some) { return attempt_read(at, some); });
  if (outcome.number != 0)
    return error(outcome.number, operation, base::Extent::at(offset, length), after(outcome));
  return outcome.moved;
}

base::Status Member::write_vector(std::uint64_t offset, std::span<iovec> pieces) {
  const std::uint64_t length = total_length(pieces);
  const char* operation = pieces.size() > 1 ? "pwritev" : "pwrite";
  if (out_of_range(offset, length))
    return error(EFBIG, operation, {}, "offset " + std::to_string(offset) + " is out of range");
  const Outcome outcome = transfer(
      offset, pieces,
      [this](std::uint64_t at, std::span<const iovec> some) { return attempt_write(at, some); });
  if (outcome.number != 0)
    return error(outcome.number, operation, base::Extent::at(offset, length), after(outcome));
  if (outcome.moved < length)
    return error(EIO, operation, base::Extent::at(offset, length),
                 "the file accepted no more " + after(outcome));
  return {};
}

}  // namespace pario::file
