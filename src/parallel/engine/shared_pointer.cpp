#include "core/base/base.hpp"
#include "parallel/engine/context.hpp"
#include "parallel/engine/pointer_store.hpp"
#include "parallel/engine/transfers.hpp"

namespace pario::engine {
namespace {

using Position = base::Result<std::uint64_t>;

constexpr const char* kSeek = "MPI_File_seek_shared";

/// The first position of the ranks, in the form in which rank 0 sends it.
struct Reservation {
  int failed = 0;  ///< errno
  std::uint64_t begin = 0;
};

}  // namespace

SharedPointer::SharedPointer(FileContext& context, Transfers& transfers,
                             std::unique_ptr<PointerStore> store)
    : context_(context), transfers_(transfers), store_(std::move(store)) {}

SharedPointer::~SharedPointer() = default;

Position SharedPointer::advance(std::uint64_t bytes) {
  if (bytes > 0) has_moved_ = true;
  Position before = store_->advance(bytes);
  if (before) return before;
  return context_.complete_error(before.error(), "advance_shared");
}

Position SharedPointer::position() { return advance(0); }

Position SharedPointer::seek(std::uint64_t position) {
  transfers_.finish_started();
  Call call = context_.describe_call(kSeek);
  call.summary.bytes = position;
  const auto notices = transfers_.calls().meet(call);
  if (!notices) return notices.error();
  const std::uint64_t agreed = notices->front().summary.bytes;
  has_moved_ = agreed != 0;
  base::Status mine = context_.is_first() ? store_->set(agreed) : base::Status();
  if (!mine) mine = context_.complete_error(mine.error(), kSeek);
  const base::Status all = transfers_.calls().agree(mine, call);
  return all ? Position(agreed) : all.error();
}

Position SharedPointer::order(std::uint64_t bytes, const char* name) {
  transfers_.finish_started();
  Call call = context_.describe_call(name);
  call.summary.bytes = bytes;
  call.keeps_series = true;
  const auto notices = transfers_.calls().meet(call);
  if (!notices) return notices.error();
  transfers_.kept_writes().errors().put_error(transfers_.calls().take_earlier_error());
  std::uint64_t before = 0, all = 0;
  for (std::size_t rank = 0; rank < notices->size(); ++rank) {
    if (rank == static_cast<std::size_t>(context_.comm().rank())) before = all;
    all += (*notices)[rank].summary.bytes;
  }
  const Position begin = advance_together(all, name);
  return begin ? Position(*begin + before) : begin;
}

/// Adds `bytes` once, after a meeting of all ranks, and returns the position before to each.
Position SharedPointer::advance_together(std::uint64_t bytes, const char* name) {
  if (bytes > 0) has_moved_ = true;
  comm::Watchdog watch = context_.watchdog(name);
  const auto before = store_->advance_once(transfers_.calls().number(), bytes, watch.patience());
  if (before) return *before ? *before : Position(context_.complete_error(before->error(), name));
  Reservation reserved;
  if (context_.is_first()) {
    const Position begin = store_->advance(bytes);
    reserved = begin ? Reservation{0, *begin} : Reservation{begin.error().number, 0};
  }
  const base::Status sent = context_.broadcast(&reserved, sizeof reserved, name);
  if (!sent) return sent.error();
  if (reserved.failed == 0) return reserved.begin;
  return context_.complete_error(
      {.number = reserved.failed, .rank = 0, .detail = "the shared file pointer"}, name);
}

void SharedPointer::remove() { store_->remove(); }

}  // namespace pario::engine
