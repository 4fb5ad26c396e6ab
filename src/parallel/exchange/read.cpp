// Collective reads through windows.
//
// The phases of a slot: open -> claimed (one rank reads the bytes) -> filled -> free, once all
// ranks that touch the window, and all nodes that requested it, have copied their bytes. Before a
// window is claimed all ranks mark the bytes they need, unless the plan reads windows whole;
// windows of other nodes are always marked, so that only needed bytes travel. A rank that waits for
// its window claims the next one that can be read.
#include <algorithm>
#include <cstring>

#include "parallel/exchange/window_message.hpp"
#include "parallel/exchange/window_run.hpp"

namespace pario::exchange {
namespace {

enum ReadPhase : std::uint32_t { kOpen, kClaimed, kFilled };

/// Needed runs closer than this are read together.
constexpr std::uint64_t kGap = 64 << 10;

/// A window of another node that this rank requests.
struct OutgoingRequest {
  Step step;
  std::vector<pattern::Coverage> needed = {};
  Message reply = {};
};

/// A request of another node, which this rank answers.
struct IncomingRequest {
  Step step;
  int from;
  Message message = {};
  bool is_read = false;
};

class WindowReader : WindowRun {
 public:
  WindowReader(const RunContext& setting, const pattern::Access& access)
      : WindowRun(setting), walker_(access), marker_(access) {}
  base::Status run(std::uint64_t& bytes_read);

 private:
  static constexpr std::size_t kPosted = 8;

  void fill_upcoming();
  void queue_messages(const Step& step);
  base::Status copy_window(const Step& step);
  void release_window(const Step& step);

  bool needs_marks(const Step& step) const { return !is_owner(step) || !context_.plan.whole; }
  bool all_marked(const Step& step) const {
    return !needs_marks(step) || slot(step).marked.load() == step.parties();
  }
  bool mark_ahead();
  void add_mark(const Step& step);
  bool try_claim(const Step& step) const;
  bool read_next_claimable();
  void read_window(const Step& step);
  std::uint64_t read_whole(const Step& step);
  std::uint64_t read_needed(const Step& step);
  std::uint64_t read_file(const Step& step, base::Extent where);
  base::Result<std::uint64_t> read_non_temporal(std::uint64_t offset, std::span<std::byte> to);
  void publish_window(const Step& step, std::uint64_t limit) const;

  bool move_messages();
  bool send_requests();
  void send_request(OutgoingRequest& request);
  void unpack_reply(OutgoingRequest& request);
  bool answer_requests();
  bool answer_request(IncomingRequest& request);
  void read_request(IncomingRequest& request);
  void send_reply(IncomingRequest& request);
  bool has_messages() const {
    return !requests_.empty() || !incoming_.empty() || !send_queue_.empty();
  }

  template <class Done>
  base::Status wait(Done done) {
    return wait_until(done, [this] { return move_messages(); }, [this] { return has_messages(); });
  }

