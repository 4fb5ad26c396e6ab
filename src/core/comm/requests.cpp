#include "core/comm/requests.hpp"

#include "core/base/sleep.hpp"
#include "core/comm/communicator.hpp"
#include "core/comm/send_guard.hpp"

namespace pario::comm {
namespace {

constexpr std::uint64_t kLastWait = 1'000'000'000;  // for messages in flight, after a failed wait

}  // namespace

Requests::~Requests() {
  if (!requests_.empty() && !is_finalizing() && !Requests::test()) withdraw();
}

void Requests::note(int result) {
  if (result == 0 || error_ != 0) return;
  error_ = EIO;
  if (board_) board_->fail(mpi_failed());
}

bool Requests::test() {
  const SendGuard guard;  // a test also advances collective calls, which send
  std::erase_if(requests_, [this](mpi::Word& request) {
    int done = 0;
    const int result = mpi_.test(&request, &done, reinterpret_cast<void*>(mpi_.status_ignore));
    note(result);
    return done != 0 || result != 0;
  });
  return requests_.empty();
}

void Requests::withdraw() {
  if (receiving_) {
    for (mpi::Word& request : requests_) mpi_.cancel(&request);
  }
  const std::uint64_t begin = base::monotonic_ns();
  while (!Requests::test() && base::monotonic_ns() - begin < kLastWait) base::sleep_ns(1'000'000);
  for (mpi::Word& request : requests_) mpi_.request_free(&request);
}

}  // namespace pario::comm
