#include "engine/watch.hpp"

#include <algorithm>
#include <cerrno>

#include "trace/trace.hpp"

namespace pario::engine {
namespace {

/// People are told also where nothing is traced.
void say(const std::string& text) {
  if (trace::on())
    trace::message(text);
  else
    base::say("pario: " + text + "\n");
}

}  // namespace

comm::Patience Watch::patience() {
  return {.look = [this](std::uint64_t waited_ns) { return look(waited_ns); }, .progress = [this] { comm_.progress(); }};
}

base::Status Watch::look(std::uint64_t waited_ns) {
  if (base::Status status = comm_.check(silence_); !status) return status;
  if (next_ns_ != 0 && waited_ns >= next_ns_) {
    report(waited_ns);
    next_ns_ *= 2;
  }
  if (patience_ == 0 || waited_ns < patience_ * 1'000'000'000) return {};
  const std::string seconds = std::to_string(patience_);
  return base::Error{.number = ETIMEDOUT, .operation = call_, .path = path_, .detail = "waited " + seconds + " s (hint pario_patience)"};
}

/// One rank of a node speaks for all that wait.
bool Watch::speaks(const std::vector<int>& absent) const {
  for (const int rank : comm_.node_ranks())
    if (std::ranges::find(absent, rank) == absent.end()) return rank == comm_.rank();
  return false;
}

void Watch::report(std::uint64_t waited_ns) const {
  std::vector<int> absent = exchange_ != nullptr ? exchange_->absent(sequence_) : std::vector<int>();
  if (!speaks(absent)) return;
  std::string text = std::string(call_) + " of " + path_ + ": rank " + std::to_string(comm_.world_rank(comm_.rank())) + " has waited " +
                     std::to_string(waited_ns / 1'000'000'000) + " s, ";
  std::ranges::transform(absent, absent.begin(), [this](int rank) { return comm_.world_rank(rank); });
  if (absent.empty())
    text += "all ranks of its node have come";
  else
    text += comm::named(absent) + (absent.size() == 1 ? " has not come" : " have not come");
  say(text);
}

}  // namespace pario::engine