  pattern::Walker walker_, marker_;
  std::deque<Step> upcoming_;  ///< from the current step on; as many as there are slots
  std::size_t marked_ = 0;     ///< the number of marked steps, from the front
  std::deque<OutgoingRequest> requests_;
  std::deque<IncomingRequest> incoming_;
  std::uint64_t bytes_ = 0;
};

base::Status WindowReader::run(std::uint64_t& bytes_read) {
  const std::size_t ahead = 2 * context_.uses.size() + kPosted;
  for (fill_upcoming(); !upcoming_.empty(); fill_upcoming()) {
    const Step step = upcoming_.front();
    base::Status status = is_touched(step) ? copy_window(step) : base::Status{};
    if (status.ok() && has_messages()) {
      move_messages();
      status = wait([&] { return requests_.size() + incoming_.size() <= ahead; });
    }
    if (!status.ok()) return status;
    upcoming_.pop_front();
    if (marked_ > 0) --marked_;
  }
  if (base::Status status = wait([&] { return !has_messages(); }); !status.ok()) return status;
  bytes_read = bytes_;
  return outcome_;
}

void WindowReader::fill_upcoming() {
  while (upcoming_.size() < context_.uses.size()) {
    const std::optional<Step> step = steps_.next();
    if (!step) return;
    upcoming_.push_back(*step);
    queue_messages(*step);
  }
}

void WindowReader::queue_messages(const Step& step) {
  if (context_.comm.topology().nodes() == 1 || !handles_messages(step)) return;
  if (!is_owner(step)) return requests_.push_back({step});
  for (const int node : steps_.sources(step))
    incoming_.push_back({step, steps_.message_rank(node, step.index)});
}

base::Status WindowReader::copy_window(const Step& step) {
  const auto filled = [&] {
    if (has_phase(step, kFilled)) return true;
    context_.ring.add_waiting(step.slot, local_);
    return has_phase(step, kFilled);
  };
  if (base::Status status = wait(filled); !status.ok()) return status;
  {
    const Timer timer(context_.counters.copy_ns);
    const base::Extent there =
        base::intersection(step.extent, {step.extent.begin, slot(step).limit});
    if (!there.empty()) bytes_ += walker_.scatter(there, image(step.slot));
  }
  release_window(step);
  return {};
}

void WindowReader::release_window(const Step& step) {
  if (slot(step).arrived.fetch_add(1) + 1 == step.parties()) free_slot(step.slot);
}

// Marks the needed bytes of upcoming windows whose slots are open. True: it marked some.
bool WindowReader::mark_ahead() {
  bool found = false;
  for (; marked_ < upcoming_.size(); ++marked_) {
    const Step& step = upcoming_[marked_];
    if (!needs_marks(step) || !is_touched(step)) continue;
    if (!is_open(step)) break;
    marker_.mark(step.extent, own_coverage(step));
    add_mark(step);
    found = true;
  }
  return found;
}

void WindowReader::add_mark(const Step& step) {
  if (slot(step).marked.fetch_add(1) + 1 < step.parties()) return;
  if (is_owner(step))
    context_.ring.wake_waiting(step.slot);
  else
    wake_message_rank(step);
}

bool WindowReader::try_claim(const Step& step) const {
  if (!is_owner(step) || !has_phase(step, kOpen) || !all_marked(step)) return false;
  std::uint32_t open = state_of(step.use, kOpen);
  return slot(step).state.compare_exchange_strong(open, state_of(step.use, kClaimed));
}

bool WindowReader::read_next_claimable() {
  for (const Step& step : upcoming_) {
    if (!try_claim(step)) continue;
    read_window(step);
    return true;
  }
  return false;
}

void WindowReader::read_window(const Step& step) {
  publish_window(step, context_.plan.whole ? read_whole(step) : read_needed(step));
}

std::uint64_t WindowReader::read_whole(const Step& step) { return read_file(step, step.extent); }

void WindowReader::publish_window(const Step& step, std::uint64_t limit) const {
  slot(step).limit = limit;
  set_phase(step, kFilled);
  context_.ring.wake_waiting(step.slot);
  if (step.sources > 0) wake_message_rank(step);
}

std::uint64_t WindowReader::read_needed(const Step& step) {
  const std::vector<pattern::Coverage> needed = find_coverages(step.slot, step.extent, step.index);
  pattern::CoverageRuns runs(step.extent, needed);
  std::uint64_t limit = step.extent.end;
  for (base::Extent run = runs.next(); !run.empty() && limit == step.extent.end;) {
    base::Extent following = runs.next();
    for (; !following.empty() && following.begin - run.end <= kGap; following = runs.next())
      run.end = following.end;
    if (const std::uint64_t end = read_file(step, run); end < run.end) limit = end;
    run = following;
  }
  clear_coverages(needed, step.extent);
  return limit;
}

// Returns the end of the file if it lies in `where`, otherwise where.end.
std::uint64_t WindowReader::read_file(const Step& step, base::Extent where) {
  const std::span<std::byte> to(image(step.slot) + (where.begin - step.extent.begin),
                                where.length());
  base::Result<std::uint64_t> got(0);
  store_into(step, context_.counters.file_ns, [&](bool non_temporal) {
    got = non_temporal ? read_non_temporal(where.begin, to) : context_.file.read(where.begin, to);
    return to.size();
  });
  if (!got.ok()) {
    keep_error(got.status());
    return where.begin;
  }
  context_.counters.add_read(got.value());
  return where.begin + got.value();
}

base::Result<std::uint64_t> WindowReader::read_non_temporal(std::uint64_t offset,
                                                            std::span<std::byte> to) {
  Buffer buffer = context_.buffers.get(to.size());
  const std::span<std::byte> bytes = buffer.bytes().first(to.size());
  base::Result<std::uint64_t> got = context_.file.read(offset, bytes);
  if (got.ok()) pattern::copy_past_caches(to.data(), bytes);
  context_.buffers.put(std::move(buffer));
  return got;
}

bool WindowReader::move_messages() {
  const bool left = send_queue_.remove_sent();
  const bool marked = mark_ahead();
  const bool asked = send_requests();
  const bool answered = answer_requests();
  if (left || marked || asked || answered) return true;
  return read_next_claimable();
}

bool WindowReader::send_requests() {
  bool found = false;
  for (std::size_t i = 0; i < requests_.size();) {
    OutgoingRequest& request = requests_[i];
    if (!request.reply.is_posted()) {
      if (!has_phase(request.step, kOpen) || !all_marked(request.step)) break;
      send_request(request);
      found = true;
    }
    if (!request.reply.test()) {
      ++i;
      continue;
    }
    unpack_reply(request);
    requests_.erase(requests_.begin() + static_cast<std::ptrdiff_t>(i));
    found = true;
  }
  return found;
}

// A request is a window message without bytes; its reply is the limit and then the bytes.
void WindowReader::send_request(OutgoingRequest& request) {
  const Timer timer(context_.counters.message_ns);
  const Step& step = request.step;
  request.needed = find_coverages(step.slot, step.extent, step.index);
  Buffer message =
      pack_window_message(context_.buffers, step.extent, request.needed, context_.granule, nullptr);
  const std::uint64_t length =
      WindowMessage(message.bytes(), step.extent, context_.granule).length();
  const int owner = steps_.message_rank(step.owner, step.index);
  request.reply = receive(owner, data_tag(step.index), sizeof(std::uint64_t) + length);
  send(owner, request_tag(step.index), std::move(message));
  set_phase(step, kClaimed);
}

void WindowReader::unpack_reply(OutgoingRequest& request) {
  const Timer timer(context_.counters.message_ns);
  const Step& step = request.step;
  const std::byte* bytes = request.reply.buffer().data.get();
  std::uint64_t limit = 0;
  std::memcpy(&limit, bytes, sizeof limit);
  bytes += sizeof limit;
  pattern::CoverageRuns runs(step.extent, request.needed);
  for (base::Extent run = runs.next(); !run.empty(); run = runs.next()) {
    std::memcpy(image(step.slot) + (run.begin - step.extent.begin), bytes, run.length());
    bytes += run.length();
  }
  clear_coverages(request.needed, step.extent);
  context_.buffers.put(std::move(request.reply.buffer()));
  publish_window(step, limit);
}

bool WindowReader::answer_requests() {
  bool found = false;
  for (std::size_t i = 0; i < std::min(incoming_.size(), kPosted);) {
    const bool is_read = incoming_[i].is_read;
    if (answer_request(incoming_[i])) {
      incoming_.erase(incoming_.begin() + static_cast<std::ptrdiff_t>(i));
      found = true;
      continue;
    }
    found = found || is_read != incoming_[i].is_read;
    ++i;
  }
  return found;
}

// Sends the reply to a request once its window is filled. True: the reply is in flight.
bool WindowReader::answer_request(IncomingRequest& request) {
  const Step& step = request.step;
  if (!request.message.is_posted())
    request.message = receive(request.from, request_tag(step.index),
                              message_limit(step.extent.length(), context_.granule));
  if (!request.message.test() || !is_open(step)) return false;
  if (!request.is_read) read_request(request);
  if (try_claim(step)) read_window(step);
  if (!has_phase(step, kFilled))
    return false;  // not limited by own requests: the other node may wait for this reply
  send_reply(request);
  return true;
}

void WindowReader::read_request(IncomingRequest& request) {
  request.is_read = true;
  const Step& step = request.step;
  if (!needs_marks(step)) return;
  WindowMessage window_message(request.message.buffer().bytes(), step.extent, context_.granule);
  while (const std::optional<base::Extent> run = window_message.next())
    set_bits(own_coverage(step), step.extent, *run);
  add_mark(step);
}

void WindowReader::send_reply(IncomingRequest& request) {
  const Timer timer(context_.counters.message_ns);
  const Step& step = request.step;
  WindowMessage window_message(request.message.buffer().bytes(), step.extent, context_.granule);
  Buffer message = context_.buffers.get(sizeof(std::uint64_t) + window_message.length());
  std::byte* bytes = message.data.get();
  std::memcpy(bytes, &slot(step).limit, sizeof(std::uint64_t));
  bytes += sizeof(std::uint64_t);
  while (const std::optional<base::Extent> run = window_message.next()) {
    std::memcpy(bytes, image(step.slot) + (run->begin - step.extent.begin), run->length());
    bytes += run->length();
  }
  send(request.from, data_tag(step.index), std::move(message));
  context_.buffers.put(std::move(request.message.buffer()));
  release_window(step);
}

}  // namespace

base::Status run_reads(const RunContext& setting, const pattern::Access& access,
                       std::uint64_t& bytes_read) {
  return WindowReader(setting, access).run(bytes_read);
}

}  // namespace pario::exchange
