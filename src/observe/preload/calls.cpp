#include "observe/preload/calls.hpp"

#include <sys/stat.h>

#include <cerrno>

#include "core/base/base.hpp"
#include "layers/buffering/buffering.hpp"

namespace pario::preload {

using trace::Layer;

namespace {

/// Returns the offset at which a call began that has moved `moved` bytes at the descriptor's
/// offset.
std::uint64_t begin_of(const Transfer& transfer, Description& file, std::uint64_t moved) {
  const bool appends = (file.open_flags.load(std::memory_order_relaxed) & O_APPEND) != 0 &&
                       op_of(transfer.symbol) == trace::Op::write;
  if (!appends && !file.shared.load(std::memory_order_relaxed)) [[likely]]
    return advance(file.offset, moved);
  if (const auto here = buffering::position(transfer.descriptor)) return *here - moved;
  const long end = base::system_call(SYS_lseek, transfer.descriptor, 0, SEEK_CUR);
  if (end < 0) return advance(file.offset, moved);  // a pipe: position in the bytes so far
  file.offset.store(static_cast<std::uint64_t>(end), std::memory_order_relaxed);
  return static_cast<std::uint64_t>(end) - moved;
}

}  // namespace

bool is_socket(int descriptor) {
  struct stat facts{};
  return base::system_call(SYS_fstat, descriptor, &facts) == 0 && S_ISSOCK(facts.st_mode);
}

[[gnu::hot]] void count_transfer(const Transfer& transfer, Description& file, Span span,
                                 std::int64_t moved) {
  trace::Record* record = record_of(file, Layer::posix);
  if (record == nullptr) return;
  const std::uint64_t offset =
      transfer.where != kAtOffset
          ? transfer.where
          : begin_of(transfer, file, moved > 0 ? static_cast<std::uint64_t>(moved) : 0);
  trace::count(
      record,
      {.function = id_of(transfer.symbol),
       .op = op_of(transfer.symbol),
       .start = span.start,
       .end = span.end,
       .offset = offset,
       .asked = transfer.asked,
       .result = moved,
       .open_flags = static_cast<std::uint32_t>(file.open_flags.load(std::memory_order_relaxed)),
       .data = moved > 0 ? transfer.data : nullptr});
}

void count_path(Symbol symbol, int directory, const char* name, Span span, bool failed) {
  if (name == nullptr || (failed && errno == EFAULT)) return;
  count_row(symbol, record_of(Layer::posix, directory, name, -1), span, failed);
}

trace::Record* enter_open(int directory, std::string_view name, int flags, int descriptor) {
  // An invalid flag fails before the kernel reads an invalid name.
  if (descriptor < 0 && (errno == EFAULT || (name.empty() && errno != ENOENT))) return nullptr;
  trace::Record* record = record_of(Layer::posix, directory, name, descriptor);
  if (descriptor >= 0) descriptors::attach(descriptor, Layer::posix, record, flags);
  return record;
}

void count_alone(Symbol symbol, Span span, bool failed) {
  trace::count_call({.function = id_of(symbol),
                     .op = op_of(symbol),
                     .start = span.start,
                     .end = span.end,
                     .result = failed ? -1 : 0},
                    trace::kNoFile, 0);
}

}  // namespace pario::preload
